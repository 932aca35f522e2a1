"""Pods of a namespace, seen through the keys that somebody asks for."""

import pytest

from moorage.core.model.pod_query import PodQuery
from moorage.core.model.selector import LabelSelector, Operator, Requirement
from moorage.core.snapshot.pod_groups import NamespacePods
from moorage.core.snapshot.tallies import Tally, TallyBook
from tests.kit.models import label_in, make_pod

WEB = LabelSelector((label_in("app", "web"),))


@pytest.fixture(params=[12, 0], ids=["few", "many"])
def pods(request, monkeypatch):
    monkeypatch.setattr(NamespacePods, "FEW", request.param)
    return NamespacePods("default", TallyBook())


def pod(number, app="web", **fields):
    return make_pod(
        f"p{number}", labels={"app": app, "unique": str(number), **fields.pop("labels", {})}, **fields
    )


def groups_of(pods):
    return sorted(
        (sorted(group.labels.items()), group.terminating, dict(group.rows)) for group in pods.groups
    )


def joined(pods, selector=WEB, *, terminating=True):
    tally = Tally(PodQuery(frozenset(("default",)), selector, terminating), 8)
    pods.book.add(tally)
    pods.join(tally)
    return tally


def test_without_keys_all_pods_are_alike(pods):
    for number in range(3):
        pods.count(number % 2, pod(number))
    assert groups_of(pods) == [([], False, {0: 2, 1: 1})]


def test_keys_tell_pods_apart_and_others_do_not(pods):
    pods.tell_apart({"app", "tier"})
    for number, app in enumerate(("web", "web", "db")):
        pods.count(0, pod(number, app))
    assert groups_of(pods) == [([("app", "db")], False, {0: 1}), ([("app", "web")], False, {0: 2})]


def test_dying_pods_are_a_group_of_their_own(pods):
    pods.tell_apart({"app"})
    pods.count(0, pod(1))
    pods.count(0, pod(2, deleting=True))
    assert groups_of(pods) == [([("app", "web")], False, {0: 1}), ([("app", "web")], True, {0: 1})]


def test_a_tally_counts_those_that_are_there_and_those_to_come(pods):
    pods.tell_apart({"app"})
    pods.count(0, pod(1))
    pods.count(0, pod(2, "db"))
    tally = joined(pods)
    pods.count(1, pod(3))
    pods.count(1, pod(4, deleting=True))
    pods.discount(0, pod(1))
    assert tally.counts[:2].tolist() == [0, 2]


def test_a_tally_of_the_living(pods):
    pods.tell_apart({"app"})
    pods.count(0, pod(1, deleting=True))
    tally = joined(pods, terminating=False)
    pods.count(0, pod(2, deleting=True))
    pods.count(0, pod(3))
    assert tally.counts[0] == 1


@pytest.mark.parametrize(
    "selector",
    [
        LabelSelector(),
        LabelSelector((Requirement("tier", Operator.DOES_NOT_EXIST),)),
        LabelSelector((label_in("app", "web", "none"),)),
        LabelSelector((Requirement("app", Operator.NOT_IN, ("db",)),)),
        LabelSelector((label_in("app", "web"), label_in("app", "web", "db"))),
    ],
)
def test_every_kind_of_selector_finds_its_groups(pods, selector):
    pods.tell_apart({"app", "tier"})
    pods.count(0, pod(1))
    pods.count(1, pod(2, "db", labels={"tier": "b"}))
    tally = joined(pods, selector)
    assert tally.counts[:2].tolist() == [1, int(not selector.requirements)]


def test_more_keys_regroup_and_leave_the_tallies_alone(pods):
    pods.tell_apart({"app"})
    counted = [(0, pod(1)), (0, pod(2, labels={"tier": "f"})), (1, pod(3))]
    for row, one in counted:
        pods.count(row, one)
    tally = joined(pods)
    pods.tell_apart({"tier"})
    for row, one in counted:
        pods.place(row, one)
    assert len(pods.groups) == 2
    assert tally.counts[:2].tolist() == [2, 1]
    assert set(tally.groups) == set(pods.groups)
    pods.count(1, pod(4, labels={"tier": "f"}))
    assert tally.counts[:2].tolist() == [2, 2]


def test_empty_groups_rest_for_a_while_and_then_go(pods, monkeypatch):
    monkeypatch.setattr(NamespacePods, "IDLE", 2)
    pods.tell_apart({"unique", "app"})
    tally = joined(pods)
    for number in range(5):
        pods.count(0, pod(number))
    for number in range(5):
        pods.discount(0, pod(number))
    assert [group.labels["unique"] for group in pods.groups] == ["3", "4"]
    assert set(tally.groups) == set(pods.groups)
    assert not pods._by_label.get(("unique", "0"))
    pods.count(0, pod(3))
    pods.count(0, pod(0))
    pods.discount(0, pod(0))
    assert {group.labels["unique"] for group in pods.groups if group.rows} == {"3"}
    assert tally.counts[0] == 1


def test_a_group_that_has_pods_again_does_not_go(pods, monkeypatch):
    monkeypatch.setattr(NamespacePods, "IDLE", 1)
    pods.tell_apart({"unique"})
    for number in range(3):
        pods.count(0, pod(number))
    pods.discount(0, pod(0))
    pods.count(0, pod(0))
    pods.discount(0, pod(1))
    pods.discount(0, pod(2))
    assert {group.labels["unique"]: len(group.rows) for group in pods.groups} == {"0": 1, "2": 0}


def test_regrouping_forgets_the_empty_groups(pods, monkeypatch):
    monkeypatch.setattr(NamespacePods, "IDLE", 1)
    pods.tell_apart({"unique"})
    pods.count(0, pod(0))
    pods.discount(0, pod(0))
    pods.tell_apart({"app"})
    assert not pods.groups
    for number in (1, 2):
        pods.count(0, pod(number))
        pods.discount(0, pod(number))
    assert [group.labels["unique"] for group in pods.groups] == ["2"]
