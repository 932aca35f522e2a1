"""Rows that are the same to whoever looks at certain labels only, so that one of each kind need be looked at."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from moorage.core.snapshot.snapshot import Snapshot

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


def label_groups(
    snapshot: Snapshot, rows: Ints, keys: Iterable[str], masks: Sequence[Bools] = ()
) -> tuple[Ints, Ints]:
    """(one index into ``rows`` for each group, the group of each row).

    Rows of one group have the same values of these label keys, and the same entries in ``masks``, shape (M,) each.
    """
    group: Ints = np.zeros(rows.size, dtype=np.int64)
    count = min(1, rows.size)
    for key in keys:
        column = snapshot.label(key)
        values = len(column.values) + 1
        group, count = _compressed(group * values + (column.ids[rows] + 1), count * values)
    for mask in masks:
        group, count = _compressed(group * 2 + mask, count * 2)
    first: Ints = np.zeros(count, dtype=np.int64)
    first[group[::-1]] = np.arange(rows.size, dtype=np.int64)[::-1]  # the last to be written is the first row
    return first, group


def _compressed(codes: Ints, bound: int) -> tuple[Ints, int]:
    """The same groups under the smallest numbers, and how many there are; all codes are below ``bound``."""
    if bound > 16 * codes.size + 1024:  # too many to count
        found, inverse = np.unique(codes, return_inverse=True)
        return inverse, found.size
    seen = np.zeros(bound, dtype=np.bool_)
    seen[codes] = True
    numbers = np.cumsum(seen) - 1
    return numbers[codes], int(np.count_nonzero(seen))
