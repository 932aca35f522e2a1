"""`python -m tests.bench`: decision costs of the core, its memory, and the whole path on a real control plane."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.bench import core, extender, path, preemption


def main() -> None:
    """Run what the arguments ask for and print tables."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument(
        "what", nargs="?", choices=("core", "preemption", "memory", "extender", "path", "all"), default="all"
    )
    parser.add_argument("--nodes", type=int, default=1000, help="nodes of the whole path (default 1000)")
    parser.add_argument("--pods", type=int, default=2000, help="pods of the whole path (default 2000)")
    parser.add_argument(
        "--against", action="store_true", help="also run the real kube-scheduler on the same work"
    )
    arguments = parser.parse_args()
    console = Console()
    if arguments.what in ("core", "all"):
        console.print(_core_table(console))
    if arguments.what in ("preemption", "all"):
        console.print(_preemption_table(console))
    if arguments.what in ("memory", "all"):
        subprocess.run([sys.executable, "-m", "tests.bench.memory"], check=True)  # in a process of its own
    if arguments.what in ("extender", "all"):
        console.print(_extender_table(console))
    if arguments.what in ("path", "all"):
        console.print(_path_table(console, arguments))


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


def _path_table(console: Console, arguments: argparse.Namespace) -> Table:
    table = Table(title="The whole path: a backlog on a real control plane")
    for name in ("scheduler", "nodes", "pods", "pods/s", "CPU s", "peak MiB"):
        table.add_column(name, justify="left" if name == "scheduler" else "right")
    names = ["moorage", "kube-scheduler"] if arguments.against else ["moorage"]
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            with console.status(f"{name}: {arguments.nodes} nodes, {arguments.pods} pods"):
                run = path.measure(name, arguments.nodes, arguments.pods, Path(folder) / f"{name}.log")
            table.add_row(
                run.scheduler,
                f"{run.nodes:,}",
                f"{run.pods:,}",
                f"{run.rate:.0f}",
                f"{run.cpu_seconds:.1f}",
                f"{run.memory_mib:.0f}",
            )
    return table


if __name__ == "__main__":
    main()
