"""PreBind: what is done for a placed pod before it is bound, and the wait for it."""

from __future__ import annotations

from dataclasses import dataclass

from moorage.core.framework.answers import guarded
from moorage.core.framework.interface import GivenUp, PreBindPlugin, Preparation, Progress
from moorage.core.framework.runner import Runner
from moorage.core.model.instructions import VolumeStep
from moorage.core.model.pod import Pod


@dataclass(slots=True)
class Preparing:
    """A pod that keeps its place until the plugins are done, each at the longest until its deadline (engine time).

    ``ticket`` tells the answer to our own order from one to an order of an earlier attempt.
    """

    pod: Pod
    ticket: int
    left: list[tuple[PreBindPlugin, float, float]]  # with its timeout and its deadline

    @property
    def deadline(self) -> float:
        """When the first of them has taken too long."""
        return min(deadline for _, _, deadline in self.left)

    def restart(self, now: float) -> None:
        """The steps are written: from now on it is others that take their time."""
        self.left = [(plugin, timeout, now + timeout) for plugin, timeout, _ in self.left]


@dataclass(frozen=True, slots=True)
class Ended:
    """The wait is over: the pod may be bound, or ``error`` says why not."""

    error: str = ""


def prepare(
    runner: Runner, pod: Pod, ticket: int, now: float
) -> tuple[Preparing | None, tuple[VolumeStep, ...]]:
    """Run PreBind for a pod placed on ``pod.node_name``: None if it can be bound at once; raises PluginError."""
    answers: list[tuple[PreBindPlugin, Preparation]] = []
    for plugin in runner.pre_binders:
        answer = guarded(plugin, "PreBind", plugin.pre_bind, pod, pod.node_name, runner.snapshot)
        if answer is not None:
            answers.append((plugin, answer))
    if not answers:
        return None, ()
    left = [(plugin, answer.timeout, now + answer.timeout) for plugin, answer in answers]
    steps = tuple(step for _, answer in answers for step in answer.steps)
    return Preparing(pod, ticket, left), steps


def revisit(runner: Runner, preparing: Preparing, now: float) -> Ended | None:
    """Ask how far the plugins have come; None while there is something to wait for.  Raises PluginError."""
    pod = preparing.pod
    left = []
    for plugin, timeout, deadline in preparing.left:
        answer = guarded(plugin, "PreBind", plugin.progress, pod, pod.node_name, runner.snapshot)
        if isinstance(answer, GivenUp):
            return Ended(error_text(plugin.name, answer.text))
        if answer is Progress.DONE:
            continue
        if now >= deadline:
            return Ended(error_text(plugin.name, plugin.overdue()))
        left.append((plugin, timeout, deadline))
    preparing.left = left
    return None if left else Ended()


def error_text(plugin: str, text: str) -> str:
    """The words for a failure, as kube-scheduler has them (``RunPreBindPlugins``)."""
    return f'running PreBind plugin "{plugin}": {text}'
