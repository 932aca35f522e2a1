"""TaintToleration: taints keep pods away, or make a node less liked (PreferNoSchedule)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from moorage.core.framework.interface import Ints, Reads, Reason, Skip, Verdict, normalize_by_max
from moorage.core.model.cluster_event import Action, ClusterEvent, Resource, WakesOn
from moorage.core.model.pod import Pod
from moorage.core.model.taint import NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE, Taint, Toleration, tolerated
from moorage.core.snapshot.snapshot import Snapshot
from moorage.core.snapshot.view import Nodes

Tolerations = tuple[Toleration, ...]

_REASONS = (Reason("node(s) had untolerated taint(s)", resolvable=False),)


def _repelled(taints: tuple[Taint, ...], tolerations: Tolerations) -> int:
    """1 if a taint of effect NoSchedule or NoExecute is not tolerated, else 0."""
    return int(any(t.effect in (NO_SCHEDULE, NO_EXECUTE) and not tolerated(t, tolerations) for t in taints))


def _disliked(taints: tuple[Taint, ...], tolerations: Tolerations) -> int:
    """How many taints of effect PreferNoSchedule are not tolerated."""
    return sum(t.effect == PREFER_NO_SCHEDULE and not tolerated(t, tolerations) for t in taints)


class TaintToleration:
    """Filters by NoSchedule and NoExecute taints, scores by PreferNoSchedule ones."""

    name: ClassVar[str] = "TaintToleration"
    reads: ClassVar[Reads] = Reads.NODE

    def pre_filter(self, pod: Pod, snapshot: Snapshot) -> Tolerations:
        """The pod's tolerations."""
        return pod.spec.tolerations

    def filter(self, state: Tolerations, nodes: Nodes) -> Verdict:
        """Nodes with a hard taint that is not tolerated fail."""
        return Verdict(_REASONS, (nodes.measure_taints(_repelled, state) > 0)[None, :])

    def pre_score(self, pod: Pod, snapshot: Snapshot, nodes: Nodes) -> Tolerations | Literal[Skip.SKIP]:
        """Only tolerations of effect PreferNoSchedule, or of every effect, count here."""
        return tuple(t for t in pod.spec.tolerations if t.effect in ("", PREFER_NO_SCHEDULE))

    def score(self, state: Tolerations, nodes: Nodes) -> Ints:
        """Untolerated soft taints: fewer is better."""
        return nodes.measure_taints(_disliked, state)

    def normalize(self, raw: Ints) -> Ints:
        """The node with the fewest gets most."""
        return normalize_by_max(raw, reverse=True)

    def wakes_on(self) -> Sequence[WakesOn]:
        """A node without the taint appears, or the pod gets a toleration."""
        return (
            WakesOn(Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT, _no_longer_repelled),
            WakesOn(Resource.PENDING_POD, Action.UPDATE_POD_TOLERATIONS),
        )


def _no_longer_repelled(pod: Pod, event: ClusterEvent) -> bool:
    was = event.old is None or _repelled(event.old.taints, pod.spec.tolerations)
    return bool(was) and not _repelled(event.new.taints, pod.spec.tolerations)
