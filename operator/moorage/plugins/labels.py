"""The values of one label of many nodes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from moorage.core.snapshot.labels import LabelColumn

Bools = npt.NDArray[np.bool_]
Ids = npt.NDArray[np.int32]


class Labels:
    """The values of a label, shape (M,), compared as a whole; a node without the label has none, which is no text.

    So ``== "x"`` is false there, ``!= "x"`` true, and ``== None`` true.
    """

    __slots__ = ("_column", "_ids")
    __hash__ = None  # type: ignore[assignment]  # as arrays have none

    def __init__(self, ids: Ids, column: LabelColumn) -> None:
        self._ids = ids
        self._column = column

    def __eq__(self, other: object) -> Bools:  # type: ignore[override]  # as of arrays
        if other is None:
            return self._ids < 0
        if isinstance(other, str):
            found = self._column.id_of(other)
            return self._ids == found if found >= 0 else np.zeros(len(self), dtype=np.bool_)
        if isinstance(other, Labels):
            same: Bools = np.asarray(self) == np.asarray(other)
            return same
        raise TypeError(f"labels are texts and cannot be compared with {other!r}; see label_number()")

    def __ne__(self, other: object) -> Bools:  # type: ignore[override]
        return ~(self == other)

    def __bool__(self) -> bool:
        raise TypeError("the labels of many nodes are neither true nor false: compare them with something")

    def __len__(self) -> int:
        return self._ids.size

    def __getitem__(self, index: int) -> str | None:
        found = int(self._ids[index])
        return None if found < 0 else self._column.values[found]

    def __iter__(self) -> Iterator[str | None]:
        return (self[index] for index in range(len(self)))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """An array of texts, None where the label is missing."""
        values = np.array([*self._column.values, None], dtype=np.object_)
        return values[self._ids].astype(dtype or np.object_)

    def isin(self, values: Collection[str]) -> Bools:
        """Where the value is one of these."""
        if isinstance(values, str):
            raise TypeError(f"isin() takes several texts, not {values!r}")
        return self.matching(frozenset(values).__contains__)

    def matching(self, holds: Callable[[str], bool]) -> Bools:
        """Where the label is there and ``holds(value)``, which is asked once a distinct value."""
        truth = np.zeros(len(self._column.values) + 1, dtype=np.bool_)
        there = np.bincount(self._ids + 1)[1:]
        for index in np.flatnonzero(there):
            truth[index] = bool(holds(self._column.values[index]))
        return truth[self._ids]
