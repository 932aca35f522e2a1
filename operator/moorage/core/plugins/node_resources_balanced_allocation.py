"""NodeResourcesBalancedAllocation: prefer nodes whose balance of resources the pod improves.

The rule is the one of v1.35 and later: the score rests on the difference between the balance with
and without the pod, not on the balance afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from moorage.core.framework.interface import MAX_NODE_SCORE, Ints, Reads, Skip, no_change
from moorage.core.framework.resource_scoring import Wanted, Weighted, wanted_of
from moorage.core.model.cluster_event import WakesOn
from moorage.core.model.pod import Pod
from moorage.core.model.resources import CPU, MEMORY
from moorage.core.snapshot.snapshot import Snapshot
from moorage.core.snapshot.view import Nodes

Floats = npt.NDArray[np.float64]
_HALF = MAX_NODE_SCORE // 2


@dataclass(frozen=True, slots=True)
class NodeResourcesBalancedAllocation:
    """Compares the shares of the resources that are in use."""

    name: ClassVar[str] = "NodeResourcesBalancedAllocation"
    reads: ClassVar[Reads] = Reads.NODE | Reads.USAGE

    resources: tuple[Weighted, ...] = (Weighted(CPU, 1), Weighted(MEMORY, 1))

    def pre_score(self, pod: Pod, snapshot: Snapshot, nodes: Nodes) -> Wanted | Literal[Skip.SKIP]:
        """Real requests, without scoring defaults; pods that ask for nothing are left to the other plugins."""
        wanted = wanted_of(pod.spec.requests, self.resources, with_defaults=False)
        return wanted if any(amount for _, amount in wanted) else Skip.SKIP

    def score(self, state: Wanted, nodes: Nodes) -> Ints:
        """50 to 100: 75 if the balance stays as it is, more if it gets better."""
        shares_with: list[Floats] = []
        shares_without: list[Floats] = []
        counted: list[npt.NDArray[np.bool_]] = []
        for resource, amount in state:
            allocatable = nodes.allocatable(resource.name)
            requested = nodes.requested(resource.name)
            present = allocatable != 0
            divisor = np.where(present, allocatable, 1)
            shares_with.append(np.minimum((requested + amount) / divisor, 1.0))
            shares_without.append(np.minimum(requested / divisor, 1.0))
            counted.append(present)
        if not counted:
            return np.full(len(nodes), _HALF + _HALF // 2, dtype=np.int64)
        gain = _balance(shares_with, counted) - _balance(shares_without, counted)
        return _HALF + (_HALF + gain) // 2

    def normalize(self, raw: Ints) -> Ints:
        """Raw scores are in range already."""
        return no_change(raw)

    def wakes_on(self) -> Sequence[WakesOn]:
        """It rejects nothing."""
        return ()


def _balance(shares: list[Floats], counted: list[npt.NDArray[np.bool_]]) -> Ints:
    """(1 - standard deviation of the counted shares) * 100, shape (M,), truncated.

    The float operations come in kube-scheduler's order, the two-resource shortcut included, since
    another order can end on the other side of an integer.
    """
    present = np.stack(counted)  # (R, M)
    number = np.count_nonzero(present, axis=0)
    deviation: Floats = np.zeros(number.size)
    if len(shares) == 2:
        two = number == 2
        deviation[two] = np.abs((shares[0][two] - shares[1][two]) / 2)
    elif len(shares) > 2:
        for index in np.flatnonzero(number >= 2):
            own = [float(s[index]) for s, c in zip(shares, counted, strict=True) if c[index]]
            deviation[index] = _deviation(own)
    return ((1 - deviation) * MAX_NODE_SCORE).astype(np.int64)


def _deviation(shares: list[float]) -> float:
    if len(shares) == 2:
        return abs((shares[0] - shares[1]) / 2)
    total = 0.0
    for share in shares:
        total += share
    mean = total / len(shares)
    squares = 0.0
    for share in shares:
        squares += (share - mean) * (share - mean)
    return float(np.sqrt(squares / len(shares)))
