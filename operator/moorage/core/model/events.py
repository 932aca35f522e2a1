"""What happens to the scheduler: the engine's only inputs.

``Engine.handle(event, now)`` accepts each of these.  An event carries values of the model, never raw
API objects, so a recorded list of them replays as a test.  (Kubernetes Events, the records a user
reads, are ``instructions.Record``; changes that may wake a rejected pod are ``cluster_event.ClusterEvent``.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from moorage.core.model.budget import DisruptionBudget
from moorage.core.model.device_class import DeviceClass
from moorage.core.model.extender import Answer
from moorage.core.model.node import Node
from moorage.core.model.pod import Pod, PodRef
from moorage.core.model.policy import Policy, PolicyRef
from moorage.core.model.storage import StorageKind, StorageObject
from moorage.core.model.workload import Namespace, Workload, WorkloadKind


@dataclass(frozen=True, slots=True)
class NodeApplied:
    """A node exists in this state (new or changed)."""

    node: Node


@dataclass(frozen=True, slots=True)
class NodeGone:
    """A node no longer exists."""

    name: str


@dataclass(frozen=True, slots=True)
class PodPending:
    """The stream of unscheduled pods shows this pod, new or changed."""

    pod: Pod


@dataclass(frozen=True, slots=True)
class PodLeftPending:
    """The stream of unscheduled pods says DELETED.

    That means *left the selector* (bound, finished or deleted), and says nothing about which.
    """

    ref: PodRef


@dataclass(frozen=True, slots=True)
class PendingListed:
    """Every pod that matches the narrowed selector at one moment.

    Pods in the queue that are not among them and were seen before ``listed_at`` (engine time at
    which the list was asked for) are gone.
    """

    uids: frozenset[str]
    listed_at: float


@dataclass(frozen=True, slots=True)
class PodBound:
    """The stream of bound pods shows this pod on its node, new or changed; finished pods hold nothing."""

    pod: Pod


@dataclass(frozen=True, slots=True)
class PodGone:
    """A bound pod no longer exists (or has finished and left the stream)."""

    ref: PodRef


@dataclass(frozen=True, slots=True)
class BudgetApplied:
    """A PodDisruptionBudget exists in this state (new or changed)."""

    budget: DisruptionBudget


@dataclass(frozen=True, slots=True)
class BudgetGone:
    """A PodDisruptionBudget no longer exists."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class StorageApplied:
    """A storage object exists in this state (new or changed)."""

    obj: StorageObject


@dataclass(frozen=True, slots=True)
class StorageGone:
    """A storage object no longer exists; ``key`` is ``namespace/name``, or the name where there are no namespaces."""

    kind: StorageKind
    key: str


@dataclass(frozen=True, slots=True)
class NamespaceApplied:
    """A namespace exists with these labels (new or changed)."""

    namespace: Namespace


@dataclass(frozen=True, slots=True)
class NamespaceGone:
    """A namespace no longer exists."""

    name: str


@dataclass(frozen=True, slots=True)
class WorkloadApplied:
    """A Service or a controller exists with this selector (new or changed)."""

    workload: Workload


@dataclass(frozen=True, slots=True)
class WorkloadGone:
    """A Service or a controller no longer exists."""

    kind: WorkloadKind
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class DeviceClassApplied:
    """A DeviceClass exists in this state (new or changed)."""

    device_class: DeviceClass


@dataclass(frozen=True, slots=True)
class DeviceClassGone:
    """A DeviceClass no longer exists."""

    name: str


class BindFailure(StrEnum):
    """Why a binding did not take effect, in the words of what happens next."""

    CONFLICT = "conflict"  # 409 and the live pod is still unbound: try again
    GONE = "gone"  # the pod does not exist, or another one has its name: forget it
    BOUND_ELSEWHERE = "bound-elsewhere"  # someone else bound it: forget, the stream brings it
    FORBIDDEN = "forbidden"  # 403: try again, slowly, and tell the user
    INVALID = "invalid"  # 400 or 422: the API server refuses the pod or the binding
    UNAVAILABLE = "unavailable"  # 429, 5xx, network, after the binder's own retries
    NOT_LEADER = "not-leader"  # the lease ran out before the request was sent
    EXTENDER = "extender"  # the extender that was to write the binding says no, or says nothing
    STALE = "stale"  # the last look at our own cache found the node unfit


@dataclass(frozen=True, slots=True)
class BindSucceeded:
    """The API server took the binding (or the live pod was found bound to this very node)."""

    ref: PodRef
    node_name: str


@dataclass(frozen=True, slots=True)
class BindFailed:
    """The binding did not take effect, and it is certain that it will not any more."""

    ref: PodRef
    node_name: str
    failure: BindFailure
    message: str
    retry_after: float = 0.0  # seconds the server asked to wait


@dataclass(frozen=True, slots=True)
class VolumesPrepared:
    """Every step of ``instructions.PrepareVolumes`` is written; ``versions`` are what each object became by it."""

    ref: PodRef
    ticket: int
    versions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class VolumesNotPrepared:
    """A step of ``instructions.PrepareVolumes`` could not be written; those before it stay as they are."""

    ref: PodRef
    ticket: int
    failure: BindFailure
    message: str
    retry_after: float = 0.0  # seconds the server asked to wait


@dataclass(frozen=True, slots=True)
class PodFetched:
    """Answer to ``instructions.FetchPod``: the live pod of that name, or None if there is none.

    ``pod`` may carry another UID than ``ref``: then the one asked about is gone.
    """

    ref: PodRef
    pod: Pod | None


@dataclass(frozen=True, slots=True)
class EvictionFinished:
    """What became of ``instructions.Evict``: every victim was asked to go, or ``error`` says why not.

    The victims' going itself comes by the bound stream.
    """

    preemptor: PodRef
    error: str = ""


@dataclass(frozen=True, slots=True)
class ExtenderAnswered:
    """Answer to ``instructions.CallExtender``: what the extender says, or that it says nothing of use."""

    ticket: int
    answer: Answer


@dataclass(frozen=True, slots=True)
class PolicyApplied:
    """A policy exists in this accepted generation (new or changed)."""

    policy: Policy


@dataclass(frozen=True, slots=True)
class PolicyGone:
    """A policy no longer exists."""

    ref: PolicyRef


@dataclass(frozen=True, slots=True)
class UsageSample:
    """What a node really used, in base units by resource; measured at ``at`` (seconds since the epoch)."""

    at: float
    amounts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class UsageMeasured:
    """The latest samples of all nodes by name, as one answer of metrics.k8s.io; a node that is absent has none."""

    samples: Mapping[str, UsageSample]


@dataclass(frozen=True, slots=True)
class Reconfigured:
    """The configuration is another one from now on.

    ``profiles`` are ``core.profile.Profile`` by scheduler name, the first answers for pods of other names;
    ``queue`` is a ``core.queue.scheduling_queue.QueueSettings``.  (The model stands below both.)
    """

    profiles: Mapping[str, Any]
    queue: Any


Event = (
    NodeApplied
    | NodeGone
    | PodPending
    | PodLeftPending
    | PendingListed
    | PodBound
    | PodGone
    | BindSucceeded
    | BindFailed
    | PodFetched
    | BudgetApplied
    | BudgetGone
    | EvictionFinished
    | ExtenderAnswered
    | Reconfigured
    | StorageApplied
    | StorageGone
    | VolumesPrepared
    | VolumesNotPrepared
    | NamespaceApplied
    | NamespaceGone
    | WorkloadApplied
    | WorkloadGone
    | DeviceClassApplied
    | DeviceClassGone
    | PolicyApplied
    | PolicyGone
    | UsageMeasured
)
