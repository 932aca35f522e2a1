"""NodeResourcesBalancedAllocation."""

import pytest

from moorage.core.framework.resource_scoring import Weighted
from moorage.core.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from tests.kit.models import make_node, make_pod
from tests.kit.plugin_checks import scores

GPU = "example.com/gpu"
NODE = make_node("a", cpu=1000, memory=1000)
PLUGIN = NodeResourcesBalancedAllocation()
THREE = NodeResourcesBalancedAllocation((Weighted("cpu"), Weighted("memory"), Weighted(GPU)))


def score(pod, *pods, node=NODE, plugin=PLUGIN):
    """The raw score of one node with these pods on it."""
    told = scores(plugin, pod, [node], pods)
    assert told is not None
    assert told[0] == told[1]
    return told[0][0]


@pytest.mark.parametrize(
    ("there", "asked", "expected"),
    [
        ((0, 0), (500, 500), 75),  # as balanced as before
        ((500, 0), (0, 500), 87),  # (50 + 100 - 75) // 2 better than before
        ((0, 0), (1000, 0), 50),  # as bad as can be
        ((0, 0), (200, 0), 70),
        ((900, 900), (500, 500), 75),  # shares end at 1
        ((900, 0), (500, 0), 72),  # balances of 50 and 55; were the share 1.4, it would be 62
    ],
)
def test_the_gain_in_balance(there, asked, expected):
    """50 + (50 + balance with the pod - balance without) / 2, each truncated."""
    on_node = make_pod("there", cpu=there[0], memory=there[1], node="a")
    assert score(make_pod("web", cpu=asked[0], memory=asked[1]), on_node) == expected


def test_real_requests_count_without_the_defaults_of_scoring():
    """On the node, too: a pod that asks for nothing is no use."""
    assert score(make_pod("web", cpu=200), make_pod("idle", node="a")) == 70


def test_a_pod_that_asks_for_nothing_is_left_to_the_other_plugins():
    assert scores(PLUGIN, make_pod("web", cpu=0), [NODE]) is None
    assert scores(PLUGIN, make_pod("web", more={GPU: 1}), [NODE]) is None


def test_a_node_without_one_of_the_resources_is_always_balanced():
    assert score(make_pod("web", cpu=900), node=make_node("a", cpu=1000, memory=0)) == 75


def test_three_resources_have_a_standard_deviation():
    """Shares 0.8, 0.2, 0.5 deviate by 0.2449: balance 75, was 100."""
    node = make_node("a", cpu=1000, memory=1000, more={GPU: 10})
    pod = make_pod("web", cpu=800, memory=200, more={GPU: 5})
    assert score(pod, node=node, plugin=THREE) == 62


def test_two_of_three_that_a_node_has_are_half_their_distance():
    node = make_node("a", cpu=1000, memory=1000)
    pod = make_pod("web", cpu=200, more={GPU: 5})
    assert score(pod, node=node, plugin=THREE) == 70
