"""Pods grouped anew some rows at a time, while counting goes on."""

import pytest

from moorage.core.model.node import Node
from moorage.core.model.pod_query import PodQuery
from moorage.core.model.selector import LabelSelector, Operator, Requirement
from moorage.core.snapshot.pod_groups import NamespacePods
from moorage.core.snapshot.regrouping import Regrouping, rows_meant
from moorage.core.snapshot.snapshot import Snapshot
from moorage.core.snapshot.tallies import TallyBook
from tests.kit.models import label_in, make_pod

WEB = LabelSelector((label_in("app", "web"),))


def query(*requirements, namespaces=("default",), terminating=True):
    """About these namespaces."""
    return PodQuery(frozenset(namespaces), LabelSelector(requirements), terminating)


def pod(number, app="web", **fields):
    """A pod of an app, every second one of tier f."""
    return make_pod(f"p{number}", labels={"app": app, "tier": "fb"[number % 2]}, **fields)


@pytest.fixture
def snapshot(monkeypatch):
    """Six nodes with a pod each, of which one row is grouped in one go."""
    monkeypatch.setattr(Regrouping, "EFFORT", 1)
    made = Snapshot()
    for row in range(6):
        made.set_node(Node(f"n{row}"))
        made.add_pod(row, pod(row))
    return made


def test_the_first_question_is_answered_before_the_groups_are_complete(snapshot):
    counts = snapshot.pod_counts
    tally = counts.tally(query(label_in("app", "web")))
    space = counts._spaces["default"]
    assert tally.counts[:6].tolist() == [1] * 6
    assert space.regrouping is not None
    for _ in range(4):
        counts.tally(query(label_in("app", "web")))
        assert space.regrouping is not None
    counts.tally(query(label_in("app", "web")))
    assert space.regrouping is None
    assert counts._regroupings == []
    (group,) = space.groups
    assert group.rows == dict.fromkeys(range(6), 1)
    assert group.tallies == [tally]


def test_pods_that_come_and_go_meanwhile_are_counted_once(snapshot):
    """On rows that are done and on those that are not."""
    counts = snapshot.pod_counts
    asked = query(label_in("app", "web"))
    counts.tally(asked)
    counts.tally(asked)
    space = counts._spaces["default"]
    assert space.regrouping is not None
    assert space.regrouping.row == 2
    for row in (1, 4):
        snapshot.add_pod(row, pod(10 + row))
        snapshot.add_pod(row, pod(20 + row, "db"))
        snapshot.remove_pod(row, snapshot.pods[row][f"uid-p{row}"])
        snapshot.remove_pod(row + 1, snapshot.pods[row + 1][f"uid-p{row + 1}"])
    expected = [1, 1, 0, 1, 1, 0]
    assert counts.tally(asked).counts[:6].tolist() == expected
    late = counts.tally(query(label_in("app", "db")))
    assert late.counts[:6].tolist() == [0, 1, 0, 0, 1, 0]
    while space.regrouping is not None:
        counts.tally(asked)
    assert counts.tally(asked).counts[:6].tolist() == expected
    assert {group.labels["app"]: group.rows for group in space.groups if group.rows} == {
        "web": {0: 1, 1: 1, 3: 1, 4: 1},
        "db": {1: 1, 4: 1},
    }
    snapshot.add_pod(5, pod(30, "db"))
    assert late.counts[5] == 1


def test_another_key_begins_anew(snapshot):
    counts = snapshot.pod_counts
    web = counts.tally(query(label_in("app", "web")))
    first = counts._spaces["default"].regrouping
    back = counts.tally(query(label_in("tier", "b")))
    assert counts._spaces["default"].regrouping is not first
    for _ in range(9):
        counts.tally(query(label_in("tier", "b")))
    assert counts._regroupings == []
    assert web.counts[:6].tolist() == [1] * 6
    assert back.counts[:6].tolist() == [0, 1] * 3
    groups = counts._spaces["default"].groups
    assert {group.labels["tier"]: group.rows for group in groups} == {
        "f": {0: 1, 2: 1, 4: 1},
        "b": {1: 1, 3: 1, 5: 1},
    }
    snapshot.add_pod(0, pod(7))
    assert (web.counts[0], back.counts[0]) == (2, 1)


def test_a_namespace_that_nobody_asks_about_any_more_leaves():
    space = NamespacePods("default", TallyBook())
    regrouping = Regrouping([space])
    regrouping.leave(space)
    assert space.regrouping is None
    assert regrouping.advance([{"u": make_pod("u")}])
    assert not space.groups


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (query(), [0, 0, 1, 2]),
        (query(terminating=False), [0, 0, 1]),
        (query(label_in("app", "web")), [0, 2]),
        (query(label_in("app", "web"), terminating=False), [0]),
        (query(Requirement("app", Operator.NOT_IN, ("web",))), [0, 1]),
        (query(Requirement("app", Operator.EXISTS), Requirement("app", Operator.NOT_IN, ("db",))), [0, 2]),
        (query(label_in("app", "web"), namespaces=("default", "other")), [0, 1, 2]),
        (query(namespaces=()), []),
    ],
)
def test_the_rows_of_the_pods_that_a_query_means(asked, expected):
    pods = [
        {p.uid: p for p in here}
        for here in (
            [make_pod("a", labels={"app": "web"}), make_pod("b")],
            [make_pod("c", labels={"app": "db"}), make_pod("d", labels={"app": "web"}, namespace="other")],
            [make_pod("e", labels={"app": "web"}, deleting=True)],
        )
    ]
    names = asked.namespaces or frozenset()
    assert rows_meant(pods, names, asked) == expected
