"""PolicyNodes: what each field of a policy's ``nodes`` leaves of the cluster."""

import numpy as np
import pytest
from hypothesis import given

from moorage.core.cache.node_changes import node_event
from moorage.core.framework.interface import Reads, Skip
from moorage.core.framework.runner import Runner
from moorage.core.model.cluster_event import Action, ClusterEvent, Resource
from moorage.core.model.events import UsageSample
from moorage.core.model.policy import AvoidedTaint, NodeRules, PolicyRef, Speaks
from moorage.core.model.resources import CPU, MEMORY, PODS
from moorage.core.model.selector import LabelSelector
from moorage.core.plugins.policy_nodes import PolicyNodes
from moorage.core.plugins.priority_sort import PrioritySort
from moorage.core.snapshot.snapshot import Snapshot
from tests.kit.models import label_in, make_node, make_pod, taint
from tests.kit.plugin_checks import wakes
from tests.kit.policies import (
    NOW,
    RED,
    PolicyWorld,
    Scripted,
    against,
    node_rules,
    nodes_say,
    of_policies,
    policy_pods,
    policy_worlds,
)
from tests.kit.strategies import GPU

A = LabelSelector((label_in("zone", "a"),))
SELECTOR = ('node(s) didn\'t match the node selector of policy "red"', False)
TAINT = ('node(s) had a taint that policy "red" avoids', False)


def rules(**fields):
    return PolicyNodes(((RED, NodeRules(**fields)),))


def asked(plugin, *nodes, pods=(), pod=None, **world):
    pod = make_pod("web", cpu=100, memory=0) if pod is None else pod
    return against(plugin, pod, PolicyWorld(tuple(nodes), tuple(pods), **world).snapshot())


def fits(plugin, *nodes, **more):
    return [name for name, reasons in asked(plugin, *nodes, **more).items() if not reasons]


@given(policy_worlds(), policy_pods("asking"), of_policies(node_rules))
def test_it_says_what_the_rules_say(world, pod, given_rules):
    expected = {node.name: nodes_say(given_rules, pod, node, world) for node in world.nodes}
    assert expected == against(PolicyNodes(given_rules), pod, world.snapshot())


# -- each field ----------------------------------------------------------------------------------


def test_without_rules_it_has_nothing_to_say():
    assert PolicyNodes(()).pre_filter(make_pod("web"), Snapshot()) is Skip.SKIP
    assert fits(rules(), make_node("a")) == ["a"]


def test_the_selector_leaves_the_nodes_that_match():
    nodes = make_node("a", labels={"zone": "a"}), make_node("b", labels={"zone": "b"}), make_node("c")
    assert asked(rules(selector=A), *nodes) == {"a": [], "b": [SELECTOR], "c": [SELECTOR]}
    assert fits(rules(selector=LabelSelector()), *nodes) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("avoided", "left"),
    [
        (AvoidedTaint("old"), "c"),
        (AvoidedTaint("old", "x"), "bc"),
        (AvoidedTaint("old", ""), "ac"),
        (AvoidedTaint("old", None, "NoExecute"), "ac"),
        (AvoidedTaint("old", "x", "NoExecute"), "abc"),
        (AvoidedTaint("new"), "abc"),
    ],
)
def test_taints_are_avoided_by_what_the_rule_sets_tolerated_or_not(avoided, left):
    nodes = (
        make_node("a", taints=[taint("old", "x", "PreferNoSchedule")]),
        make_node("b", taints=[taint("other"), taint("old", "", "NoExecute")]),
        make_node("c"),
    )
    assert "".join(fits(rules(avoid_taints=(avoided,)), *nodes)) == left
    both = asked(rules(avoid_taints=(AvoidedTaint("new"), avoided)), *nodes)
    assert {name for name, reasons in both.items() if reasons == [TAINT]} == {*"abc"} - {*left}


@pytest.mark.parametrize(
    ("taken", "asks", "percent", "reasons"),
    [
        (800, 100, 10, []),
        (801, 100, 10, [True]),
        (0, 900, 10, []),
        (0, 901, 10, [False]),
        (900, 100, 0, []),
        (901, 100, 0, [True]),
        (0, 0, 100, []),
        (1, 0, 100, [True]),
    ],
)
def test_what_must_be_kept_free_counts_the_pod_itself(taken, asks, percent, reasons):
    """(allocatable - requested - request) * 100 >= percent * allocatable; False: not even an empty node would do."""
    there = [make_pod("there", cpu=taken, node="a")]
    told = asked(
        rules(keep_free={CPU: percent}), make_node("a", cpu=1000), pods=there, pod=make_pod("web", cpu=asks)
    )
    assert told == {
        "a": [('node(s) would keep too little cpu free for policy "red"', helps) for helps in reasons]
    }


def test_a_percentage_is_not_rounded():
    plugin = rules(keep_free={MEMORY: 1})
    pod = make_pod("web", memory=98)
    assert fits(plugin, make_node("a", memory=99), pod=pod) == ["a"]  # 1 is more than 0.99
    assert (
        fits(plugin, make_node("a", memory=101), pod=make_pod("web", memory=100)) == []
    )  # 1 is less than 1.01


def test_of_what_a_node_does_not_have_nothing_is_kept_free_but_nothing_can_be_asked():
    plugin = rules(keep_free={GPU: 50})
    assert fits(plugin, make_node("a"), pod=make_pod("web")) == ["a"]
    told = asked(plugin, make_node("a"), pod=make_pod("web", more={GPU: 1}))
    assert told == {"a": [(f'node(s) would keep too little {GPU} free for policy "red"', False)]}


def test_pods_are_a_resource_like_others():
    plugin = rules(keep_free={PODS: 50})
    there = [make_pod("one", node="a")]
    assert fits(plugin, make_node("a", pods=4), pods=there) == ["a"]
    assert fits(plugin, make_node("a", pods=3), pods=there) == []


@pytest.mark.parametrize("size", [1 << 40, 1 << 57, 1 << 61, 1 << 62])
def test_huge_amounts_are_compared_exactly(size):
    plugin = rules(keep_free={MEMORY: 50})
    for more, expected in ((0, ["a"]), (1, [])):
        assert (
            fits(plugin, make_node("a", memory=size), pod=make_pod("web", memory=size // 2 + more))
            == expected
        )


def test_policies_add_up_and_each_says_its_own():
    other = PolicyRef("ns", "two")
    plugin = PolicyNodes(((RED, NodeRules(A)), (other, NodeRules(A, avoid_taints=(AvoidedTaint("old"),)))))
    node = make_node("a", labels={"zone": "b"}, taints=[taint("old")])
    assert [text for text, _ in asked(plugin, node)["a"]] == [
        'node(s) didn\'t match the node selector of policy "red"',
        'node(s) didn\'t match the node selector of policy "ns/two"',
        'node(s) had a taint that policy "ns/two" avoids',
    ]


# -- expressions ---------------------------------------------------------------------------------


def test_an_expression_that_fails_does_not_match_and_is_counted():
    plugin = rules(expression=Scripted("zone", Speaks.NODE, lambda node: node.labels["zone"] == "a"))
    world = PolicyWorld(
        (make_node("a", labels={"zone": "a"}), make_node("b"), make_node("c", labels={"zone": "c"}))
    )
    snapshot = world.snapshot()
    refused = [('node(s) didn\'t match the node expression of policy "red"', False)]
    assert against(plugin, make_pod("web"), snapshot) == {"a": [], "b": refused, "c": refused}
    failures = snapshot.expressions.failures(RED)
    assert (failures.count, failures.last) == (1, "zone: KeyError: 'zone'")


@pytest.mark.parametrize(
    ("fields", "reads"),
    [
        ({"selector": A, "avoid_taints": (AvoidedTaint("x"),)}, Reads.NODE),
        ({"keep_free": {CPU: 1}}, Reads.NODE | Reads.USAGE),
        ({"expression": Scripted("", Speaks.NODE, bool)}, Reads.NODE),
        ({"expression": Scripted("", Speaks.REQUESTED, bool)}, Reads.NODE | Reads.USAGE),
        ({"expression": Scripted("", Speaks.USAGE, bool)}, Reads.NODE | Reads.CLUSTER),
    ],
)
def test_it_says_what_its_answers_depend_on(fields, reads):
    assert rules(**fields).reads == reads


def test_alike_pods_ask_an_expression_about_changed_nodes_only():
    """3,000 decisions on many nodes are not 3,000 times as many evaluations."""
    expression = Scripted("roomy", Speaks.NODE | Speaks.REQUESTED, lambda node: node.requested[CPU] < 1.0)
    snapshot = PolicyWorld(tuple(make_node(f"n{i}") for i in range(40))).snapshot()
    runner = Runner((PrioritySort(), rules(expression=expression)), {}, snapshot)
    for number in range(30):
        pod = make_pod(f"p{number}", cpu=500)
        row = int(np.flatnonzero(runner.screen(pod, {}).feasible)[0])
        snapshot.add_pod(row, pod)
    assert len(expression.asked) <= 40 + 29
    assert [len(pods) for pods in snapshot.pods[:15]] == [2] * 15


# -- wake-ups ------------------------------------------------------------------------------------

ZONE_A, ZONE_B = make_node("a", labels={"zone": "a"}), make_node("a", labels={"zone": "b"})


@pytest.mark.parametrize(
    ("fields", "before", "after", "helps"),
    [
        ({"selector": A}, None, ZONE_A, True),
        ({"selector": A}, None, ZONE_B, False),
        ({"selector": A}, ZONE_B, ZONE_A, True),
        ({"selector": A}, ZONE_A, ZONE_B, False),
        ({"avoid_taints": (AvoidedTaint("x"),)}, make_node("a", taints=[taint("x")]), make_node("a"), True),
        ({"avoid_taints": (AvoidedTaint("x"),)}, make_node("a"), make_node("a", taints=[taint("x")]), False),
        ({"keep_free": {CPU: 1}}, make_node("a", cpu=1), make_node("a", cpu=2), True),
        ({"selector": A}, ZONE_A, make_node("a", cpu=1, labels={"zone": "a"}), False),
        ({"expression": Scripted("", Speaks.NODE, bool)}, ZONE_A, ZONE_B, True),
    ],
)
def test_nodes_that_come_to_match_wake_pods(fields, before, after, helps):
    assert wakes(rules(**fields), make_pod("web"), node_event(before, after)) is helps


@pytest.mark.parametrize(
    ("fields", "gone", "come", "measured"),
    [
        ({"selector": A}, False, False, False),
        ({"keep_free": {CPU: 1}}, True, False, False),
        ({"expression": Scripted("", Speaks.REQUESTED, bool)}, True, True, False),
        ({"expression": Scripted("", Speaks.USAGE, bool)}, True, True, True),
    ],
)
def test_pods_and_samples_wake_whom_they_matter_to(fields, gone, come, measured):
    pod, other = make_pod("web"), make_pod("other", node="a")
    plugin = rules(**fields)
    assert wakes(plugin, pod, ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE, other, None)) is gone
    assert wakes(plugin, pod, ClusterEvent(Resource.ASSIGNED_POD, Action.ADD, None, other)) is come
    assert wakes(plugin, pod, ClusterEvent(Resource.NODE_USAGE, Action.UPDATE_OTHER)) is measured
    own = ClusterEvent(Resource.PENDING_POD, Action.UPDATE_POD_SCALE_DOWN, pod, pod)
    assert wakes(plugin, pod, own) is ("keep_free" in fields)


def test_it_tells_when_use_goes_stale():
    world = PolicyWorld((make_node("a"),), samples={"a": UsageSample(NOW - 60, {CPU: 1})})
    plugin = rules(expression=Scripted("", Speaks.USAGE, bool))
    assert plugin.changes_at(make_pod("web"), world.snapshot()) == pytest.approx(NOW + 120)
    assert rules(selector=A).changes_at(make_pod("web"), world.snapshot()) is None
    assert plugin.changes_at(make_pod("web"), PolicyWorld((make_node("a"),)).snapshot()) is None
