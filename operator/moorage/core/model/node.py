"""A node, as much of it as scheduling reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from moorage.core.model.taint import Taint

_EMPTY: Mapping[str, str] = MappingProxyType({})


def _no_strings() -> Mapping[str, str]:
    """The one empty mapping all objects share."""
    return _EMPTY


@dataclass(frozen=True, slots=True)
class Node:
    """A node's scheduling-relevant state.

    ``allocatable`` maps resource names to base units (see ``resources``); the pod count is its
    entry ``pods``, and a resource that is absent counts as 0.  ``images`` maps every name of every
    image present to its size in bytes.  ``ready`` is the status of the Ready condition as the API
    spells it ("True", "False", "Unknown"), "" when the node has none.  ``condition_statuses`` holds
    (type, status) of all conditions, so that heartbeats are told from changes.
    """

    name: str
    uid: str = ""
    labels: Mapping[str, str] = field(default_factory=_no_strings)
    annotations: Mapping[str, str] = field(default_factory=_no_strings)
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    allocatable: Mapping[str, int] = field(default_factory=dict)
    images: Mapping[str, int] = field(default_factory=dict)
    ready: str = ""
    condition_statuses: tuple[tuple[str, str], ...] = ()
    declared_features: tuple[str, ...] = ()
    invalid: tuple[str, ...] = ()  # fields that could not be read; what they hold counts as absent
