"""HTTP extenders of the configuration, as far as decisions depend on them: what they are asked, and what they answer.

Where they are and how they are spoken to is the adapter's (``adapters.extender``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from moorage.core.model.pod import Pod, PodRef

#: The highest score that an extender gives by the protocol; the range is not enforced, as in kube-scheduler.
MAX_EXTENDER_PRIORITY = 10

#: Where we are the extender: nodes that were sent as whole objects and are judged although no stream has shown them
#: yet, at the most.  Each costs a change of the columns.
MOST_UNSEEN = 50


class Verb(StrEnum):
    """What an extender is asked in the course of a cycle."""

    FILTER = "filter"
    PRIORITIZE = "prioritize"
    PREEMPT = "preempt"


@dataclass(frozen=True, slots=True)
class Extender:
    """One extender.  ``name`` is its URL prefix, ``number`` its place in the configuration.

    ``managed`` names the extended resources whose pods concern it; if empty, all pods do.  ``ignorable``: its
    failures are skipped.
    """

    name: str
    number: int = 0
    verbs: frozenset[Verb] = frozenset()
    binds: bool = False
    weight: int = 0
    ignorable: bool = False
    managed: frozenset[str] = frozenset()

    def concerns(self, pod: Pod) -> bool:
        """Whether the extender is asked about the pod."""
        return not self.managed or not self.managed.isdisjoint(pod.spec.requests.amounts)


@dataclass(frozen=True, slots=True)
class Victims:
    """The pods that would be evicted from a node, most important first, and how many budgets that breaks."""

    pods: tuple[PodRef, ...]
    violations: int = 0


@dataclass(frozen=True, slots=True)
class Question:
    """What an extender is asked about a pod: which of these nodes, how good they are, or which of these evictions."""

    extender: Extender
    verb: Verb
    pod: PodRef
    node_names: tuple[str, ...] = ()
    victims: Mapping[str, Victims] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Filtered:
    """The nodes that may take the pod, and the reasons against others; ``unresolvable``: eviction cannot help."""

    passed: tuple[str, ...]
    failed: Mapping[str, str] = field(default_factory=dict)
    unresolvable: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Prioritized:
    """Scores by node, in the order in which they were given."""

    scores: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Preempted:
    """By node, the UIDs of the pods to evict and how many budgets that breaks."""

    victims: Mapping[str, tuple[tuple[str, ...], int]]


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """The extender said no, said nothing in time, or could not be understood; the text says which."""

    message: str


Answer = Filtered | Prioritized | Preempted | NoAnswer
