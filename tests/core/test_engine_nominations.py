"""Pods that were promised a node."""

from dataclasses import replace

import pytest

from moorage.core.model.events import (
    BindFailure,
    PodLeftPending,
)
from moorage.core.model.instructions import (
    SetCondition,
)
from moorage.core.model.taint import Toleration
from tests.core.driving import (
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
