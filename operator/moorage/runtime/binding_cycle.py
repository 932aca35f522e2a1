"""The binding cycle: what follows a decision, overlapped with the next decisions.

For each placement: the pod's status writes are settled, then the binding is written, and the
outcome returns to the engine as an event.  A decision that waits for a connection grows stale, so
the number in flight is bounded and the loop is told when to stop deciding ahead (``has_room``).
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from functools import partial

from moorage.core.model.events import BindFailed, BindSucceeded
from moorage.core.model.instructions import Bind, Placement
from moorage.runtime.ports import Binder, Meter, StatusWriter

_Decided = tuple[Placement, tuple[tuple[str, str], ...], float]


class BindingCycle:
    """Carries out ``Bind`` instructions, at most ``limit`` placements at a time, first come first served."""

    def __init__(
        self,
        *,
        binder: Binder,
        status: StatusWriter,
        last_look: Callable[[Placement], str | None],
        submit: Callable[[BindSucceeded | BindFailed], None],
        meter: Meter,
        limit: int = 100,
    ) -> None:
        self._binder = binder
        self._status = status
        self._last_look = last_look
        self._submit = submit
        self._meter = meter
        self._limit = limit
        self._waiting: deque[_Decided] = deque()
        self._workers: set[asyncio.Task[None]] = set()
        self._active = 0  # workers that will look at ``_waiting`` again; a task is in the set a little longer
        self._closed = False

    @property
    def in_flight(self) -> int:
        """How many placements are being written now."""
        return self._active

    @property
    def waiting(self) -> int:
        """How many placements wait for one of those to end."""
        return len(self._waiting)

    def has_room(self) -> bool:
        """Whether another decision would be carried out before long.

        As many may wait as can be in flight: enough to keep every connection busy, and still few
        enough that a more urgent pod is not behind a long line of decided ones.
        """
        return len(self._waiting) < self._limit

    def begin(self, bind: Bind, tasks: asyncio.TaskGroup) -> None:
        """Start binding these placements; new tasks belong to ``tasks``."""
        now = time.perf_counter()
        for placement in bind.placements:
            decided = (placement, bind.annotations, now)
            if self._active < self._limit:
                self._active += 1
                worker = tasks.create_task(self._work(decided), name="binding")
                self._workers.add(worker)
                worker.add_done_callback(self._workers.discard)
            else:
                self._waiting.append(decided)

    async def drain(self, grace: float) -> None:
        """Begin nothing more, let what is in flight end for ``grace`` seconds, and cut off the rest."""
        self._closed = True
        self._waiting.clear()
        workers = set(self._workers)
        if not workers:
            return
        _, late = await asyncio.wait(workers, timeout=grace)
        for worker in late:
            worker.cancel()
        if late:
            await asyncio.wait(late)

    async def _work(self, decided: _Decided) -> None:
        while True:
            await self._bind(*decided)
            if self._closed or not self._waiting:
                self._active -= 1
                return
            decided = self._waiting.popleft()

    async def _bind(
        self, placement: Placement, annotations: tuple[tuple[str, str], ...], decided_at: float
    ) -> None:
        await self._status.settle(placement.ref)
        result = await self._binder.bind(placement, annotations, partial(self._last_look, placement))
        self._meter.bound(result, time.perf_counter() - decided_at)
        self._submit(result)
