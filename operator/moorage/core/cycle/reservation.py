"""Reserve and Permit: from a chosen node to leave to bind."""

from __future__ import annotations

from dataclasses import dataclass

from moorage.core.framework.answers import guarded
from moorage.core.framework.interface import Rejected, Wait
from moorage.core.framework.runner import Runner
from moorage.core.model.decision import Rejection
from moorage.core.model.pod import Pod


@dataclass(slots=True)
class Waiting:
    """A pod that keeps its place until ``plugin`` lets it go, at the longest until ``deadline`` (engine time)."""

    pod: Pod
    plugin: str
    deadline: float


def reserve(runner: Runner, pod: Pod) -> Rejection | None:
    """Run Reserve for a pod placed on ``pod.node_name``; what was reserved is undone if one plugin rejects."""
    for plugin in runner.reservers:
        rejected = guarded(plugin, "Reserve", plugin.reserve, pod, pod.node_name, runner.snapshot)
        if rejected is not None:
            unreserve(runner, pod)
            return Rejection(plugin.name, rejected.reasons, rejected.code)
    return None


def unreserve(runner: Runner, pod: Pod) -> None:
    """Undo Reserve, last plugin first; plugins that reserved nothing have nothing to undo."""
    for plugin in reversed(runner.reservers):
        guarded(plugin, "Unreserve", plugin.unreserve, pod, pod.node_name, runner.snapshot)


def permit(runner: Runner, pod: Pod, now: float) -> Rejection | Waiting | None:
    """Run Permit: None lets the pod go; among several that make it wait, the shortest timeout counts."""
    waiting: Waiting | None = None
    for plugin in runner.permitters:
        answer = guarded(plugin, "Permit", plugin.permit, pod, pod.node_name)
        if isinstance(answer, Rejected):
            return Rejection(plugin.name, answer.reasons, answer.code)
        if isinstance(answer, Wait) and (waiting is None or now + answer.timeout < waiting.deadline):
            waiting = Waiting(pod, plugin.name, now + answer.timeout)
    return waiting


def refusal_text(rejection: Rejection) -> str:
    """The words for a rejection by the one node that had been chosen (kube-scheduler's FitError of one node)."""
    return f"0/1 nodes are available: {', '.join(sorted(f'1 {reason}' for reason in rejection.reasons))}."
