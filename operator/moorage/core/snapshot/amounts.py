"""One resource of all nodes: what each has and how much of it is asked for."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

#: Sums beyond this are kept exactly aside and shown as this value, so that no arithmetic on a column can wrap.
SATURATED = 1 << 62


class AmountColumn:
    """A column of int64 sums that cannot overflow."""

    __slots__ = ("_exact", "nonzero", "peak", "values")

    def __init__(self, capacity: int) -> None:
        self.values: Ints = np.zeros(capacity, dtype=np.int64)
        self.peak = 0  # no value was ever larger in magnitude
        self.nonzero = 0  # how many rows hold an amount other than 0
        self._exact: dict[int, int] = {}

    def grow(self, capacity: int) -> None:
        """Make room for that many rows."""
        grown = np.zeros(capacity, dtype=np.int64)
        grown[: self.values.size] = self.values
        self.values = grown

    def add(self, row: int, amount: int) -> None:
        """Add an amount (negative: take it away again)."""
        exact = self._exact.pop(row, None) if self._exact else None
        before = self.values.item(row) if exact is None else exact
        total = before + amount
        if not before or not total:
            self.nonzero += bool(total) - bool(before)
        if -SATURATED < total < SATURATED:
            self.values[row] = total
        else:
            self._exact[row] = total
            total = SATURATED if total > 0 else -SATURATED
            self.values[row] = total
        if total > self.peak or -total > self.peak:
            self.peak = abs(total)

    def set(self, row: int, amount: int) -> None:
        """Replace the sum."""
        self.add(row, amount - self._exact.get(row, self.values.item(row)))
