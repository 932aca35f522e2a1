"""The pods of a row in the order in which they are spared, kept up to date."""

from dataclasses import replace

import numpy as np

from moorage.core.snapshot.ranking import Ranking, amounts_of, importance, start_of
from moorage.core.snapshot.snapshot import Snapshot
from tests.kit.models import make_node, make_pod


def names(snapshot):
    """Of the pods on row 0, in order."""
    return [pod.name for pod in snapshot.ranking.at([0])[0].pods]


def a_node(*pods):
    """A snapshot of one node with these pods."""
    snapshot = Snapshot()
    snapshot.set_node(make_node("a"))
    for pod in pods:
        snapshot.add_pod(0, pod)
    return snapshot


def test_priority_goes_before_age_before_uid():
    pods = [
        make_pod("not-started", priority=1),
        make_pod("young", priority=1, started=9.0),
        make_pod("twin-b", priority=1, started=5.0, uid="2"),
        make_pod("twin-a", priority=1, started=5.0, uid="1"),
        make_pod("low", started=1.0),
        make_pod("high", priority=7),
    ]
    assert [p.name for p in sorted(pods, key=importance)] == [
        "high", "twin-a", "twin-b", "young", "not-started", "low",
    ]  # fmt: skip
    assert start_of(pods[0]) == float("inf")


def test_figures_are_in_the_order_of_the_pods():
    snapshot = a_node(make_pod("low", cpu=5, started=2.0), make_pod("high", priority=3, memory=7))
    (ranked,) = snapshot.ranking.at([0])
    assert names(snapshot) == ["high", "low"]
    assert ranked.priorities.tolist() == [3, 0]
    assert ranked.starts.tolist() == [np.inf, 2.0]
    assert amounts_of([ranked], "cpu")[0].tolist() == [0, 5]
    assert amounts_of([ranked], "memory")[0].tolist() == [7, 0]


def test_a_row_is_put_in_order_once_until_it_changes():
    snapshot = a_node(make_pod("web"))
    assert snapshot.ranking.at([0])[0] is snapshot.ranking.at([0])[0]


def test_it_follows_pods_that_come_change_and_go():
    web, db = make_pod("web", started=5.0), make_pod("db", started=6.0)
    snapshot = a_node(web)
    assert names(snapshot) == ["web"]
    snapshot.add_pod(0, db)
    assert names(snapshot) == ["web", "db"]
    older = replace(db, started=1.0)
    snapshot.refresh_pod(0, older)
    assert names(snapshot) == ["db", "web"]
    assert snapshot.ranking.at([0])[0].pods[0] is older
    snapshot.remove_pod(0, older)
    assert names(snapshot) == ["web"]


def test_rows_used_again_have_the_new_node_s_pods():
    snapshot = a_node(make_pod("web"))
    assert names(snapshot) == ["web"]
    snapshot.drop_node("a")
    snapshot.set_node(make_node("b"))
    assert names(snapshot) == []


def test_several_rows_at_once():
    pods = [
        {"u": make_pod("u", cpu=1)},
        {},
        {p.uid: p for p in (make_pod("v", cpu=2), make_pod("w", priority=1))},
    ]
    ranking = Ranking(pods)
    (first,) = ranking.at([0])
    amounts_of([first], "cpu")
    ranked = ranking.at([2, 0, 1])
    assert [[pod.name for pod in each.pods] for each in ranked] == [["w", "v"], ["u"], []]
    assert ranked[1] is first
    assert [each.priorities.tolist() for each in ranked] == [[1, 0], [0], []]
    assert [amounts.tolist() for amounts in amounts_of(ranked, "cpu")] == [[0, 2], [1], []]
