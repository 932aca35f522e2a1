"""PolicyPreferences: points that are added as they are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.core.cycle.scoring import score_nodes
from moorage.core.framework.interface import Reads, Skip
from moorage.core.framework.runner import Runner
from moorage.core.model.policy import Preference, Speaks
from moorage.core.model.resources import CPU
from moorage.core.model.selector import LabelSelector
from moorage.core.plugins.policy_preferences import PolicyPreferences
from moorage.core.plugins.priority_sort import PrioritySort
from moorage.core.snapshot.snapshot import Snapshot
from moorage.core.snapshot.view import Nodes
from tests.kit.models import label_in, make_node, make_pod
from tests.kit.policies import (
    BLUE,
    RED,
    PolicyWorld,
    Scripted,
    of_policies,
    points,
    policy_pods,
    policy_worlds,
    preferences,
    preferences_score,
)
from tests.kit.strategies import GPU

SSD = LabelSelector((label_in("disk", "ssd"),))
NODES = (
    make_node("ssd", labels={"disk": "ssd"}),
    make_node("gpu", more={GPU: 1}),
    make_node("c", more={GPU: 0}),
)


def prefer(*items, **more):
    return PolicyPreferences(tuple((RED, item) for item in items), **more)


def scripted(weight, says, speaks=Speaks.NODE, text="e"):
    return Preference(weight, expression=Scripted(text, speaks, says))


def liked(plugin, pod=None, nodes=NODES):
    return points(plugin, pod or make_pod("web"), PolicyWorld(nodes).snapshot())


@given(
    policy_worlds(),
    policy_pods("asking"),
    of_policies(preferences, 3),
    st.lists(st.sampled_from((GPU, CPU)), unique=True).map(tuple),
)
def test_it_scores_as_the_rules_do(world, pod, items, protect):
    plugin = PolicyPreferences(items, protect)
    found = points(plugin, pod, world.snapshot())
    assert found == {node.name: preferences_score(items, protect, pod, node, world) for node in world.nodes}
    assert max(found.values()) <= plugin.most


def test_without_items_it_has_nothing_to_say():
    snapshot = Snapshot()
    assert PolicyPreferences().pre_score(make_pod("web"), snapshot, Nodes(snapshot)) is Skip.SKIP
    asking = make_pod("web", more={GPU: 1})
    assert PolicyPreferences((), (GPU,)).pre_score(asking, snapshot, Nodes(snapshot)) is Skip.SKIP
    assert PolicyPreferences().most == 0


def test_a_match_gives_its_weight_a_hundred_times():
    assert liked(prefer(Preference(5, SSD))) == {"ssd": 500, "gpu": 0, "c": 0}
    assert liked(prefer(Preference(5, SSD), Preference(100, SSD))) == {"ssd": 10500, "gpu": 0, "c": 0}


@pytest.mark.parametrize(
    ("says", "weight", "score"),
    [
        (lambda node: True, 7, 700),
        (lambda node: False, 7, 0),
        (lambda node: 33.4, 2, 67),
        (lambda node: 0.25, 2, 1),
        (lambda node: 0.24, 2, 0),
        (lambda node: 1000.0, 3, 300),
        (lambda node: -5.0, 3, 0),
        (lambda node: node.labels["none"], 100, 0),
    ],
)
def test_an_expression_gives_its_score_times_its_weight(says, weight, score):
    assert liked(prefer(scripted(weight, says))) == {"ssd": score, "gpu": score, "c": score}


def test_errors_are_counted_for_the_policy_whose_item_it_is():
    snapshot = PolicyWorld(NODES).snapshot()
    items = (
        (BLUE, scripted(1, lambda node: node.labels["disk"] == "ssd", text="is ssd")),
        (RED, Preference(1, SSD)),
    )
    assert points(PolicyPreferences(items), make_pod("web"), snapshot) == {"ssd": 200, "gpu": 0, "c": 0}
    assert (snapshot.expressions.failures(BLUE).count, snapshot.expressions.failures(RED).count) == (2, 0)


@pytest.mark.parametrize(("asks", "expected"), [(None, (1000, 0, 1000)), (0, (1000, 0, 1000)), (1, None)])
def test_what_is_scarce_is_left_to_those_who_ask_for_it(asks, expected):
    pod = make_pod("web", more={} if asks is None else {GPU: asks})
    found = liked(PolicyPreferences((), (GPU,)), pod)
    assert found == (None if expected is None else dict(zip(("ssd", "gpu", "c"), expected, strict=True)))


def test_each_protected_resource_counts():
    found = liked(PolicyPreferences((), (GPU, "fpga")), make_pod("web", more={GPU: 1}))
    assert found == {"ssd": 1000, "gpu": 1000, "c": 1000}


def test_points_are_added_to_the_total_as_they_are():
    """More than a plugin's 100, and not brought to its range."""
    snapshot = PolicyWorld(NODES).snapshot()
    plugin = prefer(Preference(5, SSD), protect=(GPU,))
    runner = Runner((PrioritySort(), plugin), {}, snapshot)
    screened = runner.screen(make_pod("web"), {})
    rows = np.flatnonzero(screened.feasible)
    assert score_nodes(runner, make_pod("web"), screened, rows).tolist() == [1500, 0, 1000]


@pytest.mark.parametrize(
    ("speaks", "reads"),
    [
        (Speaks.NODE, Reads.NODE),
        (Speaks.REQUESTED, Reads.NODE | Reads.USAGE),
        (Speaks.USAGE, Reads.NODE | Reads.CLUSTER),
        (Speaks.USAGE | Speaks.REQUESTED, Reads.NODE | Reads.USAGE | Reads.CLUSTER),
    ],
)
def test_it_says_what_its_scores_depend_on(speaks, reads):
    assert prefer(scripted(1, bool, speaks)).reads == reads
    assert prefer(Preference(1, SSD)).reads == Reads.NODE


def test_it_rejects_nothing_and_waits_for_nothing():
    assert PolicyPreferences().wakes_on() == ()
