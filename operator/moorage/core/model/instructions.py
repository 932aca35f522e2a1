"""What the engine asks for: the only outputs of ``Engine.step``.

The runtime carries them out in any order it likes, except that writes for one pod stay in order.
What an instruction led to comes back as an event.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from moorage.core.model.extender import Question
from moorage.core.model.pod import PodRef
from moorage.core.model.policy import PolicyRef
from moorage.core.model.storage import ClaimRef


@dataclass(frozen=True, slots=True)
class Placement:
    """One pod on one node.  ``bound_by`` is the extender that writes the binding, "" if we do."""

    ref: PodRef
    node_name: str
    bound_by: str = ""


@dataclass(frozen=True, slots=True)
class Bind:
    """Bind these pods to their nodes, each by a POST to ``pods/binding`` with the UID as precondition.

    Each placement is answered by a BindSucceeded or BindFailed of its own.  ``annotations`` go with every Binding.
    """

    placements: tuple[Placement, ...]
    annotations: tuple[tuple[str, str], ...] = ()


class RecordType(StrEnum):
    """The type of a Kubernetes Event."""

    NORMAL = "Normal"
    WARNING = "Warning"


@dataclass(frozen=True, slots=True)
class Record:
    """Write a Kubernetes Event about a pod (coalesced with equal ones; may lag, never blocks).

    ``scheduler_name`` is the one that reports it, "" if that is not known any more.
    """

    ref: PodRef
    type: RecordType
    reason: str
    message: str
    action: str
    scheduler_name: str = ""


@dataclass(frozen=True, slots=True)
class SetCondition:
    """Patch a condition of the pod with this reason and message: PodScheduled to False, unless it says otherwise.

    Dropped by the writer when the pod is bound or replaced meanwhile.  ``nominated_node`` None leaves
    ``status.nominatedNodeName`` as it is, "" clears it.  ``generation`` is the pod's that was decided on, 0 leaves the
    condition's ``observedGeneration`` as it is.  ``transition``: at that resource version, the condition's status is
    another one.  Conditions of different types do not replace each other.
    """

    ref: PodRef
    resource_version: str
    reason: str
    message: str
    nominated_node: str | None = None
    generation: int = 0
    transition: bool = True
    type: str = "PodScheduled"
    status: str = "False"


@dataclass(frozen=True, slots=True)
class FetchPod:
    """Read the live pod of this name and answer with PodFetched."""

    ref: PodRef


@dataclass(frozen=True, slots=True)
class Evict:
    """Make room for a pod: give each victim a DisruptionTarget condition, then delete it.

    The preemptor is read once before; if it is bound, replaced or gone, nothing is evicted.
    Deletes carry the victim's UID as precondition.  Answered by one EvictionFinished.
    ``generations`` are the victims' by UID, as far as they are known; the condition tells them.
    """

    preemptor: PodRef
    scheduler_name: str
    node_name: str
    victims: tuple[PodRef, ...]
    generations: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CallExtender:
    """Ask an extender.  Answered by one ExtenderAnswered of this ticket, whatever happens."""

    ticket: int
    question: Question


@dataclass(frozen=True, slots=True)
class BindVolume:
    """Let a volume name the claim that it is for.  ``resource_version`` is that of the volume as it was chosen.

    ``prebound``: it named the claim before, by somebody's wish; what is missing is the UID.
    """

    volume: str
    resource_version: str
    claim: ClaimRef
    prebound: bool = False


@dataclass(frozen=True, slots=True)
class SelectNode:
    """Let a claim name the node for which a volume is to be provisioned (``volume.kubernetes.io/selected-node``)."""

    claim: ClaimRef
    resource_version: str
    node_name: str


VolumeStep = BindVolume | SelectNode


@dataclass(frozen=True, slots=True)
class PrepareVolumes:
    """Carry the steps out, one after the other, each guarded by the resource version; stop at the first that fails.

    Answered by one VolumesPrepared or VolumesNotPrepared with the same ``ticket``.
    """

    ref: PodRef
    ticket: int
    steps: tuple[VolumeStep, ...]


class AttemptResult(StrEnum):
    """How a scheduling attempt ended; the values of kube-scheduler's ``result`` metric label."""

    SCHEDULED = "scheduled"
    UNSCHEDULABLE = "unschedulable"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Attempted:
    """Account for one scheduling attempt in metrics and logs.

    ``attempts`` counts this one; ``added`` is the engine time at which the pod entered the queue;
    ``plugins`` are those that rejected it.  ``SCHEDULED`` means that a node was chosen, not yet that it is bound.
    ``preemption_tried``: it was looked for pods to evict, with or without success.
    """

    ref: PodRef
    scheduler_name: str
    result: AttemptResult
    attempts: int
    added: float
    node_name: str = ""
    feasible_nodes: int = 0
    plugins: tuple[str, ...] = ()
    message: str = ""
    preemption_tried: bool = False


@dataclass(frozen=True, slots=True)
class Audited:
    """Account for one audit: would the pod have gone elsewhere, had the policy been in force?"""

    ref: PodRef
    policy: PolicyRef
    differs: bool


@dataclass(frozen=True, slots=True)
class Fault:
    """Tell the operator of the scheduler that a plugin misbehaved where no attempt could fail for it."""

    message: str
    ref: PodRef | None = None


Instruction = (
    Bind
    | Record
    | SetCondition
    | FetchPod
    | Evict
    | PrepareVolumes
    | CallExtender
    | Attempted
    | Audited
    | Fault
)
