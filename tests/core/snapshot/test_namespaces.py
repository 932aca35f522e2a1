"""Namespaces and their labels."""

from moorage.core.model.selector import LabelSelector, Operator, Requirement
from moorage.core.model.workload import Namespace
from moorage.core.snapshot.namespaces import Namespaces
from tests.kit.models import label_in

TEAM_A = LabelSelector((label_in("team", "a"),))


def test_labels_by_name():
    known = Namespaces()
    known.apply(Namespace("blue", {"team": "a"}))
    assert (known.labels("blue"), known.labels("gone")) == ({"team": "a"}, {})
    assert ("blue" in known, "gone" in known) == (True, False)


def test_it_tells_what_was_before():
    known = Namespaces()
    first, second = Namespace("blue", {"team": "a"}), Namespace("blue", {"team": "b"})
    assert known.apply(first) is None
    assert known.apply(Namespace("blue", {"team": "a"})) == first
    assert known.apply(second) == first
    again = Namespace("blue", {"team": "b"})
    assert known.apply(again) is again  # nothing changed


def test_a_selection_follows_the_changes():
    known = Namespaces()
    known.apply(Namespace("blue", {"team": "a"}))
    known.apply(Namespace("red"))
    assert known.selected(TEAM_A) == {"blue"}
    epoch = known.epoch
    known.apply(Namespace("red", {"team": "a"}))
    assert known.epoch > epoch
    assert known.selected(TEAM_A) == {"blue", "red"}
    known.remove("blue")
    assert known.selected(TEAM_A) == {"red"}
    known.remove("blue")


def test_only_namespaces_that_exist_are_selected():
    known = Namespaces()
    known.apply(Namespace("blue", {"team": "a"}))
    without = LabelSelector((Requirement("team", Operator.DOES_NOT_EXIST),))
    assert known.selected(without) == frozenset()


def test_remembered_selections_are_bounded(monkeypatch):
    monkeypatch.setattr(Namespaces, "_KEPT", 2)
    known = Namespaces()
    known.apply(Namespace("blue", {"n": "3"}))
    found = [known.selected(LabelSelector((label_in("n", str(n)),))) for n in range(5)]
    assert found == [frozenset(), frozenset(), frozenset(), frozenset(("blue",)), frozenset()]
    assert len(known._selected) <= 2
