"""One pod's scheduling cycle, from PreFilter to the chosen node.

The cycle reads the snapshot and changes nothing that outlasts it; placing the pod is the engine's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from moorage.core.cycle.scoring import score_nodes
from moorage.core.cycle.selection import best_rows, pick
from moorage.core.framework.answers import guarded
from moorage.core.framework.diagnosis import Diagnosis
from moorage.core.framework.post_filter import Candidate, FailedAttempt, PostFiltered, PostFilterPlugin
from moorage.core.framework.runner import Runner, Screened
from moorage.core.model.budget import DisruptionBudget
from moorage.core.model.decision import Decision, Preemption
from moorage.core.model.pod import Pod

Ints = npt.NDArray[np.int64]

#: Nominated pods by row: those that the pod must give way to.
NominatedOn = Mapping[int, Sequence[Pod]]


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


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What a cycle needs to know beyond the snapshot; see ``FailedAttempt`` for the fields."""

    nominated: NominatedOn = field(default_factory=dict)
    budgets: Sequence[DisruptionBudget] = ()
    awaited: frozenset[str] = frozenset()


def schedule_pod(runner: Runner, pod: Pod, around: Circumstances, rng: np.random.Generator) -> Outcome:
    """Choose a node for the pod; raises PluginError."""
    screened = runner.screen(pod, around.nominated)
    row = _nominated_row(runner, pod, screened)
    if row is not None:
        return Outcome(row, 1)
    rows = np.flatnonzero(screened.feasible)
    if not rows.size:
        diagnosis = runner.diagnose(pod, screened.pre, around.nominated)
        return Outcome(None, 0, Failure(diagnosis, _post_filter(runner, pod, screened, diagnosis, around)))
    if rows.size == 1:
        return Outcome(int(rows[0]), 1)
    totals = score_nodes(runner, pod, screened, rows)
    return Outcome(pick(best_rows(rows, totals), rng), int(rows.size))


def _post_filter(
    runner: Runner, pod: Pod, screened: Screened, diagnosis: Diagnosis, around: Circumstances
) -> PostFiltered | None:
    """Ask the PostFilter plugins in order, until one of them has a remedy; None where there is no node at all."""
    if not runner.snapshot.node_count:
        return None
    attempt = FailedAttempt(runner, screened.pre, diagnosis, around.nominated, around.budgets, around.awaited)
    answers: list[PostFiltered] = []
    for plugin in runner.plugins:
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
    first of the best by name.  Raises PluginError.
    """
    snapshot = runner.snapshot
    gate = runner.pre_enqueue(pod)
    if gate is not None:
        return Decision(pod.ref, preenqueue=gate)
    screened = runner.screen(pod, around.nominated)
    diagnosis = runner.diagnose(pod, screened.pre, around.nominated)
    feasible = screened.feasible
    if within is not None:
        wanted = np.zeros(snapshot.capacity, dtype=np.bool_)
        wanted[[row for row in map(snapshot.row_of, within) if row is not None]] = True
        feasible = feasible & wanted
    rows = np.flatnonzero(feasible)
    filtered = diagnosis.rejections()
    if within is not None:
        filtered = {name: filtered[name] for name in within if name in filtered}
    if not rows.size:
        # Of a question about some nodes only, what could be done on others is no part.
        remedy = None if within is not None else _post_filter(runner, pod, screened, diagnosis, around)
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
    totals = score_nodes(runner, pod, screened, rows, by_plugin.__setitem__)
    scores = {
        name: {**{plugin: int(values[i]) for plugin, values in by_plugin.items()}, "total": int(totals[i])}
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
