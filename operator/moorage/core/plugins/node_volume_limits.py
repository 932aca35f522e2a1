"""NodeVolumeLimits: a node can attach only so many volumes of a CSI driver, and none without the driver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from moorage.core.framework.interface import Bools, Reads, Reason, Skip, Verdict
from moorage.core.framework.trials import Balance, Trial
from moorage.core.model.cluster_event import Action, ClusterEvent, Resource, WakesOn
from moorage.core.model.csi_migration import inline_source
from moorage.core.model.pod import Pod
from moorage.core.model.storage import CSIDriver, CSINode, CSISource
from moorage.core.snapshot.attached_volumes import NO_LIMIT
from moorage.core.snapshot.snapshot import Snapshot
from moorage.core.snapshot.view import Nodes

_TOO_MANY = Reason("node(s) exceed max volume count")


@dataclass(frozen=True, slots=True)
class NewVolumes:
    """The volumes that a pod brings, by driver; ``problem``: why they cannot be told.

    ``migrated`` are drivers that only take volumes of in-tree plugins here, which they do where a CSINode is known.
    ``needed`` are the drivers without which a node will not do.
    """

    by_driver: Mapping[str, frozenset[CSISource]] = field(default_factory=dict)
    migrated: frozenset[str] = frozenset()
    needed: tuple[str, ...] = ()
    problem: str = ""


class NodeVolumeLimits:
    """Counts a volume once a node, however many pods there use it."""

    name: ClassVar[str] = "NodeVolumeLimits"
    reads: ClassVar[Reads] = Reads.NODE | Reads.USAGE | Reads.CLUSTER

    def pre_filter(self, pod: Pod, snapshot: Snapshot) -> NewVolumes | Skip:
        """Which volumes of which drivers the pod brings."""
        if not pod.volumes.claims and not pod.volumes.in_tree:
            return Skip.SKIP
        storage, attached = snapshot.storage, snapshot.attached
        sources: set[CSISource] = set()
        everywhere: set[str] = set()
        for use in pod.volumes.claims:
            key = f"{pod.namespace}/{use.name}"
            claim = storage.claims.get(key)
            if claim is None:
                text = f'looking up PVC {key}: persistentvolumeclaim "{use.name}" not found'
                return NewVolumes(problem=text)
            if use.ephemeral and claim.owner != pod.uid:
                text = f"PVC {key} was not created for pod {pod.key} (pod is not owner)"
                return NewVolumes(problem=text)
            source = attached.source_of(claim, csi_node=True)
            if source is not None:
                sources.add(source)
                if attached.source_of(claim, csi_node=False) is not None:
                    everywhere.add(source.driver)
        sources.update(filter(None, map(inline_source, pod.volumes.in_tree)))
        drivers = sorted({source.driver for source in sources})
        return NewVolumes(
            {name: frozenset(source for source in sources if source.driver == name) for name in drivers},
            frozenset(drivers) - everywhere,
            tuple(name for name in drivers if _is_needed(storage.csi_drivers.get(name))),
        )

    def filter(self, state: NewVolumes, nodes: Nodes) -> Verdict:
        """A missing driver first, then too many volumes."""
        reasons = (
            _TOO_MANY,
            *(Reason(f"{name} CSI driver is not installed on the node") for name in state.needed),
            *((Reason(state.problem, resolvable=False),) if state.problem else ()),
        )
        failed = np.zeros((len(reasons), len(nodes)), dtype=np.bool_)
        if state.problem:
            failed[-1] = True
            return Verdict(reasons, failed)
        attached = nodes.snapshot.attached
        left = ~nodes.false()
        known = attached.known[nodes.rows]
        for index, driver in enumerate(state.needed, start=1):
            brings = left & known if driver in state.migrated else left
            failed[index] = brings & ~attached.installed(driver)[nodes.rows]
            left &= ~failed[index]
        for driver, sources in state.by_driver.items():
            failed[0] |= left & _too_many(sources, driver, nodes)
        return Verdict(reasons, failed)

    def trial(self, state: NewVolumes, trial: Trial) -> Balance:
        """Where the pod's volumes fit in besides all that are there, it does not matter which of these go.

        Elsewhere it does, in a way that is no sum: two pods may use one volume.
        """
        if state.problem:
            return Balance.fixed(self, state, trial)
        attached, rows = trial.snapshot.attached, trial.rows
        unsure = trial.nodes.false()
        for driver, sources in state.by_driver.items():
            limits = attached.limits(driver)[rows]
            unsure |= (limits < NO_LIMIT) & (attached.counts(driver)[rows] + len(sources) > limits)
        brings = trial.coming.weighed(lambda pod: bool(pod.volumes))
        unsure[trial.coming.at[brings > 0]] = True
        return Balance.fixed(self, state, trial, unsure)

    def wakes_on(self) -> Sequence[WakesOn]:
        """A node or its driver comes or can attach more, something is detached, a claim is made or bound.

        kube-scheduler trusts that a node is shown before its CSINode, and a volume before its claim is.
        """
        return (
            WakesOn(Resource.NODE, Action.ADD),
            WakesOn(Resource.CSI_NODE, Action.ADD),
            WakesOn(Resource.CSI_NODE, Action.UPDATE, _attaches_more),
            WakesOn(Resource.CSI_DRIVER, Action.UPDATE | Action.DELETE, _asks_less),
            WakesOn(Resource.ASSIGNED_POD, Action.DELETE, _detaches),
            WakesOn(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD | Action.UPDATE, _is_mine, per_spec=False),
            WakesOn(Resource.VOLUME_ATTACHMENT, Action.DELETE, _has_volumes, per_spec=False),
        )


def _is_needed(driver: CSIDriver | None) -> bool:
    return driver is not None and driver.needed_on_node


def _too_many(sources: frozenset[CSISource], driver: str, nodes: Nodes) -> Bools:
    """Where these volumes, less those that are used there already, are more than the driver can attach."""
    attached = nodes.snapshot.attached
    new = np.full(nodes.snapshot.capacity, len(sources), dtype=np.int64)
    for source in sources:
        rows = attached.rows_using(source)
        if rows:
            new[list(rows)] -= 1
    limits = attached.limits(driver)
    over: Bools = (new > 0) & (limits < NO_LIMIT) & (attached.counts(driver) + new > limits)
    return over[nodes.rows]


def _attaches_more(pod: Pod, event: ClusterEvent) -> bool:
    before: CSINode = event.old
    after: CSINode = event.new
    return any(
        driver not in before.limits or _limit(limit) > _limit(before.limits[driver])
        for driver, limit in after.limits.items()
    ) or any(driver not in after.limits for driver in before.limits)


def _limit(limit: int | None) -> int:
    return NO_LIMIT if limit is None else limit


def _asks_less(pod: Pod, event: ClusterEvent) -> bool:
    return bool(event.old.needed_on_node) and (event.new is None or not event.new.needed_on_node)


def _detaches(pod: Pod, event: ClusterEvent) -> bool:
    gone: Pod = event.old
    return bool(gone.volumes.claims or gone.volumes.in_tree)


def _is_mine(pod: Pod, event: ClusterEvent) -> bool:
    claim = event.new
    return pod.namespace == claim.namespace and any(use.name == claim.name for use in pod.volumes.claims)


def _has_volumes(pod: Pod, event: ClusterEvent) -> bool:
    if pod.volumes.claims:
        return True
    drivers = {source.driver for source in map(inline_source, pod.volumes.in_tree) if source is not None}
    return event.old.attacher in drivers
