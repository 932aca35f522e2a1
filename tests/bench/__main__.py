"""`python -m tests.bench`: decision costs of the core, its memory, and the whole path on a real control plane."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.bench import compare, core, extender, failover, guard, preemption, report, soak, summary
from tests.bench.contestants import KUBE_SCHEDULER, MOORAGE
from tests.bench.workloads import WORKLOADS

_ROOT = Path(__file__).parents[2]


def main() -> None:
    """Run what the arguments ask for and print tables."""
    arguments = _parser().parse_args()
    console = Console()
    what = arguments.what or "all"
    if what == "guard":
        guard.main(record=arguments.record)
        return
    if what == "report":
        report.write(arguments.files, arguments.docs)
        return
    if what in ("core", "all"):
        console.print(_core_table(console))
    if what in ("preemption", "all"):
        console.print(_preemption_table(console))
    if what in ("memory", "all"):
        subprocess.run([sys.executable, "-m", "tests.bench.memory"], check=True)  # in a process of its own
    if what in ("extender", "all"):
        console.print(_extender_table(console))
    if what == "soak":
        _soak(console, arguments)
    if what == "failover":
        _failover(console, arguments.pods)
    if what == "all":
        arguments = _parser().parse_args(["path"])
    if what in ("path", "compare", "all"):
        sys.exit(1 if _compare(arguments) else 0)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    commands = parser.add_subparsers(dest="what", metavar="WHAT", title="what to measure (default: all)")
    for name, text in (
        ("all", "core, preemption, memory, extender, and the whole path with Moorage alone"),
        ("core", "what a decision costs"),
        ("preemption", "what it costs to find whom to evict"),
        ("memory", "what a large cluster takes"),
        ("extender", "the extender over HTTP"),
    ):
        commands.add_parser(name, help=text)
    soaked = commands.add_parser("soak", help="whether memory and CPU stay flat", description=soak.__doc__)
    soaked.add_argument("--events", type=int, default=200_000, help="pod events (default 200,000)")
    soaked.add_argument("--live", action="store_true", help="the running operator on a real control plane")
    failing = commands.add_parser("failover", help="when a standby goes on", description=failover.__doc__)
    failing.add_argument("--pods", type=int, default=2000, help="of the backlog (default 2000)")
    guarded = commands.add_parser("guard", help="figures of the core that CI holds against recorded ones")
    guarded.add_argument("--record", action="store_true", help="write them to tests/bench/recorded.json")
    path = commands.add_parser("path", help="the whole path, Moorage alone, once")
    path.set_defaults(workloads=["basic"], rounds=1, nodes=1000, pods=2000, file="path.json")
    path.add_argument("--against", action="store_true", help="kube-scheduler on the same work, too")
    both = commands.add_parser(
        "compare", help="Moorage and kube-scheduler in turn", description=compare.__doc__
    )
    both.set_defaults(against=True, nodes=None, pods=None, file="compare.json")
    both.add_argument("--rounds", type=int, default=3, help="how often each runs (default 3)")
    for command in (path, both):
        command.add_argument(
            "--workloads", type=_workloads, metavar="A,B,…", help=f"of {', '.join(WORKLOADS)}; default: all"
        )
        command.add_argument("--nodes", type=int, help="so many nodes, whatever the workload says")
        command.add_argument("--pods", type=int, help="so many pods, whatever the workload says")
        file = command.get_default("file")
        command.add_argument(
            "--out",
            type=Path,
            default=_ROOT / "build" / file,
            metavar="FILE.json",
            help=f"default: build/{file}; what is there already is kept as .old.json",
        )
    told = commands.add_parser(
        "report", help="write the results into docs/benchmarks.md and a chart beside it"
    )
    told.add_argument("files", type=Path, nargs="+", metavar="FILE.json", help="what compare has written")
    told.add_argument("--docs", type=Path, default=_ROOT / "docs" / "benchmarks.md")
    return parser


def _workloads(text: str) -> list[str]:
    names = text.split(",")
    for name in names:
        if name not in WORKLOADS:
            raise argparse.ArgumentTypeError(f"no workload {name!r}; there are {', '.join(WORKLOADS)}")
    return names


def _compare(arguments: argparse.Namespace) -> int:
    names = arguments.workloads or list(WORKLOADS)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    if arguments.out.exists():  # it may have taken hours
        arguments.out.replace(arguments.out.with_suffix(".old.json"))
    failed = compare.compare(
        names,
        rounds=arguments.rounds,
        out=arguments.out,
        nodes=arguments.nodes,
        pods=arguments.pods,
        contestants=(MOORAGE, KUBE_SCHEDULER) if arguments.against else (MOORAGE,),
        tell=lambda text: print(text, flush=True),
    )
    print(report.text(summary.read([arguments.out])))
    return failed


def _core_table(console: Console) -> Table:
    table = Table(title="One decision, every node filtered and scored (budget at 5,000 nodes: 200 µs)")
    for name in ("nodes", "pods", "median µs", "p99 µs"):
        table.add_column(name, justify="left" if name == "pods" else "right")
    for nodes in (100, 1000, 5000, 15000):
        for alike in (True, False):
            with console.status(f"core: {nodes} nodes"):
                row = core.measure(nodes, 1000, alike=alike)
            table.add_row(f"{row.nodes:,}", row.workload, f"{row.median:.0f}", f"{row.p99:.0f}")
    return table


def _preemption_table(console: Console) -> Table:
    table = Table(
        title="Whom to evict, every node a candidate (budget at 10,000 pods: 20 ms for resources only)"
    )
    for name in ("preemptor", "nodes", "bound pods", "first ms", "median ms", "worst ms"):
        table.add_column(name, justify="left" if name == "preemptor" else "right")
    for per_node in (2, 30):
        for workload in preemption.WORKLOADS:
            with console.status(f"preemption: {workload[0]}"):
                row = preemption.measure(*workload, nodes=5000, per_node=per_node)
            figures = (f"{figure:.1f}" for figure in (row.first, row.median, row.worst))
            table.add_row(row.workload, f"{row.nodes:,}", f"{row.placed:,}", *figures)
    with console.status("preemption: backlog"):
        backlog = preemption.measure_backlog(1000, 500)
    table.caption = (
        f"{backlog.pods} pods that each evict on {backlog.nodes:,} full nodes: "
        f"{backlog.seconds:.1f} s of CPU until all are bound, the longest step {backlog.worst:.0f} ms"
    )
    return table


def _extender_table(console: Console) -> Table:
    table = Table(title="The extender over HTTP (budget for the names of 5,000 nodes: p99 of 20 ms)")
    for name in ("nodes", "sent as", "verb", "KiB", "median ms", "p99 ms"):
        table.add_column(name, justify="left" if name in ("sent as", "verb") else "right")
    for nodes, pods, whole in ((1000, 500, False), (5000, 500, False), (1000, 200, True)):
        with console.status(f"extender: {nodes} nodes"):
            rows = extender.measure(nodes, pods, whole=whole)
        for row in rows:
            figures = f"{row.size:,.0f}", f"{row.median:.1f}", f"{row.p99:.1f}"
            table.add_row(f"{row.nodes:,}", row.mode, row.verb, *figures)
    return table


def _soak(console: Console, arguments: argparse.Namespace) -> None:
    run = soak.churn_live if arguments.live else soak.churn
    console.print(f"{'window':>7}{'events':>10}{'RSS MiB':>10}{'CPU µs an event':>17}")
    windows = []
    for window in run(arguments.events):
        windows.append(window)
        memory, cpu = window.resident / (1 << 20), window.microseconds
        console.print(f"{len(windows):7}{window.events:10,}{memory:10.1f}{cpu:17.0f}")
    verdict = soak.judge(windows)
    word = "flat" if verdict.flat else "NOT FLAT"
    console.print(
        f"{word}: from first to last, memory {verdict.memory:+.1%}, CPU an event {verdict.cpu:+.1%}"
    )
    if not verdict.flat:
        sys.exit(1)


def _failover(console: Console, pods: int) -> None:
    found = failover.measure(pods)
    console.print(
        f"{found.bound_before:,} of {found.pods:,} pods were bound when the leader was killed; the standby's first "
        f"Binding came {found.seconds:.1f} s later (lease: {failover.LEASE_DURATION:g} s); "
        f"{len(found.not_once)} pods were not bound exactly once"
    )
    if found.not_once or not found.in_time:
        sys.exit(1)


if __name__ == "__main__":
    main()
