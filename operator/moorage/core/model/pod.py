"""Pods: what a template asks for (shared among its pods) and the pod itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from moorage.core.model.affinity import PodAffinity
from moorage.core.model.pod_volumes import NO_VOLUMES, PodVolumes
from moorage.core.model.resources import Requests
from moorage.core.model.selector import NodeSelector, PreferredTerm
from moorage.core.model.spread import SpreadConstraint
from moorage.core.model.taint import Toleration

_EMPTY: Mapping[str, str] = MappingProxyType({})


def _no_strings() -> Mapping[str, str]:
    """The one empty mapping all objects share."""
    return _EMPTY


@dataclass(frozen=True, slots=True)
class HostPort:
    """A port a pod takes on its node; the address "" of the API is stored as 0.0.0.0."""

    ip: str
    protocol: str
    port: int


@dataclass(frozen=True, slots=True)
class OwnerRef:
    """The controller that made an object."""

    kind: str
    name: str
    uid: str = ""
    api_version: str = ""  # "" where nobody said


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class PodSpec:
    """The part of a pod that all pods of one template share.

    Instances are interned by the converter and compared by identity.  Pods of specs that differ in nothing but
    ``pod_affinity`` and ``spread`` are *alike*, and whatever depends only on the rest and on a node is computed
    once for all of them.  ``node_selector`` is ``spec.nodeSelector`` as requirements on labels;
    ``required`` and ``preferred`` are the two halves of ``affinity.nodeAffinity``, ``pod_affinity`` is the rest
    of ``affinity`` and ``spread`` are the topology spread constraints.
    ``required_features`` are those a node must declare for this pod.
    ``unsupported`` names the features the pod asks for that this version cannot honour, each as
    a phrase for the user; such a pod is refused, never placed without them.
    """

    scheduler_name: str = "default-scheduler"
    priority: int = 0
    priority_class: str = ""
    preemption_policy: str = "PreemptLowerPriority"
    node_name: str = ""  # only of pods written with spec.nodeName before they existed
    requests: Requests = field(default_factory=lambda: Requests({}))
    node_selector: Mapping[str, str] = field(default_factory=_no_strings)
    required: NodeSelector | None = None
    preferred: tuple[PreferredTerm, ...] = ()
    pod_affinity: PodAffinity | None = None
    spread: tuple[SpreadConstraint, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    host_ports: tuple[HostPort, ...] = ()
    images: tuple[str, ...] = ()  # normalised names, one entry per container
    required_features: tuple[str, ...] = ()
    unsupported: tuple[str, ...] = ()
    invalid: tuple[str, ...] = ()  # fields that could not be read; the pod is refused with these words


@dataclass(frozen=True, slots=True, eq=False)
class Pod:
    """One pod.

    ``requests`` is what the pod counts on a node: the spec's, unless an in-place resize is under
    way, when it is the largest of spec, allocated and actual.  Times are seconds since the epoch.
    ``ungated`` is when the last of its gates was seen to go, None if it had none or nobody saw it.
    ``overdue``: it carries our condition that says that it has been pending for too long.
    ``holds`` are the texts of those expressions of policies over a pod that are true of it: whoever reads the
    object evaluates them, since the core does not keep it.
    """

    namespace: str
    name: str
    uid: str
    spec: PodSpec
    requests: Requests
    resource_version: str = ""
    generation: int = 0  # counts the changes of the spec; 0 if the API server does not
    labels: Mapping[str, str] = field(default_factory=_no_strings)
    node_name: str = ""
    volumes: PodVolumes = NO_VOLUMES
    created: float = 0.0
    started: float | None = None
    deleting: bool = False
    preempted: bool = (
        False  # being deleted because a scheduler preempted it (its DisruptionTarget condition says so)
    )
    finished: bool = False
    nominated_node: str = ""
    gates: tuple[str, ...] = ()
    ungated: float | None = None
    owner: OwnerRef | None = None
    holds: frozenset[str] = frozenset()
    overdue: bool = False
    scheduled_condition: tuple[str, str, str] = ("", "", "")  # status, reason, message of PodScheduled

    @property
    def key(self) -> str:
        """``namespace/name``, as messages and records name a pod."""
        return f"{self.namespace}/{self.name}"

    @property
    def priority(self) -> int:
        """The pod's priority; a higher one goes first and may preempt."""
        return self.spec.priority

    @property
    def waiting_since(self) -> float:
        """When the pod's time began to count: its last gate went, else it was created."""
        return self.created if self.ungated is None else self.ungated

    @property
    def ref(self) -> PodRef:
        """The pod's identity without its content."""
        return PodRef(self.namespace, self.name, self.uid)


@dataclass(frozen=True, slots=True)
class PodRef:
    """Which pod: the name that requests use and the UID that makes it this very one."""

    namespace: str
    name: str
    uid: str

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"
