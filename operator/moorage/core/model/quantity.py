"""Kubernetes quantities ("500m", "1.5Gi", "2e3") as exact integers.

The grammar is the one in the API documentation of ``Quantity``: a signed decimal number, which may lack digits
on one side of the point, and one suffix: n u m k M G T P E, Ki Mi Gi Ti Pi Ei, or a decimal exponent e3 or
E3 (a lone E is exa).  As in the API server, anything finer than a nano-unit is rounded up, away from zero.

Amounts that do not fit into 64 bits become ``MAX_AMOUNT``.  This differs from Go's ``Quantity.Value()``, which
turns many of them into 0 and so lets a pod that asks for 50E bytes onto any node.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from moorage.core.model.resources import MAX_AMOUNT

_NANO: Final = 10**9
#: Magnitudes are held to this many nano-units: far beyond 64 bits, so sums of huge amounts still compare as huge.
_LIMIT: Final = 10**60
#: Digits that can matter for an amount below the limit, even after multiplication by Ei.
_SIGNIFICANT_DIGITS: Final = 120

_QUANTITY = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?"
    r"(?P<suffix>[numkMGTPE]|[KMGTPE]i|[eE](?P<exponent>[+-]?[0-9]+))?"
)
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40, "Pi": 1 << 50, "Ei": 1 << 60}


class QuantityError(ValueError):
    """The text or number is not a quantity."""


@dataclass(frozen=True, slots=True, order=True)
class Quantity:
    """An exact amount, counted in nano-units."""

    nanos: int

    @property
    def millis(self) -> int:
        """The amount in thousandths, rounded away from zero and not clamped, so that sums stay exact.

        The API server rounds every entry of a resource list to this.
        """
        return _divide_up(self.nanos, 10**6)

    def value(self) -> int:
        """Whole units, rounded away from zero, within 64 bits."""
        return clamp(_divide_up(self.nanos, _NANO))

    def milli_value(self) -> int:
        """Thousandths, rounded away from zero, within 64 bits."""
        return clamp(self.millis)


def parse(quantity: object) -> Quantity:
    """Read a quantity as JSON or YAML give it: text, or a plain number.

    >>> parse("1.5Gi").value()
    1610612736
    >>> parse(".5").milli_value()
    500
    """
    if isinstance(quantity, str):
        return _parse_text(quantity)
    if isinstance(quantity, int) and not isinstance(quantity, bool):
        return Quantity(max(-_LIMIT, min(_LIMIT, quantity * _NANO)))
    if isinstance(quantity, float):
        return _parse_text(repr(quantity))  # the shortest text that reads back as this number, so 0.1 is 100m
    raise QuantityError(f"not a quantity: {_shown(quantity)}")


def value(quantity: object) -> int:
    """Whole units (bytes, devices, pods): what kube-scheduler reads for everything but cpu."""
    return parse(quantity).value()


def milli_value(quantity: object) -> int:
    """Thousandths of a unit: what kube-scheduler reads for cpu."""
    return parse(quantity).milli_value()


def clamp(amount: int) -> int:
    """The amount itself, or the largest (smallest) one that fits."""
    return max(-MAX_AMOUNT, min(MAX_AMOUNT, amount))


@lru_cache(maxsize=8192)
def _parse_text(text: str) -> Quantity:
    match = _QUANTITY.fullmatch(text.strip())
    if match is None:
        raise QuantityError(f"not a quantity: {_shown(text)}")
    whole, fraction = match["whole"], match["fraction"] or ""
    if not whole and not fraction:
        raise QuantityError(f"not a quantity, it has no digits: {_shown(text)}")
    suffix = match["suffix"] or ""
    factor = _BINARY.get(suffix, 1)
    scale = (
        0 if suffix in _BINARY else _exponent(match["exponent"]) if match["exponent"] else _DECIMAL[suffix]
    )
    nanos = _nanos(whole + fraction, scale - len(fraction), factor)
    return Quantity(-nanos if match["sign"] == "-" else nanos)


def _exponent(digits: str) -> int:
    """The exponent, or a stand-in for one so large that only its sign matters."""
    sign = -1 if digits[0] == "-" else 1
    digits = digits.lstrip("+-").lstrip("0")
    return sign * (int(digits or "0") if len(digits) < 10 else 10**10)


def _nanos(digits: str, scale: int, factor: int) -> int:
    """``digits * 10**scale * factor`` in nano-units, rounded up; never computes a number much beyond the limit."""
    digits = digits.lstrip("0")
    if not digits:
        return 0
    magnitude = len(digits) + scale
    if magnitude > 60:
        return _LIMIT
    if magnitude < -40:
        return 1  # "if you want some resources, you should get some" (apimachinery's quantity.go)
    rest = digits[_SIGNIFICANT_DIGITS:]
    mantissa = int(digits[:_SIGNIFICANT_DIGITS]) + (1 if rest.strip("0") else 0)
    shift = scale + len(rest) + 9
    amount = mantissa * factor * 10**shift if shift >= 0 else _divide_up(mantissa * factor, 10**-shift)
    return min(amount, _LIMIT)


def _divide_up(amount: int, by: int) -> int:
    """Division that rounds away from zero."""
    return -(-amount // by) if amount >= 0 else amount // by


def _shown(quantity: object) -> str:
    text = repr(quantity)
    return text if len(text) <= 60 else f"{text[:57]}…"
