"""VolumeZone: volumes with zone or region labels, from before volumes had a node affinity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from moorage.core.framework.interface import Reads, Reason, Rejected, Skip, Verdict
from moorage.core.framework.trials import Balance, Trial
from moorage.core.model.cluster_event import Action, ClusterEvent, Resource, WakesOn
from moorage.core.model.csi_migration import BETA_REGION, BETA_ZONE, MULTI_ZONE_DELIMITER, REGION, ZONE
from moorage.core.model.decision import Code
from moorage.core.model.pod import Pod
from moorage.core.model.selector import Operator, Requirement
from moorage.core.model.storage import PersistentVolume
from moorage.core.snapshot.snapshot import Snapshot
from moorage.core.snapshot.view import Nodes

_REASONS = (Reason("node(s) had no available volume zone", resolvable=False),)
_KEYS = (BETA_ZONE, BETA_REGION, ZONE, REGION)
#: Nodes may have the newer label where a volume has the older one.
_NEWER = {BETA_ZONE: ZONE, BETA_REGION: REGION}


class VolumeZone:
    """Compares the labels of bound volumes with those of nodes; nodes without any such label pass."""

    name: ClassVar[str] = "VolumeZone"
    reads: ClassVar[Reads] = Reads.NODE | Reads.CLUSTER

    def pre_filter(self, pod: Pod, snapshot: Snapshot) -> tuple[Requirement, ...] | Skip | Rejected:
        """What the volumes ask of a node's labels; rejects a pod with a claim that cannot have a volume."""
        wanted: list[Requirement] = []
        for use in pod.volumes.claims:
            if not use.ephemeral:
                found = _volume_of(pod, use.name, snapshot)
                if isinstance(found, str):
                    return Rejected((found,), Code.UNRESOLVABLE)
                if found is not None:
                    wanted += _topology(found)
        return tuple(dict.fromkeys(wanted)) or Skip.SKIP

    def filter(self, state: tuple[Requirement, ...], nodes: Nodes) -> Verdict:
        """Nodes in another zone or region than one of the volumes fail."""
        fits = ~nodes.false()
        for requirement in state:
            matched = nodes.satisfying(requirement)
            newer = _NEWER.get(requirement.key)
            if newer is not None:
                missing = nodes.satisfying(Requirement(requirement.key, Operator.DOES_NOT_EXIST))
                matched = matched | missing & nodes.satisfying(
                    Requirement(newer, Operator.IN, requirement.values)
                )
            fits &= matched
        constrained = nodes.false()
        for key in _KEYS:
            constrained |= nodes.satisfying(Requirement(key, Operator.EXISTS))
        return Verdict(_REASONS, (constrained & ~fits)[None, :])

    def trial(self, state: tuple[Requirement, ...], trial: Trial) -> Balance:
        """Pods on the node do not matter."""
        return Balance.fixed(self, state, trial)

    def wakes_on(self) -> Sequence[WakesOn]:
        """A node, claim, volume or class of the right kind appears or gets the right labels."""
        return (
            WakesOn(Resource.STORAGE_CLASS, Action.ADD, _waits),
            WakesOn(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
            WakesOn(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD | Action.UPDATE, _is_mine, per_spec=False),
            WakesOn(Resource.PERSISTENT_VOLUME, Action.ADD | Action.UPDATE, _moved),
        )


def _volume_of(pod: Pod, claim_name: str, snapshot: Snapshot) -> PersistentVolume | str | None:
    """The claim's volume, None if it is to be bound later, or why there can be none."""
    storage = snapshot.storage
    claim = storage.claims.get(f"{pod.namespace}/{claim_name}")
    if claim is None:
        return f'persistentvolumeclaim "{claim_name}" not found'
    if claim.volume_name:
        volume = storage.volumes.get(claim.volume_name)
        return f'persistentvolume "{claim.volume_name}" not found' if volume is None else volume
    if not claim.storage_class:
        return "PersistentVolumeClaim had no pv name and storageClass name"
    storage_class = storage.classes.get(claim.storage_class)
    if storage_class is None:
        return f'storageclass.storage.k8s.io "{claim.storage_class}" not found'
    return None if storage_class.waits_for_consumer else "PersistentVolume had no name"


def _topology(volume: PersistentVolume) -> Iterator[Requirement]:
    for key in _KEYS:
        value = volume.labels.get(key)
        if value is not None:
            zones = {zone.strip() for zone in value.split(MULTI_ZONE_DELIMITER)}
            if "" not in zones:  # else the label cannot be read, and does not count
                yield Requirement(key, Operator.IN, tuple(sorted(zones)))


def _waits(pod: Pod, event: ClusterEvent) -> bool:
    return bool(event.new.waits_for_consumer)


def _is_mine(pod: Pod, event: ClusterEvent) -> bool:
    claim = event.new
    return pod.namespace == claim.namespace and any(
        use.name == claim.name for use in pod.volumes.claims if not use.ephemeral
    )


def _moved(pod: Pod, event: ClusterEvent) -> bool:
    return event.old is None or list(_topology(event.old)) != list(_topology(event.new))
