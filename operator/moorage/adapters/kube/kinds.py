"""Which kinds of objects mean something to scheduling, by API version."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final


class Role(Enum):
    """What this version does with a kind."""

    USED = auto()
    IDLE = auto()  # a kind of Kubernetes' own that has no influence here
    UNKNOWN = auto()  # somebody's custom resource, most likely
    MISTAKEN = auto()  # Kubernetes has no such kind, or has it in another group


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind as found in an object; ``remark`` tells what is odd about it."""

    name: str
    namespaced: bool
    role: Role
    remark: str = ""


#: kind -> (group, served versions, newest first, namespaced); older versions have the same fields.
_USED: Final = {
    "Pod": ("", ("v1",), True),
    "Node": ("", ("v1",), False),
    "Namespace": ("", ("v1",), False),
    "PriorityClass": ("scheduling.k8s.io", ("v1", "v1beta1", "v1alpha1"), False),
    "PodDisruptionBudget": ("policy", ("v1", "v1beta1"), True),
    "PersistentVolume": ("", ("v1",), False),
    "PersistentVolumeClaim": ("", ("v1",), True),
    "StorageClass": ("storage.k8s.io", ("v1", "v1beta1"), False),
    "CSINode": ("storage.k8s.io", ("v1", "v1beta1"), False),
    "CSIDriver": ("storage.k8s.io", ("v1", "v1beta1"), False),
    "CSIStorageCapacity": ("storage.k8s.io", ("v1", "v1beta1"), True),
    "VolumeAttachment": ("storage.k8s.io", ("v1", "v1beta1"), False),
    "DeviceClass": ("resource.k8s.io", ("v1", "v1beta2", "v1beta1"), False),
    "Service": ("", ("v1",), True),
    "ReplicationController": ("", ("v1",), True),
    "ReplicaSet": ("apps", ("v1",), True),
    "StatefulSet": ("apps", ("v1",), True),
    "NodeMetrics": ("metrics.k8s.io", ("v1beta1",), False),
    "SchedulingPolicy": ("moorage.dev", ("v1alpha1",), True),
    "ClusterSchedulingPolicy": ("moorage.dev", ("v1alpha1",), False),
}
_CORE_IDLE: Final = frozenset(
    {
        "Binding",
        "ComponentStatus",
        "ConfigMap",
        "Endpoints",
        "Event",
        "LimitRange",
        "PodTemplate",
        "ResourceQuota",
        "Secret",
        "ServiceAccount",
    }
)
_KUBERNETES_GROUPS: Final = frozenset(
    {"apps", "autoscaling", "batch", "events.k8s.io", "extensions", "policy"}
)
_CLUSTER_SCOPED: Final = frozenset(
    {
        "APIService",
        "CSIDriver",
        "CSINode",
        "ClusterRole",
        "ClusterRoleBinding",
        "ComponentStatus",
        "CustomResourceDefinition",
        "DeviceTaintRule",
        "FlowSchema",
        "IngressClass",
        "PersistentVolume",
        "PriorityLevelConfiguration",
        "ResourceSlice",
        "RuntimeClass",
        "StorageClass",
        "VolumeAttachment",
        "VolumeAttributesClass",
    }
)


def look_up(api_version: str, kind: str) -> Kind:
    """What the kind of that version is to us."""
    group, _, version = api_version.rpartition("/")
    if kind in _USED:
        right_group, versions, namespaced = _USED[kind]
        if group == right_group and version in versions:
            return Kind(kind, namespaced, Role.USED)
        right = f"{right_group}/{versions[0]}".lstrip("/")
        return Kind(kind, namespaced, Role.MISTAKEN, f"{kind} is a kind of {right}, not of {api_version}")
    namespaced = kind not in _CLUSTER_SCOPED
    if api_version == "v1":
        if kind in _CORE_IDLE:
            return Kind(kind, namespaced, Role.IDLE)
        return Kind(kind, namespaced, Role.MISTAKEN, f"v1 has no kind {kind!r}{_guess(kind)}")
    if group in _KUBERNETES_GROUPS or group.endswith(".k8s.io"):
        return Kind(kind, namespaced, Role.IDLE)
    return Kind(kind, namespaced, Role.UNKNOWN, f"kind {kind} of {api_version} is not known here")


def list_of(kind: str) -> str | None:
    """The kind of a list's items: "" for a plain List, "Pod" for a PodList, None if it is no list."""
    return kind.removesuffix("List") if kind.endswith("List") else None


def _guess(kind: str) -> str:
    meant = {name.lower(): name for name in (*_USED, *_CORE_IDLE)}.get(kind.lower().rstrip("s"))
    return f"; is {meant} meant?" if meant else ""
