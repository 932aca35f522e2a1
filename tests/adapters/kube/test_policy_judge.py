"""Pods are read again for a new expression, and only then."""

import asyncio

import pytest

from moorage.adapters.kube.policy_judge import PodJudge
from moorage.adapters.kube.policy_register import PolicyRegister
from moorage.core.model.events import PolicyApplied
from moorage.core.model.policy import Policy, PolicyRef, Selection
from tests.kit.fakes import FakeClock, FakeMeter


class Rig:
    def __init__(self) -> None:
        self.log: list[str] = []
        self.gate = asyncio.Event()
        self.register = PolicyRegister(
            self.read,
            lambda event: self.log.append(
                f"+{event.policy.generation}" if isinstance(event, PolicyApplied) else "gone"
            ),
            FakeClock(),
            FakeMeter(),  # type: ignore[arg-type]
            on_expressions=self.want,
        )
        self.judge = PodJudge(self.register, self.install, self.look)

    def want(self) -> None:
        self.judge.want()

    def read(self, obj):
        meta = obj["metadata"]
        selection = Selection(expression=obj["spec"]["expression"])
        return Policy(PolicyRef("", meta["name"]), meta["uid"], meta["generation"], selection=selection)

    def install(self, expressions: frozenset[str]) -> None:
        self.log.append("install " + ",".join(sorted(expressions)))

    async def look(self) -> None:
        self.log.append("look")
        await self.gate.wait()

    def event(self, kind: str, name: str, generation: int, expression: str) -> None:
        meta = {"name": name, "uid": name, "generation": generation, "resourceVersion": "1"}
        self.register.event(kind, {"metadata": meta, "spec": {"expression": expression}})

    def take(self) -> list[str]:
        log, self.log = self.log, []
        return log


@pytest.fixture
async def rig():
    rig = Rig()
    task = asyncio.create_task(rig.judge.run())
    yield rig
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def settle():
    for _ in range(10):
        await asyncio.sleep(0)


async def test_pods_are_read_before_the_policy_is_in_force(rig):
    rig.event("ADDED", "p", 1, "x")
    await settle()
    assert rig.take() == ["install x", "look"]
    rig.gate.set()
    await settle()
    assert rig.take() == ["+1"]
    rig.event("ADDED", "q", 1, "x")
    await settle()
    assert rig.take() == ["+1"], "they are known"


async def test_what_comes_meanwhile_is_looked_at_next(rig):
    rig.event("ADDED", "p", 1, "x")
    await settle()
    rig.event("ADDED", "q", 2, "y")
    await settle()
    assert rig.take() == ["install x", "look"]
    rig.gate.set()
    await settle()
    assert rig.take() == ["+1", "install x,y", "look", "+2"]


async def test_what_nobody_needs_is_dropped_and_asked_again_when_it_comes_back(rig):
    rig.gate.set()
    rig.event("ADDED", "p", 1, "x")
    await settle()
    rig.event("DELETED", "p", 1, "x")
    await settle()
    assert rig.take() == ["install x", "look", "+1", "gone", "install "]
    rig.event("ADDED", "q", 1, "x")
    await settle()
    assert rig.take() == ["install x", "look", "+1"]


async def test_an_expression_that_is_dropped_while_pods_are_read_is_not_taken_for_judged(rig):
    rig.event("ADDED", "p", 1, "x")
    await settle()
    rig.event("DELETED", "p", 1, "x")
    rig.gate.set()
    await settle()
    rig.event("ADDED", "q", 1, "x")
    await settle()
    assert rig.take() == ["install x", "look", "install ", "install x", "look", "+1"]


async def test_at_the_beginning_no_pod_has_been_read(rig):
    rig.event("ADDED", "p", 1, "x")
    rig.judge.begin()
    await settle()
    assert rig.take() == ["install x", "+1"]
