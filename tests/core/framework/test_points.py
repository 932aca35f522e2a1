"""Plugins at some extension points only, and in an order of their own there."""

import pytest

from moorage.core.framework.points import Point, at_point
from moorage.core.framework.runner import Runner
from moorage.core.plugins.node_name import NodeName
from moorage.core.plugins.node_ports import NodePorts
from moorage.core.plugins.priority_sort import PrioritySort
from moorage.core.profile import Profile
from moorage.core.snapshot.snapshot import Snapshot
from tests.core.driving import Driven, conditions, plain, profile_with
from tests.kit.models import make_node, make_pod

PLUGINS = (PrioritySort(), NodeName(), NodePorts())


def test_all_run_where_nothing_is_said_and_else_those_named_in_their_order():
    assert at_point(PLUGINS, {}, Point.FILTER) == list(PLUGINS)
    points = {Point.FILTER: ("NodePorts", "NodeName")}
    assert [p.name for p in at_point(PLUGINS, points, Point.FILTER)] == ["NodePorts", "NodeName"]
    assert at_point(PLUGINS, points, Point.PRE_FILTER) == list(PLUGINS)


def test_pre_filter_runs_in_its_order_and_its_states_are_handed_on_in_that_of_filter():
    points = {Point.PRE_FILTER: ("NodeName", "NodePorts"), Point.FILTER: ("NodePorts", "NodeName")}
    runner = Runner(PLUGINS, {}, Snapshot(), points)
    pod = make_pod("web", ports=[80], node_name="a")
    active = [plugin.name for plugin, _ in runner.pre_filter(pod).active]
    assert [p.name for p in runner.filters] == ["NodeName", "NodePorts"]
    assert active == [name for name in ("NodePorts", "NodeName") if name in active]


def test_a_profile_needs_its_queue_sort_at_that_point():
    with pytest.raises(ValueError, match="exactly one QueueSort plugin"):
        Profile("x", PLUGINS, {}, {Point.QUEUE_SORT: ()})


def test_without_leaves_no_trace_of_a_plugin():
    profile = Profile("x", PLUGINS, {}, {Point.FILTER: ("NodePorts", "NodeName")}).without(("NodePorts",))
    assert [p.name for p in profile.plugins] == ["PrioritySort", "NodeName"]
    assert profile.points == {Point.FILTER: ("NodeName",)}


def test_a_filter_that_is_off_refuses_nobody():
    base = profile_with(without=("DefaultPreemption",))
    names = tuple(p.name for p in base.plugins if p.name in ("NodePorts", "NodeName"))
    points = {Point.FILTER: names, Point.PRE_FILTER: names}
    driven = Driven(profiles={"moorage": Profile("moorage", base.plugins, base.weights, points)})
    driven.tell(make_node("a", cpu=1000), make_pod("huge", cpu=64_000))
    assert driven.bound() == {"huge": "a"}
    driven = plain()
    driven.tell(make_node("a", cpu=1000), make_pod("huge", cpu=64_000))
    assert conditions(driven.run()) == [
        ("huge", "Unschedulable", "0/1 nodes are available: 1 Insufficient cpu.")
    ]
