"""Nodes whose bound pods ask for more than there is: what becomes of two schedulers that do not know of each other.

Nothing is done about it here: the room is taken, so no more pods are placed there, and whether a pod must go is the
kubelet's to say.  It is counted when the bound pod that makes it too much is seen; placements of ours that are not
bound yet do not count, since a last look may still withdraw them.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from moorage.core.cache.cache import Cache
from moorage.core.model.pod import Pod
from moorage.core.model.resources import PODS

Bools = npt.NDArray[np.bool_]

_MOST_KEPT = 100


@dataclass(frozen=True, slots=True)
class Overcommit:
    """A node that was asked for more of a resource than it has; amounts in base units (milli-CPU, bytes, pods)."""

    node_name: str
    resource: str
    requested: int
    allocatable: int


class Overcommits:
    """``seen`` counts by resource how often nodes came to hold too much; ``recent`` are the last of them."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self.seen: Counter[str] = Counter()
        self.recent: deque[Overcommit] = deque(maxlen=_MOST_KEPT)

    def arrived(self, pod: Pod) -> None:
        """A pod is seen on its node that was not bound there before."""
        snapshot = self._cache.snapshot
        row = snapshot.row_of(pod.node_name)
        if row is None:
            return
        for resource, amount in pod.requests.amounts.items():
            if amount and snapshot.requested(resource).item(row) > snapshot.allocatable(resource).item(row):
                self._look(pod, row, resource, amount)
        if snapshot.pod_count.item(row) > snapshot.allowed_pods().item(row) > 0:  # 0: the node does not say
            self._look(pod, row, PODS, 1)

    def _look(self, pod: Pod, row: int, resource: str, amount: int) -> None:
        room = self._cache.snapshot.allocatable(resource).item(row)
        bound = [p for p in self._cache.pods_on(pod.node_name) if not self._assumed(p)]
        total = len(bound) if resource == PODS else sum(p.requests.of(resource) for p in bound)
        if total > room >= total - amount:  # with this pod, and not without it
            self.seen[resource] += 1
            self.recent.append(Overcommit(pod.node_name, resource, total, room))

    def _assumed(self, pod: Pod) -> bool:
        state = self._cache.state(pod.uid)
        return state is not None and state.assumed

    def nodes(self) -> dict[str, int]:
        """By resource, how many nodes are asked for more than they have now, placements not bound yet included."""
        snapshot = self._cache.snapshot
        found = {
            resource: _count(snapshot.requested(resource) > snapshot.allocatable(resource), snapshot.alive)
            for resource in snapshot.resources
            if resource != PODS
        }
        allowed = snapshot.allowed_pods()
        found[PODS] = _count((snapshot.pod_count > allowed) & (allowed > 0), snapshot.alive)
        return {resource: number for resource, number in found.items() if number}


def _count(over: Bools, alive: Bools) -> int:
    return int(np.count_nonzero(over & alive))
