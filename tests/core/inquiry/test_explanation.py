"""Why here, why not there, and what it waits for."""

from dataclasses import replace
from typing import Any

import pytest

from moorage.core.engine import Engine, EngineConfig
from moorage.core.inquiry.explanation import explain_in, queue_entry
from moorage.core.model.events import NodeApplied, PodBound, PodPending
from moorage.core.profile import default_profile
from tests.kit.builders import read_node, read_pod

NOW = 1_000_000.0


@pytest.fixture
def engine():
    return Engine(EngineConfig(profiles={"default-scheduler": default_profile("default-scheduler")}))


def test_the_funnel_loses_every_refused_node_once(engine):
    kinds: dict[str, Any] = {
        "a": {"unschedulable": True},
        "b": {"taints": [{"key": "k", "effect": "NoSchedule"}]},
        "c": {"allocatable": {"cpu": "1"}},
        "d": {},
    }
    for name, more in kinds.items():
        engine.handle(NodeApplied(read_node(name, **more)), NOW)
    found = explain_in(engine, read_pod("p", cpu="2"), NOW)
    assert [(s.plugin, s.refused, s.left) for s in found.funnel] == [
        ("NodeUnschedulable", 1, 3),
        ("TaintToleration", 1, 2),
        ("NodeResourcesFit", 1, 1),
    ]
    assert found.funnel[2].reasons == {"Insufficient cpu": 1}
    assert [(wait.kind, wait.text) for wait in found.waits] == [("turn", "node d would take it now")]
    assert found.remedies == ()


def test_a_bound_pod_does_not_stand_in_its_own_way(engine):
    engine.handle(NodeApplied(read_node("a", allocatable={"cpu": "2"})), NOW)
    pod = read_pod("p", node="a", cpu="2")
    engine.handle(PodBound(pod), NOW)
    found = explain_in(engine, pod, NOW)
    assert (found.decision.chosen, found.waits, found.remedies) == ("a", (), ())
    assert [on.uid for on in engine.cache.pods_on("a")] == [pod.uid]


def test_room_and_what_would_make_it(engine):
    engine.handle(NodeApplied(read_node("a", allocatable={"cpu": "1"})), NOW)
    found = explain_in(engine, read_pod("p", cpu="2"), NOW)
    assert [(wait.kind, wait.text) for wait in found.waits] == [
        ("room", "NodeResourcesFit: 1 Insufficient cpu")
    ]
    assert [remedy.node for remedy in found.remedies] == ["a"]
    assert explain_in(engine, read_pod("p", cpu="2"), NOW, search=False).remedies == ()


def test_gates_are_waited_for_alone(engine):
    engine.handle(NodeApplied(read_node("a")), NOW)
    found = explain_in(engine, read_pod("p", schedulingGates=[{"name": "x/y"}]), NOW)
    assert [wait.kind for wait in found.waits] == ["gate"]


def test_victims_that_are_leaving_and_such_as_would(engine):
    engine.handle(NodeApplied(read_node("a", allocatable={"cpu": "1"})), NOW)
    victim = read_pod("victim", node="a", cpu="1")
    engine.handle(PodBound(victim), NOW)
    pod = read_pod("p", cpu="1", priority=10)
    assert explain_in(engine, pod, NOW).waits[-1].text == (
        "its next attempt, which evicts default/victim from node a"
    )
    engine.handle(PodBound(replace(victim, deleting=True)), NOW)
    waits = explain_in(engine, replace(pod, nominated_node="a"), NOW).waits
    assert waits[-1].text == "default/victim to leave node a"


def entry_of(engine, pod):
    entry = queue_entry(engine, pod.uid, NOW)
    assert entry is not None
    return entry


def test_the_place_in_the_queue(engine):
    engine.handle(NodeApplied(read_node("a", allocatable={"cpu": "1"})), NOW)
    pods = [read_pod(name, cpu="2", priority=priority) for name, priority in (("p", 1), ("q", 2), ("r", 3))]
    for pod in pods:
        engine.handle(PodPending(pod), NOW)
    assert [entry_of(engine, pod).ahead for pod in pods] == [2, 1, 0]
    engine.step(NOW)
    tried = entry_of(engine, pods[2])
    assert (tried.place, tried.attempts, tried.unschedulable, tried.errors) == ("unschedulable", 1, 1, 0)
    assert (tried.refused_by, tried.ahead) == (("NodeResourcesFit",), None)
    engine.handle(NodeApplied(read_node("a", allocatable={"cpu": "3"})), NOW)  # it may help: backoff
    later = entry_of(engine, pods[2])
    assert later.place == "backoff"
    assert later.backoff_until is not None
    assert later.backoff_until > NOW
    waits = explain_in(engine, pods[2], NOW).waits
    assert ("backoff", later.backoff_until) in [(wait.kind, wait.until) for wait in waits]


def test_a_pod_that_is_not_queued_has_no_place(engine):
    assert queue_entry(engine, "nobody", NOW) is None
