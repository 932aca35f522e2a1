"""PolicyLoad: nodes whose real use is too high are out, and the less a node is used the better."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.core.cache.node_changes import node_event
from moorage.core.framework.interface import Skip
from moorage.core.model.cluster_event import Action, ClusterEvent, Resource
from moorage.core.model.events import UsageSample
from moorage.core.model.policy import LoadRules, OnStale
from moorage.core.model.resources import CPU, MEMORY
from moorage.core.plugins.policy_load import PolicyLoad
from moorage.core.snapshot.snapshot import Snapshot
from moorage.core.snapshot.view import Nodes
from tests.kit.models import make_node, make_pod
from tests.kit.plugin_checks import wakes
from tests.kit.policies import (
    BLUE,
    NOW,
    RED,
    PolicyWorld,
    against,
    load_rules,
    load_says,
    load_scores,
    of_policies,
    points,
    policy_pods,
    policy_worlds,
)

POD = make_pod("web", cpu=5000)  # what the pod itself asks for plays no part
ABOVE, ABOVE_FOR_GOOD = (('node(s) used more cpu than policy "red" allows', helps) for helps in (True, False))
STALE = ('node(s) had no recent sample of their use for policy "red"', False)


def load(**fields):
    return PolicyLoad(((RED, LoadRules(**fields)),))


def world(*cpu, pods=(), age=0.0):
    """Nodes of 1,000 milli-CPU that use so much of it; None: without a sample."""
    nodes = tuple(make_node(f"n{i}", cpu=1000, memory=1000) for i in range(len(cpu)))
    samples = {f"n{i}": UsageSample(NOW - age, {CPU: use}) for i, use in enumerate(cpu) if use is not None}
    return PolicyWorld(nodes, tuple(pods), samples)


def asked(plugin, *cpu, **more):
    return list(against(plugin, POD, world(*cpu, **more).snapshot()).values())


def scores(plugin, *cpu, **more):
    found = points(plugin, POD, world(*cpu, **more).snapshot())
    return None if found is None else list(found.values())


@given(policy_worlds(), policy_pods("asking"), of_policies(load_rules))
def test_it_says_and_scores_as_the_rules_do(given_world, pod, rules):
    snapshot = given_world.snapshot()
    plugin = PolicyLoad(rules)
    expected = {node.name: load_says(rules, node, given_world) for node in given_world.nodes}
    assert expected == against(plugin, pod, snapshot)
    liked = {node.name: load_scores(rules, node, given_world) for node in given_world.nodes}
    assert (None if None in liked.values() else liked) == points(plugin, pod, snapshot)


# -- limit ---------------------------------------------------------------------------------------


def test_without_rules_it_has_nothing_to_say():
    snapshot = Snapshot()
    for plugin in (PolicyLoad(()), load()):
        assert plugin.pre_filter(POD, snapshot) is Skip.SKIP
        assert plugin.pre_score(POD, snapshot, Nodes(snapshot)) is Skip.SKIP
    assert load(limit={CPU: 1}).pre_score(POD, snapshot, Nodes(snapshot)) is Skip.SKIP
    assert load(target={CPU: 1}).pre_filter(POD, snapshot) is Skip.SKIP


def test_nodes_above_the_limit_are_out():
    assert asked(load(limit={CPU: 85}), 0, 850, 851, 2000) == [[], [], [ABOVE_FOR_GOOD], [ABOVE_FOR_GOOD]]
    assert asked(load(limit={CPU: 0}), 0, 1) == [[], [ABOVE_FOR_GOOD]]


def test_each_resource_has_its_limit():
    nodes = (make_node("a", cpu=1000, memory=1000),)
    plugin = load(limit={CPU: 50, MEMORY: 50})
    samples = {"a": UsageSample(NOW, {CPU: 500, MEMORY: 501})}
    told = against(plugin, POD, PolicyWorld(nodes, (), samples).snapshot())
    assert told == {"a": [('node(s) used more memory than policy "red" allows', False)]}


def test_pods_placed_since_the_sample_add_what_they_ask_for():
    there = make_pod("there", cpu=200, node="n0")
    assert asked(load(limit={CPU: 85}), 700, pods=[there], age=10.0) == [[ABOVE]]
    old = make_pod("there", cpu=200, node="n0", started=NOW - 11)
    assert asked(load(limit={CPU: 85}), 700, pods=[old], age=10.0) == [[]]
    assert asked(load(limit={CPU: 85}), 900, pods=[there], age=10.0) == [[ABOVE_FOR_GOOD]]


def test_each_policy_says_its_own():
    plugin = PolicyLoad(((RED, LoadRules(limit={CPU: 90})), (BLUE, LoadRules(limit={CPU: 50}))))
    assert asked(plugin, 600) == [[('node(s) used more cpu than policy "team/blue" allows', False)]]


@pytest.mark.parametrize("size", [1 << 40, 1 << 58, 1 << 62])
def test_huge_amounts_are_compared_exactly(size):
    nodes = (make_node("a", memory=size),)
    for more, expected in ((0, []), (1, [('node(s) used more memory than policy "red" allows', False)])):
        samples = {"a": UsageSample(NOW, {MEMORY: size // 2 + more})}
        snapshot = PolicyWorld(nodes, (), samples).snapshot()
        assert against(load(limit={MEMORY: 50}), POD, snapshot) == {"a": expected}
        assert points(load(target={MEMORY: 0}), POD, snapshot) == {"a": 50 - (more if size < 1 << 49 else 0)}


# -- stale ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("age", "fresh"), [(60.0, True), (60.1, False)])
def test_a_sample_is_stale_when_it_is_older_than_the_policy_says(age, fresh):
    ignoring = load(limit={CPU: 50}, target={CPU: 50}, stale_after=60.0)
    excluding = load(limit={CPU: 50}, stale_after=60.0, on_stale=OnStale.EXCLUDE)
    assert asked(ignoring, 900, age=age) == [[ABOVE_FOR_GOOD] if fresh else []]
    assert asked(excluding, 0, 900, age=age) == ([[], [ABOVE_FOR_GOOD]] if fresh else [[STALE], [STALE]])
    assert scores(ignoring, 100, age=age) == [100 if fresh else 0]


def test_a_missing_sample_is_stale_and_one_that_lacks_the_resource_too():
    excluding = {"on_stale": OnStale.EXCLUDE}
    assert asked(load(limit={CPU: 50}, **excluding), 0, None) == [[], [STALE]]
    assert asked(load(target={CPU: 50}, **excluding), 0, None) == [[], [STALE]]
    assert asked(load(limit={MEMORY: 50}, **excluding), 0) == [[STALE]]
    assert asked(load(target={MEMORY: 50}, **excluding), 0) == [[STALE]]
    assert asked(load(limit={MEMORY: 50}), 0, None) == [[], []]
    assert scores(load(target={MEMORY: 50}), 0, None) == [0, 0]


# -- target --------------------------------------------------------------------------------------


def test_points_fall_from_the_target_to_full_use():
    assert scores(load(target={CPU: 60}), 0, 600, 601, 700, 800, 999, 1000, 1500) == [
        100, 100, 99, 75, 50, 0, 0, 0
    ]  # fmt: skip
    assert scores(load(target={CPU: 100}), 1000, 1001) == [100, 0]
    assert scores(load(target={CPU: 0}), 0, 10, 500) == [100, 99, 50]


def test_the_worst_resource_counts_over_all_policies():
    samples = {"a": UsageSample(NOW, {CPU: 750, MEMORY: 600})}
    nodes = (make_node("a", cpu=1000, memory=1000),)
    snapshot = PolicyWorld(nodes, (), samples).snapshot()
    assert points(load(target={CPU: 50, MEMORY: 50}), POD, snapshot) == {"a": 50}
    both = PolicyLoad(((RED, LoadRules({CPU: 50})), (BLUE, LoadRules({MEMORY: 0}))))
    assert points(both, POD, snapshot) == {"a": 40}


@given(st.integers(0, 100), st.integers(1, 5000), st.lists(st.integers(0, 6000), min_size=2, max_size=6))
def test_more_use_is_never_better(target, size, uses):
    uses = sorted(uses)
    nodes = tuple(make_node(f"n{i}", cpu=size) for i in range(len(uses)))
    samples = {f"n{i}": UsageSample(NOW, {CPU: use}) for i, use in enumerate(uses)}
    found = points(load(target={CPU: target}), POD, PolicyWorld(nodes, (), samples).snapshot())
    assert found is not None
    ordered = [found[node.name] for node in nodes]
    assert ordered == sorted(ordered, reverse=True)
    assert all(
        (score == 100) >= (Fraction(use, size) * 100 <= target)
        for score, use in zip(ordered, uses, strict=True)
    )


# -- wake-ups ------------------------------------------------------------------------------------


def measured(snapshot, *cpu):
    samples = {f"n{i}": UsageSample(snapshot.now, {CPU: use}) for i, use in enumerate(cpu) if use is not None}
    change = snapshot.usage_samples.apply(samples)
    return ClusterEvent(Resource.NODE_USAGE, Action.UPDATE_OTHER, None, change)


@pytest.mark.parametrize(
    ("fields", "before", "after", "helps"),
    [
        ({}, (900, 0), (800, 0), True),
        ({}, (900, 0), (860, 0), False),
        ({}, (100, 0), (200, 0), False),
        ({}, (900,), (None,), True),
        ({}, (None,), (10,), False),
        ({"on_stale": OnStale.EXCLUDE}, (None,), (10,), True),
        ({"on_stale": OnStale.EXCLUDE}, (10,), (20,), False),
        ({"on_stale": OnStale.EXCLUDE}, (900,), (800,), True),
    ],
)
def test_samples_that_open_a_node_wake_pods(fields, before, after, helps):
    snapshot = world(*before).snapshot()
    if all(use is None for use in before):
        snapshot.usage_samples.apply({})
    assert wakes(load(limit={CPU: 85}, **fields), POD, measured(snapshot, *after)) is helps


def test_a_node_that_was_closed_since_by_a_pod_that_has_gone_opens_with_the_next_sample():
    snapshot = world(700).snapshot()
    there = make_pod("there", cpu=200, node="n0")
    snapshot.add_pod(0, there)
    assert against(load(limit={CPU: 85}), POD, snapshot) == {"n0": [ABOVE]}
    snapshot.remove_pod(0, there)
    assert wakes(load(limit={CPU: 85}), POD, measured(snapshot, 700))
    assert not wakes(load(limit={CPU: 85}), POD, measured(snapshot, 700))


def test_nodes_that_come_or_grow_wake_pods():
    plugin = load(limit={CPU: 85})
    assert wakes(plugin, POD, node_event(None, make_node("a")))
    assert wakes(plugin, POD, node_event(make_node("a", cpu=1), make_node("a", cpu=2)))
    assert not wakes(plugin, POD, node_event(make_node("a"), make_node("a", labels={"b": ""})))


def test_it_tells_when_a_node_above_the_limit_goes_stale():
    snapshot = world(900, 0, age=20.0).snapshot()
    at = load(limit={CPU: 85}, stale_after=60.0).changes_at(POD, snapshot)
    assert at is not None
    assert math.isclose(at, NOW + 40.0)
    snapshot.now = at
    assert against(load(limit={CPU: 85}, stale_after=60.0), POD, snapshot)["n0"] == []
    assert load(limit={CPU: 85}, stale_after=60.0).changes_at(POD, snapshot) is None
    assert load(limit={CPU: 95}).changes_at(POD, world(900).snapshot()) is None
    assert load(limit={CPU: 85}, on_stale=OnStale.EXCLUDE).changes_at(POD, world(900).snapshot()) is None
