"""Asking the configuration's extenders in the course of a cycle, which is suspended meanwhile.

Each method is a generator: it yields the questions of one moment and is sent their answers.  Between the two anything
may have changed, so what was found before is checked again afterwards: pods alike share that work, and only
rows that have changed are looked at anew.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from moorage.core.framework.interface import MAX_NODE_SCORE
from moorage.core.framework.points import Point
from moorage.core.framework.post_filter import Candidate, PostFiltered, PreemptionPlugin
from moorage.core.framework.runner import Runner, Screened
from moorage.core.model.budget import DisruptionBudget
from moorage.core.model.decision import Code, Rejection
from moorage.core.model.extender import (
    MAX_EXTENDER_PRIORITY,
    Answer,
    Extender,
    Filtered,
    NoAnswer,
    Preempted,
    Prioritized,
    Question,
    Verb,
    Victims,
)
from moorage.core.model.pod import Pod

Ints = npt.NDArray[np.int64]
T = TypeVar("T")

#: A part of a cycle that may be suspended: it yields questions and is sent the answers, in the same order.
Asking = Generator[tuple[Question, ...], tuple[Answer, ...], T]

#: Points by extender and node name, weighted.
Given = Mapping[str, Mapping[str, int]]

_SCALE = MAX_NODE_SCORE // MAX_EXTENDER_PRIORITY
_BEYOND = 1 << 62  # no sum of a few scores below this overflows


class ExtenderError(Exception):
    """An extender that is not ignorable failed or broke the protocol; the text is what the user reads."""


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What a cycle needs to know beyond the snapshot; see ``FailedAttempt`` for the fields."""

    nominated: Mapping[int, Sequence[Pod]] = field(default_factory=dict)
    budgets: Sequence[DisruptionBudget] = ()
    awaited: frozenset[str] = frozenset()


class Consultation:
    """What the extenders that a pod concerns say in one cycle.

    ``within`` names the only nodes that are asked about; None: all are.  ``around`` and ``screened`` are as of the last
    answer.  ``refused`` are the nodes that they spoke against, by name;
    ``refusers`` the extenders that left any node out.
    """

    def __init__(
        self,
        runner: Runner,
        pod: Pod,
        look: Callable[[], Circumstances],
        extenders: Sequence[Extender],
        within: Sequence[str] | None = None,
    ) -> None:
        self._runner = runner
        self._pod = pod
        self._look = look
        self._extenders = extenders
        self.around = look()
        self.within = within
        self.screened: Screened = runner.screen(pod, self.around.nominated, within)
        self.refused: dict[str, Rejection] = {}
        self.refusers: set[str] = set()

    def rows(self) -> Ints:
        """The rows of the nodes that pass the plugins."""
        return np.flatnonzero(self.screened.feasible)

    # -- filter ----------------------------------------------------------------------------------

    def nominated(self, row: int) -> Asking[bool]:
        """Whether the node that was promised to the pod passes the extenders; a failure of theirs means no."""
        try:
            left = yield from self.filter(np.array([row], dtype=np.int64))
        except ExtenderError:
            return False
        return bool(left.size)

    def filter(self, rows: Ints) -> Asking[Ints]:
        """The rows that pass all extenders, asked one after the other.  Raises ExtenderError."""
        asked = [extender for extender in self._extenders if Verb.FILTER in extender.verbs]
        if not asked:
            return rows
        left = self._names(rows)
        for extender in asked:
            if not left:
                break
            (answer,) = yield (Question(extender, Verb.FILTER, self._pod.ref, tuple(left)),)
            try:
                left = self._passed(extender, left, answer)
            except ExtenderError:
                if not extender.ignorable:
                    raise
        return self._checked_again(left)

    def _passed(self, extender: Extender, names: list[str], answer: Answer) -> list[str]:
        if not isinstance(answer, Filtered):
            raise ExtenderError(_words(extender, Verb.FILTER, answer))
        sent, passed = set(names), set(answer.passed)
        for name in answer.passed:
            if name not in sent:
                text = f"claims a filtered node {_quoted(name)} which is not found in the input node list"
                raise ExtenderError(f"extender {_quoted(extender.name)} {text}")
        for reasons, code in ((answer.failed, Code.UNSCHEDULABLE), (answer.unresolvable, Code.UNRESOLVABLE)):
            for name, reason in reasons.items():
                self.refused[name] = Rejection(extender.name, (reason,), code)
        if len(passed) < len(names):
            self.refusers.add(extender.name)
        return [name for name in names if name in passed]

    # -- prioritize ------------------------------------------------------------------------------

    def prioritize(self, rows: Ints) -> Asking[tuple[Ints, Given]]:
        """The rows that are still feasible, and the points that each extender gives them; all are asked at once."""
        names = self._names(rows)
        asked = [extender for extender in self._extenders if Verb.PRIORITIZE in extender.verbs]
        answers: tuple[Answer, ...] = ()
        if asked:
            questions = (Question(e, Verb.PRIORITIZE, self._pod.ref, tuple(names)) for e in asked)
            answers = yield tuple(questions)
            rows = self._checked_again(names)
            names = self._names(rows)
        # As kube-scheduler has it, one that does not prioritize gives every node nothing.
        silent = [extender for extender in self._extenders if extender not in asked]
        given: dict[str, dict[str, int]] = {extender.name: dict.fromkeys(names, 0) for extender in silent}
        known = set(names)
        for extender, answer in zip(asked, answers, strict=True):
            if not isinstance(answer, Prioritized):
                continue  # errors count as no opinion, by the protocol
            factor = extender.weight * _SCALE
            if any(abs(score * factor) >= _BEYOND for _, score in answer.scores):
                continue
            points = given.setdefault(extender.name, {})
            for name, score in answer.scores:
                if name in known:
                    points[name] = points.get(name, 0) + score * factor
        return rows, given

    # -- preempt ---------------------------------------------------------------------------------

    def preempt(self, remedy: PostFiltered) -> Asking[PostFiltered]:
        """The remedy that is left when every extender has struck out candidates, or victims, of its own."""
        asked = [extender for extender in self._extenders if Verb.PREEMPT in extender.verbs]
        chooser = next(
            (p for p in self._runner.at(Point.POST_FILTER) if isinstance(p, PreemptionPlugin)), None
        )
        if remedy.chosen is None or not asked or chooser is None:
            return remedy
        snapshot = self._runner.snapshot
        began = snapshot.static.epoch, snapshot.usage.epoch
        candidates = list(remedy.candidates)
        for extender in asked:
            victims = {
                c.node_name: Victims(tuple(p.ref for p in c.victims), c.violations) for c in candidates
            }
            (answer,) = yield (Question(extender, Verb.PREEMPT, self._pod.ref, victims=victims),)
            try:
                candidates = self._kept(extender, victims, answer)
            except ExtenderError as error:
                if not extender.ignorable:
                    return PostFiltered(f"preemption: {error}")
            if not candidates:
                break
        self.around = self._look()
        if began != (snapshot.static.epoch, snapshot.usage.epoch):
            candidates = [candidate for candidate in candidates if self._still_works(candidate)]
        if not candidates:
            return PostFiltered("preemption: no candidate node for preemption")
        return replace(chooser.choose(candidates), candidates=remedy.candidates)

    def _kept(self, extender: Extender, asked: Mapping[str, Victims], answer: Answer) -> list[Candidate]:
        if not isinstance(answer, Preempted):
            raise ExtenderError(_words(extender, Verb.PREEMPT, answer))
        snapshot = self._runner.snapshot
        kept = []
        for name, (uids, violations) in answer.victims.items():
            row = snapshot.row_of(name)
            if row is None and name not in asked:
                raise ExtenderError(f"nodeinfo not found for node name {_quoted(name)}")
            if row is None:
                continue  # it has gone meanwhile
            on_node = snapshot.pods[row]
            known = {ref.uid for ref in asked[name].pods} if name in asked else set()
            for uid in uids:
                if uid not in on_node and uid not in known:
                    raise ExtenderError(
                        f"extender: {extender.name} claims to preempt pod (UID: &{{{uid}}}) on node: {name}, "
                        "but the pod is not found on that node"
                    )
            if not uids and not extender.ignorable:
                raise ExtenderError(f"expected at least one victim pod on node {_quoted(name)}")
            victims = tuple(on_node[uid] for uid in uids if uid in on_node)
            if victims:
                kept.append(Candidate(name, victims, violations))
        return kept

    def _still_works(self, candidate: Candidate) -> bool:
        runner, row = self._runner, self._runner.snapshot.row_of(candidate.node_name)
        if row is None:
            return False
        on_node = runner.snapshot.pods[row]
        victims = [victim for victim in candidate.victims if victim.uid in on_node]
        pre = runner.pre_filter(self._pod)
        ahead = self.around.nominated.get(row, ())
        return all(runner.judge_with(pre, row, added, victims) is None for added in {(), tuple(ahead)})

    # -- after an answer -------------------------------------------------------------------------

    def _names(self, rows: Ints) -> list[str]:
        return [self._runner.snapshot.name_at(int(row)) for row in rows]

    def _checked_again(self, names: Sequence[str]) -> Ints:
        """The rows of the nodes of these names that still pass the plugins."""
        self.around = self._look()
        self.screened = self._runner.screen(self._pod, self.around.nominated, self.within)
        rows = (self._runner.snapshot.row_of(name) for name in names)
        feasible = self.screened.feasible
        return np.array([row for row in rows if row is not None and feasible[row]], dtype=np.int64)


def _words(extender: Extender, verb: Verb, answer: Answer) -> str:
    if isinstance(answer, NoAnswer):
        return answer.message
    return f"extender {_quoted(extender.name)} answered {verb} with {type(answer).__name__}"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
