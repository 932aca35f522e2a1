"""VolumeZone: which labels of volumes and nodes agree, claims without a volume, and what wakes its pods."""

from dataclasses import replace

import numpy as np
import pytest

from moorage.core.cache.cache import Cache
from moorage.core.framework.interface import Rejected, Skip
from moorage.core.model.cluster_event import Action, ClusterEvent, Resource
from moorage.core.model.csi_migration import BETA_ZONE, REGION, ZONE
from moorage.core.model.decision import Code
from moorage.core.plugins.volume_zone import VolumeZone
from moorage.core.snapshot.snapshot import Snapshot
from moorage.core.snapshot.view import Nodes
from tests.kit.models import make_node
from tests.kit.volume_models import LATE, NOW, make_claim, make_volume, with_claims

PLUGIN = VolumeZone()
POD = with_claims("p", "c")


def wakes(resource, action, old, new, pod=POD):
    """Whether the change lets the pod be tried again."""
    event = ClusterEvent(resource, action, old, new)
    interests = [w for w in PLUGIN.wakes_on() if w.resource is resource and w.action & action]
    return any(w.hint is None or w.hint(pod, event) for w in interests)


def refused(labels, *nodes):
    """Which nodes with these labels fail for a volume with those."""
    cache = Cache(Snapshot())
    for index, node in enumerate(nodes):
        cache.apply_node(make_node(f"n{index}", labels=node))
    claim = make_claim("c", volume="v")
    cache.apply_storage(claim)
    cache.apply_storage(replace(make_volume("v", claim=claim), labels=labels))
    state = PLUGIN.pre_filter(POD, cache.snapshot)
    assert isinstance(state, tuple)
    verdict = PLUGIN.filter(state, Nodes(cache.snapshot, np.arange(len(nodes))))
    assert [reason.text for reason in verdict.reasons] == ["node(s) had no available volume zone"]
    return verdict.failed[0].tolist()


def test_nodes_in_another_zone_fail_and_nodes_without_any_pass():
    assert refused({ZONE: "a"}, {ZONE: "a"}, {ZONE: "b"}, {}, {REGION: "r"}) == [False, True, False, True]


def test_a_volume_can_be_in_several_zones():
    assert refused({ZONE: "a__b"}, {ZONE: "a"}, {ZONE: "b"}, {ZONE: "c"}) == [False, False, True]


def test_zone_and_region_must_both_agree():
    nodes = {ZONE: "a", REGION: "r"}, {ZONE: "a", REGION: "s"}, {ZONE: "b", REGION: "r"}
    assert refused({ZONE: "a", REGION: "r"}, *nodes) == [False, True, True]


def test_the_newer_label_of_a_node_stands_in_for_the_older_one_of_a_volume():
    nodes = {ZONE: "a"}, {ZONE: "b"}, {BETA_ZONE: "a", ZONE: "b"}, {BETA_ZONE: "b", ZONE: "a"}
    assert refused({BETA_ZONE: "a"}, *nodes) == [False, True, False, True]
    assert refused({ZONE: "a"}, {BETA_ZONE: "a"}) == [True], "but not the other way round"


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        (None, 'persistentvolumeclaim "c" not found'),
        (make_claim("c", volume="v"), 'persistentvolume "v" not found'),
        (make_claim("c", storage_class=""), "PersistentVolumeClaim had no pv name and storageClass name"),
        (make_claim("c", storage_class="none"), 'storageclass.storage.k8s.io "none" not found'),
        (make_claim("c", storage_class="now"), "PersistentVolume had no name"),
        (make_claim("c", storage_class="late"), ""),
    ],
)
def test_claims_without_a_volume(claim, text):
    snapshot = Snapshot()
    for obj in (LATE, NOW, *([claim] if claim else [])):
        snapshot.storage.apply(obj)
    expected = Rejected((text,), Code.UNRESOLVABLE) if text else Skip.SKIP
    assert PLUGIN.pre_filter(POD, snapshot) == expected
    assert PLUGIN.pre_filter(with_claims("p", ephemeral=["c"]), snapshot) is Skip.SKIP


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
