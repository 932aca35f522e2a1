"""Attached volumes: counted once a node, followed through every change of pods and storage objects."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.core.cache.cache import Cache
from moorage.core.model.csi_migration import GCE_PD
from moorage.core.model.storage import (
    CSINode,
    CSISource,
    InTreeSource,
    StorageClass,
    StorageKind,
    VolumeAttachment,
)
from moorage.core.snapshot.attached_volumes import NO_LIMIT
from moorage.core.snapshot.snapshot import Snapshot
from tests.kit.models import make_node
from tests.kit.volume_models import LATE, make_claim, make_csi_node, make_volume, with_claims

GKE = "pd.csi.storage.gke.io"


def cluster(*objects, nodes="ab"):
    """A cache with nodes and storage objects."""
    cache = Cache(Snapshot())
    for name in nodes:
        cache.apply_node(make_node(name))
    for obj in objects:
        cache.apply_storage(obj)
    return cache


def counts(cache, driver="disk.test"):
    """How many volumes are attached, by node."""
    column = cache.snapshot.attached.counts(driver)
    return {node.name: int(column[row]) for row, node in enumerate(cache.snapshot.nodes) if node is not None}


def test_a_volume_counts_once_on_each_node_where_it_is_used():
    claim = make_claim("c", volume="v")
    other = make_claim("other", volume="w")
    cache = cluster(claim, other, make_volume("v"), make_volume("w"))
    one, two, three = (
        with_claims("one", "c", node="a"),
        with_claims("two", "c", node="a"),
        with_claims("x", "c", node="b"),
    )
    for pod in (one, two, three, with_claims("four", "other", node="b")):
        cache.add(pod)
    assert counts(cache) == {"a": 1, "b": 2}
    assert cache.snapshot.attached.rows_using(CSISource("disk.test", "v")) == {0, 1}
    cache.remove(one.uid)
    assert counts(cache) == {"a": 1, "b": 2}
    cache.remove(two.uid)
    assert counts(cache) == {"a": 0, "b": 2}
    assert cache.snapshot.attached.rows_using(CSISource("disk.test", "v")) == {1}


def test_two_claims_of_one_handle_are_one_volume():
    source = CSISource("disk.test", "shared")
    cache = cluster(
        make_claim("c", volume="v"),
        make_claim("d", volume="w"),
        make_volume("v", source=source),
        make_volume("w", source=source),
    )
    cache.add(with_claims("pod", "c", "d", node="a"))
    assert counts(cache) == {"a": 1, "b": 0}


def test_a_claim_without_a_volume_counts_by_its_class_until_it_has_one():
    claim = make_claim("c", storage_class="late")
    cache = cluster(LATE, claim)
    cache.add(with_claims("pod", "c", node="a"))
    assert counts(cache) == {"a": 1, "b": 0}
    cache.apply_storage(make_claim("c", storage_class="late", volume="v"))
    assert counts(cache) == {"a": 1, "b": 0}  # its volume is not shown yet
    cache.apply_storage(make_volume("v", source=CSISource("other.test", "v")))
    assert counts(cache) == {"a": 0, "b": 0}
    assert counts(cache, "other.test") == {"a": 1, "b": 0}
    cache.apply_storage(make_volume("v", source=None))
    assert counts(cache, "other.test") == {"a": 0, "b": 0}
    cache.remove_storage(StorageKind.VOLUME, "v")
    assert counts(cache) == {"a": 1, "b": 0}
    cache.remove_storage(StorageKind.CLASS, "late")
    assert counts(cache) == {"a": 0, "b": 0}


@pytest.mark.parametrize("owner", ["uid-pod", "uid-other", None])
def test_an_ephemeral_claim_counts_if_it_is_the_pod_s(owner):
    objects = [LATE] if owner is None else [LATE, make_claim("pod-data", storage_class="late", owner=owner)]
    cache = cluster(*objects)
    cache.add(with_claims("pod", ephemeral=["pod-data"], node="a"))
    assert counts(cache)["a"] == (owner == "uid-pod")
    assert not cache.snapshot.attached.in_use("default/pod-data")


def test_in_tree_volumes_count_where_a_csi_node_is_known():
    in_tree = StorageClass("gce", GCE_PD, waits_for_consumer=True)
    disk = InTreeSource(GCE_PD, "d")
    cache = cluster(
        in_tree,
        make_claim("new", storage_class="gce"),
        make_claim("old", volume="v"),
        make_volume("v", source=disk),
    )
    cache.add(with_claims("pod", "new", "old", in_tree=[InTreeSource(GCE_PD, "other")], node="a"))
    assert counts(cache, GKE) == {"a": 0, "b": 0}
    cache.apply_storage(CSINode("a"))
    assert counts(cache, GKE) == {"a": 3, "b": 0}
    cache.remove_storage(StorageKind.CSI_NODE, "a")
    assert counts(cache, GKE) == {"a": 0, "b": 0}


def test_attachments_count_unless_a_pod_uses_the_volume():
    cache = cluster(make_claim("c", volume="v"), make_volume("v"), make_volume("w"))
    cache.add(with_claims("pod", "c", node="a"))
    cache.apply_storage(VolumeAttachment("one", "disk.test", "a", "v"))
    cache.apply_storage(VolumeAttachment("two", "disk.test", "a", "w"))
    cache.apply_storage(VolumeAttachment("three", "disk.test", "elsewhere", "w"))
    assert counts(cache) == {"a": 2, "b": 0}
    cache.apply_storage(VolumeAttachment("two", "disk.test", "b", "w"))
    assert counts(cache) == {"a": 1, "b": 1}
    cache.remove_storage(StorageKind.VOLUME, "w")
    assert counts(cache) == {"a": 1, "b": 0}


def test_limits_and_drivers_are_those_of_the_node_s_csi_node():
    cache = cluster(make_csi_node("a", disk_test=3, other_test=None), make_csi_node("later", disk_test=1))
    attached = cache.snapshot.attached
    assert attached.limits("disk.test")[:2].tolist() == [3, NO_LIMIT]
    assert attached.limits("other.test")[:2].tolist() == [NO_LIMIT, NO_LIMIT]
    assert attached.installed("other.test")[:2].tolist() == [True, False]
    assert attached.installed("nothing").any() == np.False_
    assert attached.known[:2].tolist() == [True, False]
    cache.apply_node(make_node("later"))
    assert attached.limits("disk.test")[2] == 1
    cache.apply_storage(make_csi_node("a", other_test=2))
    assert attached.limits("disk.test")[0] == NO_LIMIT
    assert attached.limits("other.test")[0] == 2
    cache.remove_node("later")
    assert attached.limits("disk.test")[2] == NO_LIMIT


def test_users_of_a_claim():
    cache = cluster(make_claim("c"))
    one, two = with_claims("one", "c", node="a"), with_claims("two", "c", node="b")
    cache.add(one)
    cache.add(two)
    cache.remove(one.uid)
    assert cache.snapshot.attached.in_use("default/c")
    cache.remove(two.uid)
    assert not cache.snapshot.attached.in_use("default/c")


def test_more_nodes_than_there_was_room_for():
    claim = make_claim("c", volume="v")
    cache = cluster(claim, make_volume("v"), make_csi_node("a", disk_test=1))
    cache.add(with_claims("pod", "c", node="a"))
    assert counts(cache)["a"] == 1
    for number in range(200):
        cache.apply_node(make_node(f"n{number}"))
    cache.add(with_claims("late", "c", node="n199"))
    assert counts(cache)["n199"] == counts(cache)["a"] == 1
    assert cache.snapshot.attached.limits("disk.test")[0] == 1
    assert cache.snapshot.attached.known[0]


NODES = ("a", "b")
steps = st.one_of(
    st.builds(lambda name: ("node", make_node(name)), st.sampled_from(NODES)),
    st.builds(lambda name: ("node gone", name), st.sampled_from(NODES)),
    st.builds(
        lambda name, claims, own, node: ("pod", with_claims(name, *claims, ephemeral=own, node=node)),
        st.sampled_from(("p", "q", "r")),
        st.lists(st.sampled_from("cd"), unique=True),
        st.sampled_from(((), ("p-data",))),
        st.sampled_from(NODES),
    ),
    st.builds(lambda name: ("pod gone", f"uid-{name}"), st.sampled_from(("p", "q", "r"))),
    st.builds(
        lambda *of: ("storage", make_claim(of[0], storage_class=of[1], volume=of[2], owner=of[3])),
        st.sampled_from(("c", "d", "p-data")),
        st.sampled_from(("late", "gce", "")),
        st.sampled_from(("", "v", "w")),
        st.sampled_from(("", "uid-p")),
    ),
    st.builds(
        lambda name, source: ("storage", make_volume(name, source=source)),
        st.sampled_from("vw"),
        st.sampled_from(
            (CSISource("disk.test", "1"), CSISource("disk.test", "2"), InTreeSource(GCE_PD, "d"), None)
        ),
    ),
    st.sampled_from([("storage", LATE), ("storage", StorageClass("gce", GCE_PD))]),
    st.builds(
        lambda name, limit: ("storage", make_csi_node(name, disk_test=limit)),
        st.sampled_from(NODES),
        st.sampled_from((None, 1)),
    ),
    st.builds(
        lambda *of: ("storage", VolumeAttachment(of[0], "disk.test", of[1], of[2])),
        st.sampled_from("xy"),
        st.sampled_from(NODES),
        st.sampled_from("vw"),
    ),
    st.builds(
        lambda kind, key: ("storage gone", (kind, key)),
        st.sampled_from(list(StorageKind)),
        st.sampled_from(("v", "w", "default/c", "default/d", "late", "a", "b", "x")),
    ),
    st.just(("look", None)),
)


@given(st.lists(steps, max_size=30))
def test_whatever_happens_it_is_as_if_counted_afresh(happened):
    cache, storage = Cache(Snapshot()), {}
    for what, about in happened:
        match what:
            case "node":
                cache.apply_node(about)
            case "node gone":
                cache.remove_node(about)
            case "pod":
                cache.add(about)
            case "pod gone":
                cache.remove(about)
            case "storage":
                cache.apply_storage(about)
                storage[about.kind, about.key] = about
            case "storage gone":
                cache.remove_storage(*about)
                storage.pop(about, None)
            case _:
                looks(cache)
    fresh = Cache(Snapshot())
    for obj in storage.values():
        fresh.apply_storage(obj)
    for name in NODES:
        if cache.snapshot.row_of(name) is not None:
            fresh.apply_node(make_node(name))
        for pod in cache.pods_on(name):
            fresh.add(pod)
    assert looks(cache) == looks(fresh)


def looks(cache):
    """Everything that can be asked, by node."""
    attached, snapshot = cache.snapshot.attached, cache.snapshot
    rows = {name: row for name in NODES if (row := snapshot.row_of(name)) is not None}
    drivers = ("disk.test", GKE)
    sources = [CSISource("disk.test", "1"), CSISource("disk.test", "claim default/c")]
    return {
        "in use": [attached.in_use(f"default/{name}") for name in ("c", "d", "p-data")],
        **{
            name: [
                *(int(attached.counts(driver)[row]) for driver in drivers),
                *(int(attached.limits(driver)[row]) for driver in drivers),
                *(bool(attached.installed(driver)[row]) for driver in drivers),
                *(row in attached.rows_using(source) for source in sources),
                bool(attached.known[row]),
            ]
            for name, row in rows.items()
        },
    }
