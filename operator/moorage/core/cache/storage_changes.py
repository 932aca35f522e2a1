"""What changed about storage, in the terms of the queue."""

from __future__ import annotations

from moorage.core.model.cluster_event import Action, ClusterEvent, Resource
from moorage.core.model.storage import StorageKind, StorageObject
from moorage.core.snapshot.reservations import Reservation

_RESOURCES = {
    StorageKind.VOLUME: Resource.PERSISTENT_VOLUME,
    StorageKind.CLAIM: Resource.PERSISTENT_VOLUME_CLAIM,
    StorageKind.CLASS: Resource.STORAGE_CLASS,
    StorageKind.CSI_NODE: Resource.CSI_NODE,
    StorageKind.CSI_DRIVER: Resource.CSI_DRIVER,
    StorageKind.CAPACITY: Resource.CSI_STORAGE_CAPACITY,
    StorageKind.ATTACHMENT: Resource.VOLUME_ATTACHMENT,
}


def storage_event(before: StorageObject | None, after: StorageObject | None) -> ClusterEvent | None:
    """The change of an object (None: not there); None if nothing that scheduling reads changed."""
    if before == after:
        return None
    if after is None:
        assert before is not None, "nothing has changed into nothing"
        return ClusterEvent(_RESOURCES[before.kind], Action.DELETE, before, None)
    action = Action.ADD if before is None else Action.UPDATE
    return ClusterEvent(_RESOURCES[after.kind], action, before, after)


def released(reservation: Reservation) -> list[ClusterEvent]:
    """What is free again when a promise is taken back, as if it had changed in the API server.

    kube-scheduler tells nobody, and a pod that wants the same volume waits for some other change.
    """
    volumes = [binding.volume for binding in reservation.bindings]
    return [
        *(ClusterEvent(Resource.PERSISTENT_VOLUME, Action.UPDATE, v, v) for v in volumes),
        *(
            ClusterEvent(Resource.PERSISTENT_VOLUME_CLAIM, Action.UPDATE, c, c)
            for c in reservation.provisions
        ),
    ]
