"""NodeUnschedulable: cordoned nodes take only pods that tolerate the cordon's taint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from moorage.core.framework.interface import Reads, Reason, Skip, Verdict
from moorage.core.model.cluster_event import Action, ClusterEvent, Resource, WakesOn
from moorage.core.model.pod import Pod
from moorage.core.model.taint import NO_SCHEDULE, UNSCHEDULABLE_KEY, Taint, tolerated
from moorage.core.snapshot.snapshot import Snapshot
from moorage.core.snapshot.view import Nodes

_CORDON = Taint(UNSCHEDULABLE_KEY, "", NO_SCHEDULE)
_REASONS = (Reason("node(s) were unschedulable", resolvable=False),)


class NodeUnschedulable:
    """Looks at ``spec.unschedulable`` itself, since the taint follows it with a delay."""

    name: ClassVar[str] = "NodeUnschedulable"
    reads: ClassVar[Reads] = Reads.NODE

    def pre_filter(self, pod: Pod, snapshot: Snapshot) -> Skip | None:
        """Pods that tolerate the cordon are not checked."""
        return Skip.SKIP if tolerated(_CORDON, pod.spec.tolerations) else None

    def filter(self, state: None, nodes: Nodes) -> Verdict:
        """Cordoned nodes fail."""
        return Verdict(_REASONS, nodes.unschedulable[None, :])

    def wakes_on(self) -> Sequence[WakesOn]:
        """A node is uncordoned or added; the pod learns to tolerate the cordon."""
        return (
            WakesOn(Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT, _opened),
            WakesOn(Resource.PENDING_POD, Action.UPDATE_POD_TOLERATIONS, _now_tolerates),
        )


def _opened(pod: Pod, event: ClusterEvent) -> bool:
    return not event.new.unschedulable and (event.old is None or bool(event.old.unschedulable))


def _now_tolerates(pod: Pod, event: ClusterEvent) -> bool:
    return tolerated(_CORDON, pod.spec.tolerations)
