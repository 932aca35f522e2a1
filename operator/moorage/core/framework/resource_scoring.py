"""Scores by how much of a node's resources is in use: the three strategies of NodeResourcesFit.

Source of the rules: Kubernetes documentation, "Resource Bin Packing", and kube-scheduler v1.37.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from moorage.core.framework.interface import MAX_NODE_SCORE, Ints
from moorage.core.model.resources import CPU, MEMORY, Requests, is_scalar
from moorage.core.snapshot.view import Nodes

Bools = npt.NDArray[np.bool_]

#: Amounts up to this can be multiplied by MAX_NODE_SCORE within int64; larger ones lose low bits first.
_EXACT = 1 << 56


@dataclass(frozen=True, slots=True)
class Weighted:
    """A resource and how much it counts."""

    name: str
    weight: int = 1


#: Resource and amount that the pod adds to it, in the order of the strategy.
Wanted = tuple[tuple[Weighted, int], ...]


class StrategyType(StrEnum):
    """How use turns into liking."""

    LEAST_ALLOCATED = "LeastAllocated"
    MOST_ALLOCATED = "MostAllocated"
    REQUESTED_TO_CAPACITY_RATIO = "RequestedToCapacityRatio"


@dataclass(frozen=True, slots=True)
class ScoringStrategy:
    """A strategy with its resources; ``shape`` is (utilisation 0..100, score 0..10) points, ascending."""

    type: StrategyType = StrategyType.LEAST_ALLOCATED
    resources: tuple[Weighted, ...] = (Weighted(CPU), Weighted(MEMORY))
    shape: tuple[tuple[int, int], ...] = ()

    def score(self, wanted: Sequence[tuple[Weighted, int]], nodes: Nodes) -> Ints:
        """Weighted mean over the resources a node has, shape (M,), 0..MAX_NODE_SCORE."""
        total = np.zeros(len(nodes), dtype=np.int64)
        weights = np.zeros(len(nodes), dtype=np.int64)
        for resource, amount in wanted:
            allocatable = nodes.allocatable(resource.name)
            present = allocatable != 0
            requested = _in_use(nodes, resource.name) + np.int64(amount)
            capacity = np.where(present, allocatable, 1)
            score = self._of_one(requested, capacity)
            counts = (
                present
                if self.type is not StrategyType.REQUESTED_TO_CAPACITY_RATIO
                else present & (score > 0)
            )
            total += np.where(counts, score * resource.weight, 0)
            weights += np.where(counts, np.int64(resource.weight), 0)
        divisor = np.maximum(weights, 1)
        if self.type is StrategyType.REQUESTED_TO_CAPACITY_RATIO:
            return np.floor(total / divisor + 0.5).astype(
                np.int64
            )  # half away from zero; never negative here
        return total // divisor

    def _of_one(self, requested: Ints, capacity: Ints) -> Ints:
        match self.type:
            case StrategyType.LEAST_ALLOCATED:
                return np.where(
                    requested > capacity, 0, _percent(np.maximum(capacity - requested, 0), capacity)
                )
            case StrategyType.MOST_ALLOCATED:
                return _percent(np.minimum(requested, capacity), capacity)
            case StrategyType.REQUESTED_TO_CAPACITY_RATIO:
                used = np.where(
                    requested > capacity, 100, _percent(np.minimum(requested, capacity), capacity)
                )
                return self._shaped(used)

    def _shaped(self, utilization: Ints) -> Ints:
        """The broken line through ``shape``, with integer division truncating towards zero, shape (M,)."""
        points = [(u, s * (MAX_NODE_SCORE // 10)) for u, s in self.shape]
        result = np.full(utilization.shape, points[-1][1], dtype=np.int64)
        for index in range(len(points) - 1, -1, -1):
            u1, s1 = points[index]
            below = utilization <= u1
            if index == 0:
                result[below] = s1
            else:
                u0, s0 = points[index - 1]
                rise = (s1 - s0) * (utilization[below] - u0)
                result[below] = s0 + np.sign(rise) * (np.abs(rise) // (u1 - u0))
        return result


LEAST_ALLOCATED = ScoringStrategy()


def wanted_of(requests: Requests, resources: Sequence[Weighted], *, with_defaults: bool) -> Wanted:
    """What a pod adds to each resource of a strategy; optional resources it does not ask for are left out.

    ``with_defaults``: cpu and memory as scoring counts them, with the defaults for containers that ask for nothing.
    """
    wanted = []
    for resource in resources:
        if with_defaults and resource.name == CPU:
            amount = requests.scoring_cpu
        elif with_defaults and resource.name == MEMORY:
            amount = requests.scoring_memory
        else:
            amount = requests.of(resource.name)
        if amount or not is_scalar(resource.name):
            wanted.append((resource, amount))
    return tuple(wanted)


def _in_use(nodes: Nodes, resource: str) -> Ints:
    if resource == CPU:
        return nodes.scoring_cpu
    if resource == MEMORY:
        return nodes.scoring_memory
    return nodes.requested(resource)


def _percent(part: Ints, whole: Ints) -> Ints:
    """``part * 100 // whole`` for 0 <= part <= whole and whole > 0, without overflow."""
    if int(whole.max(initial=0)) > _EXACT:
        huge = whole > _EXACT
        part, whole = np.where(huge, part >> 8, part), np.where(huge, whole >> 8, whole)
    return part * MAX_NODE_SCORE // whole
