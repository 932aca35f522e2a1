"""Whoever the scheduling loop reports to: passes on to metrics and logs."""

from __future__ import annotations

from collections.abc import Sequence

from moorage.adapters.telemetry.attempt_log import AttemptLog
from moorage.adapters.telemetry.framework_metrics import FrameworkMetrics
from moorage.adapters.telemetry.metrics import Metrics
from moorage.adapters.telemetry.step_timer import StepTimer
from moorage.core.model.events import BindFailed, BindSucceeded
from moorage.core.model.instructions import Attempted, AttemptResult, Evict, Instruction


class Observer:
    """Implements ``runtime.ports.Meter``; ``timer`` is to look on at the engine's steps.

    A step that takes ``slow`` seconds or longer is logged with its phases.
    """

    def __init__(self, metrics: Metrics, *, slow: float = 0.1, timer: StepTimer | None = None) -> None:
        self._metrics = metrics
        self._framework = FrameworkMetrics(metrics.registry)
        self._log = AttemptLog()
        self._slow = slow
        self.timer = timer or StepTimer()

    def turn(self, seconds: float) -> None:
        """The loop held the event loop for so long."""
        self._metrics.turn(seconds)

    def cycle(self, instructions: Sequence[Instruction], seconds: float) -> None:
        """One step of the engine led to these instructions."""
        self._metrics.cycle(instructions, seconds)
        last: Attempted | None = None
        for instruction in instructions:
            if isinstance(instruction, Attempted):
                last = instruction
                if instruction.preemption_tried:
                    self._framework.preemption_attempts.inc()
                if instruction.result is AttemptResult.ERROR or self._log.wordy:
                    self._log.attempted(instruction, instructions, seconds)
            elif isinstance(instruction, Evict):
                self._framework.preemption_victims.observe(len(instruction.victims))
        timer = self.timer
        if last is not None and timer.detailed:
            self._framework.sampled(timer.calls, timer.phases(seconds), last.scheduler_name)
        if seconds >= self._slow:
            self._framework.slow.inc()
            self._log.slow(last, seconds, timer.phases(seconds))

    def bound(self, result: BindSucceeded | BindFailed, seconds: float) -> None:
        """A binding ended, so many seconds after it was decided."""
        profile = self._metrics.profile_of(result.ref.uid)
        self._metrics.bound(result, seconds)
        if profile is not None:
            self._framework.bound(profile, seconds, ok=isinstance(result, BindSucceeded))
        self._log.bound(result, seconds)
