"""What /debug shows of an engine."""

from moorage.adapters.kube.comparison import Belief
from moorage.assembly.dumps import belief, cache_lines, queue_lines
from moorage.core.engine import Engine
from moorage.core.model.events import NodeApplied, NodeGone, PodBound, PodPending
from tests.kit.fakes import FakeClock
from tests.kit.models import GI, make_node, make_pod


def engine_with(*events):
    engine = Engine()
    for event in events:
        engine.handle(event, 0.0)
    return engine


async def test_a_line_for_each_node():
    engine = engine_with(
        NodeApplied(make_node("b", cpu=1000, memory=GI)),
        NodeApplied(make_node("a", cpu=2000, memory=GI)),
        PodBound(make_pod("there", cpu=300, node="b", priority=7)),
        PodPending(make_pod("new", cpu=1500)),
    )
    engine.step(1.0)
    first, second = [line async for line in cache_lines(engine)]
    assert (first["node"], second["node"]) == ("a", "b")
    assert first["allocatable"]["cpu"] == 2000
    assert first["requested"]["cpu"] == 1500
    assert [(each["pod"], each["assumed"]) for each in first["pods"]] == [("default/new", True)]
    (pod,) = second["pods"]
    assert (pod["pod"], pod["assumed"], pod["priority"], pod["requests"]["cpu"]) == (
        "default/there",
        False,
        7,
        300,
    )


async def test_a_node_that_goes_meanwhile_is_left_out():
    engine = engine_with(*(NodeApplied(make_node(name)) for name in ("a", "b")))
    seen = []
    async for line in cache_lines(engine):
        seen.append(line["node"])
        if line["node"] == "a":
            engine.handle(NodeGone("b"), 1.0)
    assert seen == ["a"]


async def test_a_line_for_each_pod_that_waits():
    clock = FakeClock()
    engine = Engine()
    engine.handle(NodeApplied(make_node("n", cpu=100)), clock.now())
    engine.handle(PodPending(make_pod("big", cpu=5000)), clock.now())
    engine.handle(PodPending(make_pod("gated", gates=("example.com/wait",))), clock.now())
    engine.step(clock.now())
    big, gated = [line async for line in queue_lines(engine, clock)]
    assert (big["pod"], big["queue"], big["attempts"]) == ("default/big", "unschedulable", 1)
    assert big["plugins"] == ["NodeResourcesFit"]
    assert big["backoff"] > 0
    assert (gated["pod"], gated["queue"], gated["gates"]) == ("default/gated", "gated", ["example.com/wait"])


def test_what_is_believed():
    engine = engine_with(
        NodeApplied(make_node("n")),
        PodBound(make_pod("there", node="n")),
        PodPending(make_pod("new")),
    )
    engine.step(1.0)
    assert belief(engine) == Belief(
        nodes=frozenset({"n"}),
        pods={"uid-there": ("default/there", "n"), "uid-new": ("default/new", "n")},
        assumed=frozenset({"uid-new"}),
        pending={"uid-new": "default/new"},
    )
