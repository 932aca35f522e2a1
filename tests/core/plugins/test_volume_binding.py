"""VolumeBinding beyond what the laws cover: in-tree volumes, reservations, work done once, and what wakes its pods."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from moorage.core.cache.cache import Cache
from moorage.core.framework import volume_matching
from moorage.core.framework.interface import Rejected
from moorage.core.model.cluster_event import Action, ClusterEvent, Resource
from moorage.core.model.csi_migration import GCE_PD, ZONE
from moorage.core.model.instructions import BindVolume, SelectNode
from moorage.core.model.storage import CSIDriver, CSINode, InTreeSource
from moorage.core.plugins.volume_binding import VolumeBinding
from moorage.core.snapshot.snapshot import Snapshot
from moorage.core.snapshot.view import Nodes
from tests.kit.models import make_node
from tests.kit.volume_models import HOST, LATE, LOCAL, make_capacity, make_claim, make_volume, on, with_claims

PLUGIN: Any = VolumeBinding()
POD = with_claims("p", "c")


def cluster(*objects, nodes=()):
    cache = Cache(Snapshot())
    for node in nodes or [make_node(name, labels={HOST: name}) for name in "abc"]:
        cache.apply_node(node)
    for obj in (LATE, LOCAL, *objects):
        cache.apply_storage(obj)
    return cache.snapshot


def fits(snapshot, pod=POD):
    """The names of the nodes that will do."""
    state = PLUGIN.pre_filter(pod, snapshot)
    rows = np.flatnonzero(snapshot.alive)
    verdict = PLUGIN.filter(state, Nodes(snapshot, rows))
    return [snapshot.name_at(int(row)) for row in rows[verdict.fits]]


def test_where_a_driver_took_over_its_labels_count():
    claim = make_claim("c", volume="v")
    disk = make_volume("v", source=InTreeSource(GCE_PD, "d"), node_affinity=on(ZONE, "z1"))
    nodes = [
        make_node("old", labels={ZONE: "z1"}),
        make_node("new", labels={"topology.gke.io/zone": "z1"}),
        make_node("both", labels={ZONE: "z1", "topology.gke.io/zone": "z2"}),
    ]
    csi_nodes = [CSINode(name, {}, frozenset({GCE_PD})) for name in ("new", "both", "elsewhere")]
    assert fits(cluster(claim, disk, *csi_nodes, nodes=nodes)) == ["old", "new"]


def test_a_selected_node_is_the_only_one():
    claim = make_claim("c", storage_class="late", selected_node="b")
    assert fits(cluster(claim)) == ["b"]
    other = make_claim("d", storage_class="late", selected_node="c")
    assert fits(cluster(claim, other), with_claims("p", "c", "d")) == []
    gone = make_claim("c", storage_class="late", selected_node="gone")
    assert fits(cluster(gone)) == []


def test_nodes_that_look_the_same_are_looked_at_once(monkeypatch):
    asked = []
    real = volume_matching.VolumeFinder.offer

    def offer(self, labels, migrated, *, is_selected):
        asked.append(labels)
        return real(self, labels, migrated, is_selected=is_selected)

    monkeypatch.setattr(volume_matching.VolumeFinder, "offer", offer)
    nodes = [make_node(f"n{i}", labels={ZONE: f"z{i % 3}", HOST: f"n{i}"}) for i in range(60)]
    claim = make_claim("c", storage_class="late")
    snapshot = cluster(
        claim, make_volume("v", storage_class="late", node_affinity=on(ZONE, "z1")), nodes=nodes
    )
    state = PLUGIN.pre_filter(POD, snapshot)
    PLUGIN.filter(state, Nodes(snapshot, np.arange(60)))
    assert len(asked) == 3
    PLUGIN.filter(state, Nodes(snapshot, np.array([7])))
    assert len(asked) == 3


def test_more_capacity_is_better():
    claim = make_claim("c", storage_class="late")
    rooms = [
        make_capacity("x", "2Gi", host="a"),
        make_capacity("y", "10Gi", host="b"),
        make_capacity("z", "1Gi", host="c"),
    ]
    snapshot = cluster(claim, CSIDriver("disk.test", tracks_capacity=True), *rooms)
    nodes = Nodes(snapshot, np.arange(3))
    state = PLUGIN.pre_score(POD, snapshot, nodes)
    assert PLUGIN.score(state, nodes).tolist() == [50, 90, 0]
    tight = VolumeBinding(shape=((0, 0), (100, 10)))
    assert tight.score(state, nodes).tolist() == [50, 10, 100]


def test_reservations_come_and_go():
    claim, volume = make_claim("c"), make_volume("v", host="a")
    snapshot = cluster(claim, volume)
    pod = with_claims("p", "c", node="a")
    assert PLUGIN.reserve(pod, "a", snapshot) is None
    promise = snapshot.storage.reservations.get(pod.uid)
    assert [(b.claim, b.volume) for b in promise.bindings] == [(claim, volume)]
    PLUGIN.unreserve(pod, "a", snapshot)
    PLUGIN.unreserve(pod, "a", snapshot)
    assert len(snapshot.storage.reservations) == 0
    assert PLUGIN.pre_bind(pod, "a", snapshot) is None


def test_only_what_is_not_shown_yet_is_written():
    """A volume that names the claim, a claim that names the node: whoever wrote that, it need not be written again."""
    claim, late, volume = make_claim("c"), make_claim("d", storage_class="late"), make_volume("v", host="a")
    snapshot = cluster(claim, late, volume)
    pod = with_claims("p", "c", "d", node="a")
    assert PLUGIN.reserve(pod, "a", snapshot) is None

    def steps():
        return PLUGIN.pre_bind(pod, "a", snapshot).steps

    bind, select = BindVolume("v", "1", claim.ref), SelectNode(late.ref, "1", "a")
    assert steps() == (bind, select)
    snapshot.storage.apply(replace(late, selected_node="b"))
    assert steps() == (bind, select), "another node is not this one"
    snapshot.storage.apply(replace(late, selected_node="a"))
    assert steps() == (bind,)
    snapshot.storage.apply(replace(volume, claim=claim.ref))
    assert steps() == ()


def test_nothing_is_reserved_on_a_node_that_has_nothing_to_offer():
    snapshot = cluster(make_claim("c"), make_volume("v", host="a"))
    answer = PLUGIN.reserve(with_claims("p", "c", node="b"), "b", snapshot)
    assert isinstance(answer, Rejected)
    assert answer.reasons == ("node(s) didn't find available persistent volumes to bind",)
    assert len(snapshot.storage.reservations) == 0


@pytest.mark.parametrize("pod", [with_claims("p"), with_claims("p", "bound"), POD])
def test_there_is_not_always_something_to_reserve(pod):
    snapshot = cluster(make_claim("bound", volume="v"), make_claim("c"), make_volume("v"))
    assert PLUGIN.reserve(pod, "gone" if pod is POD else "a", snapshot) is None
    assert len(snapshot.storage.reservations) == 0


# -- what wakes ----------------------------------------------------------------------------------


def wakes(resource, action, old, new, pod=POD):
    """Whether the change lets the pod be tried again."""
    event = ClusterEvent(resource, action, old, new)
    interests = [w for w in PLUGIN.wakes_on() if w.resource is resource and w.action & action]
    return any(w.hint is None or w.hint(pod, event) for w in interests)


def test_classes():
    limited = replace(LATE, topologies=on(HOST, "a"))
    assert wakes(Resource.STORAGE_CLASS, Action.ADD, None, LATE)
    assert wakes(Resource.STORAGE_CLASS, Action.UPDATE, limited, LATE)
    assert not wakes(Resource.STORAGE_CLASS, Action.UPDATE, LATE, replace(LATE, provisioner="x"))


def test_claims():
    mine, another = make_claim("c"), make_claim("d")
    assert wakes(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD, None, mine)
    assert wakes(
        Resource.PERSISTENT_VOLUME_CLAIM, Action.UPDATE, mine, mine, with_claims("p", ephemeral=["c"])
    )
    assert not wakes(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD, None, another)
    assert not wakes(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD, None, make_claim("c", namespace="x"))


def test_volumes_and_nodes():
    assert wakes(Resource.PERSISTENT_VOLUME, Action.ADD, None, make_volume("v"))
    assert wakes(Resource.NODE, Action.UPDATE_NODE_LABEL, None, None)
    assert not wakes(Resource.NODE, Action.UPDATE_NODE_ALLOCATABLE, None, None)


def test_drivers():
    taken_over = CSINode("a", {}, frozenset({GCE_PD}))
    assert wakes(Resource.CSI_NODE, Action.ADD, None, CSINode("a"))
    assert wakes(Resource.CSI_NODE, Action.UPDATE, CSINode("a"), taken_over)
    assert not wakes(Resource.CSI_NODE, Action.UPDATE, CSINode("a"), CSINode("a", {"d": 1}))
    tracking, loose = CSIDriver("d", tracks_capacity=True), CSIDriver("d")
    assert wakes(Resource.CSI_DRIVER, Action.UPDATE, tracking, loose)
    assert wakes(Resource.CSI_DRIVER, Action.DELETE, tracking, None)
    assert not wakes(Resource.CSI_DRIVER, Action.UPDATE, loose, tracking)
    assert not wakes(Resource.CSI_DRIVER, Action.DELETE, loose, None)


@pytest.mark.parametrize(
    ("before", "after", "helps"),
    [
        ("1Gi", "2Gi", True),
        ("2Gi", "1Gi", False),
        (None, "1Gi", True),
        ("1Gi", None, False),
        ("1Gi", "1Gi", False),
    ],
)
def test_capacities(before, after, helps):
    old, new = make_capacity("x", before, host="a"), make_capacity("x", after, host="a")
    assert wakes(Resource.CSI_STORAGE_CAPACITY, Action.UPDATE, old, new) is helps
    assert wakes(Resource.CSI_STORAGE_CAPACITY, Action.ADD, None, new)
