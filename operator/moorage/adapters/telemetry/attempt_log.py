"""A log line for each attempt and each binding, with pod, node, policies and attempt as fields.

Placements and refusals are told at debugging level (``-v``): events and conditions tell users of them.  What went wrong
is told always, and so is a decision that took too long.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from moorage.core.model.events import BindFailed, BindFailure, BindSucceeded
from moorage.core.model.instructions import Attempted, AttemptResult, Bind, Instruction

logger = logging.getLogger(__name__)

#: Failures after which the pod is simply tried again, here or elsewhere, or there is no pod any more.
_NO_TROUBLE = (BindFailure.STALE, BindFailure.NOT_LEADER, BindFailure.GONE)


class AttemptLog:
    """Writes the lines."""

    @property
    def wordy(self) -> bool:
        """Whether more than what went wrong is to be told."""
        return logger.isEnabledFor(logging.DEBUG)

    def attempted(self, attempted: Attempted, instructions: Sequence[Instruction], seconds: float) -> None:
        """An attempt has come to an end, or to a node; ``instructions`` are what the same step led to."""
        failed = attempted.result is AttemptResult.ERROR
        level = logging.WARNING if failed else logging.DEBUG
        if not logger.isEnabledFor(level):
            return
        fields = {
            "pod": attempted.ref.key,
            "scheduler": attempted.scheduler_name,
            "attempt": attempted.attempts,
            "result": attempted.result.value,
            "seconds": round(seconds, 6),
        }
        if attempted.result is AttemptResult.SCHEDULED:
            fields["node"] = attempted.node_name
            if policy := _policies(attempted, instructions):
                fields["policy"] = policy
            logger.log(level, "Placed, %d nodes were feasible", attempted.feasible_nodes, extra=fields)
            return
        if attempted.plugins:
            fields["plugins"] = ",".join(attempted.plugins)
        what = "The attempt has failed" if failed else "Not placed"
        logger.log(level, "%s: %s", what, attempted.message, extra=fields)

    def bound(self, result: BindSucceeded | BindFailed, seconds: float) -> None:
        """A binding ended."""
        trouble = isinstance(result, BindFailed) and result.failure not in _NO_TROUBLE
        level = logging.WARNING if trouble else logging.DEBUG
        if not logger.isEnabledFor(level):
            return
        fields = {"pod": result.ref.key, "node": result.node_name, "seconds": round(seconds, 6)}
        if isinstance(result, BindFailed):
            fields["result"] = result.failure.value
            logger.log(level, "Not bound: %s", result.message, extra=fields)
        else:
            logger.log(level, "Bound", extra=fields)

    def slow(self, attempted: Attempted | None, seconds: float, phases: Mapping[str, float]) -> None:
        """A step of the engine took longer than it should; phases are told longest first."""
        ranked = sorted(phases.items(), key=lambda each: -each[1])
        parts = ", ".join(f"{phase} {taken * 1e3:.0f} ms" for phase, taken in ranked if taken >= 0.0005)
        fields: dict[str, object] = {
            "seconds": round(seconds, 6),
            "phases": {phase: round(taken, 6) for phase, taken in phases.items()},
        }
        if attempted is not None:
            fields |= {
                "pod": attempted.ref.key,
                "scheduler": attempted.scheduler_name,
                "attempt": attempted.attempts,
                "result": attempted.result.value,
            }
            if attempted.node_name:
                fields["node"] = attempted.node_name
        logger.warning("Slow decision, %.0f ms: %s", seconds * 1e3, parts, extra=fields)


def _policies(attempted: Attempted, instructions: Sequence[Instruction]) -> str:
    """The policies that shaped the placement, as its Binding names them."""
    for instruction in instructions:
        if isinstance(instruction, Bind) and any(p.ref == attempted.ref for p in instruction.placements):
            return ",".join(value for _, value in instruction.annotations)
    return ""
