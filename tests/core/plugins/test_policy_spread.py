"""PolicySpread: PodTopologySpread's rules for the pods that a policy selects, hard for a time or for ever."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.core.cache.node_changes import node_event
from moorage.core.cache.pod_changes import assigned_event
from moorage.core.framework.interface import Skip
from moorage.core.model.cluster_event import Action, ClusterEvent, Resource
from moorage.core.model.policy import SpreadRule
from moorage.core.model.selector import LabelSelector, NodeSelector, NodeSelectorTerm
from moorage.core.model.spread import HOSTNAME, ZONE, SpreadConstraint, SpreadDefaults
from moorage.core.model.taint import Taint
from moorage.core.plugins.policy_spread import PolicySpread
from moorage.core.snapshot.snapshot import Snapshot
from moorage.core.snapshot.view import Nodes
from tests.kit.models import label_in, make_node, make_pod
from tests.kit.peers import KEYS, peer_pods, spread_scores, spread_state, spread_verdict, worlds
from tests.kit.plugin_checks import wakes
from tests.kit.policies import NOW, RED, PolicyWorld, against, points, selects

X = LabelSelector((label_in("app", "x"),))
NODES = (
    make_node("a", labels={ZONE: "1"}),
    make_node("b", labels={ZONE: "1"}),
    make_node("c", labels={ZONE: "2"}),
    make_node("d"),
)
SKEW = (f'node(s) didn\'t match the spread of policy "red" by {ZONE}', True)
LACKING = (f"{SKEW[0]} (missing required label)", False)


def red(name, node="", **fields):
    return make_pod(name, node=node, labels={"app": "x"}, **fields)


def spread(*rules, **fields):
    return PolicySpread(tuple((RED, rule) for rule in rules), selects=selects, **fields)


def by_zone(**fields):
    return spread(SpreadRule(ZONE, **fields))


def asked(plugin, *pods, pod=None, nodes=NODES):
    return against(plugin, pod or red("web"), PolicyWorld(nodes, pods).snapshot())


# -- against the reference of PodTopologySpread --------------------------------------------------

rules = st.builds(
    SpreadRule,
    st.sampled_from(KEYS),
    st.integers(1, 3),
    st.sampled_from((None, None, 1, 2, 4)),
    st.booleans(),
    st.sampled_from((None, 30.0, 90.0)),
)


def as_its_own(pod, given_rules, *, waited):
    """The pod with the policy's rules as constraints of its own, hard or soft as they are after that time."""
    own = tuple(
        SpreadConstraint(
            rule.topology_key,
            rule.max_skew,
            rule.hard and (rule.hard_for is None or waited < rule.hard_for),
            X,
            min_domains=rule.min_domains or 1,
        )
        for rule in given_rules
    )
    return replace(pod, labels={**pod.labels, "app": "x"}, spec=replace(pod.spec, spread=own))


def tracked(world, namespace):
    """The world's snapshot, 1,000 s after the epoch, in which the policy selects app x of one namespace."""
    snapshot = world.snapshot()
    snapshot.now = NOW
    chosen = lambda pod: (RED,) if pod.namespace == namespace and pod.labels.get("app") == "x" else ()  # noqa: E731
    snapshot.selected.follow(chosen)
    snapshot.selected.track(RED)
    return snapshot


@given(
    worlds(),
    peer_pods("asking"),
    st.lists(rules, min_size=1, max_size=3),
    st.sampled_from((29, 30, 31, 90)),
    st.data(),
)
def test_it_says_what_pod_topology_spread_would_say(world, pod, given_rules, waited, data):
    equivalent = as_its_own(pod, given_rules, waited=waited)
    pod = replace(equivalent, spec=pod.spec, created=NOW - waited)
    snapshot = tracked(world, pod.namespace)
    plugin = spread(*given_rules)
    state = spread_state(SpreadDefaults(()), equivalent, world)
    told = against(plugin, pod, snapshot)
    for node in world.nodes:
        expected = None if state is None else spread_verdict(state, equivalent, node)
        assert len(told[node.name]) <= 1
        assert [resolvable for _, resolvable in told[node.name]] == (
            [] if expected is None else [expected[1]]
        )
    names = data.draw(st.sets(st.sampled_from([node.name for node in world.nodes]), min_size=1))
    soft = spread_scores(SpreadDefaults(()), equivalent, world, names)
    rows = np.array(sorted(snapshot.row_of(name) or 0 for name in names), dtype=np.int64)
    scoring = plugin.pre_score(pod, snapshot, Nodes(snapshot, rows))
    assert (scoring is Skip.SKIP) is (soft is None)
    if soft is not None:
        raw = plugin.score(scoring, Nodes(snapshot, rows))
        by_name = (
            [soft[0][snapshot.name_at(int(row))] for row in rows],
            [soft[1][snapshot.name_at(int(row))] for row in rows],
        )
        assert by_name == (raw.tolist(), plugin.normalize(raw).tolist())


# -- each field ----------------------------------------------------------------------------------


def test_without_rules_it_has_nothing_to_say():
    snapshot = Snapshot()
    assert spread().pre_filter(red("web"), snapshot) is Skip.SKIP
    assert spread().pre_score(red("web"), snapshot, Nodes(snapshot)) is Skip.SKIP


@pytest.mark.parametrize(("max_skew", "zone_1"), [(1, [SKEW]), (2, [SKEW]), (3, [])])
def test_no_domain_gets_further_ahead_than_the_skew(max_skew, zone_1):
    told = asked(by_zone(max_skew=max_skew), red("1", "a"), red("2", "b"))
    assert told == {"a": zone_1, "b": zone_1, "c": [], "d": [LACKING]}


@pytest.mark.parametrize(("min_domains", "fits"), [(None, True), (2, True), (3, False)])
def test_with_too_few_domains_the_least_counts_as_nothing(min_domains, fits):
    told = asked(by_zone(min_domains=min_domains), red("1", "a"), red("2", "c"))
    assert told["a"] == ([] if fits else [SKEW])


def test_the_dying_do_not_count():
    assert asked(by_zone(), red("1", "a", deleting=True))["a"] == []
    assert asked(by_zone(), red("1", "a"))["a"] == [SKEW]


def test_nodes_that_the_pod_s_affinity_closes_do_not_count_and_tainted_ones_do():
    only_1 = NodeSelector((NodeSelectorTerm((label_in(ZONE, "1"),)),))
    pod = red("web", required=only_1)
    assert asked(by_zone(), red("1", "a"), pod=pod)["b"] == []
    assert asked(by_zone(), red("1", "a"), pod=red("web", node_selector={ZONE: "1"}))["b"] == []
    tainted = (*NODES[:2], make_node("c", labels={ZONE: "2"}, taints=[Taint("old")]))
    assert asked(by_zone(), red("1", "a"), nodes=tainted)["b"] == [SKEW]


def test_nodes_outside_what_policies_leave_do_not_count():
    plugin = spread(SpreadRule(ZONE), within=(label_in(ZONE, "1"),))
    assert asked(plugin, red("1", "a"))["b"] == []
    assert asked(plugin, red("1", "a"), pod=red("web", node_selector={ZONE: "1"}))["b"] == []


def test_it_is_about_pods_of_the_policy_wherever_they_are():
    assert asked(by_zone(), red("1", "a", namespace="elsewhere"))["a"] == [SKEW]
    assert asked(by_zone(), make_pod("1", node="a", labels={"app": "y"}))["a"] == []


def test_policies_add_up_and_the_first_that_speaks_against_a_node_says_why():
    told = asked(spread(SpreadRule(ZONE), SpreadRule("rack")), red("1", "a"))
    assert [texts[0][0].split(" by ")[1] for texts in told.values()] == [
        f"{ZONE} (missing required label)" if name == "d" else "rack (missing required label)"
        for name in "abcd"
    ]
    assert {"a": [SKEW]}.items() <= asked(
        spread(SpreadRule(ZONE), SpreadRule(ZONE, 5)), red("1", "a")
    ).items()


# -- hard for a time -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hard", "hard_for", "waited", "is_hard"),
    [
        (True, None, 1e6, True),
        (True, 60.0, 59.9, True),
        (True, 60.0, 60.0, False),
        (True, 0.0, 0.0, False),
        (False, None, 0.0, False),
        (False, 60.0, 0.0, False),
    ],
)
def test_a_rule_is_hard_for_its_time_and_a_preference_after_it(hard, hard_for, waited, is_hard):
    plugin = by_zone(hard=hard, hard_for=hard_for)
    pod = red("web", created=NOW - waited)
    snapshot = PolicyWorld(NODES, (red("1", "a"),)).snapshot()
    assert against(plugin, pod, snapshot)["a"] == ([SKEW] if is_hard else [])
    assert points(plugin, pod, snapshot) == (None if is_hard else {"a": 0, "b": 0, "c": 100, "d": 0})


def test_who_knows_better_says_since_when_a_pod_waits():
    plugin = spread(SpreadRule(ZONE, hard_for=60.0), since=lambda pod: NOW - 10)
    pod = red("web", created=0.0)
    assert asked(plugin, red("1", "a"), pod=pod)["a"] == [SKEW]
    assert plugin.changes_at(pod, PolicyWorld().snapshot()) == NOW + 50


def test_it_tells_when_the_next_rule_ends_to_be_hard():
    snapshot = PolicyWorld().snapshot()
    rules = [SpreadRule(ZONE, hard_for=t) for t in (5.0, 60.0, 90.0)]
    plugin = spread(*rules, SpreadRule(ZONE), SpreadRule(ZONE, hard=False, hard_for=20.0))
    assert plugin.changes_at(red("web", created=NOW - 10), snapshot) == NOW + 50
    assert plugin.changes_at(red("web", created=NOW - 60), snapshot) == NOW + 30
    assert plugin.changes_at(red("web", created=NOW - 90), snapshot) is None
    assert by_zone().changes_at(red("web"), snapshot) is None


def test_a_preference_by_host_counts_the_pods_on_each_node():
    nodes = tuple(make_node(name, labels={HOSTNAME: name}) for name in "abc")
    plugin = spread(SpreadRule(HOSTNAME, hard=False))
    pods = red("1", "a"), red("2", "a"), red("3", "b"), red("4", "b", deleting=True)
    assert points(plugin, red("web"), PolicyWorld(nodes, pods).snapshot()) == {"a": 0, "b": 33, "c": 100}


def test_a_policy_whose_pods_nobody_counts_is_an_error():
    with pytest.raises(LookupError, match="the pods of policy red are not counted"):
        by_zone().pre_filter(red("web"), Snapshot())


# -- wake-ups ------------------------------------------------------------------------------------

THERE, OTHER = red("there", "a"), make_pod("there", node="a", labels={"app": "y"})


@pytest.mark.parametrize(
    ("event", "helps"),
    [
        (ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE, THERE, None), True),
        (ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE, OTHER, None), False),
        (ClusterEvent(Resource.ASSIGNED_POD, Action.ADD, None, THERE), True),
        (assigned_event(THERE, red("there", "a", deleting=True)), True),
        (assigned_event(OTHER, replace(OTHER, deleting=True)), False),
        (assigned_event(THERE, OTHER), True),
        (assigned_event(THERE, replace(THERE, labels={"app": "x", "b": ""})), False),
        (node_event(None, NODES[0]), True),
        (node_event(NODES[3], make_node("d", labels={ZONE: "2"})), True),
        (node_event(NODES[0], make_node("a", labels={ZONE: "1", "b": ""})), False),
        (ClusterEvent(Resource.NODE, Action.DELETE, NODES[0], None), True),
    ],
)
def test_only_what_counts_wakes_pods(event, helps):
    assert wakes(by_zone(), red("web"), event) is helps


def test_a_node_that_counts_otherwise_wakes_pods():
    change = node_event(make_node("a", labels={ZONE: "1", "own": "yes"}), NODES[0])
    assert wakes(by_zone(), red("web", node_selector={"own": "yes"}), change)
    assert wakes(spread(SpreadRule(ZONE), within=(label_in("own", "yes"),)), red("web"), change)
    assert not wakes(by_zone(), red("web"), change)
