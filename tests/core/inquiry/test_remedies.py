"""What would help, and that it does."""

from typing import Any

import numpy as np
import pytest

from moorage.core.engine import Engine, EngineConfig
from moorage.core.inquiry.remedies import remedies, remedy_search
from moorage.core.inquiry.trial import as_pending, steps_of, tried
from moorage.core.model.events import NodeApplied, PodBound
from tests.kit.builders import make_container, read_node, read_pod


def engine_of(*things):
    engine = Engine(EngineConfig(node_ready_guard=True))
    for thing in things:
        engine.handle(PodBound(thing) if hasattr(thing, "spec") else NodeApplied(thing), 0)
    return engine


def told(engine, pod):
    nodes = {node.name: node for node in engine.snapshot.nodes if node is not None}
    return [
        [(step.action, step.node, *dict(step.details).values()) for step in steps_of(remedy.change, nodes)]
        for remedy in remedies(engine, pod, 1)
    ]


def test_a_pod_that_fits_needs_nothing():
    assert told(engine_of(read_node("a")), read_pod("p")) == []


def test_a_gate_and_then_nothing_else():
    pod = read_pod("p", schedulingGates=[{"name": "x/y"}])
    assert told(engine_of(read_node("a")), pod) == [[("ungate", "", "x/y")]]


def test_room_by_growth_by_eviction_or_by_a_node_more():
    engine = engine_of(
        read_node("a", allocatable={"cpu": "2"}),
        read_pod("big", node="a", cpu="1500m"),
        read_pod("small", node="a", cpu="500m"),
    )
    assert told(engine, read_pod("p", cpu="1")) == [
        [("addResource", "a", "cpu", 1000)],
        [("addNode", "a-more-1", "a")],
        [("deletePod", "a", "default/big")],
    ]


def test_several_complaints_about_one_node():
    engine = engine_of(read_node("a", unschedulable=True, taints=[{"key": "k", "effect": "NoExecute"}]))
    pod = read_pod("p", nodeSelector={"disk": "ssd"})
    assert told(engine, pod) == [
        [("uncordon", "a"), ("removeTaint", "a", "k:NoExecute"), ("setLabel", "a", "disk", "ssd")]
    ]


def test_a_node_that_is_not_ready():
    engine = engine_of(read_node("a", status={"conditions": [{"type": "Ready", "status": "False"}]}))
    assert [("makeReady", "a")] in told(engine, read_pod("p"))


def test_labels_by_every_operator():
    expressions = [
        {"key": "in", "operator": "In", "values": ["x"]},
        {"key": "is", "operator": "Exists"},
        {"key": "not", "operator": "DoesNotExist"},
        {"key": "other", "operator": "NotIn", "values": ["y"]},
        {"key": "gt", "operator": "Gt", "values": ["3"]},
        {"key": "lt", "operator": "Lt", "values": ["3"]},
    ]
    terms = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
    pod = read_pod("p", affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}})
    engine = engine_of(read_node("a", labels={"not": "1", "other": "y"}))
    (steps,) = told(engine, pod)
    assert steps == [
        ("setLabel", "a", "gt", "4"),
        ("setLabel", "a", "in", "x"),
        ("setLabel", "a", "is", ""),
        ("setLabel", "a", "lt", "2"),
        ("removeLabel", "a", "not"),
        ("removeLabel", "a", "other"),
    ]


def test_ports_are_freed_by_the_pod_that_holds_them():
    container = make_container(ports=[{"containerPort": 80, "hostPort": 80}])
    engine = engine_of(
        read_node("a"), read_pod("holder", node="a", containers=[container]), read_pod("other", node="a")
    )
    found = told(engine, read_pod("p", containers=[container]))
    assert [("deletePod", "a", "default/holder")] in found
    assert [("addNode", "a-more-1", "a")] in found


def test_system_critical_pods_are_never_to_go():
    engine = engine_of(
        read_node("a", allocatable={"cpu": "1"}), read_pod("dns", node="a", cpu="1", priority=2_000_000_000)
    )
    assert not any(step[0] == "deletePod" for steps in told(engine, read_pod("p", cpu="1")) for step in steps)


def test_what_nothing_helps_gets_no_proposal():
    engine = engine_of(read_node("a"))
    assert told(engine, read_pod("p", nodeName="nowhere-else")) == []


@pytest.mark.parametrize("seed", range(25))
def test_random_proposals_are_true(seed):
    """Each proposal, applied, gets the pod placed, and between two turns nothing of it is left."""
    rng = np.random.default_rng(seed)
    pick = lambda *items: items[rng.integers(len(items))]  # noqa: E731
    things: list[Any] = []
    for i in range(int(rng.integers(1, 8))):
        taints = pick([], [{"key": pick("gpu", "spot"), "effect": pick("NoSchedule", "NoExecute")}])
        labels = {"kubernetes.io/hostname": f"n{i}", "zone": pick("x", "y"), **pick({}, {"disk": "ssd"})}
        cpu = str(rng.integers(1, 5))
        node = read_node(
            f"n{i}", labels=labels, unschedulable=bool(rng.random() < 0.2), taints=taints,
            allocatable={"cpu": cpu, "pods": str(rng.integers(1, 6))},
        )  # fmt: skip
        things.append(node)
        things += [
            read_pod(f"q{i}-{j}", node=f"n{i}", cpu=f"{rng.integers(1, 9) * 100}m", labels={"app": "q"})
            for j in range(int(rng.integers(0, 4)))
        ]
    engine = engine_of(*things)
    anti = {
        "labelSelector": {"matchLabels": {"app": "q"}},
        "topologyKey": pick("kubernetes.io/hostname", "zone"),
    }
    pod = read_pod(
        "p",
        cpu=f"{rng.integers(1, 50) * 100}m",
        nodeSelector=pick({}, {"disk": "ssd"}),
        affinity=pick({}, {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [anti]}}),
        schedulingGates=pick([], [{"name": "x/y"}]),
        preemptionPolicy="Never",
    )
    before = engine.evaluate(pod, 1)
    search = remedy_search(engine, pod, 1)
    while True:
        try:
            next(search)
        except StopIteration as end:
            found = end.value
            break
        assert engine.evaluate(pod, 1) == before
    for remedy in found:
        with tried(engine, remedy.change):
            assert engine.evaluate(as_pending(pod, remedy.change), 1).chosen == remedy.node
    assert engine.evaluate(pod, 1) == before
