"""DefaultPreemption: find the node where evicting lower-priority pods does the least harm.

Source of the rules: Kubernetes documentation, "Pod Priority and Preemption", and kube-scheduler v1.37.
Every node that eviction could help is considered, not a sample of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from moorage.core.framework.budgets import Budgets
from moorage.core.framework.dry_run import dry_run
from moorage.core.framework.dry_runs import DryRuns, FoundCandidates
from moorage.core.framework.post_filter import Candidate, FailedAttempt, PostFiltered, harm
from moorage.core.framework.preemption_guards import NEVER, NO_GUARDS, Guards
from moorage.core.model.cluster_event import WakesOn
from moorage.core.model.pod import Pod
from moorage.core.snapshot.snapshot import Snapshot

_NOT_HELPFUL = "Preemption is not helpful for scheduling"


@dataclass(frozen=True, slots=True)
class DefaultPreemption:
    """Dry-runs the eviction of lower-priority pods on every node whose rejection that could lift.

    ``guards`` are what policies forbid the pod.
    """

    name: ClassVar[str] = "DefaultPreemption"

    guards: Guards = NO_GUARDS

    def post_filter(self, pod: Pod, attempt: FailedAttempt) -> PostFiltered:
        """The best candidate, or why there is none."""
        ineligible = NEVER if self.guards.rules.never else _ineligible(pod, attempt)
        if ineligible:
            return PostFiltered(f"preemption: {ineligible}")
        snapshot = attempt.runner.snapshot
        rows = np.flatnonzero(attempt.diagnosis.resolvable())
        budgets = Budgets(attempt.budgets)
        runs = DryRuns(pod, attempt, rows, budgets, self.guards)
        one_by_one: list[Candidate] = []
        counts: Counter[str] = Counter()
        for row in runs.left_over.tolist():
            outcome = dry_run(pod, attempt, row, budgets, self.guards)
            if isinstance(outcome, Candidate):
                one_by_one.append(outcome)
            else:
                counts.update(outcome)
        found = runs.found()
        if found is not None:
            return _chosen(_best(found, one_by_one), _all(found, one_by_one, snapshot))
        if one_by_one:
            return self.choose(one_by_one)
        counts.update(runs.against)
        rest = snapshot.node_count - rows.size
        if rest:
            counts[_NOT_HELPFUL] += rest
        reasons = ", ".join(sorted(f"{number} {reason}" for reason, number in counts.items()))
        text = f"preemption: 0/{snapshot.node_count} nodes are available: {reasons}."
        return PostFiltered(text, clear_nomination=bool(pod.nominated_node))

    def choose(self, candidates: Sequence[Candidate]) -> PostFiltered:
        """The candidate that does the least harm."""
        return _chosen(best_candidates(candidates), tuple(candidates))

    def changes_at(self, pod: Pod, snapshot: Snapshot) -> float | None:
        """When the next pod has run long enough to be evicted, where a policy asks for that."""
        return self.guards.changes_at(pod, snapshot)

    def wakes_on(self) -> Sequence[WakesOn]:
        """It rejects nothing by itself: the plugins whose rejection the eviction lifts wake the pod."""
        return ()


def _ineligible(pod: Pod, attempt: FailedAttempt) -> str:
    """Why the pod may not preempt now, "" if it may."""
    if pod.spec.preemption_policy == "Never":
        return "not eligible due to preemptionPolicy=Never."
    snapshot = attempt.runner.snapshot
    row = snapshot.row_of(pod.nominated_node) if pod.nominated_node else None
    if row is None or not attempt.diagnosis.resolvable()[row]:
        return ""
    for other in snapshot.pods[row].values():
        going = (other.deleting and other.preempted) or other.uid in attempt.awaited
        if going and other.priority < pod.priority:
            return "not eligible due to a terminating pod on the nominated node."
    return ""


def best_candidates(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates that the rules prefer to all others and cannot tell apart."""
    harms = [harm(candidate) for candidate in candidates]
    least = min(harms)
    return [candidate for candidate, its in zip(candidates, harms, strict=True) if its == least]


def _best(found: FoundCandidates, others: Sequence[Candidate]) -> list[Candidate]:
    """The best of both."""
    ties = found.best()
    if not others:
        return [found[index] for index in ties]
    rivals = best_candidates(others)
    mine, theirs = harm(found[ties[0]]), harm(rivals[0])
    best = [found[index] for index in ties] if mine <= theirs else []
    return best + rivals if theirs <= mine else best


def _all(found: FoundCandidates, others: Sequence[Candidate], snapshot: Snapshot) -> Sequence[Candidate]:
    """Both in order of their rows."""
    if not others:
        return found
    return sorted((*found, *others), key=lambda candidate: snapshot.row_of(candidate.node_name) or 0)


def _chosen(ties: Sequence[Candidate], candidates: Sequence[Candidate]) -> PostFiltered:
    """Of the best candidates the first by name."""
    chosen = min(ties, key=lambda candidate: candidate.node_name)
    text = (
        f"preemption: found a potential placement for pod on node {chosen.node_name}, "
        f"preempting {len(chosen.victims)} victims"
    )
    names = tuple(sorted(candidate.node_name for candidate in ties))
    return PostFiltered(text, chosen, candidates, names)
