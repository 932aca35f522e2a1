"""Percentages of amounts, compared exactly."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

#: Amounts below this can be multiplied by 100 within int64.
_EXACT = 1 << 56


def at_least(part: Ints, percent: int, whole: Ints, peak: int) -> Bools:
    """Where ``part`` is ``percent`` of ``whole`` or more: ``part * 100 >= percent * whole`` in integers, shape (M,).

    ``percent`` is -100..100, and no amount is larger in magnitude than ``peak``.
    """
    if peak < _EXACT:
        enough: Bools = part * 100 >= percent * whole
        return enough
    # Rare, and exact all the same: as Python's integers.
    wide = part.astype(object) * 100 >= percent * whole.astype(object)
    return wide.astype(np.bool_)
