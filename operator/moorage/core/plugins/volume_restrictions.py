"""VolumeRestrictions: disks that pods of a node cannot share, and claims that only one pod may use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from moorage.core.framework.interface import Bools, Ints, Reads, Reason, Rejected, Skip, Verdict
from moorage.core.framework.trials import Balance, Trial
from moorage.core.model.cluster_event import Action, ClusterEvent, Resource, WakesOn
from moorage.core.model.decision import Code
from moorage.core.model.pod import Pod
from moorage.core.model.pod_volumes import Disk
from moorage.core.model.storage import READ_WRITE_ONCE_POD
from moorage.core.snapshot.disks import meetings
from moorage.core.snapshot.snapshot import Snapshot
from moorage.core.snapshot.view import Nodes

_REASONS = (
    Reason("node(s) had no available disk"),
    Reason(
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already "
        "in-use by another pod"
    ),
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The pod's disks, its claims that only one pod may use (by key), and how many of those are taken."""

    disks: tuple[Disk, ...]
    single: frozenset[str]
    taken: int


class VolumeRestrictions:
    """Looks at disks named in pods and at the access mode ReadWriteOncePod."""

    name: ClassVar[str] = "VolumeRestrictions"
    reads: ClassVar[Reads] = Reads.USAGE | Reads.CLUSTER

    def pre_filter(self, pod: Pod, snapshot: Snapshot) -> Wanted | Skip | Rejected:
        """Rejects a pod whose claim does not exist."""
        if not pod.volumes:
            return Skip.SKIP
        single: set[str] = set()
        for use in pod.volumes.claims:
            if use.ephemeral:
                continue
            claim = snapshot.storage.claims.get(f"{pod.namespace}/{use.name}")
            if claim is None:
                return Rejected((f'persistentvolumeclaim "{use.name}" not found',), Code.UNRESOLVABLE)
            if READ_WRITE_ONCE_POD in claim.access_modes:
                single.add(claim.key)
        taken = sum(snapshot.attached.in_use(key) for key in single)
        if not pod.volumes.disks and not taken:
            return Skip.SKIP
        return Wanted(pod.volumes.disks, frozenset(single), taken)

    def with_pods(
        self, state: Wanted, row: int, added: Sequence[Pod], removed: Sequence[Pod], snapshot: Snapshot
    ) -> Wanted:
        """Fewer or more users of the claims that only one pod may use."""
        change = _uses(added, state.single) - _uses(removed, state.single)
        return replace(state, taken=state.taken + change) if change else state

    def filter(self, state: Wanted, nodes: Nodes) -> Verdict:
        """A node fails for a disk first; a claim that is taken is taken for all nodes."""
        occupied = np.zeros(nodes.snapshot.capacity, dtype=np.bool_)
        occupied[list(nodes.snapshot.disks.rows_in_conflict(state.disks))] = True
        mounted = occupied[nodes.rows]
        taken = ~mounted if state.taken > 0 else nodes.false()
        return Verdict(_REASONS, np.stack((mounted, taken)))

    def trial(self, state: Wanted, trial: Trial) -> Balance:
        """Sums: how often a disk meets one that it excludes, and the users of the claims."""
        mounted = trial.by_row(trial.snapshot.disks.times_in_conflict(state.disks))
        disks = trial.weighed(lambda pod: meetings(state.disks, pod.volumes.disks), mounted > 0)
        users = trial.weighed(lambda pod: _uses((pod,), state.single))

        def judge(change: Ints, at: Ints) -> Verdict:
            occupied: Bools = mounted[at] + change[0] > 0
            taken: Bools = ~occupied & (state.taken + change[1] > 0)
            return Verdict(_REASONS, np.stack((occupied, taken)))

        return Balance.of((disks, users), judge)

    def wakes_on(self) -> Sequence[WakesOn]:
        """A pod with such a volume goes, a node is added, a missing claim is made."""
        return (
            WakesOn(Resource.ASSIGNED_POD, Action.DELETE, _releases, per_spec=False),
            WakesOn(Resource.NODE, Action.ADD),
            WakesOn(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD, _is_mine, per_spec=False),
        )


def _uses(pods: Sequence[Pod], keys: frozenset[str]) -> int:
    """How many volumes of these pods are such claims."""
    return sum(
        not use.ephemeral and f"{pod.namespace}/{use.name}" in keys
        for pod in pods
        for use in pod.volumes.claims
    )


def _releases(pod: Pod, event: ClusterEvent) -> bool:
    gone: Pod = event.old
    if any(mine.conflicts(theirs) for mine in pod.volumes.disks for theirs in gone.volumes.disks):
        return True
    if gone.namespace != pod.namespace:
        return False
    mine = {use.name for use in pod.volumes.claims if not use.ephemeral}
    return any(use.name in mine for use in gone.volumes.claims if not use.ephemeral)


def _is_mine(pod: Pod, event: ClusterEvent) -> bool:
    claim = event.new
    return pod.namespace == claim.namespace and any(
        use.name == claim.name for use in pod.volumes.claims if not use.ephemeral
    )
