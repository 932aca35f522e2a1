"""Columns of declared features follow the nodes."""

from dataclasses import replace

from moorage.core.snapshot.snapshot import Snapshot
from tests.kit.models import make_node


def declaring(snapshot, *features):
    mask = snapshot.features.declaring(features, snapshot.nodes, snapshot.capacity)
    assert mask.shape == (snapshot.capacity,)
    return [snapshot.name_at(row) for row in mask.nonzero()[0] if snapshot.alive[row]]


def test_columns_are_built_when_asked_for_and_kept_up_to_date():
    snapshot = Snapshot()
    node = make_node("a", declared_features=("A", "B"))
    snapshot.set_node(node)
    assert (declaring(snapshot, "A"), declaring(snapshot, "A", "C")) == (["a"], [])
    snapshot.set_node(replace(node, declared_features=("C",)))
    snapshot.set_node(make_node("b", declared_features=("A",)))
    assert (declaring(snapshot, "A"), declaring(snapshot, "C")) == (["b"], ["a"])
    snapshot.drop_node("a")
    snapshot.set_node(make_node("c"))  # takes over the row
    assert declaring(snapshot, "C") == []


def test_columns_grow_with_the_table():
    snapshot = Snapshot()
    snapshot.set_node(make_node("first", declared_features=("A",)))
    assert declaring(snapshot, "A") == ["first"]
    for number in range(snapshot.capacity):
        snapshot.set_node(make_node(f"n{number}"))
    snapshot.set_node(make_node("last", declared_features=("A",)))
    assert declaring(snapshot, "A") == ["first", "last"]


def test_columns_that_make_room_are_built_again():
    snapshot = Snapshot()
    snapshot.set_node(make_node("a", declared_features=("F0", "F99")))
    for number in range(100):
        assert declaring(snapshot, f"F{number}") == (["a"] if number in (0, 99) else [])
    assert declaring(snapshot, "F0") == ["a"]
