"""What the queue counts for metrics: pods that came into its places, and why, and what keeps pods from being placed.

The words are the label values of kube-scheduler's ``scheduler_queue_incoming_pods_total``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum
from functools import lru_cache

from moorage.core.model.cluster_event import Action, Resource


class Cause(StrEnum):
    """Why a pod came into a place of the queue, where it was no change of the cluster."""

    POD_ADDED = "UnscheduledPodAdd"
    GATE_CHANGED = "TargetPodUpdatePodSchedulingGatesEliminated"
    FAILED = "ScheduleAttemptFailure"
    BACKOFF_OVER = "BackoffComplete"
    TAKEN_EARLY = "PopFromBackoffQ"
    TOLD_TO = "ForceActivate"
    WAITED_LONG = "UnschedulableTimeout"
    # These two are ours alone.
    POLICY = "PolicyChange"
    PROFILE = "ProfileChange"


_RESOURCES = {
    Resource.PENDING_POD: "TargetPod",
    Resource.CSI_NODE: "storage.k8s.io/CSINode",
    Resource.CSI_DRIVER: "storage.k8s.io/CSIDriver",
    Resource.VOLUME_ATTACHMENT: "storage.k8s.io/VolumeAttachment",
    Resource.CSI_STORAGE_CAPACITY: "storage.k8s.io/CSIStorageCapacity",
    Resource.STORAGE_CLASS: "storage.k8s.io/StorageClass",
    Resource.DEVICE_CLASS: "resource.k8s.io/DeviceClass",
}
_ACTIONS = {
    Action.ADD: "Add",
    Action.DELETE: "Delete",
    Action.UPDATE_NODE_ALLOCATABLE: "UpdateNodeAllocatable",
    Action.UPDATE_NODE_LABEL: "UpdateNodeLabel",
    Action.UPDATE_NODE_TAINT: "UpdateNodeTaint",
    Action.UPDATE_NODE_CONDITION: "UpdateNodeCondition",
    Action.UPDATE_NODE_ANNOTATION: "UpdateNodeAnnotation",
    Action.UPDATE_NODE_DECLARED_FEATURE: "UpdateNodeDeclaredFeature",
    Action.UPDATE_POD_LABEL: "UpdatePodLabel",
    Action.UPDATE_POD_SCALE_DOWN: "UpdatePodScaleDown",
    Action.UPDATE_POD_TOLERATIONS: "UpdatePodToleration",
    Action.UPDATE_POD_GATES_ELIMINATED: "UpdatePodSchedulingGatesEliminated",
}


@lru_cache(maxsize=256)
def cause_of(resource: Resource, action: Action) -> str:
    """kube-scheduler's name for a change; what it has no word for, or changes of several parts, are updates."""
    return _RESOURCES.get(resource, resource.value) + _ACTIONS.get(action, "Update")


class QueueFigures:
    """``incoming`` counts by (place, cause), ``rejected`` the pods by (plugin, scheduler name) of their last try."""

    def __init__(self) -> None:
        self.incoming: Counter[tuple[str, str]] = Counter()
        self.rejected: Counter[tuple[str, str]] = Counter()

    def came(self, place: str, cause: str) -> None:
        """A pod came into that place of the queue; without a cause it was there already, for what metrics tell."""
        if cause:
            self.incoming[place, cause] += 1

    def rejections(self, before: Iterable[str], after: Iterable[str], scheduler_name: str) -> None:
        """The plugins that a pod was rejected by last are others now."""
        for plugin in before:
            key = plugin, scheduler_name
            self.rejected[key] -= 1
            if not self.rejected[key]:
                del self.rejected[key]
        for plugin in after:
            self.rejected[plugin, scheduler_name] += 1
