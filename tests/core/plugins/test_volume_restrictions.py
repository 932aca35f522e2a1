"""VolumeRestrictions beyond what the laws cover: claims for one pod only, preemption, and what wakes its pods."""

from dataclasses import replace

import pytest

from moorage.core.framework.interface import Rejected, Skip
from moorage.core.model.cluster_event import Action, ClusterEvent, Resource
from moorage.core.model.decision import Code
from moorage.core.model.events import StorageApplied
from moorage.core.model.instructions import Evict
from moorage.core.model.pod_volumes import Disk
from moorage.core.plugins.volume_restrictions import VolumeRestrictions
from tests.core.driving import Driven, conditions, of_type
from tests.kit.models import make_node
from tests.kit.volume_models import make_claim, make_volume, with_claims

SINGLE = make_claim("c", volume="v", access_modes=("ReadWriteOncePod",))
VOLUME = make_volume("v", claim=SINGLE)
DISK, OTHER = Disk((("iscsi", "one"),)), Disk((("iscsi", "two"),))
PLUGIN = VolumeRestrictions()


def driven(**fields):
    made = Driven(**fields)
    made.tell(make_node("a"), make_node("b"), StorageApplied(SINGLE), StorageApplied(VOLUME))
    return made


def test_a_claim_for_one_pod_is_taken_on_all_nodes():
    made = driven(without=("DefaultPreemption",))
    made.tell(with_claims("first", "c", node="a"), with_claims("second", "c"))
    text = (
        "0/2 nodes are available: 2 node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod "
        "access mode already in-use by another pod."
    )
    assert conditions(made.run()) == [("second", "Unschedulable", text)]


def test_a_disk_counts_on_its_node_and_before_the_claim_that_is_taken_everywhere():
    made = driven(without=("DefaultPreemption",))
    made.tell(with_claims("user", "c", disks=[DISK], node="a"), with_claims("p", "c", disks=[DISK]))
    ((_, _, text),) = conditions(made.run())
    assert text == (
        "0/2 nodes are available: 1 node(s) had no available disk, 1 node(s) unavailable due to "
        "PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod."
    )


def test_disks_that_are_not_the_same_do_not_meet():
    made = driven()
    made.tell(with_claims("user", disks=[DISK], node="a"), with_claims("p", disks=[OTHER], cpu=1))
    assert conditions(made.run()) == []


def test_a_missing_claim_is_nothing_that_preemption_could_mend():
    answer = PLUGIN.pre_filter(with_claims("p", "none"), driven().engine.snapshot)
    assert answer == Rejected(('persistentvolumeclaim "none" not found',), Code.UNRESOLVABLE)


def test_a_claim_for_the_pods_of_one_node_is_not_its_business():
    made = driven()
    shared = make_claim("shared", volume="w", access_modes=("ReadWriteOnce",))
    made.tell(StorageApplied(shared), StorageApplied(make_volume("w", claim=shared)))
    made.tell(with_claims("first", "shared", node="a"))
    assert PLUGIN.pre_filter(with_claims("second", "shared"), made.engine.snapshot) is Skip.SKIP


def test_the_user_of_a_claim_is_preempted_and_nobody_else():
    made = driven()
    user = with_claims("user", "c", node="a")
    made.tell(user, with_claims("bystander", node="b"), with_claims("asking", "c", priority=10))
    (evict,) = of_type(made.run(), Evict)
    assert (evict.node_name, evict.victims) == ("a", (user.ref,))


def test_a_claim_of_another_namespace_with_the_same_name_is_another():
    """kube-scheduler compares names alone here, and evicts the wrong pod."""
    made = driven()
    stranger = replace(with_claims("stranger", "c", node="a"), namespace="other")
    made.tell(
        stranger, with_claims("user", "c", node="b", priority=20), with_claims("asking", "c", priority=10)
    )
    assert of_type(made.run(), Evict) == []


def test_most_pods_are_none_of_its_business():
    snapshot = driven().engine.snapshot
    assert PLUGIN.pre_filter(with_claims("p"), snapshot) is Skip.SKIP
    assert PLUGIN.pre_filter(with_claims("p", "c"), snapshot) is Skip.SKIP  # nobody uses it


@pytest.mark.parametrize(
    ("gone", "wakes"),
    [
        (with_claims("g", "c", node="a"), True),
        (with_claims("g", "other", node="a"), False),
        (replace(with_claims("g", "c", node="a"), namespace="other"), False),
        (with_claims("g", ephemeral=["c"], node="a"), False),
        (with_claims("g", disks=[DISK], node="a"), True),
        (replace(with_claims("g", disks=[DISK], node="a"), namespace="other"), True),
        (with_claims("g", disks=[OTHER], node="a"), False),
        (with_claims("g", node="a"), False),
    ],
)
def test_a_pod_that_goes(gone, wakes):
    assert (
        hint(Resource.ASSIGNED_POD, Action.DELETE)(with_claims("p", "c", disks=[DISK]), event(gone)) is wakes
    )


@pytest.mark.parametrize(
    ("claim", "wakes"),
    [(SINGLE, True), (make_claim("d"), False), (make_claim("c", namespace="other"), False)],
)
def test_a_claim_that_is_made(claim, wakes):
    asked = hint(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD)
    assert (
        asked(with_claims("p", "c"), ClusterEvent(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD, None, claim))
        is wakes
    )


def hint(resource, action):
    (found,) = (w.hint for w in PLUGIN.wakes_on() if w.resource is resource and w.action & action)
    return found


def event(gone):
    return ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE, gone, None)
