"""A bar chart as SVG: for each workload what each contestant did."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

_BAR, _GAP, _LEFT, _WIDE, _RIGHT, _TOP = 11, 10, 250, 480, 120, 58
_STYLE = 'xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" font-size="12" role="img"'
_COLOURS = ("#2f6fb0", "#c9883a")


@dataclass(frozen=True)
class Bars:
    """One workload: a value for each contestant (NaN: no bar), and what is written behind."""

    label: str
    values: tuple[float, float]
    remark: str


def draw(title: str, names: tuple[str, str], groups: Sequence[Bars], unit: str) -> str:
    """The SVG's text; bars of all groups have one scale."""
    top = max((value for bars in groups for value in bars.values if not math.isnan(value)), default=1.0)
    step = _step(top)
    height = _TOP + len(groups) * (2 * _BAR + _GAP) + 30
    width = _LEFT + _WIDE + _RIGHT
    parts = [
        f'<svg {_STYLE} viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        _text(12, 22, title, size=15),
    ]
    for index, name in enumerate(names):
        x = _LEFT + 150.0 * index
        parts.append(f'<rect x="{x}" y="34" width="11" height="11" fill="{_COLOURS[index]}"/>')
        parts.append(_text(x + 16, 44, name))
    bottom = height - 24
    for number in range(math.floor(top / step) + 1):
        x = _LEFT + _WIDE * number * step / top
        parts.append(f'<line x1="{x:.1f}" y1="{_TOP - 4}" x2="{x:.1f}" y2="{bottom}" stroke="#dddddd"/>')
        parts.append(_text(x, bottom + 15, f"{number * step:,.0f}", anchor="middle"))
    parts.append(_text(_LEFT + _WIDE + 12, bottom + 15, unit))
    for row, bars in enumerate(groups):
        y = _TOP + row * (2 * _BAR + _GAP)
        parts.append(_text(_LEFT - 8, y + _BAR + 4, bars.label, anchor="end"))
        longest = 0.0
        for index, value in enumerate(bars.values):
            if math.isnan(value):
                continue
            length = _WIDE * value / top
            longest = max(longest, length)
            parts.append(
                f'<rect x="{_LEFT}" y="{y + index * _BAR}" width="{length:.1f}" height="{_BAR - 1}" '
                f'fill="{_COLOURS[index]}"/>'
            )
        parts.append(_text(_LEFT + longest + 8, y + _BAR + 4, bars.remark, weight="bold"))
    return "\n".join([*parts, "</svg>", ""])


def _step(top: float) -> float:
    """A round distance of some four to eight lines."""
    power = 10.0 ** math.floor(math.log10(top))
    return next((power * part for part in (0.1, 0.2, 0.25, 0.5) if top / (power * part) <= 8), power)


def _text(x: float, y: float, text: str, *, anchor: str = "start", size: int = 12, weight: str = "") -> str:
    bold = f' font-weight="{weight}"' if weight else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"{bold}>{escape(text)}</text>'
    )
