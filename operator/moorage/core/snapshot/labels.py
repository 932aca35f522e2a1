"""Node labels as columns of value ids, and selectors evaluated on them.

A column is built when a selector first names its key and kept up to date from then on, so labels
that nobody selects by cost nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from moorage.core.model.node import Node
from moorage.core.model.selector import Operator, Requirement

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Ids = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]


class LabelColumn:
    """The values of one label key: ``ids[row]`` is an index into ``values``, -1 where the label is missing."""

    __slots__ = ("_id_of", "_numbers", "ids", "key", "values")

    def __init__(self, key: str, nodes: Sequence[Node | None], capacity: int) -> None:
        self.key = key
        self.values: list[str] = []
        self._id_of: dict[str, int] = {}
        self._numbers: Floats = np.full(1, np.nan)
        self.ids: Ids = np.full(capacity, -1, dtype=np.int32)
        for row, node in enumerate(nodes):
            if node is not None:
                self.set(row, node.labels.get(key))

    def set(self, row: int, value: str | None) -> None:
        """Record the label's value on that row (None: the node does not have it)."""
        if value is None:
            self.ids[row] = -1
            return
        found = self._id_of.get(value)
        if found is None:
            found = self._id_of[value] = len(self.values)
            self.values.append(value)
        self.ids[row] = found

    def grow(self, capacity: int) -> None:
        """Make room for that many rows."""
        grown = np.full(capacity, -1, dtype=np.int32)
        grown[: self.ids.size] = self.ids
        self.ids = grown

    @property
    def wasteful(self) -> bool:
        """Whether most of the values seen are on no node any more (nodes with unique labels come and go)."""
        return len(self.values) > 64 + 2 * int(np.count_nonzero(self.ids >= 0))

    def id_of(self, value: str) -> int:
        """The id of a value, -1 when no row ever had it."""
        return self._id_of.get(value, -1)

    def numbers(self) -> Floats:
        """The values as numbers, by id, shape (V + 1,); NaN for those that are none, and in the last slot.

        That slot stands for *no such label*, which id -1 indexes.  Each value is read once.  Do not write.
        """
        known = self._numbers.size - 1
        if known < len(self.values):
            fresh = [_number(value) for value in self.values[known:]]
            self._numbers = np.concatenate((self._numbers[:-1], fresh, (np.nan,)))
        return self._numbers

    def admitted(self, requirement: Requirement) -> Bools:
        """Which rows satisfy a requirement on this key, shape (capacity,).

        The truth is computed once a distinct value, with ``Requirement.admits`` as the definition,
        and spread over the rows; the last slot stands for *no such label*, which id -1 indexes.
        """
        truth = np.zeros(len(self.values) + 1, dtype=np.bool_)
        match requirement.operator:
            case Operator.IN | Operator.NOT_IN:
                for value in requirement.values:
                    found = self._id_of.get(value)
                    if found is not None:
                        truth[found] = True
                if requirement.operator is Operator.NOT_IN:
                    np.logical_not(truth, out=truth)
            case Operator.EXISTS:
                truth[:-1] = True
            case Operator.DOES_NOT_EXIST:
                truth[-1] = True
            case _:
                truth[:-1] = [requirement.admits(value) for value in self.values]
        return truth[self.ids]


def _number(value: str) -> float:
    """A decimal number as Python reads it; NaN for anything else, infinity included."""
    try:
        number = float(value)
    except ValueError:
        return math.nan
    return number if math.isfinite(number) else math.nan
