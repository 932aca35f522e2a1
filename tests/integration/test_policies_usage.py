"""Policies that ask what nodes really use, with metrics that are there, missing, stale and forbidden."""

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.kit.manifests import Obj, node, pod
from tests.kit.policies_live import METRICS, PolicyCluster, install_node_metrics, remove_node_metrics
from tests.kit.raw_policies import make_policy

HOUR = timedelta(hours=1)
_NUMBERS = itertools.count()


@pytest.fixture
def usage(policies: PolicyCluster) -> PolicyCluster:
    """No nodes yet, and no metrics at all."""
    remove_node_metrics(policies.cluster)
    return policies


def two_nodes(policies: PolicyCluster) -> tuple[str, str]:
    """A hot and a cool one, of names that no other test has used: their samples would be remembered."""
    names = f"hot-{next(_NUMBERS)}", f"cool-{next(_NUMBERS)}"
    policies.cluster.apply([node(name) for name in names])
    return names


def sample(name: str, cpu: str, age: timedelta = timedelta()) -> Obj:
    """What a node of 4 cores and 16 GiB uses."""
    return {
        "apiVersion": METRICS,
        "kind": "NodeMetrics",
        "metadata": {"name": name},
        "timestamp": (datetime.now(UTC) - age).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "window": "30s",
        "usage": {"cpu": cpu, "memory": "1Gi"},
    }


def await_metrics(policies: PolicyCluster, policy: Obj, reason: str) -> Obj:
    """Wait until the condition has this reason."""

    def told() -> Obj | None:
        found = policies.condition(policy, "MetricsAvailable")
        return found if found.get("reason") == reason else None

    found: Any = policies.cluster.wait_for(told, 30, f"MetricsAvailable is {reason}")
    return dict(found)


def await_polls(policies: PolicyCluster) -> None:
    """Wait until metrics were asked for after this call."""

    def polls() -> float:
        return policies.operator.metric("moorage_node_metrics_polls_total", outcome="Measured")

    goal = polls() + 2  # one may be under way
    policies.cluster.wait_for(lambda: polls() >= goal, 30, "metrics are asked for")


def test_hot_nodes_are_left_alone_while_samples_are_fresh(usage: PolicyCluster) -> None:
    hot, cool = two_nodes(usage)
    install_node_metrics(usage.cluster)
    usage.cluster.apply([sample(hot, "3800m"), sample(cool, "200m")])
    policy = make_policy("load", load={"limit": {"cpu": 85}, "staleAfter": "10m"})
    usage.apply(policy)
    assert await_metrics(usage, policy, "Measured")["status"] == "True"
    names = [f"p{i}" for i in range(6)]
    usage.cluster.apply([pod(name, cpu="10m") for name in names])
    assert set(usage.placements(names)) == {cool}

    usage.cluster.apply([sample(cool, "3900m")])
    await_polls(usage)
    usage.cluster.create(pod("late", cpu="10m"))
    assert 'policy "load"' in usage.refusal("late")
    usage.cluster.apply([sample(hot, "100m")])
    assert usage.placed("late") == hot, "a new sample wakes it"


def test_an_expression_over_use_is_fed_as_well(usage: PolicyCluster) -> None:
    hot, cool = two_nodes(usage)
    install_node_metrics(usage.cluster)
    usage.cluster.apply([sample(hot, "3"), sample(cool, "1")])
    policy = make_policy("prefer", scoring={"prefer": [{"expression": "node.usage['cpu']", "weight": 100}]})
    usage.apply(policy)
    await_metrics(usage, policy, "Measured")
    usage.cluster.create(pod("p", cpu="10m"))
    assert usage.placed("p") == hot


@pytest.mark.parametrize(("on_stale", "placed"), [("Ignore", True), ("Exclude", False)])
@pytest.mark.parametrize("served", [False, True], ids=["missing", "stale"])
def test_without_recent_samples_it_does_as_on_stale_says(
    usage: PolicyCluster, on_stale: str, placed: bool, served: bool
) -> None:
    hot, cool = two_nodes(usage)
    reason = "NotServed"
    if served:
        install_node_metrics(usage.cluster)
        usage.cluster.apply([sample(hot, "3800m", HOUR), sample(cool, "3900m", HOUR)])
        reason = "StaleNodes"
    policy = make_policy("load", load={"limit": {"cpu": 85}, "staleAfter": "3m", "onStale": on_stale})
    usage.apply(policy)
    condition = await_metrics(usage, policy, reason)
    assert condition["status"] == "False"
    effect = "are not judged by their use" if placed else "are not used"
    assert effect in condition["message"]
    usage.cluster.create(pod("p"))
    if placed:
        usage.placed("p")
    else:
        assert 'policy "load"' in usage.refusal("p")


def test_nobody_is_asked_while_nobody_wants_to_know(usage: PolicyCluster) -> None:
    usage.apply(make_policy("plain"))
    assert usage.condition(make_policy("plain"), "MetricsAvailable") == {}
