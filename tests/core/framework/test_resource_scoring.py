"""The three strategies by example; ``tests/laws`` holds them to a scalar reference on any cluster."""

import pytest

from moorage.core.framework.resource_scoring import (
    LEAST_ALLOCATED,
    ScoringStrategy,
    StrategyType,
    Weighted,
    wanted_of,
)
from moorage.core.model.resources import MAX_AMOUNT, Requests
from moorage.core.snapshot.snapshot import Snapshot
from moorage.core.snapshot.view import Nodes
from tests.kit.models import GI, MI, make_node, make_pod, requests_of

GPU = "example.com/gpu"
CPU_ONLY = (Weighted("cpu"),)


def score(strategy, asked, *nodes, used=None):
    """The score of each node, the first of which holds a pod that asks for ``used``."""
    snapshot = Snapshot()
    for node in nodes:
        snapshot.set_node(node)
    if used is not None:
        snapshot.add_pod(0, make_pod("there", requests=used))
    wanted = wanted_of(asked, strategy.resources, with_defaults=True)
    return strategy.score(wanted, Nodes(snapshot)).tolist()[: len(nodes)]


@pytest.mark.parametrize(
    ("kind", "expected"), [(StrategyType.LEAST_ALLOCATED, 62), (StrategyType.MOST_ALLOCATED, 37)]
)
def test_a_percentage_is_rounded_down_for_each_resource_and_for_their_mean(kind, expected):
    """Of cpu 1/3: 66 free, 33 used; memory 41 %: 58 free, 41 used.  Their means are 62 and 37."""
    asked = requests_of({"cpu": 1000, "memory": 41})
    assert score(ScoringStrategy(kind), asked, make_node("a", cpu=3000, memory=100)) == [expected]


@pytest.mark.parametrize(("cpu", "memory"), [(3, 1), (1, 3), (2, 5)])
def test_weights(cpu, memory):
    strategy = ScoringStrategy(resources=(Weighted("cpu", cpu), Weighted("memory", memory)))
    asked = requests_of({"cpu": 500, "memory": 900})
    expected = (cpu * 50 + memory * 10) // (cpu + memory)
    assert score(strategy, asked, make_node("a", cpu=1000, memory=1000)) == [expected]


def test_what_is_there_counts_with_the_defaults_of_scoring():
    """A container without requests counts as 100 milli-CPU and 200 MiB, on the node as well as arriving."""
    node = make_node("a", cpu=1000, memory=1000 * MI)
    assert score(LEAST_ALLOCATED, requests_of({}), node, used=requests_of({})) == [(80 + 60) // 2]


def test_pod_level_resources_do_not_count_on_arrival():
    """kube-scheduler v1.37 leaves them out there: what arrives and what is placed differ."""
    asked = Requests({"cpu": 800}, 800, 0, arriving_cpu=100, arriving_memory=0)
    assert score(ScoringStrategy(resources=CPU_ONLY), asked, make_node("a", cpu=1000)) == [90]


def test_a_node_without_a_resource_is_judged_by_the_others():
    strategy = ScoringStrategy(resources=(Weighted("cpu"), Weighted(GPU, 5)))
    asked = requests_of({"cpu": 500, GPU: 1})
    nodes = make_node("a", cpu=1000), make_node("b", cpu=1000, more={GPU: 4}), make_node("c", cpu=0)
    assert score(strategy, asked, *nodes) == [50, (50 + 5 * 75) // 6, 0]


def test_an_optional_resource_counts_only_if_it_is_asked_for():
    strategy = ScoringStrategy(resources=(Weighted("cpu"), Weighted(GPU, 5)))
    assert score(strategy, requests_of({"cpu": 500}), make_node("a", cpu=1000, more={GPU: 4})) == [50]


def test_an_overcommitted_node():
    node, used = make_node("a", cpu=1000), requests_of({"cpu": 5000})
    least = ScoringStrategy(resources=CPU_ONLY)
    most = ScoringStrategy(StrategyType.MOST_ALLOCATED, CPU_ONLY)
    ratio = ScoringStrategy(StrategyType.REQUESTED_TO_CAPACITY_RATIO, CPU_ONLY, ((0, 0), (100, 10)))
    told = [score(strategy, requests_of({"cpu": 1}), node, used=used) for strategy in (least, most, ratio)]
    assert told == [[0], [100], [100]]


@pytest.mark.parametrize(
    ("used", "expected"),
    [
        (0, 10),
        (100, 10),
        (200, 10),
        (250, 25),
        (333, 49),
        (400, 70),
        (550, 50),
        (700, 30),
        (701, 30),
        (900, 30),
    ],
)
def test_a_broken_line(used, expected):
    """(20, 1), (40, 7), (70, 3): flat outside, integers between that are cut off towards zero."""
    shape = ((20, 1), (40, 7), (70, 3))
    strategy = ScoringStrategy(StrategyType.REQUESTED_TO_CAPACITY_RATIO, CPU_ONLY, shape)
    asked = Requests({"cpu": used}, used, 0)
    assert score(strategy, asked, make_node("a", cpu=1000)) == [expected]


def test_the_ratio_rounds_the_mean_and_leaves_out_what_scores_nothing():
    """kube-scheduler: ``if resourceScore > 0`` the weight counts, and the mean is ``math.Round``."""
    resources = (Weighted("cpu", 1), Weighted("memory", 1), Weighted(GPU, 1))
    strategy = ScoringStrategy(StrategyType.REQUESTED_TO_CAPACITY_RATIO, resources, ((0, 0), (100, 10)))
    node = make_node("a", cpu=100, memory=100, more={GPU: 1000})
    assert score(strategy, Requests({GPU: 1}, 10, 15), node) == [13]


def test_amounts_beyond_measure_do_not_wrap():
    huge = requests_of({"cpu": MAX_AMOUNT, "memory": MAX_AMOUNT})
    node = make_node("a", cpu=MAX_AMOUNT, memory=MAX_AMOUNT)
    assert score(LEAST_ALLOCATED, huge, node) == [0]
    assert score(ScoringStrategy(StrategyType.MOST_ALLOCATED), huge, node) == [99]
    assert score(LEAST_ALLOCATED, huge, node, used=huge) == [0]


@pytest.mark.parametrize("size", [10**6 + 7, (1 << 45) - 1, 1 << 45, (1 << 50) + 1, 1 << 56])
@pytest.mark.parametrize("percent", [1, 29, 57, 99])
def test_percentages_are_exact_at_every_size(size, percent):
    """One unit less than the percentage gives one percent less, floats or not."""
    strategy = ScoringStrategy(StrategyType.MOST_ALLOCATED, CPU_ONLY)
    enough = -(-size * percent // 100)
    for amount, expected in ((enough, percent), (enough - 1, percent - 1)):
        assert score(strategy, Requests({"cpu": amount}, amount, 0), make_node("a", cpu=size)) == [expected]


def test_what_a_pod_adds():
    resources = (Weighted("cpu"), Weighted("memory"), Weighted(GPU), Weighted("ephemeral-storage"))
    asked = Requests({"cpu": 7, "memory": GI}, scoring_cpu=107, scoring_memory=2 * GI)
    with_defaults = [(w.name, n) for w, n in wanted_of(asked, resources, with_defaults=True)]
    assert with_defaults == [("cpu", 107), ("memory", 2 * GI), ("ephemeral-storage", 0)]
    without = [(w.name, n) for w, n in wanted_of(asked, resources, with_defaults=False)]
    assert without == [("cpu", 7), ("memory", GI), ("ephemeral-storage", 0)]
