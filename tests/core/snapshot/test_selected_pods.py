"""The counts of the pods that policies select."""

import pytest

from moorage.core.model.node import Node
from moorage.core.snapshot.snapshot import Snapshot
from tests.kit.models import make_pod
from tests.kit.policies import BLUE, RED, selects


def made(*pods):
    snapshot = Snapshot()
    snapshot.selected.follow(selects)
    for name, zone in (("a", "1"), ("b", "1"), ("c", "2")):
        snapshot.set_node(Node(name, labels={"zone": zone}))
    for row, pod in pods:
        snapshot.add_pod(row, pod)
    return snapshot


def pod(name, app="x", **fields):
    return make_pod(name, labels={"app": app}, **fields)


def rows(snapshot, ref=RED):
    return snapshot.selected.of(ref).pods.counts[:3].tolist()


def by_zone(snapshot, ref=RED, *, dying=True):
    topology = snapshot.topology
    return snapshot.selected.by_domain(
        ref, topology.domains("zone"), topology.scope((), None), dying=dying
    ).tolist()


def test_nothing_is_asked_or_kept_while_no_policy_is_tracked():
    snapshot = Snapshot()
    snapshot.selected.follow(lambda pod: pytest.fail("asked"))
    snapshot.set_node(Node("a"))
    one = pod("one")
    snapshot.add_pod(0, one)
    snapshot.refresh_pod(0, one)
    snapshot.remove_pod(0, one)
    assert not snapshot.selected.tracked
    with pytest.raises(LookupError, match="the pods of policy team/blue are not counted"):
        snapshot.selected.total(BLUE)


def test_what_is_there_is_counted_when_a_policy_is_tracked():
    snapshot = made((0, pod("1")), (0, pod("2")), (2, pod("3")), (1, pod("4", "y")))
    snapshot.selected.track(RED)
    assert rows(snapshot) == [2, 0, 1]
    assert by_zone(snapshot) == [2, 1, 0]
    assert snapshot.selected.total(RED) == 3


def test_pods_come_and_go():
    snapshot = made()
    snapshot.selected.track(RED, BLUE)
    one, both = pod("1"), make_pod("2", labels={"app": "x", "tier": ""})
    snapshot.add_pod(0, one)
    snapshot.add_pod(1, both)
    live = snapshot.topology.scope((), None), snapshot.topology.domains("zone")
    counts = snapshot.selected.by_domain(RED, live[1], live[0], dying=True)
    assert (rows(snapshot), rows(snapshot, BLUE)) == ([1, 1, 0], [0, 1, 0])
    snapshot.remove_pod(0, one)
    assert (rows(snapshot), counts.tolist()) == ([0, 1, 0], [1, 0, 0])
    snapshot.drop_node("b")
    assert rows(snapshot) == rows(snapshot, BLUE) == [0, 0, 0]
    assert snapshot.selected.total(RED) == 0


def test_the_dying_count_until_they_are_gone_and_can_be_left_out():
    dying = pod("1", deleting=True)
    snapshot = made((0, dying), (1, pod("2")))
    snapshot.selected.track(RED)
    assert (by_zone(snapshot), by_zone(snapshot, dying=False)) == ([2, 0, 0], [1, 0, 0])
    snapshot.remove_pod(0, dying)
    assert (by_zone(snapshot), by_zone(snapshot, dying=False)) == ([1, 0, 0], [1, 0, 0])


def test_a_pod_that_is_shown_again_is_counted_as_it_is_now():
    snapshot = made((0, pod("1")))
    snapshot.selected.track(RED)
    snapshot.refresh_pod(0, pod("1", "y"))
    assert rows(snapshot) == [0, 0, 0]
    snapshot.refresh_pod(0, pod("1"))
    snapshot.refresh_pod(0, pod("1", deleting=True))
    assert (by_zone(snapshot), by_zone(snapshot, dying=False)) == ([1, 0, 0], [0, 0, 0])


def test_a_policy_that_selects_others_is_counted_anew_and_the_rest_left_alone():
    wanted = {"x"}
    snapshot = made((0, pod("1")), (1, pod("2", "y")))
    snapshot.selected.follow(lambda pod: (RED, BLUE) if pod.labels["app"] in wanted else (BLUE,))
    snapshot.selected.track(RED, BLUE)
    blue = snapshot.selected.of(BLUE)
    wanted.add("y")
    snapshot.selected.track(RED)
    assert rows(snapshot) == [1, 1, 0]
    assert snapshot.selected.of(BLUE) is blue
    snapshot.remove_pod(1, snapshot.pods[1]["uid-2"])
    assert (rows(snapshot), rows(snapshot, BLUE)) == ([1, 0, 0], [1, 0, 0])


def test_who_is_asked_can_change():
    snapshot = made((0, pod("1")))
    snapshot.selected.track(RED)
    snapshot.selected.follow(lambda pod: ())
    assert rows(snapshot) == [0, 0, 0]


def test_a_dropped_policy_is_no_longer_counted():
    snapshot = made((0, pod("1")))
    snapshot.selected.track(RED, BLUE)
    snapshot.selected.drop(RED)
    snapshot.selected.drop(RED)
    assert snapshot.selected.tracked
    with pytest.raises(LookupError):
        snapshot.selected.of(RED)
    snapshot.selected.drop(BLUE)
    assert not snapshot.selected.tracked
    snapshot.remove_pod(0, snapshot.pods[0]["uid-1"])
    snapshot.selected.track(RED)
    assert rows(snapshot) == [0, 0, 0]


def test_tracking_nothing_walks_over_no_pod():
    snapshot = made((0, pod("1")))
    snapshot.selected.follow(lambda pod: pytest.fail("asked"))
    snapshot.selected.track()
    assert not snapshot.selected.tracked


def test_counts_grow_with_the_snapshot():
    snapshot = made()
    snapshot.selected.track(RED)
    for number in range(100):
        snapshot.set_node(Node(f"n{number}", labels={"zone": "9"}))
    snapshot.add_pod(99, pod("1", deleting=True))
    assert snapshot.selected.of(RED).pods.counts[99] == 1
    assert by_zone(snapshot)[2] == 1
    assert by_zone(snapshot, dying=False)[2] == 0
