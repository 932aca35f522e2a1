"""Audits: what a decision would have been, had one policy more been in force.

After a pod's real decision, on the same snapshot and before the pod is placed, each policy with mode Audit that
selects the pod is added alone to those in force.  Nothing is drawn, written or remembered but figures.  Extenders are
not asked, so pods that one concerns are skipped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from moorage.core.cycle.consultation import Circumstances
from moorage.core.cycle.scheduling_cycle import best_of
from moorage.core.cycle.scoring import score_nodes
from moorage.core.framework.answers import PluginError
from moorage.core.framework.interface import HoldingPlugin
from moorage.core.framework.runner import Runner, Screened
from moorage.core.model.instructions import Audited
from moorage.core.model.pod import Pod
from moorage.core.model.policy import Policy, PolicyRef
from moorage.core.model.policy_report import AuditReport, AuditSample
from moorage.core.policy.book import PolicyBook
from moorage.core.policy.holds import hold_of
from moorage.core.policy.merge import Merged

Ints = npt.NDArray[np.int64]

#: Samples kept of each policy, the latest ones.
SAMPLES = 10


class AuditBudget(Protocol):
    """How much time audits may take; the core has no clock, so whoever owns one is told what begins and ends."""

    def decision_begins(self) -> None:
        """A real decision begins."""
        ...

    def decision_ends(self) -> None:
        """It has been made."""
        ...

    def audit_begins(self) -> bool:
        """Whether there is time for an audit, which then begins."""
        ...

    def audit_ends(self) -> None:
        """It has been made."""
        ...


class Unlimited:
    """A budget for everything."""

    def decision_begins(self) -> None:
        """Not measured."""

    def decision_ends(self) -> None:
        """Not measured."""

    def audit_begins(self) -> bool:
        """Always."""
        return True

    def audit_ends(self) -> None:
        """Not measured."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What becomes of a pod: nodes to choose from (or the one chosen), a hold by policies in words, or neither."""

    rows: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    held: str = ""

    @property
    def kind(self) -> str:
        """What it comes to."""
        return "placed" if self.rows.size else "held" if self.held else "refused"

    def differs_from(self, real: Answer) -> bool:
        """Whether it would not have come to what was really decided."""
        if self.kind != real.kind:
            return True
        return self.kind == "placed" and real.rows.item(0) not in self.rows


@dataclass(slots=True)
class _Figures:
    policy: Policy
    evaluated: int = 0
    different: int = 0
    skipped: int = 0
    samples: deque[AuditSample] = field(default_factory=lambda: deque(maxlen=SAMPLES))


def held_by(runner: Runner) -> str:
    """Why a pod that no node takes waits for a policy and not for a node, "" if it does not."""
    words = (p.held(runner.snapshot) for p in runner.plugins if isinstance(p, HoldingPlugin))
    return next((text for text in words if text), "")


class Audits:
    """Makes audits and keeps their figures; those of a policy begin anew when it changes."""

    def __init__(
        self, book: PolicyBook, runner_with: Callable[[Pod, Merged], Runner], budget: AuditBudget | None
    ) -> None:
        self._book = book
        self._runner_with = runner_with
        self._figures: dict[PolicyRef, _Figures] = {}
        self.budget: AuditBudget = Unlimited() if budget is None else budget

    def audit(self, pod: Pod, real: Answer, around: Circumstances, now: float) -> list[Audited]:
        """Compare what was decided with what each audited policy would have led to."""
        shaping = self._book.shaping(pod)
        told: list[Audited] = []
        for policy in shaping.audited:
            figures = self._of(policy)
            merged = self._book.together(shaping.merged, policy)
            runner = self._runner_with(pod, merged)
            if runner.concerned(pod) or not self.budget.audit_begins():
                figures.skipped += 1
                continue
            try:
                differs = self._differs(figures, runner, merged, pod, real, around, now)
            except PluginError:
                figures.skipped += 1
                continue
            finally:
                self.budget.audit_ends()
            figures.evaluated += 1
            figures.different += differs
            told.append(Audited(pod.ref, policy.ref, differs))
        return told

    def _differs(
        self,
        figures: _Figures,
        runner: Runner,
        merged: Merged,
        pod: Pod,
        real: Answer,
        around: Circumstances,
        now: float,
    ) -> bool:
        hold = hold_of(merged, pod.waiting_since, now, self._book.calendar_of)
        screened: Screened | None = None
        if hold is not None:
            would = Answer(held=hold.message)
        else:
            screened, rows = best_of(runner, pod, around)
            would = Answer(rows) if rows.size else Answer(held=held_by(runner))
        if not would.differs_from(real):
            return False
        chosen, instead = (_first(runner, answer.rows) for answer in (real, would))
        why = would.held or _why(runner, pod, screened, real, would, around)
        figures.samples.append(AuditSample(pod.key, chosen, instead, why))
        return True

    def report(self, policy: Policy) -> AuditReport:
        """The figures of an audited policy since it was last changed."""
        found = self._of(policy)
        return AuditReport(found.evaluated, found.different, found.skipped, tuple(found.samples))

    def forget(self, ref: PolicyRef) -> None:
        """The policy has changed, or gone."""
        self._figures.pop(ref, None)

    def _of(self, policy: Policy) -> _Figures:
        known = self._figures.get(policy.ref)
        if known is None or known.policy is not policy:
            known = self._figures[policy.ref] = _Figures(policy)
        return known


def _first(runner: Runner, rows: Ints) -> str:
    return min((runner.snapshot.name_at(int(row)) for row in rows), default="")


def _why(
    runner: Runner, pod: Pod, screened: Screened | None, real: Answer, would: Answer, around: Circumstances
) -> str:
    """One line: which plugin makes the difference."""
    assert screened is not None, "a pod that is held has its reason"
    if not would.rows.size:
        return runner.diagnose(pod, screened.pre, around.nominated).message()
    instead = _first(runner, would.rows)
    if not real.rows.size:
        return f"{instead} takes the pod"
    chosen_row = real.rows.item(0)
    if not screened.feasible[chosen_row]:
        diagnosis = runner.diagnose(pod, screened.pre, around.nominated)
        rejection = diagnosis.rejections().get(_first(runner, real.rows))
        if rejection is not None:
            return f"{rejection.plugin}: {', '.join(rejection.reasons)}"
        return _left_out(runner, screened, chosen_row)
    return _outscored(runner, pod, screened, real, instead)


def _left_out(runner: Runner, screened: Screened, row: int) -> str:
    """A node that is out only because of what other nodes there are."""
    rejection = runner.judge(screened.pre, row)
    if rejection is not None:
        return f"{rejection.plugin}: {', '.join(rejection.reasons)}"
    last = screened.pre.active[-1][0].name if screened.pre.active else ""
    return f"{last}: other nodes go first"


def _outscored(runner: Runner, pod: Pod, screened: Screened, real: Answer, instead: str) -> str:
    """The plugin whose score speaks most for the other node."""
    rows = np.flatnonzero(screened.feasible)
    by_plugin: dict[str, Ints] = {}
    score_nodes(runner, pod, screened, rows, by_plugin.__setitem__)
    row = runner.snapshot.row_of(instead)
    here, there = (int(np.flatnonzero(rows == r)[0]) for r in (real.rows.item(0), row))
    gains = {name: int(scores[there] - scores[here]) for name, scores in by_plugin.items()}
    best = max(gains, key=lambda name: (gains[name], name), default="")
    if not gains or gains[best] <= 0:
        return "promised to the pod"  # only a nominated node is taken against the scores
    return f"{best}: {gains[best]} points more"
