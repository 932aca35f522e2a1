"""PolicyPreferences: nodes that policies like better, and nodes to be left to those who need what is scarce there.

An item adds its score, 0..100, times its weight, 1..100, to a node's total, rounded to the nearest integer (halves up).
A node that has none of a protected resource gets 1,000 points from a pod that does not ask for the resource.  These
points are not brought to 0..100 again: the items' weights are what they say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from moorage.core.framework import go_math
from moorage.core.framework.interface import MAX_NODE_SCORE, Ints, Reads, Skip, no_change
from moorage.core.model.cluster_event import WakesOn
from moorage.core.model.pod import Pod
from moorage.core.model.policy import PolicyRef, Preference, Speaks
from moorage.core.snapshot.snapshot import Snapshot
from moorage.core.snapshot.view import Nodes

#: What keeping off a protected resource weighs, as an item of ``prefer`` would.
PROTECT_WEIGHT = 10


@dataclass(frozen=True, slots=True)
class PolicyPreferences:
    """``prefer`` are the items of all policies in force for a pod; ``protect`` names each resource once."""

    name: ClassVar[str] = "PolicyPreferences"

    prefer: tuple[tuple[PolicyRef, Preference], ...] = ()
    protect: tuple[str, ...] = ()

    @property
    def reads(self) -> Reads:
        """The node, and what expressions speak of."""
        reads = Reads.NODE
        for _, item in self.prefer:
            if item.expression is not None:
                if Speaks.REQUESTED in item.expression.speaks:
                    reads |= Reads.USAGE
                if Speaks.USAGE in item.expression.speaks:
                    reads |= Reads.CLUSTER
        return reads

    @property
    def most(self) -> int:
        """The highest score there can be."""
        return MAX_NODE_SCORE * (
            sum(item.weight for _, item in self.prefer) + PROTECT_WEIGHT * len(self.protect)
        )

    def pre_score(self, pod: Pod, snapshot: Snapshot, nodes: Nodes) -> tuple[str, ...] | Literal[Skip.SKIP]:
        """The protected resources that the pod does not ask for."""
        unasked = tuple(resource for resource in self.protect if not pod.spec.requests.of(resource))
        return unasked if unasked or self.prefer else Skip.SKIP

    def score(self, state: tuple[str, ...], nodes: Nodes) -> Ints:
        """The points of all items, added up."""
        total = np.zeros(len(nodes), dtype=np.int64)
        for ref, item in self.prefer:
            if item.selector is not None:
                total += np.int64(MAX_NODE_SCORE * item.weight) * nodes.labelled(item.selector)
            if item.expression is not None:
                rows = None if nodes.whole else nodes.rows
                values = nodes.snapshot.expressions.score(ref, item.expression, rows)
                total += go_math.rounded((values if nodes.whole else values[nodes.rows]) * item.weight)
        for resource in state:
            total += np.int64(MAX_NODE_SCORE * PROTECT_WEIGHT) * (nodes.allocatable(resource) == 0)
        return total

    def normalize(self, raw: Ints) -> Ints:
        """Points are added as they are."""
        return no_change(raw)

    def wakes_on(self) -> Sequence[WakesOn]:
        """It rejects nothing."""
        return ()
