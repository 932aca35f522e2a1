"""The pods of each row in the order in which preemption spares them, with their figures as arrays.

A row is put in order when somebody asks for it, and again after one of its pods has changed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

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
    """The P pods of one row, the most important first; ``amounts`` by resource are filled in by ``Ranking``."""

    __slots__ = ("amounts", "pods", "priorities", "starts")

    def __init__(self, pods: Sequence[Pod], priorities: Ints, starts: Floats) -> None:
        self.pods = pods
        self.priorities = priorities  # (P,)
        self.starts = starts  # (P,), infinity where the pod has not started
        self.amounts: dict[str, Ints] = {}  # (P,) each


class Ranking:
    """The ranked pods of all rows; ``pods`` is the snapshot's list by row, which is only read."""

    __slots__ = ("_pods", "_ranked")

    def __init__(self, pods: Sequence[Mapping[str, Pod]]) -> None:
        self._pods = pods
        self._ranked: dict[int, RankedPods] = {}

    def changed(self, row: int) -> None:
        """A pod came to that row, left it or has a new description."""
        self._ranked.pop(row, None)

    def at(self, rows: Sequence[int]) -> list[RankedPods]:
        """The pods of each of these rows."""
        known = self._ranked
        unknown = [row for row in rows if row not in known]
        if unknown:
            self._rank(unknown)
        return [known[row] for row in rows]

    def _rank(self, rows: Sequence[int]) -> None:
        ordered = [sorted(self._pods[row].values(), key=importance) for row in rows]
        pods = list(chain.from_iterable(ordered))
        # One array for all rows, of which each has its part: many small arrays take long to make.
        priorities = np.fromiter([pod.spec.priority for pod in pods], np.int64, len(pods))
        starts = np.fromiter([start_of(pod) for pod in pods], np.float64, len(pods))
        for row, there, part in zip(rows, ordered, _parts(ordered), strict=True):
            self._ranked[row] = RankedPods(there, priorities[part], starts[part])


def amounts_of(ranked: Sequence[RankedPods], resource: str) -> list[Ints]:
    """For each of them what the pods ask of a resource in base units, shape (P,)."""
    unknown = [each for each in ranked if resource not in each.amounts]
    if unknown:
        asked = [pod.requests.amounts.get(resource, 0) for each in unknown for pod in each.pods]
        amounts = np.fromiter(asked, np.int64, len(asked))
        for each, part in zip(unknown, _parts([each.pods for each in unknown]), strict=True):
            each.amounts[resource] = amounts[part]
    return [each.amounts[resource] for each in ranked]


def _parts(groups: Sequence[Sequence[Pod]]) -> Iterator[slice]:
    """Where each group is among all of them, one behind the other."""
    start = 0
    for group in groups:
        yield slice(start, start + len(group))
        start += len(group)
