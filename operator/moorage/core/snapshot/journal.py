"""Which rows changed since a moment, in time proportional to the changes and not to the cluster."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


class Journal:
    """A bounded list of changed rows; its length since the beginning of time is the *epoch*."""

    __slots__ = ("_base", "_rows")

    #: Entries kept; a reader further behind than half of this starts over.
    LIMIT = 16_384

    def __init__(self) -> None:
        self._base = 0
        self._rows: list[int] = []

    @property
    def epoch(self) -> int:
        """Counts changes; equal epochs mean that nothing changed between them."""
        return self._base + len(self._rows)

    def mark(self, row: int) -> None:
        """Note that ``row`` changed."""
        if len(self._rows) >= self.LIMIT:
            drop = self.LIMIT // 2
            del self._rows[:drop]
            self._base += drop
        self._rows.append(row)

    def since(self, epoch: int) -> Ints | None:
        """The distinct rows changed after ``epoch``, shape (C,); None when that is too long ago to tell."""
        start = epoch - self._base
        if start < 0:
            return None
        changed = self._rows[start:]
        if len(changed) > 1:
            changed = list(dict.fromkeys(changed))
        return np.array(changed, dtype=np.int64)
