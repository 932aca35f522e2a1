"""The extension points of a scheduling cycle, in the order they run.

A plugin is an immutable object with a ``name`` and the methods of one or more of the Protocols
below.  It must not do I/O, keep state between cycles, or change anything it is given.  The words
and the order are kube-scheduler's (Kubernetes documentation, "Scheduling Framework"); what differs
is that a call answers for all nodes at once.

``S`` is whatever a plugin precomputes for one pod and gets back later in the same cycle; it takes
the place of kube-scheduler's CycleState.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, Flag, auto
from typing import ClassVar, Generic, Literal, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from moorage.core.model.cluster_event import WakesOn
from moorage.core.model.decision import Code
from moorage.core.model.instructions import VolumeStep
from moorage.core.model.pod import Pod
from moorage.core.snapshot.snapshot import Snapshot
from moorage.core.snapshot.view import Nodes

S = TypeVar("S")
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

#: The highest score of one plugin for one node, after normalisation and before its weight.
MAX_NODE_SCORE = 100


class Reads(Flag):
    """What a plugin's answers for a node depend on, besides the pod's spec.

    Answers that depend on the spec and the node alone are computed once for all alike pods and
    then only for nodes that changed.  A plugin that says too little here gives stale answers.
    """

    NODE = auto()  # the node's own properties
    USAGE = auto()  # what the pods on that node take
    CLUSTER = auto()  # anything else: the pod's labels, other nodes, other pods, the time (``snapshot.now``)


class Skip(Enum):
    """The plugin has nothing to say about this pod; its Filter or Score is not called."""

    SKIP = "skip"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a node is refused, as the user reads it; not ``resolvable``: removing pods cannot help."""

    text: str
    resolvable: bool = True


@dataclass(frozen=True, slots=True)
class Rejected:
    """PreFilter's answer when no node at all can take the pod.

    With the code UNSCHEDULABLE evicting pods may still help; ``state`` is then what ``filter`` gets in dry runs.
    """

    reasons: tuple[str, ...]
    code: Code = Code.UNSCHEDULABLE
    state: object = None


@dataclass(frozen=True, slots=True)
class Narrowed(Generic[S]):
    """PreFilter's answer when only the nodes of these names come into question."""

    state: S
    names: frozenset[str]


class Verdict:
    """A Filter plugin's answer for M nodes.

    ``reasons`` (K,) must be the same for every subset of nodes; ``failed[k, m]`` tells that reason k speaks
    against node m, ``fits[m]`` that none does.  Most pods find a node and nobody asks for reasons, so
    a plugin for which the one is cheaper than the other gives ``fits`` and a function for the rest (``lazy``).
    """

    __slots__ = ("_explain", "_failed", "fits", "reasons")

    def __init__(self, reasons: tuple[Reason, ...], failed: Bools) -> None:
        self.reasons = reasons
        failing: Bools = failed[0] if len(reasons) == 1 else np.logical_or.reduce(failed, axis=0)
        self.fits: Bools = ~failing
        self._failed: Bools | None = failed
        self._explain: Callable[[], Bools] | None = None

    @classmethod
    def lazy(cls, reasons: tuple[Reason, ...], fits: Bools, explain: Callable[[], Bools]) -> Verdict:
        """A verdict whose ``failed`` is computed when asked for, from columns that must not change until then."""
        verdict = cls.__new__(cls)
        verdict.reasons = reasons
        verdict.fits = fits
        verdict._failed = None
        verdict._explain = explain
        return verdict

    @property
    def failed(self) -> Bools:
        """Shape (K, M)."""
        if self._failed is None:
            assert self._explain is not None, "either the reasons or the way to them is given"
            self._failed = self._explain()
        return self._failed


class Plugin(Protocol):
    """What all plugins have."""

    name: ClassVar[str]

    def wakes_on(self) -> Sequence[WakesOn]:
        """The cluster changes that may help a pod this plugin rejected.

        Every plugin that can reject must name at least one, or its pods wait for the periodic flush.
        """
        ...


@runtime_checkable
class PreEnqueuePlugin(Plugin, Protocol):
    """Decides whether a pod may enter the queue at all."""

    def pre_enqueue(self, pod: Pod) -> Rejected | None:
        """Why the pod must wait outside, None if it may come in."""
        ...


@runtime_checkable
class QueueSortPlugin(Plugin, Protocol):
    """Orders the active queue."""

    def queue_key(self, pod: Pod, since: float) -> tuple[float, ...]:
        """Sort key of a pod that is in the queue since that time; the smallest goes first."""
        ...


@runtime_checkable
class FilterPlugin(Plugin, Protocol[S]):
    """Says which nodes cannot take the pod."""

    reads: ClassVar[Reads]

    def pre_filter(self, pod: Pod, snapshot: Snapshot) -> S | Skip | Rejected | Narrowed[S]:
        """Precompute what ``filter`` needs.

        Without ``Reads.CLUSTER`` from nothing but ``pod.spec``, and not from what that says about other pods
        (``pod_affinity``, ``spread``).
        """
        ...

    def filter(self, state: S, nodes: Nodes) -> Verdict:
        """The reasons against each of the nodes."""
        ...


@runtime_checkable
class StatefulFilterPlugin(FilterPlugin[S], Protocol[S]):
    """A Filter plugin whose precomputed state counts pods on nodes."""

    def with_pods(
        self, state: S, row: int, added: Sequence[Pod], removed: Sequence[Pod], snapshot: Snapshot
    ) -> S:
        """The state as it were with these pods added to and removed from the node on that row.

        Used for nominated pods and preemption dry runs.  The snapshot already shows the change.
        """
        ...


@runtime_checkable
class LateFilterPlugin(FilterPlugin[S], Protocol[S]):
    """A Filter plugin whose checks cannot be vectorised well.

    It is asked about the nodes that passed the others, not about all of them.
    """

    late: ClassVar[bool]


@runtime_checkable
class LastFilterPlugin(LateFilterPlugin[S], Protocol[S]):
    """A late Filter plugin that chooses among what is left: its word on a node depends on which others there are.

    It is asked after all others, nominated pods taken into account, and about a single node as if there were no other.
    """

    last: ClassVar[bool]


@runtime_checkable
class ScorePlugin(Plugin, Protocol[S]):
    """Says how good the feasible nodes are."""

    reads: ClassVar[Reads]

    def pre_score(self, pod: Pod, snapshot: Snapshot, nodes: Nodes) -> S | Literal[Skip.SKIP]:
        """Precompute what ``score`` needs; without ``Reads.CLUSTER`` from nothing but ``pod.spec``."""
        ...

    def score(self, state: S, nodes: Nodes) -> Ints:
        """A raw score for each of the nodes, shape (M,), on any scale."""
        ...

    def normalize(self, raw: Ints) -> Ints:
        """The scores of all feasible nodes, shape (M,), brought to 0..MAX_NODE_SCORE."""
        ...


@runtime_checkable
class OwnScalePlugin(ScorePlugin[S], Protocol[S]):
    """A Score plugin whose points are added as they are, up to ``most`` instead of MAX_NODE_SCORE."""

    @property
    def most(self) -> int:
        """The highest score there can be."""
        ...


@runtime_checkable
class TimedPlugin(Plugin, Protocol):
    """A plugin that may accept a node by the mere passing of time."""

    def changes_at(self, pod: Pod, snapshot: Snapshot) -> float | None:
        """The next instant (seconds since the epoch) at which that may be; None if only events can change its mind."""
        ...


@runtime_checkable
class HoldingPlugin(Plugin, Protocol):
    """A plugin that may keep a pod waiting whatever nodes there are, so that a new one would not help."""

    def held(self, snapshot: Snapshot) -> str:
        """Why, in words for the user; "" if it is up to the nodes."""
        ...


@runtime_checkable
class ReservePlugin(Plugin, Protocol):
    """Books what a chosen node will give the pod; pure, undone by ``unreserve``."""

    def reserve(self, pod: Pod, node_name: str, snapshot: Snapshot) -> Rejected | None:
        """Book; a rejection undoes the placement."""
        ...

    def unreserve(self, pod: Pod, node_name: str, snapshot: Snapshot) -> None:
        """Undo the booking; must be idempotent."""
        ...


@dataclass(frozen=True, slots=True)
class Wait:
    """Permit's answer for a pod that keeps its place but is not bound yet, at the longest for ``timeout`` seconds."""

    timeout: float


@runtime_checkable
class PermitPlugin(Plugin, Protocol):
    """The last word before binding: go, wait (for the rest of a gang, say) or give the place up."""

    def permit(self, pod: Pod, node_name: str) -> Rejected | Wait | None:
        """None lets the pod go on to binding."""
        ...


@dataclass(frozen=True, slots=True)
class Preparation:
    """PreBind's answer for a pod that needs something done in the cluster before it is bound.

    The ``steps`` are written first; then the plugin is asked for its progress, for ``timeout`` seconds at the longest.
    """

    steps: tuple[VolumeStep, ...]
    timeout: float


class Progress(Enum):
    """How far a preparation has come."""

    DONE = "done"
    UNDER_WAY = "under way"


@dataclass(frozen=True, slots=True)
class GivenUp:
    """The preparation came to nothing; the pod gives its place up and is tried again."""

    text: str


@runtime_checkable
class PreBindPlugin(Plugin, Protocol):
    """Gets ready what the pod needs on its node; the pod keeps its place in the meantime."""

    def pre_bind(self, pod: Pod, node_name: str, snapshot: Snapshot) -> Preparation | None:
        """What is to be done first, None if nothing is."""
        ...

    def progress(self, pod: Pod, node_name: str, snapshot: Snapshot) -> Progress | GivenUp:
        """Where the preparation stands; asked when its steps are written, and when something it is about changes."""
        ...

    def overdue(self) -> str:
        """The words for a preparation that was not done in time."""
        ...


@runtime_checkable
class BindPlugin(Plugin, Protocol):
    """Says how the pod is bound."""

    def binds(self, pod: Pod) -> bool:
        """Whether this plugin takes the pod; then a Bind instruction is sent out for it."""
        ...


def no_change(raw: Ints) -> Ints:
    """``normalize`` of plugins whose raw scores are in 0..MAX_NODE_SCORE already."""
    return raw


def normalize_by_max(raw: Ints, *, reverse: bool = False) -> Ints:
    """Scale so that the highest raw score becomes MAX_NODE_SCORE, in integer arithmetic.

    With ``reverse`` the lowest is best; if all are 0, all get MAX_NODE_SCORE then.
    Raw scores must not be negative.  (kube-scheduler: ``DefaultNormalizeScore``.)
    """
    top = int(raw.max(initial=0))
    if top == 0:
        return np.full_like(raw, MAX_NODE_SCORE) if reverse else raw
    scaled = raw * MAX_NODE_SCORE // top
    return MAX_NODE_SCORE - scaled if reverse else scaled
