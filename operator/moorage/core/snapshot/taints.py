"""Taints interned as sets: most nodes share a few sets, so a toleration is checked once a set."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from moorage.core.model.taint import Taint

Ints = npt.NDArray[np.int64]
Ids = npt.NDArray[np.int32]

A = TypeVar("A", bound=Hashable)

#: A figure computed from one taint set and what is asked of it: a pod's tolerations, say.
Measure = Callable[[tuple[Taint, ...], A], int]


class TaintSets:
    """The distinct taint sets of all nodes; ``ids[row]`` tells which one a node has."""

    _CACHED = 512

    def __init__(self, capacity: int) -> None:
        self.ids: Ids = np.zeros(capacity, dtype=np.int32)
        self._sets: list[tuple[Taint, ...]] = [()]
        self._id_of: dict[tuple[Taint, ...], int] = {(): 0}
        self._measured: dict[tuple[object, Hashable], Ints] = {}

    def grow(self, capacity: int) -> None:
        """Make room for that many rows."""
        grown = np.zeros(capacity, dtype=np.int32)
        grown[: self.ids.size] = self.ids
        self.ids = grown

    def set(self, row: int, taints: tuple[Taint, ...]) -> None:
        """Record the taints of the node on that row."""
        found = self._id_of.get(taints)
        if found is None:
            if len(self._sets) > 64 + 2 * self.ids.size:
                self._compact()
            found = self._id_of[taints] = len(self._sets)
            self._sets.append(taints)
        self.ids[row] = found

    def of(self, row: int) -> tuple[Taint, ...]:
        """The taints of the node on that row."""
        return self._sets[self.ids.item(row)]

    def measure(self, measure: Measure[A], asked: A) -> Ints:
        """``measure`` for every taint set, shape (T,), to be spread over rows by ``take(ids)``."""
        key = (measure, asked)
        known = self._measured.get(key)
        start = 0 if known is None else known.size
        if known is not None and start == len(self._sets):
            return known
        fresh = np.array([measure(taints, asked) for taints in self._sets[start:]], dtype=np.int64)
        result = fresh if known is None else np.concatenate((known, fresh))
        if len(self._measured) >= self._CACHED:
            self._measured.pop(next(iter(self._measured)))
        self._measured[key] = result
        return result

    def _compact(self) -> None:
        """Forget the sets that no node has any more."""
        kept = np.unique(self.ids)
        sets = [self._sets[i] for i in kept]
        renumber = np.zeros(len(self._sets), dtype=np.int32)
        renumber[kept] = np.arange(kept.size, dtype=np.int32)
        self.ids = renumber[self.ids]
        self._sets = sets
        self._id_of = {taints: i for i, taints in enumerate(sets)}
        if () not in self._id_of:
            self._id_of[()] = len(self._sets)
            self._sets.append(())
        self._measured.clear()
