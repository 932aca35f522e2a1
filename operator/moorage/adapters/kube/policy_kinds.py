"""Where policies are in the API: their group, version and two kinds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from moorage.core.model.policy import PolicyRef

GROUP, VERSION = "moorage.dev", "v1alpha1"
PREFIX = f"/apis/{GROUP}/{VERSION}"


@dataclass(frozen=True, slots=True)
class PolicyKind:
    """A kind of policy, and how it is named in paths."""

    kind: str
    plural: str
    namespaced: bool

    @property
    def path(self) -> str:
        """The collection of all policies of the kind."""
        return f"{PREFIX}/{self.plural}"


SCHEDULING_POLICY = PolicyKind("SchedulingPolicy", "schedulingpolicies", namespaced=True)
CLUSTER_SCHEDULING_POLICY = PolicyKind(
    "ClusterSchedulingPolicy", "clusterschedulingpolicies", namespaced=False
)
POLICY_KINDS = (SCHEDULING_POLICY, CLUSTER_SCHEDULING_POLICY)


def status_path(ref: PolicyRef) -> str:
    """Where the status of a policy is written."""
    if ref.namespace:
        return f"{PREFIX}/namespaces/{ref.namespace}/{SCHEDULING_POLICY.plural}/{ref.name}/status"
    return f"{CLUSTER_SCHEDULING_POLICY.path}/{ref.name}/status"


def policy_ref(obj: Mapping[str, Any]) -> PolicyRef:
    """Which policy a raw object is.  Raises KeyError or TypeError if it has no name."""
    meta = obj["metadata"]
    return PolicyRef(meta.get("namespace") or "", meta["name"])
