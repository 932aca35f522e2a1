"""The scheduling loop: events in, instructions out.

One writer owns the engine.  Everything that happens is put in line with ``submit``; the loop takes
it in, steps the engine, and hands the instructions to the ports.  Whatever waits for the network
runs in tasks of its own, so decisions overlap with binds, and a failure of any task is a failure of
the loop: half a scheduler is worse than one that is restarted.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any

from moorage.core.framework.watching import watched
from moorage.core.model.events import Event, ExtenderAnswered, PodFetched
from moorage.core.model.extender import Answer, NoAnswer
from moorage.core.model.instructions import (
    Attempted,
    Bind,
    CallExtender,
    Evict,
    Fault,
    FetchPod,
    Instruction,
    PrepareVolumes,
    Record,
    SetCondition,
)
from moorage.core.model.pod import PodRef
from moorage.runtime.binding_cycle import BindingCycle
from moorage.runtime.ports import (
    Binder,
    Clock,
    Engine,
    Evictor,
    ExtenderCaller,
    Meter,
    PodReader,
    PodReadError,
    Recorder,
    StatusWriter,
    StepWatch,
    VolumeWriter,
)

logger = logging.getLogger(__name__)

#: The longest rest, so that a change nobody told us about (the lease) is noticed, and probes see life.
_LONGEST_REST = 1.0
_SHORTEST_REST = 0.001
#: Of a turn's budget, the share that events may take while pods wait to be tried.
_SHARE_OF_EVENTS = 0.6
_FIRST_READ_RETRY, _LAST_READ_RETRY = 0.5, 10.0
_READS_AT_ONCE = 16


class SchedulingLoop:
    """Drives one engine.  ``run`` lasts until ``stop``, or until something breaks."""

    def __init__(
        self,
        engine: Engine,
        *,
        binder: Binder,
        evictor: Evictor,
        volumes: VolumeWriter,
        status: StatusWriter,
        recorder: Recorder,
        reader: PodReader,
        clock: Clock,
        meter: Meter,
        may_schedule: Callable[[], bool],
        max_binds: int = 100,
        turn_budget: float = 0.02,
        grace: float = 10.0,
        extenders: ExtenderCaller | None = None,
        watch: StepWatch | None = None,
    ) -> None:
        self._engine = engine
        self._evictor = evictor
        self._volumes = volumes
        self._status = status
        self._recorder = recorder
        self._reader = reader
        self._clock = clock
        self._meter = meter
        self._may_schedule = may_schedule
        self._turn_budget = turn_budget
        self._grace = grace
        self._extenders = extenders
        self._watch = watch
        self.binding = BindingCycle(
            binder=binder,
            status=status,
            last_look=engine.last_look,
            submit=self.submit,
            meter=meter,
            limit=max_binds,
        )
        self._events: deque[Event] = deque()
        self._taken = 0  # events handled since the start
        self._barrier: int | None = None  # events to be handled before the first step; None: not allowed to
        self._work = asyncio.Event()
        self._writes: set[asyncio.Task[None]] = set()
        self._reads: dict[PodRef, asyncio.Task[None]] = {}
        self._read_slots = asyncio.Semaphore(_READS_AT_ONCE)
        self._stopping = False
        self._turned_at = time.monotonic()

    def submit(self, event: Event) -> None:
        """Put an event in line.  Cheap, and safe to call before ``run``."""
        self._events.append(event)
        self._work.set()

    def wake(self) -> None:
        """Have a look now: something that ``may_schedule`` depends on has changed."""
        self._work.set()

    def stop(self) -> None:
        """Begin no new cycle; ``run`` returns when the binds in flight have ended."""
        self._stopping = True
        self._work.set()

    @property
    def backlog(self) -> int:
        """How many events wait to be handled."""
        return len(self._events)

    def idle_for(self) -> float:
        """Seconds since the last turn ended: more than a few mean that the loop is stuck."""
        return time.monotonic() - self._turned_at

    async def run(self) -> None:
        """Schedule until stopped; raises what a task of ours raised."""
        try:
            async with asyncio.TaskGroup() as tasks:
                while not self._stopping:
                    if self._turn(tasks):
                        await asyncio.sleep(0)  # others' turn
                    else:
                        await self._rest()
                await self.binding.drain(self._grace)
                self._conclude()
                for task in (*self._reads.values(), *self._writes):
                    task.cancel()
        except BaseExceptionGroup as group:
            # Only one task can be the first to fail; what its end tore down is no news.
            raise group.exceptions[0] from None

    def _turn(self, tasks: asyncio.TaskGroup) -> bool:
        """Take in events and decide, for as long as the budget lasts; True if there is more to do."""
        started = time.perf_counter()
        now = self._clock.now()
        stepping = self._may_step()
        events_until = started + self._turn_budget * (_SHARE_OF_EVENTS if stepping else 1.0)
        self._take_events(now, events_until)
        more = self._decide(now, started + self._turn_budget, tasks) if self._may_step() else False
        self._turned_at = time.monotonic()
        self._meter.turn(time.perf_counter() - started)
        return more or bool(self._events)

    def _take_events(self, now: float, until: float) -> None:
        events, handle = self._events, self._engine.handle
        taken = 0
        while events and time.perf_counter() < until:
            handle(events.popleft(), now)
            taken += 1
        self._taken += taken

    def _may_step(self) -> bool:
        """Whether cycles are allowed, and the engine knows at least what we knew when they became so.

        That the caches are synced or the lease is ours is learnt while what they brought is still in line.
        """
        if not self._may_schedule():
            self._barrier = None
            return False
        if self._barrier is None:
            self._barrier = self._taken + len(self._events)
        return self._taken >= self._barrier

    def _decide(self, now: float, until: float, tasks: asyncio.TaskGroup) -> bool:
        """Step the engine; True if it has more to decide right away."""
        engine = self._engine
        while self.binding.has_room():
            started = time.perf_counter()
            if started >= until:
                return engine.ready(now)
            instructions = self._step(now)
            if not instructions:
                if engine.ready(now):
                    continue
                return False
            self._meter.cycle(instructions, time.perf_counter() - started)
            self._carry_out(instructions, tasks)
        return False  # a bind that ends wakes us

    def _step(self, now: float) -> Sequence[Instruction]:
        if self._watch is None:
            return self._engine.step(now)
        self._watch.begin()
        return watched(self._watch, self._engine.step, now)

    def _carry_out(self, instructions: Iterable[Instruction], tasks: asyncio.TaskGroup) -> None:
        for instruction in instructions:
            match instruction:
                case Bind():
                    self.binding.begin(instruction, tasks)
                case Record():
                    self._recorder.record(instruction)
                case SetCondition():
                    self._status.set_condition(instruction)
                case FetchPod():
                    self._fetch(instruction.ref, tasks)
                case Evict():
                    self._start(self._evict(instruction), "evicting", tasks)
                case PrepareVolumes():
                    self._start(self._prepare(instruction), "preparing volumes", tasks)
                case CallExtender():
                    self._start(self._call(instruction), "calling an extender", tasks)
                case Fault():
                    logger.error("A plugin is at fault: %s", instruction.message)
                case Attempted():
                    pass  # the meter's business

    async def _rest(self) -> None:
        """Wait for an event, for the engine's next deadline, or a second."""
        rest = _LONGEST_REST
        if self._barrier is not None and self.binding.has_room():
            deadline = self._engine.next_wake()
            if deadline is not None:
                rest = min(rest, max(_SHORTEST_REST, deadline - self._clock.now()))
        self._work.clear()
        if self._events or self._stopping:
            return
        alarm = asyncio.get_running_loop().call_later(rest, self._work.set)
        try:
            await self._work.wait()
        finally:
            alarm.cancel()

    def _fetch(self, ref: PodRef, tasks: asyncio.TaskGroup) -> None:
        if ref in self._reads:
            return  # its answer will do
        task = tasks.create_task(self._read(ref), name="reading a pod")
        self._reads[ref] = task
        task.add_done_callback(lambda _: self._reads.pop(ref, None))

    async def _read(self, ref: PodRef) -> None:
        """Answer a FetchPod, however long the API server is away: the engine waits for it."""
        retry = _FIRST_READ_RETRY
        while True:
            try:
                async with self._read_slots:
                    pod = await self._reader.fetch(ref)
            except PodReadError as error:
                logger.debug("Pod %s cannot be read now, again in %.1f s: %s", ref.key, retry, error)
                await asyncio.sleep(retry)
                retry = min(_LAST_READ_RETRY, retry * 2)
            else:
                self.submit(PodFetched(ref, pod))
                return

    def _start(self, work: Coroutine[Any, Any, None], name: str, tasks: asyncio.TaskGroup) -> None:
        """Begin to write; what is still being written when the loop ends is given up."""
        task = tasks.create_task(work, name=name)
        self._writes.add(task)
        task.add_done_callback(self._writes.discard)

    async def _prepare(self, order: PrepareVolumes) -> None:
        self.submit(await self._volumes.prepare(order))

    async def _evict(self, eviction: Evict) -> None:
        self.submit(await self._evictor.evict(eviction))

    async def _call(self, call: CallExtender) -> None:
        answer: Answer = NoAnswer("no extenders can be called here")
        if self._extenders is not None:
            answer = await self._extenders.ask(call.question)
        self.submit(ExtenderAnswered(call.ticket, answer))

    def _conclude(self) -> None:
        """Record how the last binds ended."""
        now = self._clock.now()
        while self._events:
            self._engine.handle(self._events.popleft(), now)
        for instruction in self._engine.flush():
            if isinstance(instruction, Record):
                self._recorder.record(instruction)
