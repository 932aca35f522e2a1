"""The store of storage objects: what is found by which way, and what changes tell."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.core.model.selector import NodeSelector, NodeSelectorTerm, Operator, Requirement
from moorage.core.model.storage import ClaimRef, StorageKind, VolumeAttachment
from moorage.core.snapshot.reservations import Binding, Reservation
from moorage.core.snapshot.storage import Storage
from tests.kit.volume_models import HOST, LATE, make_capacity, make_claim, make_volume

CLAIM = make_claim("c")


def store(*objects):
    storage = Storage()
    for obj in objects:
        storage.apply(obj)
    return storage


def test_changes_are_told_once_made():
    storage, told = Storage(), []
    storage.listen(lambda before, after: told.append((before, after)))
    one, two = make_volume("v"), make_volume("v", capacity="2Gi", version="2")
    assert storage.apply(one) is None
    assert storage.apply(two) == one
    assert storage.drop(StorageKind.VOLUME, "v") == two
    assert storage.drop(StorageKind.VOLUME, "v") is None
    assert told == [(None, one), (one, two), (two, None)]


def test_a_new_version_alone_is_kept_and_not_told():
    storage, told = store(make_volume("v")), []
    storage.listen(lambda before, after: told.append(after))
    newer = make_volume("v", version="2")
    storage.apply(newer)
    assert storage.volumes["v"] is newer
    assert told == []


def test_volumes_are_found_by_class_and_place():
    storage = store(
        make_volume("here", host="a"),
        make_volume("there", host="b"),
        make_volume("any"),
        make_volume("x", storage_class=""),
    )
    index = storage.volumes_of_class("local")
    assert list(index.near({HOST: "a"})) == ["here"]
    assert list(index.everywhere) == ["any"]
    assert set(storage.volumes_of_class("")) == {"x"}
    assert set(storage.volumes_of_class("nothing")) == set()


def test_fields_are_no_part_of_where_a_volume_is():
    named = NodeSelectorTerm((), (Requirement("metadata.name", Operator.IN, ("a",)),))
    storage = store(make_volume("v", node_affinity=NodeSelector((named, NodeSelectorTerm()))))
    assert list(storage.volumes_of_class("local").near({})) == ["v"]
    storage = store(make_volume("v", node_affinity=NodeSelector((NodeSelectorTerm(),))))
    assert list(storage.volumes_of_class("local").near({})) == []


def test_capacities_without_a_topology_are_of_use_to_nobody():
    storage = store(make_capacity("none", "1Gi"), make_capacity("here", "1Gi", host="a"))
    assert list(storage.capacities_of_class("late").near({HOST: "a"})) == ["default/here"]
    assert set(storage.capacities_of_class("late")) == {"default/here"}


def test_volumes_of_a_claim_and_claims_of_a_volume():
    named = replace(make_volume("named"), claim=CLAIM.ref)
    storage = store(
        named, make_volume("other"), make_claim("bound", volume="v"), make_claim("also", volume="v")
    )
    assert list(storage.volumes_naming(ClaimRef("default", "c"))) == [named]
    assert list(storage.claims_of_volume("v")) == ["default/bound", "default/also"]
    storage.apply(make_claim("bound"))
    assert list(storage.claims_of_volume("v")) == ["default/also"]


def test_attachments_by_node_and_by_volume():
    one, two = VolumeAttachment("one", "d", "a", "v"), VolumeAttachment("two", "d", "a", "w")
    storage = store(one, two)
    assert list(storage.attachments_on("a")) == [one, two]
    assert list(storage.attachments_of("w")) == [two]


def test_a_promised_volume_is_believed_to_be_the_claim_s():
    volume = make_volume("v")
    storage = store(volume, CLAIM)
    storage.reservations.begin(Reservation("pod", "n", (Binding(CLAIM, volume),)))
    assert storage.volume("v").claim == CLAIM.ref
    assert storage.volumes["v"].claim is None
    assert [v.name for v in storage.volumes_naming(CLAIM.ref)] == ["v"]
    storage.reservations.end("pod")
    assert storage.volume("v").claim is None
    assert storage.volume("nothing") is None


def test_a_claim_is_believed_to_have_its_node():
    claim = make_claim("c", storage_class="late")
    storage = store(LATE, claim)
    storage.reservations.begin(Reservation("pod", "n", (), (claim,)))
    assert storage.claim("default/c").selected_node == "n"
    storage.apply(replace(claim, resource_version="2"))  # whatever the API server shows next is true
    assert storage.claim("default/c").selected_node is None
    assert storage.claim("default/nothing") is None


def test_who_waits_for_an_object():
    late = make_claim("late", storage_class="late")
    volume = make_volume("v")
    storage = store(volume, CLAIM, late)
    assert storage.concerned_pods(volume) == frozenset()
    storage.reservations.begin(Reservation("one", "n", (Binding(CLAIM, volume),), (late,)))
    storage.reservations.begin(Reservation("two", "n", (), (late,)))
    assert storage.concerned_pods(volume) == {"one"}
    assert storage.concerned_pods(CLAIM) == {"one"}
    assert storage.concerned_pods(late) == {"one", "two"}
    storage.apply(replace(late, volume_name="new"))
    assert storage.concerned_pods(make_volume("new")) == {"one", "two"}
    assert storage.concerned_pods(LATE) == frozenset()


objects = st.one_of(
    st.builds(
        make_volume,
        st.sampled_from("vw"),
        storage_class=st.sampled_from(("local", "late")),
        host=st.sampled_from(("", "a", "b")),
        claim=st.sampled_from((None, CLAIM)),
    ),
    st.builds(make_claim, st.sampled_from("cd"), volume=st.sampled_from(("", "v", "w"))),
    st.builds(make_capacity, st.sampled_from("xy"), st.just("1Gi"), host=st.sampled_from(("", "a", "b"))),
    st.builds(
        VolumeAttachment,
        st.sampled_from("pq"),
        node_name=st.sampled_from("ab"),
        volume_name=st.sampled_from("vw"),
    ),
)


@given(st.lists(st.tuples(objects, st.booleans())))
def test_the_indexes_are_those_of_a_fresh_store(changes):
    storage = Storage()
    for obj, gone in changes:
        storage.apply(obj)
        if gone:
            storage.drop(obj.kind, obj.key)
    kept = [obj for mapping in storage._objects.values() for obj in mapping.values()]
    assert looks(storage) == looks(store(*kept))
    for obj in kept:
        storage.drop(obj.kind, obj.key)
    assert looks(storage) == looks(Storage())
    assert storage._volumes_of_class == storage._capacities_of_class == {}


def looks(storage):
    """Everything that can be asked of a store."""
    hosts: list[dict[str, str]] = [{HOST: "a"}, {HOST: "b"}, {}]
    return {
        "volumes": {
            c: [
                sorted({*storage.volumes_of_class(c).near(h), *storage.volumes_of_class(c).everywhere})
                for h in hosts
            ]
            for c in ("local", "late")
        },
        "capacities": [sorted(storage.capacities_of_class("late").near(h)) for h in hosts],
        "naming": [v.name for v in storage.volumes_naming(CLAIM.ref)],
        "claims": [sorted(storage.claims_of_volume(v)) for v in "vw"],
        "on": [sorted(a.name for a in storage.attachments_on(n)) for n in "ab"],
        "of": [sorted(a.name for a in storage.attachments_of(v)) for v in "vw"],
    }


@pytest.mark.parametrize("kind", StorageKind)
def test_nothing_is_dropped_that_is_not_there(kind):
    assert Storage().drop(kind, "x") is None
