"""Pictures of clusters as one HTML file: inline CSS and SVG, no scripts, nothing that is fetched.

Colours are those of Okabe and Ito and of cividis, which most colour-blind people can tell apart; whatever a colour
says is said by a pattern, a sign or a number, too.  All that comes from the cluster is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Final

from moorage.cli.render import amount_text, used_on
from moorage.core.model.node import Node
from moorage.core.model.pod import Pod
from moorage.core.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS

#: Nodes that get bars; of more, the ones that matter most, while the map has them all.
BARS: Final = 150
#: Candidates that are listed, and rows of other tables.
ROWS: Final = 100
_RESOURCES: Final = 4
_CIVIDIS: Final = (
    "#00224e", "#123570", "#3b496c", "#575d6d", "#707173", "#8a8678", "#a59c74", "#c3b369", "#e1cc55", "#fee838",
)  # fmt: skip
_BAR: Final = 160

_STYLE: Final = (
    """
:root{color-scheme:light}
body{font:14px/1.45 system-ui,sans-serif;color:#1a1a1a;background:#fff;
max-width:72rem;margin:1.5rem auto;padding:0 1rem}
h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem}
table{border-collapse:collapse}th,td{text-align:left;padding:.2rem .8rem .2rem 0;vertical-align:top}
th{border-bottom:1px solid #999;font-weight:600}td.n{text-align:right;font-variant-numeric:tabular-nums}
td,p,li{overflow-wrap:anywhere}.dim{color:#555}svg{display:block}svg.k{display:inline-block;vertical-align:-2px}
.legend span{margin-right:1.2rem;white-space:nowrap}
"""
    + "".join(f".s{i}{{fill:{colour}}}" for i, colour in enumerate(_CIVIDIS))
    + """
.was{fill:#0072b2}.new{fill:url(#h)}.gone{fill:none;stroke:#d55e00;stroke-width:1.5;stroke-dasharray:3 2}
.room{fill:#eee;stroke:#999;stroke-width:.5}.no{fill:#ddd;stroke:#777;stroke-width:.5}.over{stroke:#000;stroke-width:1.5}
"""
)
_PATTERN: Final = (
    '<svg width="0" height="0" aria-hidden="true"><defs><pattern id="h" width="6" height="6" '
    'patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="6" height="6" fill="#e69f00"/>'
    '<rect width="2" height="6" fill="#7a4f00"/></pattern></defs></svg>'
)


@dataclass(frozen=True, slots=True)
class Bar:
    """One node in a picture: what is taken of each resource before and after, and a word about it."""

    node: Node
    before: Mapping[str, int]
    after: Mapping[str, int]
    remark: str = ""
    rank: tuple[float, str] = field(default=(0.0, ""))  # the lowest are shown first

    @property
    def changed(self) -> bool:
        """Whether anything is taken or freed."""
        return dict(self.before) != dict(self.after)


def page(title: str, lead: Iterable[str], sections: Iterable[str]) -> str:
    """The whole file; ``lead`` are lines of plain text, ``sections`` are HTML."""
    head = "".join(f"<p>{escape(line)}</p>" for line in lead)
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    body = "\n".join((f"<h1>{escape(title)}</h1>{head}", *filter(None, sections)))
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>\n<body>{_PATTERN}{body}</body></html>"
    )


def section(title: str, body: str) -> str:
    """A part of the page."""
    return f"<section><h2>{escape(title)}</h2>{body}</section>" if body else ""


def rows_table(heads: Sequence[str], rows: Sequence[Sequence[str | int]], most: int = ROWS) -> str:
    """A table of plain values, "" if there are none; numbers are set to the right."""
    if not rows:
        return ""
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    lines = ["".join(_cell(value) for value in row) for row in rows[:most]]
    if len(rows) > most:
        lines.append(f'<td class="dim" colspan="{len(heads)}">… and {len(rows) - most} more</td>')
    return f"<table><tr>{head}</tr>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def _cell(value: str | int) -> str:
    return f'<td class="n">{value}</td>' if isinstance(value, int) else f"<td>{escape(value)}</td>"


def bars_of(
    nodes: Sequence[Node],
    before: Sequence[Pod],
    after: Sequence[Pod],
    remarks: Mapping[str, str] | None = None,
    ranks: Mapping[str, float] | None = None,
) -> list[Bar]:
    """What pictures need to know of the nodes; lower ``ranks`` come first, then nodes that change, then by name."""
    held = [_held(nodes, pods) for pods in (before, after)]
    bars = []
    for node in nodes:
        was, will = held[0][node.name], held[1][node.name]
        rank = (ranks or {}).get(node.name, 1.0 if was != will else 2.0)
        bars.append(Bar(node, was, will, (remarks or {}).get(node.name, ""), (rank, node.name)))
    return sorted(bars, key=lambda bar: bar.rank)


def _held(nodes: Sequence[Node], pods: Sequence[Pod]) -> dict[str, Mapping[str, int]]:
    on_node: dict[str, list[Pod]] = {node.name: [] for node in nodes}
    for pod in pods:
        if pod.node_name in on_node:
            on_node[pod.node_name].append(pod)
    return {node.name: used_on(node, on_node[node.name]) for node in nodes}


def cluster_section(bars: Sequence[Bar]) -> str:
    """The map of all nodes, and bars for those that matter most."""
    if not bars:
        return ""
    after = "".join(_map(bars))
    shown = bars[:BARS]
    note = (
        f'<p class="dim">Bars for {BARS} of {len(bars)} nodes, the ones that matter most; the map has all.</p>'
        if len(bars) > BARS
        else ""
    )
    changed = any(bar.changed for bar in bars)
    return section(
        "The cluster" + (", before and after" if changed else ""), _legend() + after + note + _bars(shown)
    )


def _legend() -> str:
    keys = (("was", "taken already"), ("new", "comes (hatched)"), ("gone", "goes (dashed)"), ("room", "free"))
    parts = "".join(
        f'<span><svg class="k" width="22" height="12"><rect x="1" y="1" width="20" height="10" class="{name}"/></svg> '
        f"{text}</span>"
        for name, text in keys
    )
    scale = "".join(f'<rect x="{i * 12}" width="12" height="12" class="s{i}"/>' for i in range(len(_CIVIDIS)))
    return (
        f'<p class="legend">{parts}<span>map: <svg class="k" width="120" height="12">{scale}</svg> 0 to 100 % '
        "of the fullest resource, afterwards; with a frame: changed</span></p>"
    )


def _map(bars: Sequence[Bar]) -> Iterator[str]:
    """One square a node, by name."""
    columns, side = 80, 12
    ordered = sorted(bars, key=lambda bar: bar.node.name)
    rows = -(-len(ordered) // columns)
    width = min(len(ordered), columns) * side
    yield f'<svg width="{width}" height="{rows * side}" role="img" aria-label="Map of {len(ordered)} nodes">'
    for place, bar in enumerate(ordered):
        share = _fullest(bar)
        step = min(int(share * len(_CIVIDIS)), len(_CIVIDIS) - 1)
        frame = " over" if bar.changed else ""
        yield (
            f'<rect x="{place % columns * side + 1}" y="{place // columns * side + 1}" width="{side - 2}" '
            f'height="{side - 2}" class="s{step}{frame}"><title>{escape(bar.node.name)}: {share:.0%}</title></rect>'
        )
    yield "</svg>"


def _fullest(bar: Bar) -> float:
    """The largest share that is taken of a resource."""
    shares = (bar.after.get(r, 0) / amount for r, amount in bar.node.allocatable.items() if amount > 0)
    return min(max(shares, default=0.0), 1.0)


def _bars(bars: Sequence[Bar]) -> str:
    resources = _columns(bars)
    head = "".join(f"<th>{escape(resource)}</th>" for resource in resources)
    remarks = any(bar.remark for bar in bars)
    lines = []
    for bar in bars:
        cells = "".join(f"<td>{_bar(bar, resource)}</td>" for resource in resources)
        remark = f"<td>{escape(bar.remark)}</td>" if remarks else ""
        lines.append(f"<tr><td>{escape(bar.node.name)}</td>{cells}{remark}</tr>")
    return f"<table><tr><th>Node</th>{head}{'<th></th>' if remarks else ''}</tr>{''.join(lines)}</table>"


def _columns(bars: Sequence[Bar]) -> list[str]:
    """Pods, cpu and memory, and then whatever else is asked for anywhere."""
    asked = {r for bar in bars for r in (*bar.before, *bar.after) if bar.before.get(r) or bar.after.get(r)}
    others = sorted(asked - {PODS, CPU, MEMORY, EPHEMERAL_STORAGE})
    return [CPU, MEMORY, PODS, *others][: _RESOURCES + 2]


def _bar(bar: Bar, resource: str) -> str:
    all_ = bar.node.allocatable.get(resource, 0)
    was, will = bar.before.get(resource, 0), bar.after.get(resource, 0)
    if not (all_ or was or will):
        return ""
    scale = _BAR / max(all_, was, will)
    kept, text = min(was, will), f"{amount_text(resource, will)} of {amount_text(resource, all_)}"
    parts = [f'<rect y="1" width="{all_ * scale:.1f}" height="10" class="room"/>']
    parts.append(f'<rect y="1" width="{kept * scale:.1f}" height="10" class="was"/>')
    if will != was:
        name = "new" if will > was else "gone"
        parts.append(
            f'<rect x="{kept * scale:.1f}" y="1" width="{abs(will - was) * scale:.1f}" height="10" class="{name}"/>'
        )
        text = f"{amount_text(resource, was)} → {text}"
    return (
        f'<svg width="{_BAR + 2}" height="12">{"".join(parts)}</svg><span class="dim">{escape(text)}</span>'
    )


def candidates_section(scores: Mapping[str, Mapping[str, int]], chosen: str | None) -> str:
    """The nodes that would take the pod, by score."""
    if not scores:
        return ""
    ranked = sorted(scores, key=lambda node: (-scores[node]["total"], node))
    top = scores[ranked[0]]["total"]
    low = scores[ranked[-1]]["total"]
    lines = []
    for node in ranked[:ROWS]:
        total = scores[node]["total"]
        step = len(_CIVIDIS) - 1 if top == low else (total - low) * (len(_CIVIDIS) - 1) // (top - low)
        width = max(total, 0) * 200 / max(top, 1)
        parts = ", ".join(
            f"{plugin} {points}" for plugin, points in scores[node].items() if plugin != "total"
        )
        mark = " ◀ chosen" if node == chosen else ""
        lines.append(
            f"<tr><td>{escape(node)}{mark}</td><td class=n>{total}</td><td><svg width=202 height=12>"
            f'<rect y="1" width="{width:.1f}" height="10" class="s{step}" stroke="#555" stroke-width=".5"/></svg></td>'
            f'<td class="dim">{escape(parts)}</td></tr>'
        )
    if len(ranked) > ROWS:
        lines.append(f'<tr><td class="dim" colspan="4">… and {len(ranked) - ROWS} more</td></tr>')
    head = "<tr><th>Node</th><th>Score</th><th></th><th>By plugin</th></tr>"
    return section(f"Nodes that would take it ({len(ranked)})", f"<table>{head}{''.join(lines)}</table>")


def funnel_section(nodes: int, stages: Sequence[tuple[str, int, int, str]]) -> str:
    """The filters, each with how many nodes it refuses, how many are left, and why."""
    if not stages:
        return ""
    lines = [f'<tr><td>all nodes</td><td>{_level(nodes, nodes)}</td><td class="n">{nodes}</td><td></td></tr>']
    for plugin, refused, left, why in stages:
        lines.append(
            f"<tr><td>{escape(plugin)}</td><td>{_level(left, nodes)}</td><td class=n>{left}</td>"
            f'<td>−{refused}: <span class="dim">{escape(why)}</span></td></tr>'
        )
    head = "<tr><th>After</th><th></th><th>Left</th><th>Refused</th></tr>"
    return section("The filters, one after the other", f"<table>{head}{''.join(lines)}</table>")


def _level(left: int, nodes: int) -> str:
    """A centred bar: one below the other they are a funnel."""
    width = 300 * left / max(nodes, 1)
    return (
        f'<svg width="302" height="16"><rect x="{(300 - width) / 2:.1f}" y="1" width="{width:.1f}" height="14" '
        'class="was"/>'
        f'<rect x="0" y="1" width="300" height="14" fill="none" stroke="#bbb" stroke-width=".5"/></svg>'
    )
