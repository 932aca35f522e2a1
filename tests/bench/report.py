"""`python -m tests.bench report FILE.json`: tables and a chart from what ``compare`` has measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from tests.bench.chart import Bars, draw
from tests.bench.contestants import BIND_ONLY, KUBE_SCHEDULER, MOORAGE
from tests.bench.summary import Measured, Result, overall, rate, read, spread
from tests.bench.workloads import WORKLOADS, Mode

BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"
_BOTH = (MOORAGE, KUBE_SCHEDULER)
_NAMES = {MOORAGE: "Moorage", KUBE_SCHEDULER: "kube-scheduler"}
Figure = Callable[[Result], float]


def write(files: Iterable[Path], docs: Path) -> None:
    """Put the results between the marks of the page, and the chart beside it.

    Raises ValueError if a file is not of ``compare``, or the page lacks the marks.
    """
    measured = read(files)
    page = docs.read_text()
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{docs}: no {BEGIN} … {END}")
    image = docs.with_suffix(".svg")
    body = f"![Throughput]({image.name})\n\n{text(measured)}"
    image.write_text(chart(measured))
    docs.write_text(f"{before}{BEGIN}\n\n{body}\n{END}{after}")


def text(measured: Measured) -> str:
    """All tables in Markdown."""
    machine = measured.machine
    intro = (
        f"Measured on {machine['processors']} processors ({machine['model']}) and {machine['memory_gib']} GiB, "
        f"with Python {machine['python']}, numpy {machine['numpy']} and Kubernetes {machine['kubernetes']}; "
        f"the load average before a run was {_loads(measured)}."
    )
    parts = [
        intro,
        _section("Throughput", _throughput(measured)),
        _section("Scale", _scale(measured)),
        _section("Bindings alone", _limits(measured)),
        _section("Latency", _latencies(measured)),
        _section("CPU and memory", _costs(measured)),
        _section("Placements", _placements(measured)),
        _section("Events", _events(measured)),
    ]
    if measured.failed:
        lost = [
            f"- {run['workload']}, {run['contestant']}, round {run['round'] + 1}: {run['error'].splitlines()[0]}"
            for run in measured.failed
        ]
        parts.append("### Runs that failed\n\n" + "\n".join(lost) + "\n")
    return "\n\n".join(part.rstrip("\n") for part in parts if part) + "\n"


def chart(measured: Measured) -> str:
    """Throughput of both, workload by workload, as SVG."""
    groups = [
        Bars(
            _title(name),
            (measured.median(name, MOORAGE, rate), measured.median(name, KUBE_SCHEDULER, rate)),
            "" if math.isnan(ratio := measured.ratio(name, rate)) else f"{ratio:.1f}×",
        )
        for name in _timed(measured)
    ]
    return draw("Pods a second, median of the rounds", ("Moorage", "kube-scheduler"), groups, "pods/s")


def _throughput(measured: Measured) -> list[list[str]]:
    head = [
        "workload",
        "nodes",
        "pods",
        "Moorage pods/s",
        "kube-scheduler pods/s",
        "ratio",
        "wanted",
        "ratio from start",
    ]
    rows = []
    for name in _timed(measured):
        target = WORKLOADS[name].target
        rows.append(
            [
                _title(name),
                *_size(measured, name),
                *(_median(measured, name, who, rate, 0, ranged=True) for who in _BOTH),
                f"**{_number(measured.ratio(name, rate), 2)}**",
                f"{target:g}" if target else "",
                _number(measured.ratio(name, overall), 2),
            ]
        )
    return [head, *rows]


def _scale(measured: Measured) -> list[list[str]]:
    """Pods a second by the number of nodes, and what is lost from 1,000 to 15,000."""
    families = {
        kind: {each.nodes: each.name for each in WORKLOADS.values() if kind in (each.scales, each.name)}
        for kind in dict.fromkeys(each.scales for each in WORKLOADS.values() if each.scales)
    }
    counts = sorted({nodes for sizes in families.values() for nodes in sizes})
    rows = []
    for kind, sizes in families.items():
        for who in _BOTH:
            rates = {nodes: measured.median(name, who, rate) for nodes, name in sizes.items()}
            if sum(not math.isnan(each) for each in rates.values()) > 1:
                lost = _number(100 * (1 - rates[15_000] / rates[1000]), 0)
                rows.append([_title(kind), _NAMES[who], *(_number(rates[each], 0) for each in counts), lost])
    head = ["workload", "scheduler", *(f"{nodes:,} nodes" for nodes in counts)]
    return [[*head, "lost from 1,000 to 15,000, %"], *rows]


def _limits(measured: Measured) -> list[list[str]]:
    rows = [
        [
            _title(name),
            *_size(measured, name),
            _median(measured, name, BIND_ONLY, rate, 0, ranged=True),
            _median(measured, name, MOORAGE, rate, 0),
            _number(measured.share_of_limit(name), 2),
        ]
        for name in measured.workloads
        if measured.of(name, BIND_ONLY)
    ]
    return [["workload", "nodes", "pods", "bindings/s", "Moorage pods/s", "share"], *rows]


def _latencies(measured: Measured) -> list[list[str]]:
    rows = []
    for name in measured.workloads:
        for who in _BOTH:
            if any(run["latency"] for run in measured.of(name, who)):
                figures = (
                    _median(measured, name, who, lambda run, key=key: run["latency"][key], 1)  # type: ignore[misc]
                    for key in ("p50", "p90", "p99")
                )
                rows.append([_title(name), *_size(measured, name), _NAMES[who], *figures])
    return [["workload", "nodes", "pods", "scheduler", "p50 ms", "p90 ms", "p99 ms"], *rows]


def _costs(measured: Measured) -> list[list[str]]:
    figures: tuple[tuple[str, Figure, int], ...] = (
        ("CPU s", lambda run: run["usage"]["cpu_seconds"], 1),
        ("CPU s with Events", lambda run: run["settled"]["cpu_seconds"], 1),
        ("peak MiB", lambda run: run["settled"]["memory_mib"], 0),
    )
    return _side_by_side(measured, figures)


def _placements(measured: Measured) -> list[list[str]]:
    figures: tuple[tuple[str, Figure, int], ...] = (
        ("nodes used", lambda run: run["placement"]["nodes_used"], 0),
        ("pods of the fullest", lambda run: run["placement"]["most"], 0),
        ("CPU stdev, % of a node", lambda run: run["placement"]["cpu_stdev"], 2),
        ("evicted", lambda run: run["evicted"], 0),
    )
    return _side_by_side(measured, figures)


def _side_by_side(measured: Measured, figures: Sequence[tuple[str, Figure, int]]) -> list[list[str]]:
    """Medians of figures (title, figure, digits), of Moorage and of kube-scheduler."""
    head = [
        "workload",
        "nodes",
        "pods",
        *(f"{_NAMES[who]} {what}" for what, _, _ in figures for who in _BOTH),
    ]
    rows = [
        [
            _title(name),
            *_size(measured, name),
            *(_median(measured, name, who, figure, digits) for _, figure, digits in figures for who in _BOTH),
        ]
        for name in measured.workloads
    ]
    return [head, *rows]


def _events(measured: Measured) -> list[list[str]]:
    """The worst of the rounds, except for the mean lag."""
    rows = []
    for name in measured.workloads:
        for who in _BOTH:
            runs = measured.of(name, who)
            if not runs:
                continue
            row = [
                _title(name),
                _NAMES[who],
                f"{runs[0]['pods']:,}",
                f"{min(run['events']['scheduled'] for run in runs):,}",
                f"{max(run['events']['behind'] for run in runs):.1f}",
            ]
            told = [run["telling"] for run in runs if run["telling"]]
            if told:
                row += [
                    _median(measured, name, who, lambda run: run["telling"]["mean_lag"], 2),
                    f"{max(each['p99_lag_at_most'] for each in told):.2f}",
                    str(max(each["dropped"] for each in told)),
                ]
            rows.append(row + [""] * (8 - len(row)))
    head = ["workload", "scheduler", "pods", "of them with an Event", "last after the last binding, s"]
    return [[*head, "mean lag, s", "99 % within, s", "dropped"], *rows]


def _timed(measured: Measured) -> list[str]:
    """The workloads of which throughput tells something."""
    return [name for name in measured.workloads if WORKLOADS[name].mode is not Mode.PACED]


def _title(name: str) -> str:
    return WORKLOADS[name].title


def _size(measured: Measured, name: str) -> tuple[str, str]:
    runs = [run for run in measured.runs if run["workload"] == name and "error" not in run]
    return (f"{runs[0]['nodes']:,}", f"{runs[0]['pods']:,}") if runs else ("", "")


def _median(
    measured: Measured, name: str, who: str, figure: Figure, digits: int, *, ranged: bool = False
) -> str:
    value = _number(measured.median(name, who, figure), digits)
    runs = measured.of(name, who)
    return f"{value} ({spread([figure(run) for run in runs])})" if ranged and len(runs) > 1 else value


def _number(value: float, digits: int) -> str:
    return "–" if math.isnan(value) else f"{value:,.{digits}f}"


def _loads(measured: Measured) -> str:
    loads = [run["load"] for run in measured.runs if "error" not in run]
    return f"{min(loads):.1f} to {max(loads):.1f}" if loads else "not taken"


def _section(title: str, table: Sequence[Sequence[str]]) -> str:
    """A table with its heading, nothing if it has no rows; columns of figures are aligned right."""
    head, *rows = table
    if not rows:
        return ""
    texts = {"workload", "scheduler"}
    rule = ["---" if name in texts else "---:" for name in head]
    lines = ["| " + " | ".join(row) + " |" for row in (head, rule, *rows)]
    return f"### {title}\n\n" + "\n".join(lines) + "\n"
