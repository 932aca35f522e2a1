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
from moorage.core.snapshot.amounts import SATURATED
from moorage.core.snapshot.view import Nodes

Bools = npt.NDArray[np.bool_]

#: Amounts up to this can be multiplied by MAX_NODE_SCORE within int64; larger ones lose low bits first.
_EXACT = 1 << 56

#: Below this, truncating the float64 quotient of amount times MAX_NODE_SCORE and amount gives the exact integer.
_FLOAT_EXACT = 1 << 45


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
        ratio = self.type is StrategyType.REQUESTED_TO_CAPACITY_RATIO
        parts: list[
            tuple[Ints, Bools | None, int]
        ] = []  # score of a resource, where it counts (None: everywhere)
        for resource, amount in wanted:
            allocatable = nodes.allocatable(resource.name)
            absent = None if nodes.snapshot.everywhere(resource.name) else allocatable == 0
            capacity = np.maximum(allocatable, 1)  # rows without a node, and nodes without the resource
            score = self._of_one(nodes, resource.name, amount, capacity)
            counts = None if absent is None else ~absent
            if ratio:
                counts = score > 0 if counts is None else counts & (score > 0)
            parts.append((score, counts, resource.weight))
        if not parts:
            return np.zeros(len(nodes), dtype=np.int64)
        if all(counts is None for _, counts, _ in parts):
            total = parts[0][0] * parts[0][2]
            for score, _, weight in parts[1:]:
                total += score if weight == 1 else score * weight
            return total // sum(weight for _, _, weight in parts)
        return _weighted_mean(parts, rounded=ratio)

    def _of_one(self, nodes: Nodes, resource: str, amount: int, capacity: Ints) -> Ints:
        in_use = _in_use(nodes, resource)
        peak = nodes.snapshot.peak(resource) + amount
        match self.type:
            case StrategyType.LEAST_ALLOCATED:
                left = capacity - in_use
                left -= amount
                return _percent(np.maximum(left, 0, out=left), capacity, peak)
            case StrategyType.MOST_ALLOCATED:
                return _percent(np.minimum(in_use + amount, capacity), capacity, peak)
            case StrategyType.REQUESTED_TO_CAPACITY_RATIO:
                return self._shaped(_percent(np.minimum(in_use + amount, capacity), capacity, peak))

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
            amount = requests.scoring_cpu if requests.arriving_cpu is None else requests.arriving_cpu
        elif with_defaults and resource.name == MEMORY:
            amount = requests.scoring_memory if requests.arriving_memory is None else requests.arriving_memory
        else:
            amount = requests.of(resource.name)
        if amount or not is_scalar(resource.name):
            wanted.append((resource, min(amount, SATURATED - 1)))  # added to a column, it must not wrap
    return tuple(wanted)


def _in_use(nodes: Nodes, resource: str) -> Ints:
    if resource == CPU:
        return nodes.scoring_cpu
    if resource == MEMORY:
        return nodes.scoring_memory
    return nodes.requested(resource)


def _weighted_mean(parts: Sequence[tuple[Ints, Bools | None, int]], *, rounded: bool) -> Ints:
    """The mean over the parts that count on each node, 0 where none does; ``rounded`` half up, else truncated."""
    total = np.zeros_like(parts[0][0])
    weights = np.zeros_like(total)
    for score, counts, weight in parts:
        if counts is None:
            total += score * weight
            weights += weight
        else:
            total += np.where(counts, score * weight, 0)
            weights += np.where(counts, weight, 0)
    divisor = np.maximum(weights, 1)
    if rounded:
        return np.floor(total / divisor + 0.5).astype(np.int64)  # half away from zero; never negative here
    return total // divisor


def _percent(part: Ints, whole: Ints, peak: int) -> Ints:
    """``part * 100 // whole`` for 0 <= part <= whole and whole > 0; no amount is larger than ``peak``."""
    if peak < _FLOAT_EXACT:
        # The quotient's distance to the next integer is at least 1/whole, more than float64 can round away.
        quotient: Ints = (part * 100.0 / whole).astype(np.int64)
        return quotient
    if peak > _EXACT:
        huge = whole > _EXACT
        part, whole = np.where(huge, part >> 8, part), np.where(huge, whole >> 8, whole)
    return part * MAX_NODE_SCORE // whole
