"""PolicyPools: which pool a pod goes to, and when it waits."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.core.cache.node_changes import node_event
from moorage.core.cache.pod_changes import assigned_event
from moorage.core.cycle.scheduling_cycle import Circumstances, explain_pod
from moorage.core.framework.runner import Runner
from moorage.core.model.cluster_event import Action, ClusterEvent, Resource
from moorage.core.model.policy import Pool, Pools
from moorage.core.model.policy_report import PoolUse
from moorage.core.model.selector import LabelSelector
from moorage.core.plugins.node_resources_fit import NodeResourcesFit
from moorage.core.plugins.policy_pools import PolicyPools
from moorage.core.plugins.priority_sort import PrioritySort
from moorage.core.snapshot.snapshot import Snapshot
from moorage.core.snapshot.view import Nodes
from tests.kit.models import label_in, make_node, make_pod
from tests.kit.plugin_checks import wakes
from tests.kit.policies import (
    RED,
    PolicyWorld,
    against,
    policy_worlds,
    pool_counts,
    pool_lists,
    pool_of,
    pool_takes,
    pools_choose,
    refs,
    selects,
)

OD, SPOT = LabelSelector((label_in("pool", "od"),)), LabelSelector((label_in("pool", "spot"),))
NODES = (
    make_node("od1", cpu=1000, labels={"pool": "od"}),
    make_node("od2", cpu=1000, labels={"pool": "od"}),
    make_node("spot", cpu=9000, labels={"pool": "spot"}),
    make_node("none", cpu=9000),
)
NO_POOL = ('node(s) in no pool of policy "red"', False)
LATER = ('node(s) in a later pool of policy "red"', False)
WAITS = ('node(s) in a later pool of policy "red", which waits', False)
FULL_OD = ('node(s) in pool "od" of policy "red", which is full', True)


def red(name, node="", **fields):
    return make_pod(name, node=node, labels={"app": "x"}, **fields)


def pools(od=None, spot=None, *, od_percent=None, spot_percent=None, wait=False):
    items = Pool("od", OD, od, od_percent), Pool("spot", SPOT, spot, spot_percent)
    return PolicyPools(RED, Pools(items, wait), selects)


def snapshot_of(*pods, nodes=NODES):
    return PolicyWorld(nodes, pods).snapshot()


def chosen(plugin, *pods, cpu=100):
    """The nodes that a pod of that size may go to, other plugins having had their say."""
    snapshot = snapshot_of(*pods)
    runner = Runner((PrioritySort(), plugin, NodeResourcesFit()), {}, snapshot)
    screened = runner.screen(red("web", cpu=cpu), {})
    return [snapshot.name_at(int(row)) for row in np.flatnonzero(screened.feasible)]


@given(policy_worlds(), refs, pool_lists(), st.data())
def test_of_the_nodes_that_are_left_it_accepts_those_of_the_right_pool(world, ref, given_pools, data):
    left = [node for node in world.nodes if data.draw(st.booleans())]
    snapshot = world.snapshot()
    plugin = PolicyPools(ref, given_pools)
    rows = np.array([snapshot.row_of(node.name) for node in left], dtype=np.int64)
    told = against(plugin, make_pod("web"), snapshot, rows)
    assert pools_choose(ref, given_pools, left, world) == {
        name for name, reasons in told.items() if not reasons
    }
    assert all(len(reasons) <= 1 for reasons in told.values())


@given(policy_worlds(), refs, pool_lists())
def test_a_node_alone_is_judged_as_if_there_were_no_other(world, ref, given_pools):
    """Nominated pods and preemption ask so."""
    snapshot = world.snapshot()
    runner = Runner((PrioritySort(), PolicyPools(ref, given_pools)), {}, snapshot)
    pre = runner.pre_filter(make_pod("web"))
    counts = pool_counts(ref, given_pools, world)
    for node in world.nodes:
        index = pool_of(given_pools, node)
        takes = index >= 0 and pool_takes(given_pools.items[index], counts[index], sum(counts))
        fits = takes and not (given_pools.wait and index > 0)
        assert (runner.judge(pre, snapshot.row_of(node.name) or 0) is None) is fits


@given(policy_worlds(), refs, pool_lists())
def test_its_use_and_what_holds_pods(world, ref, given_pools):
    plugin, snapshot = PolicyPools(ref, given_pools), world.snapshot()
    counts = pool_counts(ref, given_pools, world)
    use = plugin.use(snapshot)
    assert [(u.name, u.pods) for u in use] == [
        (p.name, c) for p, c in zip(given_pools.items, counts, strict=True)
    ]
    takes = [pool_takes(p, c, sum(counts)) for p, c in zip(given_pools.items, counts, strict=True)]
    assert takes == [u.most is None or u.pods < u.most for u in use]
    assert bool(plugin.held(snapshot)) is not (takes[0] if given_pools.wait else any(takes))


# -- next ----------------------------------------------------------------------------------------


def test_the_first_pool_with_a_node_that_fits_is_used():
    assert chosen(pools()) == ["od1", "od2"]
    assert chosen(pools(), red("1", "od1", cpu=950)) == ["od2"]


def test_when_nothing_in_it_fits_the_next_is_used():
    assert chosen(pools(), cpu=2000) == ["spot"]


@pytest.mark.parametrize(
    ("most", "expected"), [(0, ["spot"]), (1, ["spot"]), (2, ["od1", "od2"]), (None, ["od1", "od2"])]
)
def test_when_it_is_full_the_next_is_used(most, expected):
    assert chosen(pools(most), red("1", "od1", deleting=True), make_pod("other", node="od1")) == expected


def test_a_pool_of_its_own_pods_only():
    """Pods elsewhere, and those that the policy does not select, do not fill it."""
    assert chosen(pools(1), red("1", "spot"), red("2", "none"), make_pod("other", node="od1")) == [
        "od1",
        "od2",
    ]


def test_a_node_belongs_to_the_first_pool_that_it_matches():
    items = Pool("od", OD, 0), Pool("all", LabelSelector())
    plugin = PolicyPools(RED, Pools(items))
    assert chosen(plugin) == ["spot", "none"]


@pytest.mark.parametrize(
    ("percent", "on_demand", "on_spot", "expected"),
    [
        (40, 0, 0, "od"),  # ceil(0.4 * 1) = 1
        (40, 1, 0, "spot"),  # ceil(0.4 * 2) = 1
        (40, 1, 1, "od"),  # ceil(0.4 * 3) = 2
        (40, 2, 2, "spot"),  # ceil(0.4 * 5) = 2
        (40, 2, 3, "od"),  # ceil(0.4 * 6) = 3
        (0, 0, 5, "spot"),
        (100, 5, 0, "od"),
    ],
)
def test_a_percentage_is_of_what_is_placed_with_the_pod(percent, on_demand, on_spot, expected):
    pods = [red(f"o{i}", "od1") for i in range(on_demand)] + [red(f"s{i}", "spot") for i in range(on_spot)]
    pods.append(red("elsewhere", "none"))  # in no pool: not part of the whole
    assert {name.rstrip("12") for name in chosen(pools(od_percent=percent), *pods)} == {expected}


def test_when_all_are_full_each_says_so():
    snapshot = snapshot_of(red("1", "od1"), red("2", "spot"))
    plugin = pools(1, 1)
    assert against(plugin, red("web"), snapshot) == {
        "od1": [FULL_OD],
        "od2": [FULL_OD],
        "spot": [('node(s) in pool "spot" of policy "red", which is full', True)],
        "none": [NO_POOL],
    }
    assert plugin.held(snapshot) == 'all pools of policy "red" are full'
    assert plugin.use(snapshot) == (PoolUse("od", 1, 1), PoolUse("spot", 1, 1))


def test_a_node_that_is_not_in_the_chosen_pool_is_told_apart():
    told = against(pools(), red("web"), snapshot_of())
    assert told == {"od1": [], "od2": [], "spot": [LATER], "none": [NO_POOL]}


def test_a_policy_without_pools_leaves_no_node():
    assert chosen(PolicyPools(RED, Pools(()))) == []


# -- wait ----------------------------------------------------------------------------------------


def test_where_pods_wait_no_other_pool_is_used():
    assert chosen(pools(wait=True)) == ["od1", "od2"]
    assert chosen(pools(1, wait=True), red("1", "od1")) == []
    assert chosen(pools(wait=True), cpu=2000) == []
    snapshot = snapshot_of(red("1", "od1"))
    plugin = pools(1, 0, wait=True)
    assert against(plugin, red("web"), snapshot) == {
        "od1": [FULL_OD], "od2": [FULL_OD], "spot": [WAITS], "none": [NO_POOL]
    }  # fmt: skip
    assert plugin.held(snapshot) == 'pool "od" of policy "red" is full'
    assert pools(2, 0, wait=True).held(snapshot) == ""


# -- in the cycle --------------------------------------------------------------------------------


def test_it_is_asked_after_all_others_and_after_nominated_pods():
    """A pool in which only promised room is left is left out, and the reasons say why."""
    snapshot = snapshot_of(nodes=NODES[1:])
    runner = Runner((PrioritySort(), pools(), NodeResourcesFit()), {}, snapshot)
    nominated = {snapshot.row_of("od2") or 0: [make_pod("first", cpu=950)]}
    pod = red("web", cpu=100)
    screened = runner.screen(pod, nominated)
    assert [snapshot.name_at(int(row)) for row in np.flatnonzero(screened.feasible)] == ["spot"]
    told = runner.diagnose(pod, screened.pre, nominated).rejections()
    assert {name: rejection.reasons for name, rejection in told.items()} == {
        "od2": ("Insufficient cpu",),
        "none": (NO_POOL[0],),
    }


def test_the_reasons_are_those_of_the_nodes_that_are_left():
    snapshot = snapshot_of(red("1", "od1", cpu=950))
    runner = Runner((PrioritySort(), pools(1), NodeResourcesFit()), {}, snapshot)
    pod = red("web", cpu=9500)
    told = runner.diagnose(pod, runner.screen(pod, {}).pre, {}).reason_counts()
    assert told == {"Insufficient cpu": 4}
    assert runner.diagnose(pod, runner.screen(pod, {}).pre, {}).plugins == {"NodeResourcesFit"}


def test_evicting_a_pod_that_counts_makes_room_in_the_pool():
    snapshot = snapshot_of(red("1", "od1"), red("2", "spot"))
    runner = Runner((PrioritySort(), pools(1, 1)), {}, snapshot)
    pre = runner.pre_filter(red("web"))
    there = tuple(snapshot.pods[0].values())
    assert runner.judge(pre, 0) is not None
    assert runner.judge_with(pre, 0, (), there) is None
    assert runner.judge(pre, 0) is not None


def test_free_rows_are_in_no_pool():
    items = (Pool("any", LabelSelector()),)
    snapshot = snapshot_of()
    plugin = PolicyPools(RED, Pools(items))
    verdict = plugin.filter(plugin.pre_filter(red("web"), snapshot), Nodes(snapshot))
    assert int(verdict.fits.sum()) == 4


def test_a_policy_whose_pods_nobody_counts_is_an_error():
    with pytest.raises(LookupError, match="the pods of policy red are not counted"):
        pools().pre_filter(make_pod("web"), Snapshot())


# -- wake-ups ------------------------------------------------------------------------------------

X, Y = red("there", "od1"), make_pod("there", node="od1", labels={"app": "y"})


@pytest.mark.parametrize(
    ("event", "helps", "helps_percent"),
    [
        (ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE, X, None), True, True),
        (ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE, Y, None), False, False),
        (ClusterEvent(Resource.ASSIGNED_POD, Action.ADD, None, X), False, True),
        (ClusterEvent(Resource.ASSIGNED_POD, Action.ADD, None, Y), False, False),
        (assigned_event(X, Y), True, True),
        (assigned_event(X, replace(X, labels={"app": "x", "b": ""})), False, False),
        (node_event(None, NODES[0]), True, True),
        (node_event(None, NODES[3]), False, False),
        (node_event(NODES[0], make_node("od1", labels={"pool": "spot"})), True, True),
        (node_event(NODES[0], make_node("od1", labels={"pool": "od", "b": ""})), False, False),
        (ClusterEvent(Resource.NODE, Action.DELETE, NODES[0], None), True, True),
    ],
)
def test_only_what_counts_wakes_pods(event, helps, helps_percent):
    assert wakes(pools(1), red("web"), event) is helps
    assert wakes(pools(od_percent=40), red("web"), event) is helps_percent


def test_a_question_about_some_nodes_is_answered_as_if_there_were_no_others():
    """As an extender is asked: of these nodes, whose pool comes first?"""
    snapshot = snapshot_of()
    runner = Runner((PrioritySort(), pools(), NodeResourcesFit()), {}, snapshot)
    decision = explain_pod(runner, red("web"), Circumstances({}), ["spot", "none"])
    assert decision.feasible == ("spot",)
    assert {name: rejection.reasons for name, rejection in decision.filtered.items()} == {
        "none": (NO_POOL[0],)
    }
    everywhere = explain_pod(runner, red("web"), Circumstances({}))
    assert everywhere.feasible == ("od1", "od2")
    assert everywhere.filtered["spot"].reasons == (LATER[0],)
