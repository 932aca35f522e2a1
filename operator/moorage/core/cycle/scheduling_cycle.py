"""One pod's scheduling cycle, from PreFilter to the chosen node.

The cycle reads the snapshot and changes nothing that outlasts it; placing the pod is the engine's.  Where the
configuration names extenders it is a generator, which yields what to ask them and goes on with what they say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from moorage.core.cycle.consultation import Asking, Circumstances, Consultation, Given
from moorage.core.cycle.scoring import score_nodes
from moorage.core.cycle.selection import best_rows, pick
from moorage.core.framework.answers import guarded
from moorage.core.framework.diagnosis import Diagnosis
from moorage.core.framework.points import Point
from moorage.core.framework.post_filter import Candidate, FailedAttempt, PostFiltered, PostFilterPlugin
from moorage.core.framework.runner import Runner, Screened
from moorage.core.framework.watching import Phase, enter
from moorage.core.model.decision import Decision, Preemption
from moorage.core.model.extender import Extender
from moorage.core.model.pod import Pod

Ints = npt.NDArray[np.int64]

__all__ = [
    "Circumstances",
    "Failure",
    "Outcome",
    "best_of",
    "explain",
    "explain_pod",
    "schedule",
    "schedule_pod",
]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Failure:
    """Why no node takes the pod, and what PostFilter makes of it."""

    diagnosis: Diagnosis
    remedy: PostFiltered | None

    @property
    def message(self) -> str:
        """The text of the PodScheduled condition."""
        return self.diagnosis.message("" if self.remedy is None else self.remedy.message)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the cycle decided: a row, or why there is none."""

    row: int | None
    feasible: int = 0
    failure: Failure | None = None


def schedule_pod(runner: Runner, pod: Pod, around: Circumstances, rng: np.random.Generator) -> Outcome:
    """Choose a node for the pod, whom no extender concerns; raises PluginError."""
    enter(Phase.FILTER)
    screened = runner.screen(pod, around.nominated)
    row = _nominated_row(runner, pod, screened)
    if row is not None:
        return Outcome(row, 1)
    rows = np.flatnonzero(screened.feasible)
    if not rows.size:
        enter(Phase.DIAGNOSE)
        diagnosis = runner.diagnose(pod, screened.pre, around.nominated)
        return Outcome(None, 0, Failure(diagnosis, _post_filter(runner, pod, screened, diagnosis, around)))
    if rows.size == 1:
        return Outcome(int(rows[0]), 1)
    enter(Phase.SCORE)
    totals = score_nodes(runner, pod, screened, rows)
    return Outcome(pick(best_rows(rows, totals), rng), int(rows.size))


def best_of(runner: Runner, pod: Pod, around: Circumstances) -> tuple[Screened, Ints]:
    """The rows among which ``schedule_pod`` would draw, none if no node takes the pod; raises PluginError."""
    screened = runner.screen(pod, around.nominated)
    row = _nominated_row(runner, pod, screened)
    if row is not None:
        return screened, np.array([row], dtype=np.int64)
    rows = np.flatnonzero(screened.feasible)
    if rows.size > 1:
        rows = best_rows(rows, score_nodes(runner, pod, screened, rows))
    return screened, rows


def schedule(
    runner: Runner, pod: Pod, look: Callable[[], Circumstances], rng: np.random.Generator
) -> Asking[Outcome]:
    """The same for a pod that extenders may concern: suspended for each of their answers.

    ``look`` tells of the circumstances at the time.  Raises PluginError and ExtenderError.
    """
    extenders = runner.concerned(pod)
    if not extenders:
        return schedule_pod(runner, pod, look(), rng)
    enter(Phase.FILTER)
    talk = Consultation(runner, pod, look, extenders)
    row = _nominated_row(runner, pod, talk.screened)
    if row is not None and (yield from talk.nominated(row)):
        return Outcome(row, 1)
    rows = talk.rows()
    given: Given = {}
    if rows.size:
        rows = yield from talk.filter(rows)
    if rows.size > 1:
        rows, given = yield from talk.prioritize(rows)
    if not rows.size:
        enter(Phase.DIAGNOSE)
        diagnosis = _diagnose(runner, pod, talk)
        remedy = _post_filter(runner, pod, talk.screened, diagnosis, talk.around)
        if remedy is not None:
            remedy = yield from talk.preempt(remedy)
        return Outcome(None, 0, Failure(diagnosis, remedy))
    if rows.size == 1:
        return Outcome(int(rows[0]), 1)
    enter(Phase.SCORE)
    totals = score_nodes(runner, pod, talk.screened, rows)
    _add(totals, given, rows, runner)
    return Outcome(pick(best_rows(rows, totals), rng), int(rows.size))


def _at_once(steps: Asking[T]) -> T:
    try:
        next(steps)
    except StopIteration as end:
        value: T = end.value
        return value
    raise AssertionError("a cycle that may be suspended cannot be run at once")


def _add(totals: Ints, given: Given, rows: Ints, runner: Runner) -> None:
    """Add the extenders' points to the plugins' totals of these rows."""
    if any(given.values()):
        names = [runner.snapshot.name_at(int(row)) for row in rows]
        for points in given.values():
            totals += np.array([points.get(name, 0) for name in names], dtype=np.int64)


def _diagnose(runner: Runner, pod: Pod, talk: Consultation) -> Diagnosis:
    """Why not, of the plugins and of the extenders, who speak last."""
    diagnosis = runner.diagnose(pod, talk.screened.pre, talk.around.nominated, talk.within)
    for name, rejection in talk.refused.items():
        row = runner.snapshot.row_of(name)
        if row is not None:
            diagnosis.overrides[row] = rejection
    diagnosis.extenders = frozenset(talk.refusers)
    return diagnosis


def _post_filter(
    runner: Runner, pod: Pod, screened: Screened, diagnosis: Diagnosis, around: Circumstances
) -> PostFiltered | None:
    """Ask the PostFilter plugins in order, until one of them has a remedy; None where there is no node at all."""
    if not runner.snapshot.node_count:
        return None
    enter(Phase.PREEMPT)
    attempt = FailedAttempt(runner, screened.pre, diagnosis, around.nominated, around.budgets, around.awaited)
    answers: list[PostFiltered] = []
    for plugin in runner.at(Point.POST_FILTER):
        if isinstance(plugin, PostFilterPlugin):
            answer = guarded(plugin, "PostFilter", plugin.post_filter, pod, attempt)
            if answer.chosen is not None:
                return answer
            answers.append(answer)
    if not answers:
        return None
    return PostFiltered(
        ", ".join(answer.message for answer in answers),
        clear_nomination=any(answer.clear_nomination for answer in answers),
    )


def _nominated_row(runner: Runner, pod: Pod, screened: Screened) -> int | None:
    """The row of the node that was promised to the pod, if it still fits there: no other is looked at then."""
    if not pod.nominated_node:
        return None
    row = runner.snapshot.row_of(pod.nominated_node)
    return row if row is not None and screened.feasible[row] else None


def explain_pod(
    runner: Runner, pod: Pod, around: Circumstances, within: Sequence[str] | None = None
) -> Decision:
    """The full record of what ``schedule_pod`` would decide, every node and every score included.

    ``within`` limits the decision to the nodes of these names.  Ties are not drawn: ``chosen`` is the
    first of the best by name.  Extenders are not asked.  Raises PluginError.
    """
    return _at_once(explain(runner, pod, lambda: around, (), within))


def explain(
    runner: Runner,
    pod: Pod,
    look: Callable[[], Circumstances],
    extenders: Sequence[Extender],
    within: Sequence[str] | None = None,
) -> Asking[Decision]:
    """As ``explain_pod``, asking these extenders.  Raises PluginError and ExtenderError."""
    snapshot = runner.snapshot
    gate = runner.pre_enqueue(pod)
    if gate is not None:
        return Decision(pod.ref, preenqueue=gate)
    talk = Consultation(runner, pod, look, extenders, within)
    rows = talk.rows()
    given: Given = {}
    if extenders and rows.size:
        rows = yield from talk.filter(rows)
    if extenders and rows.size:
        rows, given = yield from talk.prioritize(rows)
    diagnosis = _diagnose(runner, pod, talk)
    filtered = diagnosis.rejections()
    if within is not None:
        filtered = {name: filtered[name] for name in within if name in filtered}
    if not rows.size:
        # Of a question about some nodes only, what could be done on others is no part.
        remedy = (
            None if within is not None else _post_filter(runner, pod, talk.screened, diagnosis, talk.around)
        )
        if extenders and remedy is not None:
            remedy = yield from talk.preempt(remedy)
        return Decision(
            pod.ref,
            filtered=filtered,
            prefilter=diagnosis.prefilter,
            message=Failure(diagnosis, remedy).message,
            preemption=_preemption(remedy),
            clears_nomination=within is None and (remedy is None or remedy.clear_nomination),
        )
    names = [snapshot.name_at(int(row)) for row in rows]
    by_plugin: dict[str, Ints] = {}
    totals = score_nodes(runner, pod, talk.screened, rows, by_plugin.__setitem__)
    _add(totals, given, rows, runner)
    scores = {
        name: {
            **{plugin: int(values[i]) for plugin, values in by_plugin.items()},
            **{extender: points[name] for extender, points in given.items() if name in points},
            "total": int(totals[i]),
        }
        for i, name in enumerate(names)
    }
    best = sorted(snapshot.name_at(int(row)) for row in best_rows(rows, totals))
    promised = pod.nominated_node if pod.nominated_node in scores else None
    return Decision(
        pod.ref,
        feasible=tuple(sorted(names)),
        filtered=filtered,
        scores=scores,
        best=tuple(best),
        chosen=promised or best[0],
    )


def _preemption(remedy: PostFiltered | None) -> Preemption | None:
    if remedy is None or remedy.chosen is None:
        return None

    def victims(candidate: Candidate) -> tuple[str, ...]:
        return tuple(sorted(pod.key for pod in candidate.victims))

    return Preemption(
        node=remedy.chosen.node_name,
        victims=victims(remedy.chosen),
        pdb_violations=remedy.chosen.violations,
        candidates={candidate.node_name: victims(candidate) for candidate in remedy.candidates},
        ties=remedy.ties if len(remedy.ties) > 1 else (),
    )
