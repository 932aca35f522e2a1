"""Changes of storage in the terms of the queue."""

import pytest

from moorage.core.cache.storage_changes import released, storage_event
from moorage.core.model.cluster_event import Action, ClusterEvent, Resource
from moorage.core.model.storage import CSIDriver, CSINode, StorageClass, VolumeAttachment
from moorage.core.snapshot.reservations import Binding, Reservation
from tests.kit.volume_models import make_capacity, make_claim, make_volume


@pytest.mark.parametrize(
    ("obj", "resource"),
    [
        (make_volume("v"), Resource.PERSISTENT_VOLUME),
        (make_claim("c"), Resource.PERSISTENT_VOLUME_CLAIM),
        (StorageClass("s"), Resource.STORAGE_CLASS),
        (CSINode("n"), Resource.CSI_NODE),
        (CSIDriver("d"), Resource.CSI_DRIVER),
        (make_capacity("x", "1Gi"), Resource.CSI_STORAGE_CAPACITY),
        (VolumeAttachment("a"), Resource.VOLUME_ATTACHMENT),
    ],
)
def test_every_kind_comes_and_goes(obj, resource):
    assert storage_event(None, obj) == ClusterEvent(resource, Action.ADD, None, obj)
    assert storage_event(obj, None) == ClusterEvent(resource, Action.DELETE, obj, None)
    assert storage_event(obj, obj) is None


def test_a_new_version_alone_is_no_change():
    one, two = make_claim("c"), make_claim("c", request="2Gi", version="2")
    assert storage_event(one, make_claim("c", version="2")) is None
    assert storage_event(one, two) == ClusterEvent(Resource.PERSISTENT_VOLUME_CLAIM, Action.UPDATE, one, two)


def test_what_is_given_back_looks_changed():
    claim, volume, late = make_claim("c"), make_volume("v"), make_claim("late")
    promise = Reservation("pod", "n", (Binding(claim, volume),), (late,))
    assert released(promise) == [
        ClusterEvent(Resource.PERSISTENT_VOLUME, Action.UPDATE, volume, volume),
        ClusterEvent(Resource.PERSISTENT_VOLUME_CLAIM, Action.UPDATE, late, late),
    ]
