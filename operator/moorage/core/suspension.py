"""A cycle that waits for extenders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from moorage.core.cycle.consultation import Asking
from moorage.core.cycle.scheduling_cycle import Outcome
from moorage.core.model.extender import Answer, Question
from moorage.core.model.instructions import CallExtender
from moorage.core.queue.scheduling_queue import QueuedPod


@dataclass(slots=True)
class Suspended:
    """The cycle, the pod it is for, and what has been answered so far; tickets count up from ``first``."""

    queued: QueuedPod
    steps: Asking[Outcome]
    questions: Sequence[Question]
    first: int
    answers: dict[int, Answer] = field(default_factory=dict)

    def calls(self) -> list[CallExtender]:
        """What is to be asked."""
        return [CallExtender(self.first + index, each) for index, each in enumerate(self.questions)]

    def take(self, ticket: int, answer: Answer) -> None:
        """Keep an answer; one to a question of another cycle, or a second one, is dropped."""
        index = ticket - self.first
        if 0 <= index < len(self.questions):
            self.answers.setdefault(index, answer)

    def complete(self) -> tuple[Answer, ...] | None:
        """All answers, in the order of the questions; None if some are still to come."""
        if len(self.answers) < len(self.questions):
            return None
        return tuple(self.answers[index] for index in range(len(self.questions)))
