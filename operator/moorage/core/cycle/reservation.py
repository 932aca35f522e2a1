"""Reserve and Permit: from a chosen node to leave to bind."""

from __future__ import annotations

from dataclasses import dataclass

from moorage.core.framework.answers import PluginError, guarded
from moorage.core.framework.interface import Rejected, Wait
from moorage.core.framework.runner import Runner
from moorage.core.model.decision import Rejection
from moorage.core.model.instructions import Fault
from moorage.core.model.pod import Pod


@dataclass(slots=True)
class Waiting:
    """A pod that keeps its place until ``plugin`` lets it go, at the longest until ``deadline`` (engine time).

    ``timeout`` is the same as a duration in seconds.
    """

    pod: Pod
    plugin: str
    deadline: float
    timeout: float


def reserve(runner: Runner, pod: Pod) -> Rejection | None:
    """Run Reserve for a pod placed on ``pod.node_name``.

    After a rejection or an error (PluginError) the caller undoes what was reserved (``unreserve``).
    """
    for plugin in runner.reservers:
        rejected = guarded(plugin, "Reserve", plugin.reserve, pod, pod.node_name, runner.snapshot)
        if rejected is not None:
            return Rejection(plugin.name, rejected.reasons, rejected.code)
    return None


def unreserve(runner: Runner, pod: Pod) -> list[Fault]:
    """Undo Reserve, last plugin first; plugins that reserved nothing have nothing to undo.

    One that raises does not keep the others from undoing theirs; returns what was raised.
    """
    faults = []
    for plugin in reversed(runner.reservers):
        try:
            guarded(plugin, "Unreserve", plugin.unreserve, pod, pod.node_name, runner.snapshot)
        except PluginError as error:
            faults.append(Fault(str(error), pod.ref))
    return faults


def permit(runner: Runner, pod: Pod, now: float) -> Rejection | Waiting | None:
    """Run Permit: None lets the pod go; among several that make it wait, the shortest timeout counts."""
    waiting: Waiting | None = None
    for plugin in runner.permitters:
        answer = guarded(plugin, "Permit", plugin.permit, pod, pod.node_name)
        if isinstance(answer, Rejected):
            return Rejection(plugin.name, answer.reasons, answer.code)
        if isinstance(answer, Wait) and (waiting is None or now + answer.timeout < waiting.deadline):
            waiting = Waiting(pod, plugin.name, now + answer.timeout, answer.timeout)
    return waiting


def timed_out(waiting: Waiting) -> Rejection:
    """The rejection of a pod that has waited too long."""
    text = f"rejected due to timeout after waiting {_duration(waiting.timeout)} at plugin {waiting.plugin}"
    return Rejection(waiting.plugin, (text,))


def _duration(seconds: float) -> str:
    """A duration as Go prints it: 10s, 1m30s, 1h0m0s, 500ms."""
    if seconds < 1:
        return f"{seconds * 1000:g}ms"
    hours, rest = divmod(seconds, 3600)
    minutes, rest = divmod(rest, 60)
    text = f"{rest:g}s"
    if hours or minutes:
        text = f"{minutes:.0f}m{text}"
    return f"{hours:.0f}h{text}" if hours else text


def refusal_text(rejection: Rejection) -> str:
    """The words for a rejection by the one node that had been chosen (kube-scheduler's FitError of one node)."""
    return f"0/1 nodes are available: {', '.join(sorted(f'1 {reason}' for reason in rejection.reasons))}."
