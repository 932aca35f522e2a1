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
Bools = npt.NDArray[np.bool_]
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
        with_pod: list[Floats] = []
        without: list[Floats] = []
        counted: list[Bools | None] = []
        for resource, amount in state:
            allocatable = nodes.allocatable(resource.name)
            requested = nodes.requested(resource.name)
            absent = None if nodes.snapshot.everywhere(resource.name) else allocatable == 0
            divisor = np.maximum(allocatable, 1)  # rows without a node, and nodes without the resource
            with_pod.append(_share(requested + amount, divisor))
            without.append(_share(requested, divisor))
            counted.append(None if absent is None else ~absent)
        if not counted:
            return np.full(len(nodes), _HALF + _HALF // 2, dtype=np.int64)
        gain = _balance(with_pod, counted)
        gain -= _balance(without, counted)
        gain += _HALF
        gain >>= 1  # never negative, so this halves as Go does
        gain += _HALF
        return gain

    def normalize(self, raw: Ints) -> Ints:
        """Raw scores are in range already."""
        return no_change(raw)

    def wakes_on(self) -> Sequence[WakesOn]:
        """It rejects nothing."""
        return ()


def _share(requested: Ints, allocatable: Ints) -> Floats:
    """The part in use, at most 1, shape (M,)."""
    share: Floats = requested / allocatable
    return np.minimum(share, 1.0, out=share)


def _balance(shares: list[Floats], counted: list[Bools | None]) -> Ints:
    """(1 - standard deviation of the counted shares) * 100, shape (M,), truncated.

    The float operations come in kube-scheduler's order, the two-resource shortcut included, since
    another order can end on the other side of an integer.  A share counts where ``counted`` says so (None: everywhere).
    """
    if len(shares) == 2:
        deviation = shares[0] - shares[1]
        np.abs(deviation, out=deviation)
        deviation /= 2
        for one in counted:
            if one is not None:
                deviation[~one] = 0.0
    else:
        deviation = _deviations(shares, counted)
    np.subtract(1.0, deviation, out=deviation)
    deviation *= MAX_NODE_SCORE
    return deviation.astype(np.int64)


def _deviations(shares: list[Floats], counted: list[Bools | None]) -> Floats:
    """The standard deviation over any number of resources, shape (M,); with two that count, half their distance."""
    everywhere = np.ones(shares[0].size, dtype=np.bool_)
    masks = [everywhere if one is None else one for one in counted]
    number = np.count_nonzero(np.stack(masks), axis=0)
    total = np.zeros(number.size)
    for share, mask in zip(shares, masks, strict=True):
        total += np.where(mask, share, 0.0)
    mean = total / np.maximum(number, 1)
    squares = np.zeros(number.size)
    for share, mask in zip(shares, masks, strict=True):
        squares += np.where(mask, (share - mean) * (share - mean), 0.0)
    deviation: Floats = np.sqrt(squares / np.maximum(number, 1))
    deviation[number < 2] = 0.0
    for index in np.flatnonzero(number == 2):
        first, second = (share[index] for share, mask in zip(shares, masks, strict=True) if mask[index])
        deviation[index] = abs((first - second) / 2)
    return deviation
