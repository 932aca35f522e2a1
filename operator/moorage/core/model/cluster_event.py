"""Changes of the cluster that may let a rejected pod be scheduled, and how a plugin judges them.

The words are kube-scheduler's (``framework.ClusterEvent``, ``ActionType``, ``QueueingHint``).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from enum import Flag, StrEnum, auto
from typing import Any

from moorage.core.model.pod import Pod


class Resource(StrEnum):
    """What kind of object changed.  ``ASSIGNED_POD`` is a bound pod, ``PENDING_POD`` the pod itself."""

    NODE = "Node"
    NODE_USAGE = "NodeUsage"  # new samples of what nodes really use; ``new`` is a ``UsageChange``
    ASSIGNED_POD = "AssignedPod"
    PENDING_POD = "PendingPod"
    STORAGE_CLASS = "StorageClass"
    PERSISTENT_VOLUME = "PersistentVolume"
    PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
    CSI_NODE = "CSINode"
    CSI_DRIVER = "CSIDriver"
    CSI_STORAGE_CAPACITY = "CSIStorageCapacity"
    VOLUME_ATTACHMENT = "VolumeAttachment"
    NAMESPACE = "Namespace"
    DEVICE_CLASS = "DeviceClass"
    WORKLOAD = "Workload"  # a Service or a controller, for default spreading


class Action(Flag):
    """What happened to it; for updates, which part changed."""

    ADD = auto()
    DELETE = auto()
    UPDATE = auto()  # of a kind whose parts are not told apart
    UPDATE_NODE_ALLOCATABLE = auto()
    UPDATE_NODE_LABEL = auto()
    UPDATE_NODE_TAINT = auto()  # includes spec.unschedulable
    UPDATE_NODE_CONDITION = auto()
    UPDATE_NODE_ANNOTATION = auto()
    UPDATE_NODE_DECLARED_FEATURE = auto()
    UPDATE_POD_LABEL = auto()
    UPDATE_POD_SCALE_DOWN = auto()
    UPDATE_POD_TOLERATIONS = auto()
    UPDATE_POD_GATES_ELIMINATED = auto()
    UPDATE_POD_DELETING = auto()  # it was asked to go, and takes its room until it has gone
    UPDATE_POD_OTHER = auto()
    UPDATE_OTHER = auto()  # of an object that is neither node nor pod


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """One change: ``old`` and ``new`` are the objects before and after (None where there is none).

    ``namespace_labels`` gives the labels of a namespace, for hints about affinity terms that select by these.
    """

    resource: Resource
    action: Action
    old: Any = None
    new: Any = None
    namespace_labels: Callable[[str], Mapping[str, str]] | None = None


#: Whether the change may help the pod.  Must be cheap and must not raise.
QueueingHint = Callable[[Pod, ClusterEvent], bool]


@dataclass(frozen=True, slots=True)
class WakesOn:
    """A plugin's interest in a kind of change; without a hint every such change wakes its pods.

    ``per_spec`` tells that the hint reads nothing of the pod but its spec, so the queue asks once
    for all alike pods.  A hint that reads more may say in ``alike`` which pods get the same answer: those for
    which that function gives equal keys.  ``concerns`` is asked first and once: false if the change helps nobody.
    """

    resource: Resource
    action: Action
    hint: QueueingHint | None = None
    per_spec: bool = True
    alike: Callable[[Pod], Hashable] | None = None
    concerns: Callable[[ClusterEvent], bool] | None = None
