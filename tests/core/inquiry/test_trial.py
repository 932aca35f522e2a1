"""Changes that are tried leave no trace, and are told step by step."""

from dataclasses import replace

import pytest

from moorage.core.engine import Engine, EngineConfig
from moorage.core.inquiry.trial import Change, as_pending, kind_of, one_more, steps_of, tried
from moorage.core.model.events import NodeApplied, PodBound
from tests.kit.builders import read_node, read_pod


@pytest.fixture
def engine():
    engine = Engine(EngineConfig(node_ready_guard=True))
    engine.handle(NodeApplied(read_node("a", taints=[{"key": "gpu", "effect": "NoSchedule"}])), 0)
    engine.handle(NodeApplied(read_node("b", allocatable={"cpu": "1"})), 0)
    engine.handle(PodBound(read_pod("q", node="b", cpu="1")), 0)
    return engine


def test_nothing_is_left_of_what_was_tried(engine):
    pod = read_pod("p", cpu="1")
    before = engine.evaluate(pod, 1)
    assert before.chosen is None
    a, b = engine.snapshot.node_at(0), engine.snapshot.node_at(1)
    new = one_more(b, {"a", "b"})
    (q,) = engine.cache.pods_on("b")
    for change, chosen in (
        (Change(nodes={"a": replace(a, taints=())}), "a"),
        (Change(nodes={new.name: new}), "b-more-1"),
        (Change(without=(q,)), "b"),
    ):
        with tried(engine, change):
            assert engine.evaluate(pod, 1).chosen == chosen
        assert engine.evaluate(pod, 1) == before
    assert engine.snapshot.node_count == 2


def test_what_raises_leaves_no_trace_either(engine):
    a = engine.snapshot.node_at(0)
    stranger = read_pod("stranger", node="b")
    with (
        pytest.raises(LookupError, match="uid-default-stranger"),
        tried(engine, Change({"a": replace(a, taints=())}, (stranger,))),
    ):
        pass
    assert engine.snapshot.node_at(0) == a


def test_a_bound_pod_as_if_it_were_not():
    bound = replace(read_pod("p", node="a"), nominated_node="a")
    pending = as_pending(bound)
    assert (pending.node_name, pending.nominated_node, pending.uid) == ("", "", bound.uid)
    gated = read_pod("p", schedulingGates=[{"name": "x/y"}, {"name": "x/z"}])
    assert as_pending(gated) is gated
    assert as_pending(gated, Change(ungated=("x/y",))).gates == ("x/z",)


def test_one_node_more_of_a_kind():
    node = read_node(
        "a",
        labels={"kubernetes.io/hostname": "a", "zone": "z"},
        unschedulable=True,
        taints=[
            {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"},
            {"key": "gpu", "effect": "NoSchedule"},
        ],
    )
    new = one_more(node, {"a", "a-more-1"})
    assert new.name == "a-more-2"
    assert new.labels == {"kubernetes.io/hostname": "a-more-2", "zone": "z"}
    assert [taint.key for taint in new.taints] == ["gpu"]
    assert not new.unschedulable
    assert kind_of(new) == kind_of(node)


def test_steps_in_words_that_programs_can_read():
    node = read_node(
        "a",
        labels={"old": "1"},
        unschedulable=True,
        taints=[
            {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"},
            {"key": "gpu", "value": "a100", "effect": "NoSchedule"},
        ],
    )
    changed = replace(
        node,
        unschedulable=False,
        taints=(),
        labels={"disk": "ssd"},
        allocatable={**node.allocatable, "cpu": 5000},
    )
    change = Change(
        {"a": changed, "n": replace(node, name="n")},
        (read_pod("q", node="a"),),
        ungated=("x/y",),
        at=60.0,
        like="a",
    )
    assert [step.record() for step in steps_of(change, {"a": node})] == [
        {"action": "ungate", "gate": "x/y"},
        {"action": "wait", "until": 60.0},
        {"action": "uncordon", "node": "a"},
        {"action": "makeReady", "node": "a"},
        {"action": "removeTaint", "node": "a", "taint": "gpu=a100:NoSchedule"},
        {"action": "setLabel", "node": "a", "key": "disk", "value": "ssd"},
        {"action": "removeLabel", "node": "a", "key": "old"},
        {"action": "addResource", "node": "a", "resource": "cpu", "amount": 1000},
        {"action": "addNode", "node": "n", "like": "a"},
        {"action": "deletePod", "node": "a", "pod": "default/q"},
    ]
