"""Counting costs nothing until somebody asks, and what nobody asks for any more is dropped."""

from dataclasses import replace

import pytest

from moorage.core.model.node import Node
from moorage.core.model.pod_query import PodQuery
from moorage.core.model.selector import LabelSelector
from moorage.core.snapshot.pod_counts import PodCounts
from moorage.core.snapshot.snapshot import Snapshot
from tests.kit.models import label_in, make_pod


@pytest.fixture
def snapshot():
    made = Snapshot()
    for row in range(4):
        made.set_node(Node(f"n{row}", labels={"zone": str(row % 2)}))
    return made


def pod(number, app="web", namespace="default", **fields):
    return make_pod(f"p{number}", namespace=namespace, labels={"app": app, "unique": str(number)}, **fields)


def query(app="web", *namespaces, terminating=True, key="app"):
    return PodQuery(frozenset(namespaces) or None, LabelSelector((label_in(key, app),)), terminating)


def counts(snapshot, asked):
    return snapshot.pod_counts.tally(asked).counts[:4].tolist()


def test_nothing_is_kept_while_nobody_asks(snapshot):
    snapshot.add_pod(0, pod(1))
    assert not snapshot.pod_counts._spaces
    assert counts(snapshot, query("web", "default")) == [1, 0, 0, 0]
    assert set(snapshot.pod_counts._spaces) == {"default"}


def test_the_same_question_has_the_same_tally(snapshot):
    tally = snapshot.pod_counts.tally(query("web", "default"))
    assert snapshot.pod_counts.tally(query("web", "default")) is tally
    assert len(snapshot.pod_counts) == 1


def test_namespaces(snapshot):
    for number, namespace in enumerate(("red", "blue", "blue")):
        snapshot.add_pod(number, pod(number, namespace=namespace))
    assert counts(snapshot, query("web", "blue")) == [0, 1, 1, 0]
    assert counts(snapshot, query("web", "red", "gone")) == [1, 0, 0, 0]
    assert counts(snapshot, query("web")) == [1, 1, 1, 0]
    assert counts(snapshot, PodQuery(frozenset(), LabelSelector())) == [0, 0, 0, 0]
    snapshot.add_pod(3, pod(9, namespace="new"))
    assert counts(snapshot, query("web")) == [1, 1, 1, 1]
    assert counts(snapshot, query("web", "red", "gone")) == [1, 0, 0, 0]
    snapshot.remove_pod(3, pod(9, namespace="new"))
    assert counts(snapshot, query("web")) == [1, 1, 1, 0]


def test_a_new_key_is_understood_later_too(snapshot):
    snapshot.add_pod(0, pod(1))
    assert counts(snapshot, query("web", "default")) == [1, 0, 0, 0]
    assert counts(snapshot, query("1", "default", key="unique")) == [1, 0, 0, 0]
    assert counts(snapshot, query("1", key="unique")) == [1, 0, 0, 0]
    assert counts(snapshot, query("2", "default", key="unique")) == [0, 0, 0, 0]
    snapshot.add_pod(1, pod(2))
    assert counts(snapshot, query("2", "default", key="unique")) == [0, 1, 0, 0]
    assert counts(snapshot, query("web", "default")) == [1, 1, 0, 0]


def test_a_pod_that_is_shown_again_is_counted_as_it_is_now(snapshot):
    first = pod(1)
    snapshot.add_pod(0, first)
    alive, all_, db = (
        query("web", "default", terminating=False),
        query("web", "default"),
        query("db", "default"),
    )
    assert [counts(snapshot, q)[0] for q in (alive, all_, db)] == [1, 1, 0]
    dying = replace(first, deleting=True)
    snapshot.refresh_pod(0, dying)
    assert [counts(snapshot, q)[0] for q in (alive, all_, db)] == [0, 1, 0]
    other = replace(dying, labels={"app": "db"})
    snapshot.refresh_pod(0, other)
    assert [counts(snapshot, q)[0] for q in (alive, all_, db)] == [0, 0, 1]
    snapshot.remove_pod(0, other)
    assert [counts(snapshot, q)[0] for q in (alive, all_, db)] == [0, 0, 0]


def test_a_node_that_is_gone_takes_its_pods_along(snapshot):
    snapshot.add_pod(1, pod(1))
    assert counts(snapshot, query("web")) == [0, 1, 0, 0]
    snapshot.drop_node("n1")
    assert counts(snapshot, query("web")) == [0, 0, 0, 0]


def test_it_grows_with_the_snapshot(snapshot):
    tally = snapshot.pod_counts.tally(query("web"))
    for number in range(300):
        snapshot.set_node(Node(f"more-{number}"))
    row = snapshot.row_of("more-299")
    snapshot.add_pod(row, pod(1))
    assert tally.counts.size == snapshot.capacity
    assert tally.counts[row] == 1


def test_what_nobody_asks_for_any_more_is_dropped(snapshot, monkeypatch):
    monkeypatch.setattr(PodCounts, "KEEP", 2)
    monkeypatch.setattr(PodCounts, "FORGET_AFTER", 10)
    monkeypatch.setattr(PodCounts, "SWEEP_EVERY", 5)
    known = snapshot.pod_counts
    snapshot.add_pod(0, pod(1))
    for app in ("a", "b", "web"):
        known.tally(query(app, app, "default"))
    known.tally(query("everywhere"))
    assert len(known) == 4
    for _ in range(30):
        known.tally(query("web", "web", "default"))
        known.tally(query("c", "default"))
    assert set(known._tallies) == {query("web", "web", "default"), query("c", "default")}
    assert set(known._spaces) == {"web", "default"}
    assert not known._everywhere
    snapshot.add_pod(1, pod(2))
    snapshot.add_pod(1, pod(3, namespace="unseen"))
    assert counts(snapshot, query("web", "web", "default")) == [1, 1, 0, 0]
    assert counts(snapshot, query("web")) == [1, 2, 0, 0]


def test_memory_is_bounded_and_the_latest_are_kept(snapshot, monkeypatch):
    monkeypatch.setattr(PodCounts, "KEEP", 4)
    monkeypatch.setattr(PodCounts, "LIMIT", 8 * snapshot.capacity * 4)
    for number in range(12):
        snapshot.add_pod(number % 4, pod(number, f"app-{number}"))
    for number in range(12):
        assert sum(counts(snapshot, query(f"app-{number}", "default"))) == 1
    assert len(snapshot.pod_counts) <= 8 + PodCounts.KEEP  # room is made once every so many
    snapshot.add_pod(0, pod(99, "app-0"))
    assert sum(counts(snapshot, query("app-0", "default"))) == 2
    assert sum(counts(snapshot, query("app-11", "default"))) == 1


def test_a_dropped_tally_is_told_nothing_any_more(snapshot, monkeypatch):
    monkeypatch.setattr(PodCounts, "KEEP", 1)
    monkeypatch.setattr(PodCounts, "LIMIT", 0)
    snapshot.add_pod(0, pod(1))
    old = snapshot.pod_counts.tally(query("web", "default"))
    snapshot.pod_counts.tally(query("db", "default"))
    snapshot.pod_counts.tally(query("cache", "default"))
    assert query("web", "default") not in snapshot.pod_counts._tallies
    snapshot.add_pod(1, pod(2))
    assert old.counts[:2].tolist() == [1, 0]


def test_by_domain(snapshot):
    for row in range(3):
        snapshot.add_pod(row, pod(row))
    topology = snapshot.topology
    zones = topology.domains("zone")
    found = snapshot.pod_counts.by_domain(query("web", "default"), zones, topology.scope((), None))
    assert found.values.tolist() == [2, 1, 0]
    snapshot.add_pod(3, pod(7))
    assert found.values.tolist() == [2, 2, 0]
