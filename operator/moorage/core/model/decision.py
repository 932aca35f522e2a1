"""The record of one decision: what `evaluate` answers and every front door shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from moorage.core.model.pod import PodRef


class Code(StrEnum):
    """What a rejection means for preemption: could removing pods from the node help?"""

    UNSCHEDULABLE = "Unschedulable"
    UNRESOLVABLE = "UnschedulableAndUnresolvable"


@dataclass(frozen=True, slots=True)
class Rejection:
    """Who said no and why.

    ``plugin`` is the plugin's name (several, joined by a comma and a space, when they narrowed the
    nodes together), ``reasons`` the texts the user reads.
    """

    plugin: str
    reasons: tuple[str, ...]
    code: Code = Code.UNSCHEDULABLE


@dataclass(frozen=True, slots=True)
class Preemption:
    """Pods that would be evicted, and the node on which that makes room.

    ``candidates`` maps every node on which preemption works to its victims (``namespace/name``,
    sorted); ``ties`` are the nodes that the choice rules cannot tell apart.
    """

    node: str
    victims: tuple[str, ...]
    pdb_violations: int = 0
    candidates: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    ties: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Decision:
    """Everything about where one pod can go at one instant.

    ``filtered`` holds the first plugin to reject each infeasible node.  ``scores`` maps each
    feasible node to the weighted, normalised score by plugin and their sum ``total``; plugins that
    skip are absent.  ``best`` are all nodes with the highest total; ``chosen`` is the first of them by
    name, or the nominated node when it still fits, or None.  ``message`` is the text of the
    PodScheduled condition, empty for a pod that can be placed or is gated.  ``error`` is set instead
    when the cycle failed for a reason that is not the cluster's state.  ``clears_nomination`` tells that the
    node promised to the pod before will not do any more.
    """

    ref: PodRef
    feasible: tuple[str, ...] = ()
    filtered: Mapping[str, Rejection] = field(default_factory=dict)
    prefilter: Rejection | None = None
    preenqueue: Rejection | None = None
    scores: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    best: tuple[str, ...] = ()
    chosen: str | None = None
    message: str = ""
    preemption: Preemption | None = None
    clears_nomination: bool = False
    error: str = ""
