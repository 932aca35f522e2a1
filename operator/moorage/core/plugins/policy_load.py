"""PolicyLoad: keeps pods off nodes that really use much, whatever the pods on them ask for.

A node whose use of a resource is above the ``limit`` of a policy, in percent of allocatable, is out; at the limit it
is in.  A node at or below a ``target`` gets 100 points, one that uses all of its allocatable, or more, none, and in
between they fall evenly: ``10000 * (allocatable - use) / ((100 - target) * allocatable)``, rounded down.  The worst of
all resources counts.  Use is the latest sample with the requests of the pods placed since.

A sample that is older than its policy says, that is missing, or does not speak of the resource, is stale.  With Exclude
such a node is out; with Ignore it passes the limit.  It gets no points: nobody knows whether it deserves any, and
where all are stale all are equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from moorage.core.framework.interface import (
    MAX_NODE_SCORE,
    Bools,
    Ints,
    Reads,
    Reason,
    Skip,
    Verdict,
    no_change,
)
from moorage.core.framework.percentages import at_least
from moorage.core.model.cluster_event import Action, ClusterEvent, Resource, WakesOn
from moorage.core.model.pod import Pod
from moorage.core.model.policy import LoadRules, OnStale, PolicyRef
from moorage.core.snapshot.snapshot import Snapshot
from moorage.core.snapshot.view import Nodes

Rule = tuple[PolicyRef, LoadRules]

#: Amounts of so many bits can be multiplied by 10,000 within int64.
_EXACT_BITS = 49


@dataclass(frozen=True, slots=True)
class PolicyLoad:
    """``rules`` are those of all policies in force for a pod."""

    name: ClassVar[str] = "PolicyLoad"
    reads: ClassVar[Reads] = Reads.CLUSTER

    rules: tuple[Rule, ...]
    _reasons: tuple[Reason, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        reasons: list[Reason] = []
        for ref, rules in self.rules:
            for resource in rules.limit:
                text = f'node(s) used more {resource} than policy "{ref.key}" allows'
                reasons += (Reason(text), Reason(text, resolvable=False))
            if rules.on_stale is OnStale.EXCLUDE:
                reasons.append(
                    Reason(
                        f'node(s) had no recent sample of their use for policy "{ref.key}"', resolvable=False
                    )
                )
        object.__setattr__(self, "_reasons", tuple(reasons))

    # -- Filter ----------------------------------------------------------------------------------

    def pre_filter(self, pod: Pod, snapshot: Snapshot) -> Literal[True] | Skip:
        """Nothing to prepare."""
        return True if self._reasons else Skip.SKIP

    def filter(self, state: Literal[True], nodes: Nodes) -> Verdict:
        """Nodes above a limit, for good or because of pods placed just now, and those of which nothing is known."""
        failed: list[Bools] = []
        samples = nodes.snapshot.usage_samples
        for _, rules in self.rules:
            fresh = _fresh(nodes, rules)
            for resource, limit in rules.limit.items():
                known = fresh & nodes.taken_mask(samples.knows(resource))
                high = known & _above(nodes, resource, limit, nodes.taken(samples.used(resource)))
                lasting = high & _above(nodes, resource, limit, nodes.taken(samples.measured(resource)))
                failed += (high & ~lasting, lasting)
            if rules.on_stale is OnStale.EXCLUDE:
                stale = ~fresh
                for resource in (*rules.limit, *rules.target):
                    stale |= ~nodes.taken_mask(samples.knows(resource))
                failed.append(stale)
        return Verdict(self._reasons, np.stack(failed))

    # -- Score -----------------------------------------------------------------------------------

    def pre_score(self, pod: Pod, snapshot: Snapshot, nodes: Nodes) -> Literal[True, Skip.SKIP]:
        """Nothing to prepare."""
        return True if any(rules.target for _, rules in self.rules) else Skip.SKIP

    def score(self, state: Literal[True], nodes: Nodes) -> Ints:
        """The points of the resource that fares worst."""
        samples = nodes.snapshot.usage_samples
        worst = np.full(len(nodes), MAX_NODE_SCORE, dtype=np.int64)
        for _, rules in self.rules:
            if not rules.target:
                continue
            fresh = _fresh(nodes, rules)
            for resource, target in rules.target.items():
                points = _points(nodes, resource, target)
                points[~(fresh & nodes.taken_mask(samples.knows(resource)))] = 0
                np.minimum(worst, points, out=worst)
        return worst

    def normalize(self, raw: Ints) -> Ints:
        """They are in range already."""
        return no_change(raw)

    # -- what may change -------------------------------------------------------------------------

    def changes_at(self, pod: Pod, snapshot: Snapshot) -> float | None:
        """When the sample of a node above a limit goes stale, so that the limit is ignored there; None if never."""
        nodes = Nodes(snapshot)
        times = []
        for _, rules in self.rules:
            if rules.on_stale is OnStale.IGNORE:
                high = nodes.false()
                for resource, limit in rules.limit.items():
                    high |= _above(nodes, resource, limit, snapshot.usage_samples.used(resource))
                times.append(snapshot.usage_samples.goes_stale(rules.stale_after, high & snapshot.alive))
        return min((time for time in times if time is not None), default=None)

    def wakes_on(self) -> Sequence[WakesOn]:
        """New samples show a node below a limit, or of a node that had none; nodes come or have more room.

        A pod that goes shows in the samples.
        """
        nodes = Action.ADD | Action.UPDATE_NODE_ALLOCATABLE
        return (
            WakesOn(Resource.NODE_USAGE, Action.UPDATE_OTHER, concerns=self._opens),
            WakesOn(Resource.NODE, nodes),
        )

    def _opens(self, event: ClusterEvent) -> bool:
        """Whether some node passes a rule now that it did not pass at some time since the samples before."""
        samples = event.new.samples
        nodes = Nodes(samples.snapshot)
        for _, rules in self.rules:
            fresh, was_fresh = _fresh(nodes, rules), event.new.was_fresh(rules.stale_after)
            ignoring = rules.on_stale is OnStale.IGNORE
            opened = nodes.false() if ignoring else fresh & ~was_fresh
            for resource, limit in rules.limit.items():
                was_above = _above(nodes, resource, limit, event.new.peak(resource))
                is_above = fresh & _above(nodes, resource, limit, samples.used(resource))
                opened |= was_above & ~is_above
                if not ignoring:  # a sample that comes to speak of the resource
                    opened |= ~event.new.knew(resource) & samples.knows(resource)
            if (opened & samples.snapshot.alive).any():
                return True
        return False


def _fresh(nodes: Nodes, rules: LoadRules) -> Bools:
    return nodes.taken_mask(nodes.snapshot.usage_samples.fresh(rules.stale_after))


def _above(nodes: Nodes, resource: str, limit: int, used: Ints) -> Bools:
    """Where the use is more than ``limit`` percent of allocatable, exactly."""
    peak = max(nodes.snapshot.peak(resource), nodes.snapshot.usage_samples.peak(resource))
    # used * 100 > limit * allocatable, the other way round
    return ~_at_most(used, limit, nodes.allocatable(resource), peak)


def _at_most(used: Ints, limit: int, allocatable: Ints, peak: int) -> Bools:
    return at_least(-used, -limit, allocatable, peak)


def _points(nodes: Nodes, resource: str, target: int) -> Ints:
    """0..100 by the formula above; of a resource that the node does not have any use is all of it."""
    used = nodes.taken(nodes.snapshot.usage_samples.used(resource))
    allocatable = nodes.allocatable(resource)
    peak = max(nodes.snapshot.peak(resource), nodes.snapshot.usage_samples.peak(resource))
    shift = max(0, peak.bit_length() - _EXACT_BITS)
    if shift:  # the lowest bits of huge amounts are let go
        used, allocatable = used >> shift, allocatable >> shift
    low = used * 100 <= target * allocatable
    left = np.maximum(allocatable - used, 0)
    points = 10_000 * left // np.maximum((100 - target) * allocatable, 1)
    return np.where(low, MAX_NODE_SCORE, np.minimum(points, MAX_NODE_SCORE))
