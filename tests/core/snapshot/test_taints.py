"""Taint sets."""

import pytest

from moorage.core.model.taint import Toleration
from moorage.core.snapshot.taints import TaintSets
from tests.kit.models import taint

X, Y = taint("x"), taint("y")


@pytest.fixture
def taints():
    """Four rows."""
    return TaintSets(4)


@pytest.fixture
def asked():
    """The sets that were measured."""
    return []


@pytest.fixture
def measure(asked):
    """How many taints of a set are not tolerated by name."""

    def count(taints, tolerations):
        asked.append(taints)
        return sum(all(t.key != o.key for o in tolerations) for t in taints)

    return count


def measured(taints, measure, *tolerations):
    """The figure of each row."""
    return taints.measure(measure, tolerations)[taints.ids].tolist()


def test_rows_share_sets(taints):
    taints.set(0, (X, Y))
    taints.set(2, (X, Y))
    taints.set(3, (Y, X))
    assert taints.ids[0] == taints.ids[2] != taints.ids[3]
    assert (taints.of(0), taints.of(1)) == ((X, Y), ())


def test_each_set_is_measured_once_for_the_same_tolerations(taints, measure, asked):
    for row in (0, 1, 2):
        taints.set(row, (X,))
    assert measured(taints, measure) == [1, 1, 1, 0]
    assert measured(taints, measure, Toleration("x")) == [0, 0, 0, 0]
    asked.clear()
    taints.set(3, (X, Y))
    assert measured(taints, measure) == [1, 1, 1, 2]
    assert asked == [(X, Y)]


def test_only_so_many_figures_are_kept(taints, measure, monkeypatch):
    monkeypatch.setattr(TaintSets, "_CACHED", 2)
    for key in ("x", "y", "z"):
        measured(taints, measure, Toleration(key))
    assert [tolerations[0].key for _, tolerations in taints._measured] == ["y", "z"]


def test_sets_that_nobody_has_any_more_are_forgotten(taints, measure):
    """Nodes with taints of their own come and go; what is left keeps its meaning."""
    taints.set(0, (X,))
    for number in range(500):
        own = (taint(f"own-{number}"), *[Y] * (number % 7))
        taints.set(1, own)
        assert measured(taints, measure) == [1, len(own), 0, 0]
    assert len(taints._sets) <= 64 + 2 * 4 + 2
    assert (taints.of(0), taints.of(1)[0].key, taints.of(2)) == ((X,), "own-499", ())


def test_growing_adds_rows_without_taints(taints):
    taints.set(3, (X,))
    taints.grow(6)
    assert [taints.of(row) for row in range(6)] == [(), (), (), (X,), (), ()]
