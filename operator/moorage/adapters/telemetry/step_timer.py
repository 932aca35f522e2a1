"""Takes the time of the engine's steps: each by phase, a sample of them by every call of a plugin.

A mark costs a reading of the clock, so all steps have them.  To time a step's calls, and to account for them, takes
as long as half a decision, so that is done for one step in two hundred, drawn at random: under 2 % in all.
(kube-scheduler, whose decisions take milliseconds, times one in ten.)
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass

#: The share of the steps whose calls of plugins are timed.
SHARE = 0.005
#: Of one step, so many calls are kept: a dry run of preemption may make thousands of equal ones.
_MOST_CALLS = 1000
_FIRST_PHASE = "queue"


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a plugin: how it ended, and how long it took, calls within it included."""

    plugin: str
    point: str
    status: str
    seconds: float
    nested: bool


class StepTimer:
    """Implements ``runtime.ports.StepWatch``; what it tells is about the last step."""

    def __init__(
        self,
        *,
        share: float = SHARE,
        rng: random.Random | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._share = share
        self._rng = rng or random.Random()
        self._until_next = self._gap()
        self._clock = clock
        self._began = 0.0
        self._marks: list[tuple[str, float]] = []
        self._open: list[float] = []
        #: The calls of the last step, in the order in which they ended; empty unless ``detailed``.
        self.calls: list[Call] = []
        self.detailed = False

    def begin(self) -> None:
        """A step is about to be made."""
        self._marks.clear()
        if self.detailed:
            self._open.clear()
            self.calls.clear()
            self.detailed = False
        self._until_next -= 1
        if self._until_next <= 0:
            self.detailed = True
            self._until_next = self._gap()
        self._began = self._clock()

    def _gap(self) -> float:
        """How many steps on the next one is timed in detail, if each is with the same probability."""
        if self._share >= 1.0:
            return 1
        if self._share <= 0.0:
            return math.inf
        return 1 + int(math.log(1.0 - self._rng.random()) / math.log1p(-self._share))

    def phase(self, phase: str) -> None:
        """Another part of the step begins."""
        self._marks.append((phase, self._clock()))

    def calling(self) -> None:
        """A plugin is called."""
        self._open.append(self._clock())

    def called(self, plugin: str, point: str, status: str) -> None:
        """The last call that has not ended ends."""
        seconds = self._clock() - self._open.pop()
        if len(self.calls) < _MOST_CALLS:
            self.calls.append(Call(plugin, point, status, seconds, bool(self._open)))

    def phases(self, seconds: float) -> dict[str, float]:
        """How long each part of the last step took, of which the whole took so long; in order of their beginning."""
        taken: dict[str, float] = {}
        name, since = _FIRST_PHASE, self._began
        for phase, at in (*self._marks, ("", self._began + seconds)):
            key = str(name)  # the core's words are members of an enumeration, which JSON has no keys of
            taken[key] = taken.get(key, 0.0) + max(0.0, at - since)
            name, since = phase, at
        return taken
