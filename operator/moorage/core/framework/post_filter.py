"""PostFilter: what can be done for a pod that no node can take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from moorage.core.framework.answers import PreFiltered
from moorage.core.framework.diagnosis import Diagnosis
from moorage.core.framework.interface import Plugin
from moorage.core.framework.runner import Runner
from moorage.core.model.budget import DisruptionBudget
from moorage.core.model.pod import Pod
from moorage.core.snapshot.ranking import start_of

#: Makes every priority positive, so that a sum grows with the number of pods.
PRIORITY_OFFSET = 1 << 31


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """A cycle that found no feasible node, as PostFilter plugins see it.

    ``nominated`` maps rows to the nominated pods that the pod must give way to.  ``awaited`` are
    the UIDs of pods that were asked to go for this pod's sake and whose going no stream has shown yet.
    """

    runner: Runner
    pre: PreFiltered
    diagnosis: Diagnosis
    nominated: Mapping[int, Sequence[Pod]]
    budgets: Sequence[DisruptionBudget] = ()
    awaited: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node on which the pod fits once the victims (most important first) are gone."""

    node_name: str
    victims: tuple[Pod, ...]
    violations: int = 0  # victims whose eviction breaks a disruption budget


def harm(candidate: Candidate) -> tuple[float, ...]:
    """What makes one candidate better than another, most telling first; the smallest figures win.

    Source of the rule: kube-scheduler v1.37 (``pickOneNodeForPreemption``).
    """
    victims = candidate.victims
    top = victims[0].priority
    earliest = min(start_of(victim) for victim in victims if victim.priority == top)
    return (
        candidate.violations,
        top,
        sum(victim.priority + PRIORITY_OFFSET for victim in victims),
        len(victims),
        -earliest,
    )


@dataclass(frozen=True, slots=True)
class PostFiltered:
    """PostFilter's answer.

    ``message`` is added to the text of the PodScheduled condition.  ``chosen`` is what to do, None if nothing
    helps; then ``clear_nomination`` tells that a promise made before is void.
    """

    message: str
    chosen: Candidate | None = None
    candidates: Sequence[Candidate] = ()
    ties: tuple[str, ...] = ()
    clear_nomination: bool = False
    plugins: frozenset[str] = field(default_factory=frozenset)


@runtime_checkable
class PostFilterPlugin(Plugin, Protocol):
    """Called when Filter left no node; must leave the snapshot as it found it."""

    def post_filter(self, pod: Pod, attempt: FailedAttempt) -> PostFiltered:
        """What would make room for the pod."""
        ...


@runtime_checkable
class PreemptionPlugin(PostFilterPlugin, Protocol):
    """A PostFilter plugin whose candidates extenders may strike out."""

    def choose(self, candidates: Sequence[Candidate]) -> PostFiltered:
        """The best of these candidates (at least one)."""
        ...
