"""Fakes of the runtime's ports and of the API client: scripted answers, and a record of what was asked."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from moorage.adapters.kube.client import KubeClient
from moorage.adapters.kube.writes import Writer
from moorage.core.model.events import (
    BindFailed,
    BindFailure,
    BindSucceeded,
    Event,
    EvictionFinished,
    VolumesNotPrepared,
    VolumesPrepared,
)
from moorage.core.model.instructions import (
    Evict,
    Instruction,
    Placement,
    PrepareVolumes,
    Record,
    SetCondition,
)
from moorage.core.model.pod import Pod, PodRef, PodSpec
from moorage.core.model.resources import Requests
from moorage.runtime.ports import PodReadError

SPEC = PodSpec(scheduler_name="moorage")


def pod_ref(name: str = "p", uid: str = "", namespace: str = "default") -> PodRef:
    """A pod's identity; its UID is its name unless given."""
    return PodRef(namespace, name, uid or name)


def plain_pod(name: str = "p", uid: str = "", **fields: Any) -> Pod:
    """A pod that asks for nothing."""
    return Pod("default", name, uid or name, SPEC, Requests({}), **fields)


@dataclass
class FakeClock:
    """Time that moves when told to."""

    time: float = 1_000_000.0

    def now(self) -> float:
        """The time."""
        return self.time


@dataclass
class FakeEngine:
    """Steps through scripted lists of instructions; writes down what it is given.

    A step that has no script left gives nothing.  ``script`` may be extended at any time.
    """

    script: deque[list[Instruction]] = field(default_factory=deque)
    handled: list[Event] = field(default_factory=list)
    unfit: dict[Placement, str] = field(default_factory=dict)
    wake: float | None = None
    steps: int = 0
    on_handle: Callable[[Event], None] = lambda _: None
    on_step: Callable[[], None] = lambda: None

    def handle(self, event: Event, now: float) -> None:
        """Write the event down."""
        self.handled.append(event)
        self.on_handle(event)

    def step(self, now: float) -> Sequence[Instruction]:
        """The next scripted instructions."""
        self.steps += 1
        self.on_step()
        return self.script.popleft() if self.script else []

    def flush(self) -> Sequence[Instruction]:
        """As a step; it is not counted as one."""
        return self.script.popleft() if self.script else []

    def ready(self, now: float) -> bool:
        """Whether there is a script left."""
        return bool(self.script)

    def next_wake(self) -> float | None:
        """What the test says."""
        return self.wake

    def last_look(self, placement: Placement) -> str | None:
        """What the test says."""
        return self.unfit.get(placement)

    def stats(self) -> Mapping[str, object]:
        """Nothing."""
        return {}


class FakeBinder:
    """Binds at once, or when ``gate`` opens, with the answers in ``answers`` (success otherwise)."""

    def __init__(self) -> None:
        self.bound: list[Placement] = []
        self.answers: dict[PodRef, BindFailed | Exception] = {}
        self.gate = asyncio.Event()
        self.gate.set()
        self.most_at_once = 0
        self._now = 0

    async def bind(
        self,
        placement: Placement,
        annotations: tuple[tuple[str, str], ...],
        last_look: Callable[[], str | None],
    ) -> BindSucceeded | BindFailed:
        """Write it down and answer."""
        self._now += 1
        self.most_at_once = max(self.most_at_once, self._now)
        try:
            await asyncio.sleep(0)  # a real one never answers in the same turn
            await self.gate.wait()
        finally:
            self._now -= 1
        self.bound.append(placement)
        answer = self.answers.get(placement.ref)
        if isinstance(answer, Exception):
            raise answer
        return answer or BindSucceeded(placement.ref, placement.node_name)


class FakeEvictor:
    """Notes the evictions and answers each with ``error``."""

    def __init__(self, error: str = "") -> None:
        self.evictions: list[Evict] = []
        self.error = error

    async def evict(self, eviction: Evict) -> EvictionFinished:
        self.evictions.append(eviction)
        return EvictionFinished(eviction.preemptor, self.error)


class FakeVolumes:
    """Notes the orders and answers each with ``failure``, or with made-up versions."""

    def __init__(self) -> None:
        self.orders: list[PrepareVolumes] = []
        self.failure: BindFailure | None = None

    async def prepare(self, order: PrepareVolumes) -> VolumesPrepared | VolumesNotPrepared:
        """Write it down and answer."""
        self.orders.append(order)
        if self.failure is not None:
            return VolumesNotPrepared(order.ref, order.ticket, self.failure, "no")
        return VolumesPrepared(order.ref, order.ticket, tuple(str(i) for i in range(len(order.steps))))


class FakeStatus:
    """Writes down changes and settlements, in order."""

    def __init__(self) -> None:
        self.calls: list[SetCondition | PodRef] = []

    def set_condition(self, change: SetCondition) -> None:
        """Write it down."""
        self.calls.append(change)

    async def settle(self, ref: PodRef) -> None:
        """Write it down."""
        self.calls.append(ref)


class FakeRecorder:
    """Keeps the records."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def record(self, record: Record) -> None:
        """Keep it."""
        self.records.append(record)


class FakeReader:
    """Answers with ``pods`` by name: a pod, None, or how many times (an int) it cannot be read before that."""

    def __init__(self, **pods: Pod | None) -> None:
        self.pods: dict[str, Pod | None] = dict(pods)
        self.failures = 0
        self.asked: list[PodRef] = []

    async def fetch(self, ref: PodRef) -> Pod | None:
        """The pod, unless ``failures`` are due first."""
        self.asked.append(ref)
        await asyncio.sleep(0)
        if self.failures:
            self.failures -= 1
            raise PodReadError("not now")
        return self.pods.get(ref.name)


class FakeMeter:
    """Counts calls: of the loop, the recorder and the others."""

    def __init__(self) -> None:
        self.turns: list[float] = []
        self.cycles: list[Sequence[Instruction]] = []
        self.results: list[BindSucceeded | BindFailed] = []
        self.lags: list[float] = []
        self.drops: list[str] = []

    def turn(self, seconds: float) -> None:
        """A turn of the loop."""
        self.turns.append(seconds)

    def cycle(self, instructions: Sequence[Instruction], seconds: float) -> None:
        """A step."""
        self.cycles.append(instructions)

    def bound(self, result: BindSucceeded | BindFailed, seconds: float) -> None:
        """A bind."""
        self.results.append(result)

    def recorded(self, lag: float) -> None:
        """An event written."""
        self.lags.append(lag)

    def record_dropped(self, why: str) -> None:
        """An event dropped."""
        self.drops.append(why)


@dataclass(frozen=True)
class Asked:
    """One request as the fake client saw it."""

    method: str
    path: str
    body: Any
    params: Mapping[str, Any]
    content_type: str
    headers: Mapping[str, str]


Answer = Any | Exception | Callable[[Asked], Any]


class FakeClient(KubeClient):
    """Stands for ``KubeClient``, and its ``writer`` for ``Writer``.

    Each request is answered by the next of ``answers``, or by ``default`` when there is none left.
    An answer is a value, an exception to raise, or a function of the request, which may be async.
    """

    def __init__(self, *answers: Answer, default: Answer = None, slots: int = 1000) -> None:
        """Nothing of a real one is needed; ``slots`` limits how many writes are under way."""
        self.writer = FakeWriter(self, slots)
        self.answers: deque[Answer] = deque(answers)
        self.default: Answer = default
        self.requests: list[Asked] = []

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        body: Any = None,
        content_type: str = "application/json",
        timeout: float | None = 30.0,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """Write the request down and answer."""
        asked = Asked(method, path, body, dict(params or {}), content_type, dict(headers or {}))
        self.requests.append(asked)
        answer = self.answers.popleft() if self.answers else self.default
        await asyncio.sleep(0)
        if callable(answer):
            answer = answer(asked)
            if asyncio.iscoroutine(answer):
                answer = await answer
        if isinstance(answer, Exception):
            raise answer
        return answer


class FakeWriter(Writer):
    """Writes by way of a fake client, no more than ``slots`` at a time."""

    def __init__(self, client: FakeClient, slots: int) -> None:
        """Nothing of a real one is needed."""
        self.client = client
        self._slots = asyncio.Semaphore(slots)

    async def write(
        self,
        method: str,
        path: str,
        body: Any,
        *,
        content_type: str = "application/json",
        timeout: float = 30.0,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """A request with a check right before it."""
        async with self._slots:
            check()
            await self.client.request(method, path, body=body, content_type=content_type)
