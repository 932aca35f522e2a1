"""Plugins that raise or break their contract cost one pod one attempt, and no more."""

from typing import Any

import numpy as np
import pytest

from moorage.core.framework.interface import Narrowed, Reads, Skip, Verdict
from moorage.core.model.cluster_event import Action, Resource, WakesOn
from moorage.core.model.events import (
    BindFailure,
)
from moorage.core.model.instructions import (
    Attempted,
)
from tests.core.driving import (
    Booking,
    Filtering,
    Permitting,
    SecondBooking,
    bound_on_a,
    conditions,
    explode,
    of_type,
    placements,
    plain,
    refuse_all,
)
from tests.kit.models import make_node, make_pod


def assert_fails_only_odd(driven):
    """The odd pod fails with a reason that names the plugin, the other is placed, and all goes on."""
    odd, even = make_pod("odd"), make_pod("even")
    driven.tell(make_node("a"), make_node("b"), odd, even)
    told = driven.run()
    assert "even" in placements(told)
    assert "odd" not in placements(told)
    (reason, message) = next(c[1:] for c in conditions(told) if c[0] == "odd")
    assert reason == "SchedulerError"
    assert "boom" in message or "Filtering" in message
    assert driven.engine.cache.state(odd.uid) is None
    assert driven.place_of(odd) == "backoff"
    assert len(of_type(driven.later(40.0), Attempted)) >= 3


def test_a_raising_filter_fails_only_that_pod():
    assert_fails_only_odd(plain(Filtering(explode)))


@pytest.mark.parametrize(
    "answer",
    [
        lambda nodes: None,
        lambda nodes: Verdict((), np.zeros((0, len(nodes) + 1), dtype=np.bool_)),
        lambda nodes: Verdict(refuse_all(nodes).reasons, np.ones((1, 3), dtype=np.bool_)),
        lambda nodes: Verdict(refuse_all(nodes).reasons, np.ones(len(nodes), dtype=np.bool_)),
    ],
    ids=["no-verdict", "too-long", "too-short", "no-matrix"],
)
def test_a_filter_that_breaks_its_contract_fails_only_that_pod(answer):
    assert_fails_only_odd(plain(Filtering(answer)))


@pytest.mark.parametrize("point", ["pre_filter", "reserve", "permit", "pre_score", "score", "normalize"])
def test_a_plugin_that_raises_at_any_point_fails_only_that_pod(point):
    def odd_explodes(pod, *_):
        return explode() if pod.name.startswith("odd") else None

    class Scoring:
        name = "Filtering"
        reads = Reads.CLUSTER

        def pre_score(self, pod, snapshot, nodes):
            if point == "pre_score":
                odd_explodes(pod)
            return pod

        def score(self, state, nodes):
            if point == "score":
                odd_explodes(state)
            return np.full(len(nodes), 1000 if state.name.startswith("odd") and point == "normalize" else 50)

        def normalize(self, raw):
            return explode() if raw[0] == 1000 else raw

        def wakes_on(self):
            return ()

    class PreFiltering(Filtering):
        def pre_filter(self, pod, snapshot):
            return odd_explodes(pod) or Skip.SKIP

    plugin: Any
    if point == "pre_filter":
        plugin = PreFiltering(refuse_all)
    elif point == "reserve":
        plugin = Booking(odd_explodes)
    elif point == "permit":
        plugin = Permitting(odd_explodes)
    else:
        plugin = Scoring()
    assert_fails_only_odd(plain(plugin))


@pytest.mark.parametrize(
    "scores",
    [
        lambda n: np.full(n, 101),
        lambda n: np.full(n, -1),
        lambda n: np.full(n + 1, 5),
        lambda n: np.full(n, np.nan),
        lambda n: np.full(n, 50.5),
        lambda n: None,
        lambda n: [50] * n,
    ],
    ids=["above", "below", "too-long", "not-a-number", "floats", "nothing", "a-list"],
)
def test_scores_out_of_contract_fail_only_that_pod(scores):
    class Scoring:
        name = "Filtering"
        reads = Reads.CLUSTER

        def pre_score(self, pod, snapshot, nodes):
            return pod.name if pod.name.startswith("odd") else Skip.SKIP

        def score(self, state, nodes):
            return scores(len(nodes))

        def normalize(self, raw):
            return raw

        def wakes_on(self):
            return ()

    assert_fails_only_odd(plain(Scoring()))


def test_a_reserve_that_raises_leaves_nothing_reserved():
    """kube-scheduler runs Unreserve of all plugins when Reserve fails, an error included (``assumeAndReserve``)."""
    first, second = Booking(), SecondBooking(explode)
    driven = plain(first, second)
    driven.tell(make_node("a"), make_pod("web"))
    driven.run()
    assert first.held == set()
    assert driven.engine.stats()["pods"] == 0


def test_an_unreserve_that_raises_stops_nobody():
    """Neither ``handle`` fails, nor does the pod keep its room, nor do the other plugins keep what they reserved."""

    class Sticking(SecondBooking):
        def unreserve(self, pod, node_name, snapshot):
            explode()

    first = Booking()
    driven = plain(first, Sticking())
    driven.tell(make_node("a", cpu=1000))
    pod = bound_on_a(driven, cpu=900)
    driven.fail(pod, "a", BindFailure.GONE)
    assert first.held == set()
    assert driven.engine.stats()["pods"] == 0


def test_a_hint_that_raises_counts_as_help():
    """kube-scheduler: ``isPodWorthRequeuing`` queues the pod when a hint returns an error."""

    class Hinting(Filtering):
        def wakes_on(self):
            return (WakesOn(Resource.NODE, Action.ADD, explode),)

    driven = plain(Hinting(refuse_all))
    odd = make_pod("odd")
    driven.tell(make_node("a"), odd)
    driven.later(2.0)
    driven.tell(make_node("b"))
    assert driven.place_of(odd) == "active"


def test_a_pre_enqueue_that_raises_keeps_only_that_pod_out():
    class Gate:
        name = "Gate"

        def pre_enqueue(self, pod):
            return explode() if pod.name == "odd" else None

        def wakes_on(self):
            return (WakesOn(Resource.PENDING_POD, Action.UPDATE_POD_LABEL),)

    driven = plain(Gate())
    driven.tell(make_node("a"), make_pod("odd"), make_pod("even"))
    assert {"even": "a"} == driven.bound()
    assert driven.engine.evaluate(make_pod("odd"), driven.now).chosen is None


def test_two_plugins_that_narrow_to_nothing_are_both_waited_for():
    """``findNodesThatFitPod`` takes all plugins that narrowed as the ones that rejected the pod."""

    class Naming(Filtering):
        reads = Reads.NODE

        def pre_filter(self, pod, snapshot):
            return Narrowed("", frozenset({"a"}))

        def filter(self, state, nodes):
            return Verdict((), np.zeros((0, len(nodes)), dtype=np.bool_))

    class AlsoNaming(Naming):
        name = "AlsoNaming"

        def pre_filter(self, pod, snapshot):
            return Narrowed("", frozenset({"b"}))

    driven = plain(Naming(refuse_all), AlsoNaming(refuse_all))
    driven.tell(make_node("a"), make_node("b"), make_pod("web"))
    told = driven.run()
    text = "0/2 nodes are available: node(s) didn't satisfy plugin(s) [AlsoNaming Filtering] simultaneously."
    assert [("web", "Unschedulable", text)] == conditions(told)
    assert ("AlsoNaming", "Filtering") == of_type(told, Attempted)[0].plugins
