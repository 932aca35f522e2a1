"""Promises of nodes."""

from dataclasses import replace

import pytest

from moorage.core.queue.nominator import Nominator
from tests.kit.models import make_pod

POD = make_pod("web", priority=5)


@pytest.fixture
def nominator():
    """Node a is promised to the pod."""
    nominator = Nominator()
    nominator.nominate(POD, "a")
    return nominator


def ended(nominator):
    """(pod, node) of the promises that ended since the last call."""
    return [(pod.name, pod.nominated_node) for pod in nominator.drain_ended()]


def test_a_promise(nominator):
    assert (nominator.node_of(POD.uid), nominator.promised("a"), len(nominator)) == ("a", [POD], 1)
    assert (nominator.node_of("unknown"), nominator.promised("b")) == ("", [])
    assert ended(nominator) == []


def test_another_node_takes_the_place_of_the_first_and_frees_that(nominator):
    nominator.nominate(POD, "b")
    assert (nominator.promised("a"), nominator.promised("b"), len(nominator)) == ([], [POD], 1)
    assert ended(nominator) == [("web", "a")]


def test_the_same_promise_again_frees_nothing(nominator):
    newer = make_pod("web", priority=5, cpu=1)
    nominator.nominate(newer, "a")
    assert nominator.promised("a") == [newer]
    assert ended(nominator) == []
    assert nominator.drain_changed() == [(POD, newer)]
    assert nominator.drain_changed() == []


def test_a_pod_that_is_promised_another_node_or_is_the_same_has_not_changed(nominator):
    nominator.nominate(POD, "a")
    nominator.nominate(make_pod("web", cpu=1), "b")
    nominator.nominate(make_pod("new"), "a")
    assert nominator.drain_changed() == []


@pytest.mark.parametrize(("placed_on", "freed"), [("a", []), ("b", [("web", "a")]), ("", [("web", "a")])])
def test_the_end_frees_the_node_unless_it_was_taken(nominator, placed_on, freed):
    nominator.withdraw(POD.uid, replace(POD, node_name=placed_on))
    assert (len(nominator), nominator.promised("a")) == (0, [])
    assert ended(nominator) == freed
    assert ended(nominator) == []


def test_a_pod_that_takes_its_node_and_asks_for_less_has_changed(nominator):
    smaller = make_pod("web", cpu=1, node="a")
    nominator.withdraw(POD.uid, smaller)
    assert (nominator.drain_changed(), ended(nominator)) == ([(POD, smaller)], [])


def test_an_update_keeps_the_promise(nominator):
    newer = make_pod("web", priority=5, cpu=1)
    nominator.update(newer)
    nominator.update(make_pod("unknown"))
    assert (nominator.promised("a"), len(nominator)) == ([newer], 1)
    assert ended(nominator) == []


def test_pods_without_a_promise_end_none(nominator):
    nominator.withdraw("unknown")
    nominator.withdraw("unknown", make_pod("unknown", node="a"))
    assert ended(nominator) == []
    assert len(nominator) == 1


@pytest.mark.parametrize(
    ("priority", "expected"),
    [
        (4, {"a": ["web"], "b": ["low", "high"]}),
        (5, {"a": ["web"], "b": ["high"]}),
        (6, {"b": ["high"]}),
        (10, {}),
    ],
)
def test_whom_a_pod_must_give_way_to(nominator, priority, expected):
    """Others of at least its priority."""
    nominator.nominate(make_pod("low", priority=4), "b")
    nominator.nominate(make_pod("high", priority=9), "b")
    ahead = {
        node: [p.name for p in pods] for node, pods in nominator.ahead_of(make_pod("x", priority=priority))
    }
    assert ahead == expected


def test_nobody_gives_way_to_itself(nominator):
    assert list(nominator.ahead_of(POD)) == []
