"""PolicyPools: ordered pools of nodes, each of which takes so many of a policy's pods.

A node belongs to the first pool whose selector it matches.  Of the pools that are not full the first with a node that
all other plugins accept is the one; where pods wait, it is the first pool or none.  A percentage admits while
``count + 1 <= ceil(percent / 100 * (placed + 1))``, where ``placed`` are the policy's pods in all its pools together.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from moorage.core.framework.interface import Bools, Ints, Reads, Reason, Verdict
from moorage.core.framework.selected_hints import SelectedHints
from moorage.core.model.cluster_event import Action, ClusterEvent, Resource, WakesOn
from moorage.core.model.pod import Pod
from moorage.core.model.policy import PolicyRef, Pool, Pools
from moorage.core.model.policy_report import PoolUse
from moorage.core.model.selector import LabelSelector
from moorage.core.snapshot.selected_pods import SelectedCounts
from moorage.core.snapshot.snapshot import Snapshot
from moorage.core.snapshot.view import Nodes


@dataclass(frozen=True, slots=True)
class PolicyPools:
    """The pools of one policy; ``selects`` tells who selects a pod, so that only pods that count wake somebody."""

    name: ClassVar[str] = "PolicyPools"
    reads: ClassVar[Reads] = Reads.CLUSTER
    late: ClassVar[bool] = True
    last: ClassVar[bool] = True

    ref: PolicyRef
    pools: Pools
    selects: Callable[[Pod], Collection[PolicyRef]] | None = field(default=None, compare=False)
    _selectors: tuple[LabelSelector, ...] = field(init=False, repr=False, compare=False)
    _reasons: tuple[Reason, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_selectors", tuple(pool.selector for pool in self.pools.items))
        policy = f'policy "{self.ref.key}"'
        later = f"node(s) in a later pool of {policy}{', which waits' if self.pools.wait else ''}"
        reasons = [
            Reason(f"node(s) in no pool of {policy}", resolvable=False),
            Reason(later, resolvable=False),
            *(
                Reason(f'node(s) in pool "{pool.name}" of {policy}, which is full')
                for pool in self.pools.items
            ),
        ]
        object.__setattr__(self, "_reasons", tuple(reasons))

    def pre_filter(self, pod: Pod, snapshot: Snapshot) -> SelectedCounts:
        """Look the counts up, which are live."""
        return snapshot.selected.of(self.ref)

    def filter(self, state: SelectedCounts, nodes: Nodes) -> Verdict:
        """Accepts the nodes of one pool at the most: of these nodes, which must be those that are left."""
        full = np.append(self._full(self._counts(state, nodes.snapshot)), False)  # index -1: in no pool
        pool_of = nodes.first_labelled(self._selectors)
        member = pool_of >= 0
        open_to: Bools = member & ~full[pool_of]
        if self.pools.wait:
            open_to &= pool_of == 0
        chosen = int(pool_of[open_to].min(initial=len(self.pools.items)))
        fits: Bools = open_to & (pool_of == chosen)

        def explain() -> Bools:
            failed = np.zeros((len(self._reasons), len(nodes)), dtype=np.bool_)
            failed[0] = ~member
            waiting = (pool_of > 0) & self.pools.wait
            failed[1] = member & ~fits & (waiting | ~full[pool_of])
            for index in range(len(self.pools.items)):
                failed[2 + index] = (pool_of == index) & bool(full[index]) & ~waiting
            return failed

        return Verdict.lazy(self._reasons, fits, explain)

    def _counts(self, selected: SelectedCounts, snapshot: Snapshot) -> Ints:
        """The policy's pods by pool, shape (number of pools,)."""
        pool_of = snapshot.first_labelled(self._selectors)
        number = len(self.pools.items)
        sums = np.bincount(pool_of + 1, weights=selected.pods.counts, minlength=number + 1)[1:]
        return sums.astype(np.int64)  # exact: far below 2**53

    def _full(self, counts: Ints) -> Bools:
        placed = int(counts.sum())
        most = [_most(pool, placed) for pool in self.pools.items]
        return np.array(
            [
                limit is not None and count >= limit
                for limit, count in zip(most, counts.tolist(), strict=True)
            ],
            dtype=np.bool_,
        )

    def use(self, snapshot: Snapshot) -> tuple[PoolUse, ...]:
        """How many pods are in each pool, and the most there may be if one more comes; raises LookupError."""
        counts = self._counts(snapshot.selected.of(self.ref), snapshot)
        placed = int(counts.sum())
        return tuple(
            PoolUse(pool.name, count, _most(pool, placed))
            for pool, count in zip(self.pools.items, counts.tolist(), strict=True)
        )

    def held(self, snapshot: Snapshot) -> str:
        """Why no pool takes a pod now, whatever nodes there are; "" if one does.  Raises LookupError."""
        full = self._full(self._counts(snapshot.selected.of(self.ref), snapshot))
        items = self.pools.items[:1] if self.pools.wait else self.pools.items
        if not full[: len(items)].all():
            return ""
        if len(items) == 1:
            return f'pool "{items[0].name}" of policy "{self.ref.key}" is full'
        return f'all pools of policy "{self.ref.key}" are full'

    def wakes_on(self) -> Sequence[WakesOn]:
        """The policy's pods go or, where pools have a percentage, come; nodes come, go, or change pools."""
        hints = SelectedHints(frozenset((self.ref,)), self.selects)
        relative = any(pool.max_percent is not None for pool in self.pools.items)
        pods = Action.ADD | Action.DELETE if relative else Action.DELETE
        nodes = Action.ADD | Action.DELETE | Action.UPDATE_NODE_LABEL
        return (
            WakesOn(Resource.ASSIGNED_POD, pods, concerns=hints.counted),
            WakesOn(Resource.ASSIGNED_POD, Action.UPDATE_POD_LABEL, concerns=hints.counted_otherwise),
            WakesOn(Resource.NODE, nodes, concerns=self._moves),
        )

    def _moves(self, event: ClusterEvent) -> bool:
        """The node joins a pool, or leaves one."""

        def pool_of(node: object) -> int:
            if node is None:
                return -1
            labels = node.labels  # type: ignore[attr-defined]  # events carry objects
            return next((i for i, selector in enumerate(self._selectors) if selector.matches(labels)), -1)

        return pool_of(event.old) != pool_of(event.new)


def _most(pool: Pool, placed: int) -> int | None:
    """The most pods that the pool may hold once one more is placed anywhere; None: any number."""
    if pool.max_pods is not None:
        return pool.max_pods
    return None if pool.max_percent is None else -(-pool.max_percent * (placed + 1) // 100)
