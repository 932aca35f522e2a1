"""NodeResourcesFit: the node must have room for what the pod asks, and scores by how full it gets."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from moorage.core.framework.interface import Bools, Ints, Reads, Reason, Skip, Verdict, no_change
from moorage.core.framework.resource_scoring import (
    LEAST_ALLOCATED,
    ScoringStrategy,
    Wanted,
    wanted_of,
)
from moorage.core.framework.trials import Balance, Trial
from moorage.core.model.cluster_event import Action, ClusterEvent, Resource, WakesOn
from moorage.core.model.node import Node
from moorage.core.model.pod import Pod
from moorage.core.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, is_extended
from moorage.core.snapshot.snapshot import Snapshot
from moorage.core.snapshot.view import Nodes

_TOO_MANY_PODS = Reason("Too many pods")
_ORDER = {CPU: 0, MEMORY: 1, EPHEMERAL_STORAGE: 2}

#: Sums of amounts below this, of as many pods as a node can have, are far from overflow.
_LARGE = 1 << 50

#: What is asked of each resource, only amounts above 0: asking for nothing fits even an overcommitted node.
Asked = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class NodeResourcesFit:
    """Compares requests with allocatable less what is taken, exactly, in integers.

    ``ignored`` and ``ignored_groups`` name extended resources that an extender looks after.
    """

    name: ClassVar[str] = "NodeResourcesFit"
    reads: ClassVar[Reads] = Reads.NODE | Reads.USAGE

    strategy: ScoringStrategy = LEAST_ALLOCATED
    ignored: frozenset[str] = frozenset()
    ignored_groups: frozenset[str] = frozenset()

    def pre_filter(self, pod: Pod, snapshot: Snapshot) -> Asked:
        """The resources to compare, in the order in which kube-scheduler names them."""
        return self._asked(pod.spec.requests.amounts)

    def _asked(self, amounts: Mapping[str, int]) -> Asked:
        asked = [(r, a) for r, a in amounts.items() if a > 0 and r != PODS and not self._is_ignored(r)]
        return tuple(sorted(asked, key=lambda item: (_ORDER.get(item[0], 3), item[0])))

    def _is_ignored(self, resource: str) -> bool:
        if not (self.ignored or self.ignored_groups) or not is_extended(resource):
            return False
        return resource in self.ignored or resource.partition("/")[0] in self.ignored_groups

    def filter(self, state: Asked, nodes: Nodes) -> Verdict:
        """Every shortage of every node; one that even an empty node has cannot be resolved by preemption."""
        requested = [nodes.requested(resource) for resource, _ in state]
        allocatable = [nodes.allocatable(resource) for resource, _ in state]
        return _compared(state, nodes.pod_count >= nodes.allocatable(PODS), requested, allocatable)

    def trial(self, state: Asked, trial: Trial) -> Balance:
        """Sums: pods, and the amounts of each resource; near the limits of int64 nothing is said."""
        nodes = trial.nodes
        pod_count, allowed = nodes.pod_count, nodes.allocatable(PODS)
        requested = [nodes.requested(resource) for resource, _ in state]
        allocatable = [nodes.allocatable(resource) for resource, _ in state]
        sums = [trial.counted()]
        unsure: Bools | None = None
        for (resource, _), taken in zip(state, requested, strict=True):
            leaving, coming = trial.leaving.amounts(resource), trial.coming.amounts(resource)
            sums.append((leaving, coming))
            if trial.snapshot.peak(resource) > _LARGE or (coming > _LARGE).any():
                unsure = nodes.false() if unsure is None else unsure
                unsure |= taken > _LARGE
                unsure[trial.coming.at[coming > _LARGE]] = True

        def judge(change: Ints, at: Ints) -> Verdict:
            crowded: Bools = pod_count[at] + change[0] >= allowed[at]
            changed = [taken[at] + more for taken, more in zip(requested, change[1:], strict=True)]
            return _compared(state, crowded, changed, [all_[at] for all_ in allocatable])

        return Balance.of(sums, judge, unsure)

    def pre_score(self, pod: Pod, snapshot: Snapshot, nodes: Nodes) -> Wanted | Literal[Skip.SKIP]:
        """What the pod adds to each resource of the strategy, scoring defaults included."""
        if not self.strategy.resources:
            return Skip.SKIP
        return wanted_of(pod.spec.requests, self.strategy.resources, with_defaults=True)

    def score(self, state: Wanted, nodes: Nodes) -> Ints:
        """How the strategy likes each node with the pod on it."""
        return self.strategy.score(state, nodes)

    def normalize(self, raw: Ints) -> Ints:
        """Raw scores are in range already."""
        return no_change(raw)

    def wakes_on(self) -> Sequence[WakesOn]:
        """Room appears: a pod goes or shrinks, a node is added or grows, the pod itself asks for less."""
        return (
            WakesOn(Resource.ASSIGNED_POD, Action.DELETE),
            WakesOn(Resource.ASSIGNED_POD, Action.UPDATE_POD_SCALE_DOWN, _shrank_where_it_matters),
            WakesOn(Resource.NODE, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE, self._may_fit),
            WakesOn(Resource.PENDING_POD, Action.UPDATE_POD_SCALE_DOWN),
            WakesOn(Resource.DEVICE_CLASS, Action.ADD | Action.UPDATE, _stands_for_what_is_asked),
        )

    def _may_fit(self, pod: Pod, event: ClusterEvent) -> bool:
        new: Node = event.new
        asked = self._asked(pod.spec.requests.amounts)
        if new.allocatable.get(PODS, 0) < 1 or any(new.allocatable.get(r, 0) < a for r, a in asked):
            return False  # not even an empty node of that size would do
        if event.old is None:
            return True
        old: Node = event.old
        return any(
            new.allocatable.get(r, 0) > old.allocatable.get(r, 0) for r in (PODS, *(r for r, _ in asked))
        )


def _compared(
    asked: Asked, crowded: Bools, requested: Sequence[Ints], allocatable: Sequence[Ints]
) -> Verdict:
    """The verdict on nodes of which these are ``crowded``, with a column of each resource."""
    failing = crowded
    shortages: list[Bools] = []
    for (_, amount), taken, all_ in zip(asked, requested, allocatable, strict=True):
        short: Bools = all_ - taken < amount
        shortages.append(short)
        failing = failing | short

    def explain() -> Bools:
        rows = [crowded]
        for (_, amount), short, all_ in zip(asked, shortages, allocatable, strict=True):
            never = all_ < amount
            rows += (short & ~never, short & never)
        return np.stack(rows)

    return Verdict.lazy(_reasons(asked), ~failing, explain)


@functools.lru_cache(maxsize=1024)
def _reasons(asked: Asked) -> tuple[Reason, ...]:
    """Too many pods, then for each resource the shortage that preemption may lift and the one that it cannot."""
    texts = [f"Insufficient {resource}" for resource, _ in asked]
    shortages = [reason for text in texts for reason in (Reason(text), Reason(text, resolvable=False))]
    return (_TOO_MANY_PODS, *shortages)


def _stands_for_what_is_asked(pod: Pod, event: ClusterEvent) -> bool:
    """The resource is no ordinary one any more, so another plugin has something to say about it."""
    before = () if event.old is None else event.old.resources
    return any(r not in before and pod.spec.requests.of(r) > 0 for r in event.new.resources)


def _shrank_where_it_matters(pod: Pod, event: ClusterEvent) -> bool:
    before, after = event.old.requests, event.new.requests
    return any(amount > 0 and before.of(r) > after.of(r) for r, amount in pod.spec.requests.amounts.items())
