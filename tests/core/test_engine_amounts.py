"""Amounts without measure."""

import pytest

from moorage.core.model.events import (
    PodGone,
)
from moorage.core.model.resources import MAX_AMOUNT
from tests.core.driving import (
    Driven,
    conditions,
    placements,
    plain,
    profile_with,
)
from tests.kit.models import GI, make_node, make_pod, make_spec, requests_of
from tests.kit.strategies import columns_of


@pytest.mark.parametrize("resource", ["cpu", "memory", "example.com/gpu", "ephemeral-storage"])
@pytest.mark.parametrize("amount", [MAX_AMOUNT, MAX_AMOUNT - 1, 1 << 62, 9 * 10**18])
def test_huge_requests_stay_pending_and_stop_nobody(resource, amount):
    """Case B03."""
    driven = plain()
    size = {"example.com/gpu": 8, "ephemeral-storage": 100 * GI}
    driven.tell(make_node("a", more=size), make_node("b", more=size))
    driven.tell(
        make_pod("huge", spec=make_spec(requests=requests_of({resource: amount}))), make_pod("plain", cpu=100)
    )
    told = driven.run()
    assert ["plain"] == list(placements(told))
    assert [("huge", "Unschedulable", f"0/2 nodes are available: 2 Insufficient {resource}.")] == conditions(
        told
    )


def test_huge_pods_on_a_node_are_counted_and_taken_off_exactly():
    driven = plain()
    huge = [
        make_pod(f"h{i}", spec=make_spec(requests=requests_of({"cpu": MAX_AMOUNT})), node="a")
        for i in range(5)
    ]
    driven.tell(make_node("a", cpu=1000), make_pod("small", cpu=600, node="a"), *huge)
    driven.tell(make_pod("web", cpu=300))
    assert driven.bound() == {}
    driven.tell(*(PodGone(pod.ref) for pod in huge))
    assert {"web": "a"} == driven.bound(seconds=1.0)
    assert columns_of(driven.engine.snapshot)["a"]["requested"] == {"cpu": 900}


def test_images_without_measure_cost_nobody_a_try():
    """A node may report any int64 as an image's size."""
    driven = plain()
    images = {"app:latest": MAX_AMOUNT, "db:1": MAX_AMOUNT}
    driven.tell(make_node("a", images=images), make_node("b", images=images))
    driven.tell(make_pod("web", images=("app:latest", "db:1")))
    assert list(driven.bound()) == ["web"]


def test_an_ignored_resource_beyond_measure_costs_nobody_a_try():
    """An extender looks after the resource, so Fit lets the pod through, and its scores must stay in range."""
    from moorage.core.framework.resource_scoring import ScoringStrategy, StrategyType, Weighted
    from moorage.core.plugins.node_resources_fit import NodeResourcesFit
    from moorage.core.profile import Profile

    for kind in (StrategyType.LEAST_ALLOCATED, StrategyType.MOST_ALLOCATED):
        strategy = ScoringStrategy(kind, (Weighted("example.com/gpu"), Weighted("cpu")))
        base = profile_with(without=("DefaultPreemption", "NodeResourcesFit"))
        fit = NodeResourcesFit(strategy, ignored=frozenset({"example.com/gpu"}))
        driven = Driven(profiles={"moorage": Profile("moorage", (*base.plugins, fit), {})})
        gpu = {"example.com/gpu": MAX_AMOUNT}
        driven.tell(make_node("a", more=gpu), make_node("b", more=gpu))
        driven.tell(make_pod("p", spec=make_spec(requests=requests_of(gpu)), node="a"))
        driven.tell(make_pod("q", spec=make_spec(requests=requests_of(gpu)), node="b"))
        driven.tell(make_pod("web", spec=make_spec(requests=requests_of(gpu))))
        assert list(driven.bound()) == ["web"]
