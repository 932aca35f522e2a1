"""What the scheduling loop needs from the outside world, and what it drives.

The adapters implement these Protocols, tests fake them.  None of the calls may block the loop's
turn: the ``async`` ones are awaited in tasks, the plain ones only enqueue.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from moorage.core.framework.watching import Watch
from moorage.core.model.events import (
    BindFailed,
    BindSucceeded,
    Event,
    EvictionFinished,
    VolumesNotPrepared,
    VolumesPrepared,
)
from moorage.core.model.extender import Answer, Question
from moorage.core.model.instructions import (
    Evict,
    Instruction,
    Placement,
    PrepareVolumes,
    Record,
    SetCondition,
)
from moorage.core.model.pod import Pod, PodRef


class Engine(Protocol):
    """The core, as the loop sees it (``moorage.core.engine.Engine``)."""

    def handle(self, event: Event, now: float) -> None:
        """Take in one event; only changes state."""
        ...

    def step(self, now: float) -> Sequence[Instruction]:
        """Run at most one scheduling cycle; empty when there is nothing to do."""
        ...

    def flush(self) -> Sequence[Instruction]:
        """What follows from events alone; nothing is decided."""
        ...

    def ready(self, now: float) -> bool:
        """Whether ``step`` has something to do now."""
        ...

    def next_wake(self) -> float | None:
        """When ``step`` may have something to do although no event came."""
        ...

    def last_look(self, placement: Placement) -> str | None:
        """Why the chosen node is no longer fit for the pod, None if it still is."""
        ...

    def stats(self) -> Mapping[str, object]:
        """Figures for metrics."""
        ...


class Clock(Protocol):
    """Where the engine's time comes from."""

    def now(self) -> float:
        """Seconds since the epoch, never going backwards within one process."""
        ...


class Binder(Protocol):
    """Writes bindings."""

    async def bind(
        self,
        placement: Placement,
        annotations: tuple[tuple[str, str], ...],
        last_look: Callable[[], str | None],
    ) -> BindSucceeded | BindFailed:
        """Bind one pod and return only what is certain.

        Waits for a connection slot; then, right before the write, checks the lease and calls
        ``last_look``, which returns None or the reason why the node is no longer fit (a
        BindFailed of kind STALE follows, and nothing is sent).  An ambiguous answer (lost, 409) is
        settled by reading the live pod.  Never raises for anything the API server can do.
        """
        ...


class Evictor(Protocol):
    """Makes room for a preemptor."""

    async def evict(self, eviction: Evict) -> EvictionFinished:
        """Ask every victim to go, if the preemptor still waits for a node.

        Never raises for anything the API server can do; what went wrong is in the answer.
        """
        ...


class ExtenderCaller(Protocol):
    """Asks the extenders of the configuration."""

    async def ask(self, question: Question) -> Answer:
        """What the extender says, within its timeout.

        Never raises for anything the extender can do; what went wrong is in the answer.
        """
        ...


class VolumeWriter(Protocol):
    """Writes what a placed pod needs of storage before it is bound."""

    async def prepare(self, order: PrepareVolumes) -> VolumesPrepared | VolumesNotPrepared:
        """Carry the steps out in order, and stop at the first that cannot be.

        Right before each write the lease is checked.  Never raises for anything the API server can do.
        """
        ...


class StatusWriter(Protocol):
    """Writes PodScheduled conditions and nominations; keeps the writes for one pod in order."""

    def set_condition(self, change: SetCondition) -> None:
        """Enqueue the patch; a newer one for the same pod replaces one still waiting."""
        ...

    async def settle(self, ref: PodRef) -> None:
        """Drop the pod's waiting patch and wait for one in flight, so that a bind may follow."""
        ...


class Recorder(Protocol):
    """Writes Kubernetes Events."""

    def record(self, record: Record) -> None:
        """Enqueue the event; never blocks and never raises; drops are counted, not silent."""
        ...


class PodReader(Protocol):
    """Reads one live pod."""

    async def fetch(self, ref: PodRef) -> Pod | None:
        """The live pod of that name (perhaps with another UID), None if there is none.

        Raises ``PodReadError`` when the API server does not answer.
        """
        ...


class PodReadError(Exception):
    """The live pod could not be read now; nothing is known about it."""


class StepWatch(Watch, Protocol):
    """Looks on at every step of the engine."""

    def begin(self) -> None:
        """A step is about to be made."""
        ...


class Meter(Protocol):
    """Counts what the loop does.  Every call is cheap and never raises."""

    def turn(self, seconds: float) -> None:
        """The loop held the event loop for so long without giving it back."""
        ...

    def cycle(self, instructions: Sequence[Instruction], seconds: float) -> None:
        """One ``step`` led to these instructions in so many seconds."""
        ...

    def bound(self, result: BindSucceeded | BindFailed, seconds: float) -> None:
        """A binding ended, so many seconds after it was decided."""
        ...
