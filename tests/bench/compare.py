"""`python -m tests.bench compare`: Moorage and kube-scheduler on the same work, one after the other.

Rounds are interleaved, so that a machine that is slower for a while is so for both.  After each run the file is
written, so that what was measured before an interruption is not lost.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from tests.bench import path
from tests.bench.contestants import BIND_ONLY, KUBE_SCHEDULER, MOORAGE
from tests.bench.workloads import WORKLOADS, Workload
from tests.controlplane import build

Result = dict[str, Any]


def compare(
    names: Sequence[str],
    *,
    rounds: int,
    out: Path,
    nodes: int | None = None,
    pods: int | None = None,
    contestants: Sequence[str] = (MOORAGE, KUBE_SCHEDULER),
    tell: Callable[[str], None] = print,
) -> int:
    """Run the workloads and write ``out``; gives the number of runs that failed.

    Raises BuildError if the control plane is not built.

    Args:
        names: of workloads, see ``workloads.WORKLOADS``.
        rounds: how often each contestant runs each workload.
        out: the JSON file to write, see docs/benchmarks.md.
        nodes: so many nodes, whatever the workload says; ``pods`` likewise.
        contestants: who runs; where a workload has a limit, the bindings alone run as well.
        tell: gets a line after each run.
    """
    build.find()  # rather now than in each run
    results: list[Result] = []
    failed = 0
    for name in names:
        workload = WORKLOADS[name]
        size = workload.size(nodes, pods)
        for round_number, contestant in _order(workload, contestants, rounds):
            result: Result = {
                "round": round_number,
                "began": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            }
            try:
                run = path.measure(workload, contestant, size)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is told, and the other runs go on
                failed += 1
                result |= {"workload": name, "contestant": contestant, "error": _text(error)}
            else:
                result |= asdict(run)
            results.append(result)
            _write(out, results)
            tell(line(result))
    return failed


def _order(workload: Workload, contestants: Sequence[str], rounds: int) -> Iterator[tuple[int, str]]:
    """Who goes first changes from round to round."""
    everybody = [*contestants, *((BIND_ONLY,) if workload.limit else ())]
    for number in range(rounds):
        turn = number % len(everybody)
        for contestant in everybody[turn:] + everybody[:turn]:
            yield number, contestant


def line(result: Result) -> str:
    """One run in a line."""
    head = f"{result['workload']:20} {result['contestant']:15} round {result['round']}"
    if "error" in result:
        return f"{head}  FAILED: {result['error']}"
    text = (
        f"{head} {result['pods'] / result['seconds']:7.0f} pods/s, {result['from_start']:6.1f} s from start"
    )
    text += f", CPU {result['usage']['cpu_seconds']:5.1f} s, {result['usage']['memory_mib']:4.0f} MiB"
    if result["latency"]:
        text += f", p50 {result['latency']['p50']:.1f} ms, p99 {result['latency']['p99']:.1f} ms"
    return text


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    model = "unknown"
    for entry in Path("/proc/cpuinfo").read_text().splitlines():
        if entry.startswith("model name"):
            model = entry.partition(":")[2].strip()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "processors": os.cpu_count(),
        "model": model,
        "memory_gib": round(memory / (1 << 30), 1),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "kubernetes": build.KUBERNETES_VERSION,
    }


def _write(out: Path, results: list[Result]) -> None:
    """Replace the file at once: an interruption leaves the old one or the new one."""
    draft = out.with_name(out.name + ".part")
    draft.write_text(json.dumps({"machine": machine(), "runs": results}, indent=1) + "\n")
    draft.replace(out)


def _text(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):  # of the watch, the background and the run
        return "; ".join(map(_text, error.exceptions))
    return f"{type(error).__name__}: {error}"
