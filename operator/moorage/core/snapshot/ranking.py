"""The pods of each row in the order in which preemption spares them, with their figures as arrays.

A row is put in order when somebody asks for it, and again after one of its pods has changed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from moorage.core.model.pod import Pod

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def importance(pod: Pod) -> tuple[int, float, str]:
    """Sort key, the most important first: higher priority, then longer running; the UID makes it the same each time."""
    return -pod.spec.priority, start_of(pod), pod.uid


def start_of(pod: Pod) -> float:
    """When the pod started; infinity if it has not, so that it is the youngest of all."""
    return math.inf if pod.started is None else pod.started


class RankedPods:
    """The P pods of one row, the most important first."""

    __slots__ = ("_amounts", "pods", "priorities", "starts")

    def __init__(self, pods: Mapping[str, Pod]) -> None:
        self.pods = sorted(pods.values(), key=importance)
        number = len(self.pods)
        self.priorities: Ints = np.fromiter([p.spec.priority for p in self.pods], np.int64, number)  # (P,)
        self.starts: Floats = np.fromiter(map(start_of, self.pods), np.float64, number)  # (P,)
        self._amounts: dict[str, Ints] = {}

    def amounts(self, resource: str) -> Ints:
        """What each of the pods asks of a resource in base units, shape (P,)."""
        known = self._amounts.get(resource)
        if known is None:
            asked = [pod.requests.amounts.get(resource, 0) for pod in self.pods]
            known = self._amounts[resource] = np.fromiter(asked, np.int64, len(asked))
        return known


class Ranking:
    """The ranked pods of all rows; ``pods`` is the snapshot's list by row, which is only read."""

    __slots__ = ("_pods", "_ranked")

    def __init__(self, pods: Sequence[Mapping[str, Pod]]) -> None:
        self._pods = pods
        self._ranked: dict[int, RankedPods] = {}

    def changed(self, row: int) -> None:
        """A pod came to that row, left it or has a new description."""
        self._ranked.pop(row, None)

    def at(self, row: int) -> RankedPods:
        """The pods of a row."""
        known = self._ranked.get(row)
        if known is None:
            known = self._ranked[row] = RankedPods(self._pods[row])
        return known
