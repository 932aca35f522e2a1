"""What a SchedulingPolicy says, read and checked: what the adapters hand in and the core applies.

Source of the meanings: docs/policies.md.  Durations are seconds, times of day minutes after midnight,
percentages whole numbers; a field that the policy does not set is None or empty.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import tzinfo
from enum import Enum, Flag, StrEnum, auto
from types import MappingProxyType
from typing import Protocol

from moorage.core.model.selector import LabelSelector
from moorage.core.model.taint import Taint

_NO_AMOUNTS: Mapping[str, int] = MappingProxyType({})


def _no_amounts() -> Mapping[str, int]:
    return _NO_AMOUNTS


class Mode(StrEnum):
    """Whether a policy decides, only tells what it would have decided, or sleeps."""

    ENFORCE = "Enforce"
    AUDIT = "Audit"
    DISABLED = "Disabled"


@dataclass(frozen=True, slots=True, order=True)
class PolicyRef:
    """Which policy; ``namespace`` is "" for a ClusterSchedulingPolicy."""

    namespace: str
    name: str

    @property
    def key(self) -> str:
        """``namespace/name``, or the name alone for a policy of the cluster: as messages and records name it."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


# -- expressions ---------------------------------------------------------------------------------


class Speaks(Flag):
    """What an expression over a node depends on: how long its value holds."""

    NODE = auto()  # name, labels, taints, allocatable
    REQUESTED = auto()  # what the pods on the node ask for
    USAGE = auto()  # what the node really uses


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What an expression can say about a node.

    Amounts are doubles: cores, bytes, or pieces; ``usage`` is in percent of allocatable and empty when stale.
    ``taints`` have key, value and effect.
    """

    name: str
    labels: Mapping[str, str]
    taints: tuple[Mapping[str, str], ...]
    allocatable: Mapping[str, float]
    requested: Mapping[str, float]
    usage: Mapping[str, float]


class ExpressionError(Exception):
    """An expression that fails for one node: a missing field, a wrong type, or too long a calculation."""


class NodeExpression(Protocol):
    """A compiled expression over one node; equal texts may share one.  Must be pure."""

    @property
    def text(self) -> str:
        """As the policy has it."""
        ...

    @property
    def speaks(self) -> Speaks:
        """What the value depends on."""
        ...

    def truth(self, node: NodeFacts) -> bool:
        """For hard rules; raises ExpressionError, also where the value is no bool."""
        ...

    def score(self, node: NodeFacts) -> float:
        """For preferences: a number brought to 0..100, or 100 for true and 0 for false; raises ExpressionError."""
        ...


# -- which pods, and when ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Selection:
    """Which pods a policy is about; everything that is set must hold, and an empty selection takes every pod in scope.

    ``expression`` is the text of an expression over the pod: it holds if the text is in ``Pod.holds``.
    """

    pods: LabelSelector = field(default_factory=LabelSelector)
    namespaces: LabelSelector | None = None
    priority_classes: frozenset[str] = frozenset()
    scheduler_names: frozenset[str] = frozenset()
    expression: str = ""


@dataclass(frozen=True, slots=True)
class Window:
    """A span of the week: it opens at ``start`` on each of ``days`` (0 is Monday) and closes at the next ``end``.

    ``end`` at or before ``start`` is on the day after.  Times are local to ``zone``; a skipped one moves forward.
    ``hold``: pods wait while it is open; otherwise they may go only while one like this is open.
    """

    days: frozenset[int]
    start: int
    end: int
    zone: tzinfo
    hold: bool = False


# -- where ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AvoidedTaint:
    """Nodes with a taint of this key (and value and effect, where they are set) are not used."""

    key: str
    value: str | None = None
    effect: str | None = None

    def matches(self, taint: Taint) -> bool:
        """Whether the rule speaks of this taint."""
        return (
            self.key == taint.key
            and self.value in (None, taint.value)
            and self.effect in (None, taint.effect)
        )


@dataclass(frozen=True, slots=True)
class NodeRules:
    """Hard narrowing; ``keep_free`` is the percentage of allocatable that must be left after placement, by resource."""

    selector: LabelSelector | None = None
    expression: NodeExpression | None = None
    avoid_taints: tuple[AvoidedTaint, ...] = ()
    keep_free: Mapping[str, int] = field(default_factory=_no_amounts)


@dataclass(frozen=True, slots=True)
class Pool:
    """Nodes of one kind and how many of the selected pods they take: a number, a percentage, or without bound."""

    name: str
    selector: LabelSelector
    max_pods: int | None = None
    max_percent: int | None = None


@dataclass(frozen=True, slots=True)
class Pools:
    """Ordered pools; ``wait``: a pod is held when the first is full or nothing in it fits, not sent on to the next."""

    items: tuple[Pool, ...]
    wait: bool = False


@dataclass(frozen=True, slots=True)
class SpreadRule:
    """Even numbers of the selected pods over the domains of a topology key.

    ``hard`` for ``hard_for`` seconds (None: for ever), and a preference after that.
    """

    topology_key: str
    max_skew: int = 1
    min_domains: int | None = None
    hard: bool = True
    hard_for: float | None = None


@dataclass(frozen=True, slots=True)
class LimitRule:
    """At most so many of the selected pods in one domain; nodes without the key are out."""

    topology_key: str
    max_pods: int


# -- how good ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StrategyRule:
    """NodeResourcesFit's strategy: its ``type``, (resource, weight) pairs and (utilization, score) points."""

    type: str
    resources: tuple[tuple[str, int], ...]
    shape: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Preference:
    """Adds score times ``weight`` (1..100) to a node's total: one of selector and expression is set."""

    weight: int
    selector: LabelSelector | None = None
    expression: NodeExpression | None = None


@dataclass(frozen=True, slots=True)
class Scoring:
    """Soft rules; ``weights`` are those of plugins by name, 0 turns one off; ``protect`` names scarce resources."""

    strategy: StrategyRule | None = None
    weights: Mapping[str, int] = field(default_factory=_no_amounts)
    prefer: tuple[Preference, ...] = ()
    protect: tuple[str, ...] = ()


class OnStale(Enum):
    """What to make of a node of whose real use nothing recent is known."""

    IGNORE = "Ignore"
    EXCLUDE = "Exclude"


@dataclass(frozen=True, slots=True)
class LoadRules:
    """Real use in percent of allocatable: nodes above ``limit`` are out, those above ``target`` are worse."""

    target: Mapping[str, int] = field(default_factory=_no_amounts)
    limit: Mapping[str, int] = field(default_factory=_no_amounts)
    stale_after: float = 180.0
    on_stale: OnStale = OnStale.IGNORE


# -- whom it may evict, and failure --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PreemptionRules:
    """Guards of the selected pods as preemptors.

    ``never``: evict nobody; ``strict_budgets``: no victim whose disruption budget is used up.
    """

    never: bool = False
    min_victim_runtime: float | None = None
    min_priority_gap: int | None = None
    max_victims: int | None = None
    strict_budgets: bool = False


@dataclass(frozen=True, slots=True)
class Backoff:
    """Seconds a pod waits after its first failed attempt, doubled with each more up to ``longest``."""

    initial: float | None = None
    longest: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Policy:
    """One accepted generation of a SchedulingPolicy or ClusterSchedulingPolicy; compared by identity.

    ``created`` is in seconds since the epoch; the older of two of equal ``precedence`` goes first.
    """

    ref: PolicyRef
    uid: str = ""
    generation: int = 0
    created: float = 0.0
    precedence: int = 0
    mode: Mode = Mode.ENFORCE
    canary_percent: int | None = None
    selection: Selection = field(default_factory=Selection)
    windows: tuple[Window, ...] = ()
    max_delay: float | None = None
    nodes: NodeRules | None = None
    pools: Pools | None = None
    spread: tuple[SpreadRule, ...] = ()
    limits: tuple[LimitRule, ...] = ()
    scoring: Scoring | None = None
    load: LoadRules | None = None
    preemption: PreemptionRules | None = None
    backoff: Backoff | None = None
    pending_deadline: float | None = None
