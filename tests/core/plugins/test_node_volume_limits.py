"""NodeVolumeLimits beyond what the laws cover: in-tree disks, broken claims, preemption, and what wakes its pods."""

import numpy as np
import pytest

from moorage.core.cache.cache import Cache
from moorage.core.framework.interface import Skip
from moorage.core.framework.trials import NOBODY, PodsOnNodes, Trial
from moorage.core.model.cluster_event import Action, ClusterEvent, Resource
from moorage.core.model.csi_migration import GCE_PD
from moorage.core.model.events import StorageApplied
from moorage.core.model.instructions import Evict
from moorage.core.model.storage import CSIDriver, CSINode, InTreeSource, StorageClass, VolumeAttachment
from moorage.core.plugins.node_volume_limits import NodeVolumeLimits
from moorage.core.snapshot.snapshot import Snapshot
from moorage.core.snapshot.view import Nodes
from tests.core.driving import Driven, of_type
from tests.kit.models import make_node
from tests.kit.volume_models import LATE, make_claim, make_volume, with_claims

PLUGIN = NodeVolumeLimits()
GKE = "pd.csi.storage.gke.io"
DISK, OTHER = InTreeSource(GCE_PD, "d"), InTreeSource(GCE_PD, "e")


def told(pod, *objects, pods=()):
    """The reasons against the nodes a, b and c."""
    cache = Cache(Snapshot())
    for name in "abc":
        cache.apply_node(make_node(name))
    for obj in objects:
        cache.apply_storage(obj)
    for other in pods:
        cache.add(other)
    state = PLUGIN.pre_filter(pod, cache.snapshot)
    if state is Skip.SKIP:
        return None
    verdict = PLUGIN.filter(state, Nodes(cache.snapshot, np.arange(3)))
    columns = (zip(verdict.reasons, verdict.failed[:, i], strict=True) for i in range(3))
    return ["; ".join(reason.text for reason, failed in column if failed) for column in columns]


def test_in_tree_disks_count_as_their_driver_s_where_it_is_known():
    full = "node(s) exceed max volume count"
    limits = [CSINode("a", {GKE: 1}), CSINode("b", {GKE: 2})]
    user = with_claims("user", in_tree=[DISK], node="a")
    assert told(with_claims("p", in_tree=[OTHER]), *limits, pods=[user]) == [full, "", ""]
    assert told(with_claims("p", in_tree=[DISK]), *limits, pods=[user]) == ["", "", ""]
    assert told(with_claims("p", in_tree=[DISK, OTHER]), *limits) == [full, "", ""]


def test_an_overfull_node_takes_a_pod_that_brings_nothing_new():
    users = [with_claims("one", in_tree=[DISK], node="a"), with_claims("two", in_tree=[OTHER], node="a")]
    assert told(with_claims("p", in_tree=[DISK]), CSINode("a", {GKE: 1}), pods=users) == ["", "", ""]


def test_a_driver_that_must_be_there():
    needed = CSIDriver("disk.test", needed_on_node=True)
    missing = "disk.test CSI driver is not installed on the node"
    objects = [LATE, make_claim("c", storage_class="late"), CSINode("a", {"disk.test": 1}), CSINode("b")]
    assert told(with_claims("p", "c"), needed, *objects) == ["", missing, missing]
    assert told(with_claims("p", "c"), CSIDriver("disk.test"), *objects) == ["", "", ""]
    in_tree = [StorageClass("gce", GCE_PD), make_claim("c", storage_class="gce"), CSINode("b")]
    text = f"{GKE} CSI driver is not installed on the node"
    assert told(with_claims("p", "c"), CSIDriver(GKE, needed_on_node=True), *in_tree) == ["", text, ""]


@pytest.mark.parametrize(
    ("pod", "text"),
    [
        (with_claims("p", "no"), 'looking up PVC default/no: persistentvolumeclaim "no" not found'),
        (
            with_claims("p", ephemeral=["c"]),
            "PVC default/c was not created for pod default/p (pod is not owner)",
        ),
    ],
)
def test_claims_that_cannot_be_told(pod, text):
    assert told(pod, make_claim("c")) == [text] * 3


def test_pods_without_such_volumes_are_none_of_its_business():
    assert told(with_claims("p")) is None


def test_attached_volumes_are_freed_by_preemption():
    claims = [make_claim(name, volume=f"v-{name}") for name in ("one", "two", "new")]
    made = Driven()
    made.tell(make_node("a"), StorageApplied(CSINode("a", {"disk.test": 2})))
    made.tell(
        *map(StorageApplied, claims), *(StorageApplied(make_volume(c.volume_name, claim=c)) for c in claims)
    )
    one, two = with_claims("one", "one", node="a", priority=5), with_claims("two", "two", node="a")
    made.tell(one, two, with_claims("asking", "new", priority=10))
    (evict,) = of_type(made.run(), Evict)
    assert evict.victims == (two.ref,)


# -- what wakes ----------------------------------------------------------------------------------


def wakes(pod, resource, action, old, new):
    """Whether the change lets the pod be tried again."""
    event = ClusterEvent(resource, action, old, new)
    interests = [w for w in PLUGIN.wakes_on() if w.resource is resource and w.action & action]
    return any(w.hint is None or w.hint(pod, event) for w in interests)


@pytest.mark.parametrize(
    ("before", "after", "helps"),
    [
        ({"d": 1}, {"d": 2}, True),
        ({"d": 2}, {"d": 1}, False),
        ({"d": 1}, {"d": None}, True),
        ({"d": None}, {"d": 9}, False),
        ({}, {"d": None}, True),  # kube-scheduler lets pods wait that need the driver
        ({"d": 1}, {}, True),
        ({"d": 1}, {"d": 1}, False),
    ],
)
def test_a_node_that_attaches_more(before, after, helps):
    pod = with_claims("p", "c")
    assert wakes(pod, Resource.CSI_NODE, Action.UPDATE, CSINode("a", before), CSINode("a", after)) is helps
    assert wakes(pod, Resource.CSI_NODE, Action.ADD, None, CSINode("a", after))


def test_a_driver_that_asks_less():
    pod, needed, loose = with_claims("p", "c"), CSIDriver("d", needed_on_node=True), CSIDriver("d")
    assert wakes(pod, Resource.CSI_DRIVER, Action.UPDATE, needed, loose)
    assert wakes(pod, Resource.CSI_DRIVER, Action.DELETE, needed, None)
    assert not wakes(pod, Resource.CSI_DRIVER, Action.UPDATE, loose, needed)
    assert not wakes(pod, Resource.CSI_DRIVER, Action.DELETE, loose, None)


@pytest.mark.parametrize(
    ("gone", "helps"),
    [
        (with_claims("g", "x", node="a"), True),
        (with_claims("g", ephemeral=["x"], node="a"), True),
        (with_claims("g", in_tree=[DISK], node="a"), True),
        (with_claims("g", node="a"), False),
    ],
)
def test_a_pod_that_goes(gone, helps):
    assert wakes(with_claims("p", "c"), Resource.ASSIGNED_POD, Action.DELETE, gone, None) is helps


@pytest.mark.parametrize(
    ("pod", "helps"),
    [
        (with_claims("p", "c"), True),
        (with_claims("p", in_tree=[DISK]), True),
        (with_claims("p", in_tree=[InTreeSource("x", "y")]), False),
    ],
)
def test_a_volume_that_is_detached(pod, helps):
    gone = VolumeAttachment("a", GKE, "n", "v")
    assert wakes(pod, Resource.VOLUME_ATTACHMENT, Action.DELETE, gone, None) is helps


@pytest.mark.parametrize(
    ("claim", "helps"),
    [(make_claim("c"), True), (make_claim("d"), False), (make_claim("c", namespace="x"), False)],
)
def test_a_claim_that_is_made(claim, helps):
    assert wakes(with_claims("p", "c"), Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD, None, claim) is helps
    assert (
        wakes(with_claims("p", ephemeral=["c"]), Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD, None, claim)
        is helps
    )


def test_on_trial_it_is_sure_only_where_there_is_room_besides_all_that_are_there():
    cache = Cache(Snapshot())
    for name in "abc":
        cache.apply_node(make_node(name))
    for csi_node in (CSINode("a", {GKE: 1}), CSINode("b", {GKE: 2})):
        cache.apply_storage(csi_node)
    for name in "ab":
        cache.add(with_claims(f"user-{name}", in_tree=[DISK], node=name))
    state = PLUGIN.pre_filter(with_claims("p", in_tree=[OTHER]), cache.snapshot)
    assert not isinstance(state, Skip)
    for coming, expected in (
        (NOBODY, [True, False, False]),
        (PodsOnNodes([with_claims("x", in_tree=[DISK])], np.array([2])), [True, False, True]),
    ):
        trial = Trial(cache.snapshot, np.arange(3), NOBODY, coming)
        unsure = PLUGIN.trial(state, trial).unsure
        assert unsure is not None
        assert unsure.tolist() == expected
