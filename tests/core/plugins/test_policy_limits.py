"""PolicyLimits: so many of a policy's pods in a domain and no more."""

import numpy as np
import pytest
from hypothesis import given

from moorage.core.cache.node_changes import node_event
from moorage.core.cache.pod_changes import assigned_event
from moorage.core.framework.interface import Skip
from moorage.core.framework.runner import Runner
from moorage.core.model.cluster_event import Action, ClusterEvent, Resource
from moorage.core.model.policy import LimitRule
from moorage.core.plugins.policy_limits import PolicyLimits
from moorage.core.plugins.priority_sort import PrioritySort
from moorage.core.snapshot.snapshot import Snapshot
from tests.kit.models import make_node, make_pod
from tests.kit.plugin_checks import wakes
from tests.kit.policies import (
    BLUE,
    RED,
    PolicyWorld,
    against,
    limit_rules,
    limits_say,
    of_policies,
    policy_pods,
    policy_worlds,
    selects,
)

NODES = (
    make_node("a", labels={"zone": "1", "host": "a"}),
    make_node("b", labels={"zone": "1", "host": "b"}),
    make_node("c", labels={"zone": "2", "host": "c"}),
    make_node("d", labels={"host": "d"}),
)
REACHED = ('node(s) reached the limit of policy "red" by zone', True)
LACKING = ('node(s) lacked the label zone that policy "red" limits by', False)


def red(name, node, **fields):
    return make_pod(name, node=node, labels={"app": "x"}, **fields)


def limit(most, key="zone", ref=RED):
    return PolicyLimits(((ref, LimitRule(key, most)),), selects)


def asked(plugin, *pods):
    return against(plugin, red("web", ""), PolicyWorld(NODES, pods).snapshot())


@given(policy_worlds(), policy_pods("asking"), of_policies(limit_rules))
def test_it_says_what_the_rules_say(world, pod, rules):
    expected = {node.name: limits_say(rules, node, world) for node in world.nodes}
    assert expected == against(PolicyLimits(rules), pod, world.snapshot())


def test_without_rules_it_has_nothing_to_say():
    assert PolicyLimits(()).pre_filter(make_pod("web"), Snapshot()) is Skip.SKIP


@pytest.mark.parametrize(("most", "open_zones"), [(0, ""), (1, ""), (2, "c"), (3, "abc")])
def test_a_domain_takes_pods_up_to_the_limit(most, open_zones):
    told = asked(limit(most), red("1", "a"), red("2", "b"), red("3", "c"), make_pod("other", node="c"))
    assert told == {
        name: [LACKING] if name == "d" else [] if name in open_zones else [REACHED] for name in "abcd"
    }


def test_pods_that_are_going_count_and_those_of_other_namespaces_too():
    told = asked(limit(2), red("1", "a", deleting=True), red("2", "b", namespace="elsewhere"))
    assert told["a"] == [REACHED]
    assert told["c"] == []


def test_each_policy_counts_its_own_pods():
    pods = [make_pod(str(n), node="a", labels={"tier": "f"}) for n in range(2)]
    assert asked(limit(1), *pods)["a"] == []
    assert asked(limit(2, ref=BLUE), *pods)["a"] == [
        ('node(s) reached the limit of policy "team/blue" by zone', True)
    ]


def test_policies_add_up():
    plugin = PolicyLimits(((RED, LimitRule("zone", 2)), (RED, LimitRule("host", 1))), selects)
    told = asked(plugin, red("1", "a"))
    assert told["a"] == [('node(s) reached the limit of policy "red" by host', True)]
    assert told["b"] == []


def test_a_pod_taken_away_for_a_look_does_not_count():
    """What preemption relies on."""
    snapshot = PolicyWorld(NODES, (red("1", "a"), red("2", "c"))).snapshot()
    runner = Runner((PrioritySort(), limit(1)), {}, snapshot)
    pre = runner.pre_filter(red("web", ""))
    assert runner.judge(pre, 0) is not None
    assert runner.judge_with(pre, 0, (), tuple(snapshot.pods[0].values())) is None
    assert not runner.screen(red("web", ""), {}).feasible.any()
    moved = next(iter(snapshot.pods[2].values()))
    snapshot.remove_pod(2, moved)
    assert np.flatnonzero(runner.screen(red("web", ""), {}).feasible).tolist() == [2]


def test_a_policy_whose_pods_nobody_counts_is_an_error():
    with pytest.raises(LookupError, match="the pods of policy red are not counted"):
        limit(1).pre_filter(make_pod("web"), Snapshot())


# -- wake-ups ------------------------------------------------------------------------------------

X, Y = red("there", "a"), make_pod("there", node="a", labels={"app": "y"})


@pytest.mark.parametrize(
    ("event", "helps"),
    [
        (ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE, X, None), True),
        (ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE, Y, None), False),
        (ClusterEvent(Resource.ASSIGNED_POD, Action.ADD, None, X), False),
        (assigned_event(X, Y), True),
        (assigned_event(red("there", "a"), make_pod("there", node="a", labels={"app": "x", "b": ""})), False),
        (node_event(None, NODES[0]), True),
        (node_event(None, NODES[3]), False),
        (node_event(NODES[3], make_node("d", labels={"zone": "1"})), True),
        (node_event(NODES[0], make_node("a", labels={"zone": "1", "new": ""})), False),
        (ClusterEvent(Resource.NODE, Action.DELETE, NODES[0], None), True),
    ],
)
def test_only_what_counts_wakes_pods(event, helps):
    assert wakes(limit(1), red("web", ""), event) is helps


def test_where_nobody_says_who_selects_whom_every_pod_may_matter():
    plugin = PolicyLimits(((RED, LimitRule("zone", 1)),))
    assert wakes(plugin, red("web", ""), ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE, Y, None))
