"""NodeDeclaredFeatures: the node must declare the features of its kubelet that the pod cannot do without."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from moorage.core.framework.interface import Reads, Reason, Skip, Verdict
from moorage.core.model.cluster_event import Action, ClusterEvent, Resource, WakesOn
from moorage.core.model.pod import Pod
from moorage.core.snapshot.snapshot import Snapshot
from moorage.core.snapshot.view import Nodes

_REASONS = (Reason("node(s) didn't match Pod's required features", resolvable=False),)

#: The features that the pod needs.
Needed = tuple[str, ...]


class NodeDeclaredFeatures:
    """Compares ``status.declaredFeatures`` of nodes with the features that follow from the pod's spec."""

    name: ClassVar[str] = "NodeDeclaredFeatures"
    reads: ClassVar[Reads] = Reads.NODE

    def pre_filter(self, pod: Pod, snapshot: Snapshot) -> Needed | Skip:
        """Most pods need none."""
        return pod.spec.required_features or Skip.SKIP

    def filter(self, state: Needed, nodes: Nodes) -> Verdict:
        """Nodes that do not declare all of them fail."""
        return Verdict(_REASONS, ~nodes.declaring(state)[None, :])

    def wakes_on(self) -> Sequence[WakesOn]:
        """A node comes that declares what the pod needs, or begins to; the pod needs something else."""
        return (
            WakesOn(Resource.NODE, Action.ADD | Action.UPDATE_NODE_DECLARED_FEATURE, _declares),
            WakesOn(Resource.PENDING_POD, Action.UPDATE_POD_OTHER, _needs_changed),
        )


def _declares(pod: Pod, event: ClusterEvent) -> bool:
    # kube-scheduler wakes its pods for any change of the list; one after which a feature is still missing, or before
    # which none was, helps nobody.
    needed = set(pod.spec.required_features)
    before = () if event.old is None else event.old.declared_features
    return needed.issubset(event.new.declared_features) and not (event.old and needed.issubset(before))


def _needs_changed(pod: Pod, event: ClusterEvent) -> bool:
    return bool(event.old.spec.required_features != event.new.spec.required_features)
