"""Pods that were promised a node."""

from dataclasses import replace

import pytest

from moorage.core.model.events import (
    BindFailure,
    EvictionFinished,
    PodGone,
    PodLeftPending,
)
from moorage.core.model.instructions import (
    Evict,
    SetCondition,
)
from moorage.core.model.taint import Toleration
from tests.core.driving import (
    Driven,
    Patience,
    conditions,
    nominated,
    of_type,
    placements,
    plain,
)
from tests.kit.models import make_node, make_pod, make_spec, taint
from tests.kit.strategies import columns_of


def test_without_post_filter_a_promise_that_does_not_hold_is_cleared():
    """Source: ``schedulingAlgorithm`` of kube-scheduler's ``schedule_one.go``."""
    driven = plain()
    driven.tell(make_node("a", cpu=4000), nominated("waiting", "a", cpu=5000, priority=1000))
    told = driven.run()
    assert [""] == [change.nominated_node for change in of_type(told, SetCondition)]
    driven.tell(make_pod("low", cpu=4000))
    assert {"low": "a"} == driven.bound()


def test_promised_room_counts_against_lower_and_equal_priorities_only():
    """Case B10: a node of 4 cpus, 2 of them dying, 3 promised to a pod of priority 1000."""
    driven = plain(Patience())
    dying = make_pod("dying", cpu=2000, node="a", deleting=True)
    waiting = nominated("waiting", "a", cpu=3000, priority=1000)
    driven.tell(make_node("a", cpu=4000), dying, waiting)
    assert driven.bound() == {}
    driven.tell(make_pod("equal", cpu=1500, priority=1000), make_pod("low", cpu=1500, priority=10))
    told = driven.run()
    assert placements(told) == {}
    text = "0/1 nodes are available: 1 Insufficient cpu."
    assert {("equal", "Unschedulable", text), ("low", "Unschedulable", text)} == set(conditions(told))
    driven.tell(make_pod("higher", cpu=1500, priority=2000))
    assert {"higher": "a"} == driven.bound()
    driven.tell(make_pod("tiny", cpu=0, priority=10))
    assert {"tiny": "a"} == driven.bound()


def test_a_promise_on_a_node_that_does_not_exist_is_ignored():
    driven = plain()
    driven.tell(make_node("a"), nominated("web", "ghost", cpu=100), make_pod("other", cpu=3900))
    assert {"web": "a", "other": "a"} == driven.bound()


def test_the_promised_node_is_taken_even_if_another_is_better():
    driven = plain()
    driven.tell(make_node("a", cpu=2000), make_node("b", cpu=64000), nominated("web", "a", cpu=1000))
    assert {"web": "a"} == driven.bound()


def test_a_promise_kept_is_not_counted_twice():
    """Placed on its promised node, the pod counts as a pod there, not as promised besides."""
    driven = plain()
    waiting = nominated("waiting", "a", cpu=3000, priority=1000)
    driven.tell(make_node("a", cpu=4000), waiting)
    assert {"waiting": "a"} == driven.bound()
    driven.tell(make_pod("low", cpu=1000))
    assert {"low": "a"} == driven.bound()
    driven.fail(waiting, "a", BindFailure.GONE)
    assert columns_of(driven.engine.snapshot)["a"]["requested"] == {"cpu": 1000}


@pytest.mark.parametrize("end", ["deleted", "cleared", "moved", "placed-elsewhere"])
def test_the_end_of_a_promise_wakes_those_it_kept_out(end):
    """Source: ``hasNominatedNodeNameChanged`` and ``deletePodFromSchedulingQueue`` of kube-scheduler."""
    driven = plain(Patience())
    waiting = nominated("waiting", "a", cpu=3000, priority=1000, node_selector={"good": "yes"})
    driven.tell(make_node("a", cpu=4000), waiting, make_pod("low", cpu=2000))
    assert driven.bound() == {}
    driven.later(20.0)
    match end:
        case "deleted":
            driven.tell(PodLeftPending(waiting.ref))
        case "cleared":
            driven.tell(replace(waiting, nominated_node="", resource_version="2"))
        case "moved":
            driven.tell(replace(waiting, nominated_node="c", resource_version="2"))
        case "placed-elsewhere":
            driven.tell(make_node("b", cpu=4000, labels={"good": "yes"}, taints=[taint("x")]))
            driven.run()
            spec = make_spec(
                cpu=3000,
                priority=1000,
                node_selector={"good": "yes"},
                tolerations=(Toleration("x", "Exists"),),
            )
            driven.tell(replace(waiting, spec=spec))
    assert driven.bound(seconds=2.0).get("low") == "a"


def preempting():
    """Node a of 1,000, held by ``small``; ``large`` evicts it, and ``third`` would fit but for the promise."""
    driven = Driven()
    small = make_pod("small", cpu=300, node="a")
    large = make_pod("large", cpu=900, priority=10)
    driven.tell(make_node("a", cpu=1000), small, large, make_pod("third", cpu=300))
    told = driven.run()
    assert [evict.victims for evict in of_type(told, Evict)] == [(small.ref,)]
    assert placements(told) == {}
    return driven, small, large


def shrunk(pod, cpu):
    spec = make_spec(cpu=cpu, priority=pod.priority)
    return replace(pod, spec=spec, requests=spec.requests)


def test_a_promised_pod_that_asks_for_less_gives_room_to_others():
    driven, _, large = preempting()
    driven.tell(replace(shrunk(large, 100), nominated_node="a"))
    assert driven.bound(seconds=5) == {"third": "a"}
    assert driven.place_of(large) == "gated"  # until it is known that its victims were asked to go


def test_a_promised_pod_that_is_shown_again_wakes_nobody():
    driven, _, large = preempting()
    driven.tell(replace(large, nominated_node="a", resource_version="2"))
    assert driven.later(5) == []
    assert driven.place_of(make_pod("third")) == "unschedulable"


def test_a_pod_that_changes_while_its_victims_are_asked_to_go_is_tried_when_they_were():
    driven, small, large = preempting()
    driven.tell(shrunk(large, 100), replace(small, deleting=True), EvictionFinished(large.ref))
    assert driven.bound(seconds=5) == {"large": "a", "third": "a"}


def test_a_pod_that_stays_the_same_meanwhile_waits_until_its_victims_have_gone():
    driven, small, large = preempting()
    driven.tell(replace(small, deleting=True), EvictionFinished(large.ref))
    assert driven.bound(seconds=5) == {}
    driven.tell(PodGone(small.ref))
    assert driven.bound(seconds=5) == {"large": "a"}
