"""Picking one of the best nodes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


def best_rows(rows: Ints, totals: Ints) -> Ints:
    """The rows with the highest total, shape (B,)."""
    best: Ints = rows[totals == totals.max()]
    return best


def pick(rows: Ints, rng: np.random.Generator) -> int:
    """One of equally good rows, each with the same chance (kube-scheduler draws among ties, too)."""
    return int(rows[0]) if rows.size == 1 else int(rows[rng.integers(rows.size)])
