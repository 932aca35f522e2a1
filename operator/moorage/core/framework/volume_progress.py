"""Whether what a pod was promised has come true, by what the API server shows.

Source of the rules and words: ``checkBindings`` of kube-scheduler v1.37 (``volumebinding/binder.go``).
"""

from __future__ import annotations

from moorage.core.framework.interface import GivenUp, Progress
from moorage.core.framework.volume_matching import reachable
from moorage.core.model.node import Node
from moorage.core.model.storage import PersistentVolume, PersistentVolumeClaim, StorageKind
from moorage.core.snapshot.reservations import Binding, Reservation
from moorage.core.snapshot.storage import Storage


def volume_progress(reservation: Reservation, node: Node, storage: Storage) -> Progress | GivenUp:
    """Done if every claim is bound; given up if one cannot be bound any more, or not for this node."""
    if reservation.written is None:
        return Progress.UNDER_WAY
    csi_node = storage.csi_nodes.get(node.name)
    migrated = frozenset() if csi_node is None else csi_node.migrated
    for binding in reservation.bindings:
        answer = _of_binding(binding, reservation, node, migrated, storage)
        if answer is not Progress.DONE:
            return answer
    for claim in reservation.provisions:
        answer = _of_provision(claim, reservation, node, migrated, storage)
        if answer is not Progress.DONE:
            return answer
    return Progress.DONE


def _of_binding(
    binding: Binding, reservation: Reservation, node: Node, migrated: frozenset[str], storage: Storage
) -> Progress | GivenUp:
    volume = storage.volumes.get(binding.volume.name)
    if volume is None:
        return GivenUp(f'failed to check binding: persistentvolumes "{binding.volume.name}" not found')
    claim = storage.claims.get(binding.claim.key)
    if claim is None or claim.uid != binding.claim.uid:
        return GivenUp(f'failed to check binding: persistentvolumeclaims "{binding.claim.key}" not found')
    if _is_older(volume, reservation):
        return Progress.UNDER_WAY
    if not reachable(volume, node.labels, migrated):
        return _elsewhere(volume, node)
    if volume.claim is None or volume.claim.uid != claim.uid:
        return GivenUp(f'ClaimRef got reset for pv "{volume.name}"')
    return Progress.DONE if claim.bound else Progress.UNDER_WAY


def _of_provision(
    promised: PersistentVolumeClaim,
    reservation: Reservation,
    node: Node,
    migrated: frozenset[str],
    storage: Storage,
) -> Progress | GivenUp:
    claim = storage.claims.get(promised.key)
    if claim is None or claim.uid != promised.uid:
        return GivenUp(f'failed to check provisioning pvc: persistentvolumeclaims "{promised.key}" not found')
    if _is_older(claim, reservation):
        return Progress.UNDER_WAY
    if claim.selected_node != node.name:
        # This is how a provisioner says that it cannot, and asks for another node.
        return GivenUp(f'provisioning failed for PVC "{claim.name}"')
    if claim.volume_name:
        volume = storage.volumes.get(claim.volume_name)
        if volume is None:
            return Progress.UNDER_WAY  # shown a little later than the claim, or the claim is about to be lost
        if not reachable(volume, node.labels, migrated):
            return _elsewhere(volume, node)
    return Progress.DONE if claim.bound else Progress.UNDER_WAY


def _elsewhere(volume: PersistentVolume, node: Node) -> GivenUp:
    return GivenUp(
        f'pv "{volume.name}" node affinity doesn\'t match node "{node.name}": no matching NodeSelectorTerms'
    )


def _is_older(shown: PersistentVolume | PersistentVolumeClaim, reservation: Reservation) -> bool:
    """Whether our own write is still to be shown."""
    assert reservation.written is not None, "asked before anything was written"
    kind = StorageKind.VOLUME if isinstance(shown, PersistentVolume) else StorageKind.CLAIM
    ours = reservation.written.get((kind, shown.key))
    if ours is None:
        return False
    try:
        return int(shown.resource_version) < int(ours)
    except ValueError:  # versions that are no numbers can only be told apart
        return shown.resource_version != ours
