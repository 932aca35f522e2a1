"""The eviction of lower-priority pods, tried on one node: pods are really taken off the snapshot and put back.

This way works with any plugins; ``dry_runs`` tries many nodes at once where the plugins can say what pods add up to.
Source of the rules: kube-scheduler v1.37 (``SelectVictimsOnNode``).
"""

from __future__ import annotations

from collections.abc import Sequence

from moorage.core.framework.answers import PreFiltered
from moorage.core.framework.budgets import Budgets
from moorage.core.framework.post_filter import Candidate, FailedAttempt
from moorage.core.framework.preemption_guards import NO_GUARDS, Guards
from moorage.core.model.pod import Pod
from moorage.core.snapshot.ranking import importance

NO_VICTIMS = "No preemption victims found for incoming pod"


def nobody_goes(node_name: str) -> str:
    """The words about a node where the pod fits without an eviction: a plugin has changed its mind."""
    return f'expected at least one victim pod on node "{node_name}"'


def dry_run(
    pod: Pod, attempt: FailedAttempt, row: int, budgets: Budgets, guards: Guards = NO_GUARDS
) -> Candidate | tuple[str, ...]:
    """The smallest harm by which the pod fits on that node, or the reasons why none does; raises PluginError."""
    snapshot = attempt.runner.snapshot
    potential = [other for other in snapshot.pods[row].values() if guards.allow(pod, other, snapshot.now)]
    if not potential:
        return (NO_VICTIMS,)
    potential.sort(key=importance)
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
        broken = budgets.broken(potential)
        victims: list[Pod] = []
        violations = 0
        for is_violating in (True, False):
            for other, breaks in zip(potential, broken, strict=True):
                if breaks is is_violating:
                    restore(other)
                    if reasons_against():
                        remove(other)
                        victims.append(other)
                        violations += is_violating
    finally:
        for other in tuple(gone.values()):
            restore(other)
        snapshot.arrange_pods(row, arrival)
    if not victims:
        return (nobody_goes(snapshot.name_at(row)),)
    victims.sort(key=importance)
    forbidden = guards.against(victims, budgets)
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
