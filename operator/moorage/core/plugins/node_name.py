"""NodeName: a pod that names its node goes there or nowhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from moorage.core.framework.interface import Narrowed, Reads, Reason, Skip, Verdict
from moorage.core.model.cluster_event import Action, ClusterEvent, Resource, WakesOn
from moorage.core.model.pod import Pod
from moorage.core.snapshot.snapshot import Snapshot
from moorage.core.snapshot.view import Nodes

_REASONS = (Reason("node(s) didn't match the requested node name", resolvable=False),)


class NodeName:
    """Refuses every node but the one named in ``spec.nodeName``."""

    name: ClassVar[str] = "NodeName"
    reads: ClassVar[Reads] = Reads.NODE

    def pre_filter(self, pod: Pod, snapshot: Snapshot) -> Narrowed[str] | Skip:
        """Narrows to the wanted node, so that eviction on others is never considered."""
        name = pod.spec.node_name
        return Narrowed(name, frozenset((name,))) if name else Skip.SKIP

    def filter(self, state: str, nodes: Nodes) -> Verdict:
        """All nodes of another name fail."""
        failed = ~nodes.false()
        row = nodes.snapshot.row_of(state)
        if row is not None:
            failed[nodes.rows == row] = False
        return Verdict(_REASONS, failed[None, :])

    def wakes_on(self) -> Sequence[WakesOn]:
        """The named node appears."""
        return (WakesOn(Resource.NODE, Action.ADD, _is_named),)


def _is_named(pod: Pod, event: ClusterEvent) -> bool:
    return bool(event.new.name == pod.spec.node_name)
