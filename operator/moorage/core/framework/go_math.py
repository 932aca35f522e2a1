"""Floating point as Go computes it, where the last bit can decide a rounding."""

from __future__ import annotations

import functools
import math

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
# Coefficients of the rational approximation in FreeBSD's e_log.c, which Go's math.Log follows.
_L1, _L2, _L3, _L4, _L5, _L6, _L7 = (
    6.666666666666735130e-01,
    3.999999999940941908e-01,
    2.857142874366239149e-01,
    2.222219843214978396e-01,
    1.818357216161805012e-01,
    1.531383769920937332e-01,
    1.479819860511658591e-01,
)


@functools.lru_cache(maxsize=4096)
def log(x: float) -> float:
    """The natural logarithm of a positive number; one in a hundred differs from ``math.log`` in the last bit."""
    fraction, exponent = math.frexp(x)
    if fraction < math.sqrt(2) / 2:
        fraction *= 2
        exponent -= 1
    f = fraction - 1
    s = f / (2 + f)
    s2 = s * s
    s4 = s2 * s2
    odd = s2 * (_L1 + s4 * (_L3 + s4 * (_L5 + s4 * _L7)))
    even = s4 * (_L2 + s4 * (_L4 + s4 * _L6))
    half = 0.5 * f * f
    return exponent * _LN2_HIGH - ((half - (s * (half + (odd + even)) + exponent * _LN2_LOW)) - f)


def rounded(values: Floats) -> Ints:
    """Numbers that are not negative, to the nearest integer; halves go up (``math.Round``, not numpy's ``rint``)."""
    whole = np.floor(values)
    whole += values - whole >= 0.5
    return whole.astype(np.int64)
