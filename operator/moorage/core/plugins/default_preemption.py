"""DefaultPreemption: find the node where evicting lower-priority pods does the least harm.

Source of the rules: Kubernetes documentation, "Pod Priority and Preemption", and kube-scheduler v1.37.
Every node that eviction could help is considered, not a sample of them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from moorage.core.framework.answers import PreFiltered
from moorage.core.framework.post_filter import Candidate, FailedAttempt, PostFiltered
from moorage.core.framework.preemption_guards import NEVER, NO_GUARDS, Guards
from moorage.core.model.budget import DisruptionBudget
from moorage.core.model.cluster_event import WakesOn
from moorage.core.model.pod import Pod
from moorage.core.snapshot.snapshot import Snapshot

_NO_VICTIMS = "No preemption victims found for incoming pod"
_NOT_HELPFUL = "Preemption is not helpful for scheduling"
_PRIORITY_OFFSET = 1 << 31  # makes every priority positive, so that a sum grows with the number of pods


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
        candidates: list[Candidate] = []
        counts: Counter[str] = Counter()
        rows = np.flatnonzero(attempt.diagnosis.resolvable())
        for row in rows:
            found = _dry_run(pod, attempt, int(row), self.guards)
            if isinstance(found, Candidate):
                candidates.append(found)
            else:
                counts.update(found)
        if not candidates:
            rest = snapshot.node_count - rows.size
            if rest:
                counts[_NOT_HELPFUL] += rest
            reasons = ", ".join(sorted(f"{number} {reason}" for reason, number in counts.items()))
            text = f"preemption: 0/{snapshot.node_count} nodes are available: {reasons}."
            return PostFiltered(text, clear_nomination=bool(pod.nominated_node))
        return self.choose(candidates)

    def choose(self, candidates: Sequence[Candidate]) -> PostFiltered:
        """The candidate that does the least harm."""
        ties = best_candidates(candidates)
        chosen = min(ties, key=lambda candidate: candidate.node_name)
        text = (
            f"preemption: found a potential placement for pod on node {chosen.node_name}, "
            f"preempting {len(chosen.victims)} victims"
        )
        names = tuple(sorted(candidate.node_name for candidate in ties))
        return PostFiltered(text, chosen, tuple(candidates), names)

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


def _dry_run(pod: Pod, attempt: FailedAttempt, row: int, guards: Guards) -> Candidate | tuple[str, ...]:
    """The smallest harm by which the pod fits on that node, or the reasons why none does."""
    snapshot = attempt.runner.snapshot
    potential = [other for other in snapshot.pods[row].values() if other.priority < pod.priority]
    potential = [other for other in potential if guards.allow(pod, other, snapshot.now)]
    if not potential:
        return (_NO_VICTIMS,)
    potential.sort(key=_importance)
    ahead = attempt.nominated.get(row, ())
    gone: dict[str, Pod] = {}
    arrival = tuple(snapshot.pods[row])

    def remove(other: Pod) -> None:
        snapshot.remove_pod(row, other)
        gone[other.uid] = other

    def restore(other: Pod) -> None:
        snapshot.add_pod(row, other)
        del gone[other.uid]

    def reasons_against() -> tuple[str, ...]:
        return _judge(attempt, row, ahead, tuple(gone.values()))

    try:
        for other in potential:
            remove(other)
        against = reasons_against()
        if against:
            return against
        violating, others = _by_budget(potential, attempt.budgets)
        victims: list[Pod] = []
        violations = 0
        for group, is_violating in ((violating, True), (others, False)):
            for other in group:
                restore(other)
                if reasons_against():
                    remove(other)
                    victims.append(other)
                    violations += is_violating
    finally:
        for other in tuple(gone.values()):
            restore(other)
        snapshot.arrange_pods(row, arrival)
    if not victims:  # a plugin that changes its mind: evicting nobody is no remedy
        return (f'expected at least one victim pod on node "{snapshot.name_at(row)}"',)
    victims.sort(key=_importance)
    forbidden = guards.against(victims, lambda chosen: bool(_by_budget(chosen, attempt.budgets)[0]))
    if forbidden:
        return forbidden
    return Candidate(snapshot.name_at(row), tuple(victims), violations)


def _judge(attempt: FailedAttempt, row: int, ahead: Sequence[Pod], removed: Sequence[Pod]) -> tuple[str, ...]:
    """The reasons against the node with the snapshot as it is, with the nominated pods on it and without."""
    runner = attempt.runner
    if ahead:
        for other in ahead:
            runner.snapshot.add_pod(row, other)
        try:
            rejection = runner.judge(runner.adjusted(attempt.pre, row, ahead, removed), row)
        finally:
            for other in ahead:
                runner.snapshot.remove_pod(row, other)
        if rejection is not None:
            return rejection.reasons
    pre: PreFiltered = runner.adjusted(attempt.pre, row, (), removed)
    rejection = runner.judge(pre, row)
    return () if rejection is None else rejection.reasons


def _importance(pod: Pod) -> tuple[int, float, str]:
    """Sort key, the most important first: higher priority, then longer running; the UID makes it the same each time."""
    return -pod.priority, math.inf if pod.started is None else pod.started, pod.uid


def _by_budget(pods: Sequence[Pod], budgets: Sequence[DisruptionBudget]) -> tuple[list[Pod], list[Pod]]:
    """Those whose eviction breaks a budget, were all of them evicted in this order, and the others."""
    left = [budget.allowed for budget in budgets]
    violating: list[Pod] = []
    others: list[Pod] = []
    for pod in pods:
        breaks = False
        for index, budget in enumerate(budgets):
            if budget.guards(pod):
                left[index] -= 1
                if left[index] < 0:
                    breaks = True
                    break
        (violating if breaks else others).append(pod)
    return violating, others


def _earliest_start(victims: Sequence[Pod]) -> float:
    top = victims[0].priority
    return min(math.inf if pod.started is None else pod.started for pod in victims if pod.priority == top)


#: What makes one candidate better than another, most telling first; the smallest figure wins.
_HARM: Sequence[Callable[[Candidate], float]] = (
    lambda candidate: candidate.violations,
    lambda candidate: candidate.victims[0].priority,
    lambda candidate: sum(pod.priority + _PRIORITY_OFFSET for pod in candidate.victims),
    lambda candidate: len(candidate.victims),
    lambda candidate: -_earliest_start(candidate.victims),
)


def best_candidates(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates that the rules prefer to all others and cannot tell apart."""
    best = list(candidates)
    for harm in _HARM:
        least = min(harm(candidate) for candidate in best)
        best = [candidate for candidate in best if harm(candidate) == least]
    return best
