"""VolumeZone beyond what the laws cover: what wakes its pods."""

from dataclasses import replace

import pytest

from moorage.core.framework.interface import Skip
from moorage.core.model.cluster_event import Action, ClusterEvent, Resource
from moorage.core.model.csi_migration import BETA_ZONE, ZONE
from moorage.core.plugins.volume_zone import VolumeZone
from moorage.core.snapshot.snapshot import Snapshot
from tests.kit.volume_models import LATE, NOW, make_claim, make_volume, with_claims

PLUGIN = VolumeZone()
POD = with_claims("p", "c")


def wakes(resource, action, old, new, pod=POD):
    """Whether the change lets the pod be tried again."""
    event = ClusterEvent(resource, action, old, new)
    interests = [w for w in PLUGIN.wakes_on() if w.resource is resource and w.action & action]
    return any(w.hint is None or w.hint(pod, event) for w in interests)


def test_classes_that_wait_for_a_consumer():
    assert wakes(Resource.STORAGE_CLASS, Action.ADD, None, LATE)
    assert not wakes(Resource.STORAGE_CLASS, Action.ADD, None, NOW)
    assert not wakes(Resource.STORAGE_CLASS, Action.UPDATE, NOW, LATE)


@pytest.mark.parametrize(
    ("before", "after", "helps"),
    [
        ({}, {ZONE: "a"}, True),
        ({ZONE: "a"}, {}, True),
        ({ZONE: "a"}, {ZONE: "b"}, True),
        ({ZONE: "a__b"}, {ZONE: "b__a"}, False),
        ({ZONE: "a"}, {BETA_ZONE: "a"}, True),
        ({"x": "1"}, {"x": "2"}, False),
        ({ZONE: "a____b"}, {}, False),  # a label that cannot be read is none
    ],
)
def test_volumes_whose_zone_changes(before, after, helps):
    old, new = make_volume("v", labels=before), make_volume("v", labels=after)
    assert wakes(Resource.PERSISTENT_VOLUME, Action.UPDATE, old, new) is helps
    assert wakes(Resource.PERSISTENT_VOLUME, Action.ADD, None, new)


@pytest.mark.parametrize(
    ("claim", "helps"),
    [(make_claim("c"), True), (make_claim("d"), False), (make_claim("c", namespace="x"), False)],
)
def test_claims_of_the_pod(claim, helps):
    assert wakes(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD, None, claim) is helps
    assert wakes(Resource.PERSISTENT_VOLUME_CLAIM, Action.UPDATE, claim, claim) is helps
    assert not wakes(
        Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD, None, claim, with_claims("p", ephemeral=["c"])
    )


def test_nodes():
    assert wakes(Resource.NODE, Action.ADD, None, None)
    assert wakes(Resource.NODE, Action.UPDATE_NODE_LABEL, None, None)
    assert not wakes(Resource.NODE, Action.UPDATE_NODE_TAINT, None, None)


def test_volumes_without_labels_are_none_of_its_business():
    snapshot = Snapshot()
    claim = make_claim("c", volume="v")
    snapshot.storage.apply(claim)
    snapshot.storage.apply(make_volume("v", claim=claim))
    assert PLUGIN.pre_filter(POD, snapshot) is Skip.SKIP
    snapshot.storage.apply(replace(make_volume("v", claim=claim), labels={ZONE: "a"}))
    assert PLUGIN.pre_filter(POD, snapshot) is not Skip.SKIP
