"""An engine with its clock, and the test plugins that the engine's tests use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from moorage.core.cache.cache import PodState
from moorage.core.engine import Engine, EngineConfig
from moorage.core.framework.interface import Reads, Reason, Rejected, Skip, Verdict, Wait
from moorage.core.framework.post_filter import FailedAttempt, PostFiltered
from moorage.core.model.cluster_event import Action, Resource, WakesOn
from moorage.core.model.events import (
    BindFailed,
    BindFailure,
    BindSucceeded,
    Event,
    NodeApplied,
    PodBound,
    PodPending,
)
from moorage.core.model.instructions import Bind, Instruction, Placement, SetCondition
from moorage.core.model.node import Node
from moorage.core.model.pod import Pod
from moorage.core.profile import DEFAULT_SCHEDULER_NAME, REGISTRY, Profile, default_profile
from moorage.core.queue.scheduling_queue import QueuedPod
from tests.kit.models import make_pod


def profile_with(
    *plugins: Any,
    without: Sequence[str] = (),
    weights: Mapping[str, int] | None = None,
    name: str = DEFAULT_SCHEDULER_NAME,
) -> Profile:
    """The default profile, some plugins left out and some of ours behind."""
    kept = tuple(make() for known, make in REGISTRY.items() if known not in without)
    return Profile(name, (*kept, *plugins), default_profile().weights if weights is None else weights)


NO_VICTIMS = "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."


class Driven:
    """An engine and the time; ``tell`` takes events in, ``run`` steps until nothing is left to do now."""

    def __init__(self, *plugins: Any, without: Sequence[str] = (), **config: Any) -> None:
        if "profiles" not in config:
            config["profiles"] = {DEFAULT_SCHEDULER_NAME: profile_with(*plugins, without=without)}
        self.engine = Engine(EngineConfig(**config))
        self.now = 100.0

    def tell(self, *events: Event | Node | Pod) -> None:
        """Nodes stand for NodeApplied, pods for PodBound if they are on a node, else for PodPending."""
        for event in events:
            if isinstance(event, Node):
                self.engine.handle(NodeApplied(event), self.now)
            elif isinstance(event, Pod):
                self.engine.handle(PodBound(event) if event.node_name else PodPending(event), self.now)
            else:
                self.engine.handle(event, self.now)

    def step(self) -> list[Instruction]:
        """One step, now."""
        return self.engine.step(self.now)

    def run(self, *, at_most: int = 200) -> list[Instruction]:
        """Every instruction until the engine has nothing to do at this time; a busy loop fails."""
        told: list[Instruction] = []
        for _ in range(at_most):
            if not self.engine.ready(self.now):
                return told
            told += self.step()
        raise AssertionError(f"the engine is still busy after {at_most} steps: {self.engine.stats()}")

    def later(self, seconds: float) -> list[Instruction]:
        """Let that much time pass, stepping whenever the engine asked to be woken; all instructions."""
        end = self.now + seconds
        told = self.run()
        while (wake := self.engine.next_wake()) is not None and wake <= end:
            assert wake > self.now, "ready() was false, yet the engine wants to be woken at once"
            self.now = wake
            told += self.run()
        self.now = end
        return told + self.run()

    def bound(self, *, seconds: float = 0.0) -> dict[str, str]:
        """Run that long; node by name of every pod that was to be bound."""
        return placements(self.later(seconds))

    def place_of(self, pod: Pod) -> str:
        """Where in the queue the pod is, "" if it is not in the queue."""
        queued = self.engine.queue.get(pod.uid)
        return "" if queued is None else queued.place.value

    def queued(self, pod: Pod) -> QueuedPod:
        """The pod's entry in the queue."""
        queued = self.engine.queue.get(pod.uid)
        assert queued is not None, f"{pod.key} is not in the queue"
        return queued

    def state(self, pod: Pod) -> PodState:
        """What is known of the room the pod takes."""
        state = self.engine.cache.state(pod.uid)
        assert state is not None, f"{pod.key} takes no room"
        return state

    def fail(
        self, pod: Pod, node: str, failure: BindFailure, message: str = "no", after: float = 0.0
    ) -> None:
        """The bind of the pod failed."""
        self.tell(BindFailed(pod.ref, node, failure, message, after))

    def succeed(self, pod: Pod, node: str) -> None:
        """The bind of the pod succeeded."""
        self.tell(BindSucceeded(pod.ref, node))


def plain(*plugins: Any, **config: Any) -> Driven:
    """An engine without preemption, whose texts and evictions have tests of their own."""
    return Driven(*plugins, without=("DefaultPreemption",), **config)


def bound_on_a(driven: Driven, **fields: Any) -> Pod:
    """A pod whose Bind to node a is on its way."""
    pod = make_pod("web", **fields)
    driven.tell(pod)
    assert placements(driven.run()).get("web") == "a"
    return pod


def nominated(name: str, node: str, **fields: Any) -> Pod:
    """A pending pod that was promised a node."""
    return make_pod(name, nominated_node=node, **fields)


def placements(instructions: Sequence[Instruction]) -> dict[str, str]:
    """Node by pod name of all Bind instructions; no pod may be there twice."""
    found: dict[str, str] = {}
    for placement in placed(instructions):
        assert placement.ref.name not in found, f"{placement.ref.key} is to be bound twice"
        found[placement.ref.name] = placement.node_name
    return found


def placed(instructions: Sequence[Instruction]) -> list[Placement]:
    """The placements of all Bind instructions."""
    return [p for i in instructions if isinstance(i, Bind) for p in i.placements]


def of_type(instructions: Sequence[Instruction], *types: type) -> list[Any]:
    """The instructions of these types."""
    return [i for i in instructions if isinstance(i, types)]


def conditions(instructions: Sequence[Instruction]) -> list[tuple[str, str, str]]:
    """(pod, reason, message) of all SetCondition instructions."""
    return [(i.ref.name, i.reason, i.message) for i in instructions if isinstance(i, SetCondition)]


def assert_empty(engine: Engine) -> None:
    """No pod and no node is known, so nothing may be kept about any."""
    assert engine.step(1e9) == []  # heaps let go of what is stale when they are looked at
    queue, cache, snapshot = engine.queue, engine.cache, engine.snapshot
    kept = {
        "queue": len(queue._pods),
        "unschedulable": len(queue._unschedulable),
        "active": len(queue._active),
        "backoff": len(queue._backoff),
        "early": len(queue._early),
        "in flight": len(queue._in_flight._since) + len(queue._in_flight._log),
        "counts": sum(queue._counts.values()),
        "pods": len(cache._pods) + len(cache._by_node),
        "stamps": len(cache._stamps),
        "assumptions": len(engine.assumptions) + len(engine.assumptions._checks),
        "nominator": len(engine.nominator._by_uid) + len(engine.nominator._by_node),
        "preemptions": len(engine.preemptions._awaited) + len(engine.preemptions._awaited_by),
        "waiting": len(engine._attempts._waiting),
        "rows": snapshot.node_count + len(snapshot._row_of) + int(snapshot.alive.sum()),
        "ports": len(snapshot.host_ports._taken),
        "disks": len(snapshot.disks._mounted),
        "volumes": len(snapshot.attached._pods)
        + len(snapshot.attached._claim_rows)
        + len(snapshot.attached._users),
        "promises": len(snapshot.storage.reservations),
        "census": len(engine._census),
        "turns": len(engine._turns._line),
        "preparing": len(engine._attempts.preparations) + len(engine._attempts.preparations._steps),
    }
    left = {name: number for name, number in kept.items() if number}
    assert left == {}, left
    assert engine.next_wake() is None


# -- test plugins --------------------------------------------------------------------------------


class Permitting:
    """A Permit plugin whose answers are a function; notes whom it was asked about."""

    name: ClassVar[str] = "Permitting"

    def __init__(self, answer: Callable[[Pod, str], Rejected | Wait | None]) -> None:
        self.answer = answer
        self.asked: list[str] = []

    def permit(self, pod: Pod, node_name: str) -> Rejected | Wait | None:
        """Whatever the function says."""
        self.asked.append(pod.name)
        return self.answer(pod, node_name)

    def wakes_on(self) -> Sequence[WakesOn]:
        """Nodes only."""
        return (WakesOn(Resource.NODE, Action.ADD),)


class Booking:
    """A Reserve plugin that keeps a list; its answer is a function of the pod."""

    name: ClassVar[str] = "Booking"

    def __init__(self, answer: Callable[[Pod], Rejected | None] = lambda pod: None) -> None:
        self.answer = answer
        self.log: list[tuple[str, str, str]] = []

    @property
    def held(self) -> set[str]:
        """The pods for which something is booked."""
        held: set[str] = set()
        for verb, pod, _ in self.log:
            if verb == "reserve":
                held.add(pod)
            else:
                held.discard(pod)
        return held

    def reserve(self, pod: Pod, node_name: str, snapshot: object) -> Rejected | None:
        """Note it, then answer."""
        self.log.append(("reserve", pod.name, node_name))
        return self.answer(pod)

    def unreserve(self, pod: Pod, node_name: str, snapshot: object) -> None:
        """Note it."""
        self.log.append(("unreserve", pod.name, node_name))

    def wakes_on(self) -> Sequence[WakesOn]:
        """Nodes only."""
        return (WakesOn(Resource.NODE, Action.ADD),)


class SecondBooking(Booking):
    """Another one, behind the first."""

    name: ClassVar[str] = "SecondBooking"


class Filtering:
    """A Filter plugin for pods whose name begins with "odd": what it does then is a function of the nodes."""

    name: ClassVar[str] = "Filtering"
    reads: ClassVar[Reads] = Reads.NODE | Reads.USAGE | Reads.CLUSTER

    def __init__(self, answer: Callable[[Any], Verdict]) -> None:
        self.answer = answer

    def pre_filter(self, pod: Pod, snapshot: object) -> str | Skip:
        """Others are none of its business."""
        return pod.name if pod.name.startswith("odd") else Skip.SKIP

    def filter(self, state: str, nodes: Any) -> Verdict:
        """Whatever the function says."""
        return self.answer(nodes)

    def wakes_on(self) -> Sequence[WakesOn]:
        """Nodes only."""
        return (WakesOn(Resource.NODE, Action.ADD),)


class Patience:
    """A PostFilter plugin without a remedy that lets promises stand (a profile with none at all clears them)."""

    name: ClassVar[str] = "Patience"

    def post_filter(self, pod: Pod, attempt: FailedAttempt) -> PostFiltered:
        """Nothing to be done."""
        return PostFiltered("")

    def wakes_on(self) -> Sequence[WakesOn]:
        """It rejects nothing by itself."""
        return ()


def refuse_all(nodes: Any) -> Verdict:
    """No node will do."""
    return Verdict((Reason("no such luck"),), np.ones((1, len(nodes)), dtype=np.bool_))


def explode(*_: Any) -> Any:
    """Foreign code at its worst."""
    raise RuntimeError("boom")
