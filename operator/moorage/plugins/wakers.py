"""The words by which a declaration says what may help a pod, as the core's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from moorage.core.model.cluster_event import Action, Resource, WakesOn

_ALL: Final = ~Action(0)
_STORAGE: Final = (
    Resource.STORAGE_CLASS,
    Resource.PERSISTENT_VOLUME,
    Resource.PERSISTENT_VOLUME_CLAIM,
    Resource.CSI_NODE,
    Resource.CSI_DRIVER,
    Resource.CSI_STORAGE_CAPACITY,
    Resource.VOLUME_ATTACHMENT,
)

_CHANGES: Final[Mapping[str, tuple[tuple[Resource, Action], ...]]] = {
    "node": ((Resource.NODE, _ALL),),
    "node-added": ((Resource.NODE, Action.ADD),),
    "node-labels": ((Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),),
    "node-taints": ((Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT),),
    "node-allocatable": ((Resource.NODE, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE),),
    "pod": ((Resource.ASSIGNED_POD, _ALL),),
    "pod-added": ((Resource.ASSIGNED_POD, Action.ADD),),
    "pod-deleted": ((Resource.ASSIGNED_POD, Action.DELETE | Action.UPDATE_POD_SCALE_DOWN),),
    "pod-labels": ((Resource.ASSIGNED_POD, Action.UPDATE_POD_LABEL),),
    "usage": ((Resource.NODE_USAGE, _ALL),),
    "storage": tuple((resource, _ALL) for resource in _STORAGE),
    "namespace": ((Resource.NAMESPACE, _ALL),),
}


def wakes(words: tuple[str, ...]) -> tuple[WakesOn, ...]:
    """The changes that these words name, all changes for none; what the pod itself changes always counts."""
    if not words:
        return tuple(WakesOn(resource, _ALL) for resource in Resource)
    changes = [change for word in words for change in _CHANGES[word]]
    return tuple(WakesOn(*change) for change in dict.fromkeys((*changes, (Resource.PENDING_POD, _ALL))))
