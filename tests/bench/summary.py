"""Many runs of a workload in a few figures: medians of the rounds, and the ratio round by round."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.contestants import BIND_ONLY, KUBE_SCHEDULER, MOORAGE
from tests.bench.workloads import WORKLOADS

Result = dict[str, Any]
NAN = math.nan


@dataclass(frozen=True)
class Measured:
    """What files of ``compare`` hold: the machine, and the runs."""

    machine: dict[str, Any]
    runs: list[Result]

    @property
    def workloads(self) -> list[str]:
        """Their names, in the order of the declarations."""
        there = {run["workload"] for run in self.runs}
        return [name for name in WORKLOADS if name in there]

    @property
    def failed(self) -> list[Result]:
        """Runs that did not bind all pods."""
        return [run for run in self.runs if "error" in run]

    def of(self, workload: str, contestant: str) -> list[Result]:
        """The runs that went well."""
        return [
            run
            for run in self.runs
            if (run["workload"], run["contestant"]) == (workload, contestant) and "error" not in run
        ]

    def median(self, workload: str, contestant: str, figure: Callable[[Result], float]) -> float:
        """Of a figure over the rounds; NaN if there are none."""
        values = [figure(run) for run in self.of(workload, contestant)]
        return statistics.median(values) if values else NAN

    def ratio(self, workload: str, figure: Callable[[Result], float], *, by: str = KUBE_SCHEDULER) -> float:
        """Median over the rounds of Moorage's figure divided by the other's of the same round; NaN if unknown."""
        theirs = {(run["source"], run["round"]): figure(run) for run in self.of(workload, by)}
        ratios = [
            figure(run) / theirs[key]
            for run in self.of(workload, MOORAGE)
            if theirs.get(key := (run["source"], run["round"]))
        ]
        return statistics.median(ratios) if ratios else NAN

    def share_of_limit(self, workload: str) -> float:
        """Moorage's throughput by that of the bindings alone."""
        return self.ratio(workload, rate, by=BIND_ONLY)


def read(files: Iterable[Path]) -> Measured:
    """Read files of ``compare`` as one; rounds are compared within a file only.

    Raises ValueError with the file's name if it is not such a file, or of another machine.
    """
    machines: list[dict[str, Any]] = []
    runs: list[Result] = []
    for number, file in enumerate(files):
        try:
            held = json.loads(file.read_text())
            machines.append(held["machine"])
            runs += [{**run, "source": number} for run in held["runs"]]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{file}: not a file of compare: {error!r}") from error
        if machines[-1] != machines[0]:
            raise ValueError(f"{file}: measured on another machine, or with other versions")
    if not runs:
        raise ValueError("no runs")
    return Measured(machines[0], runs)


def rate(run: Result) -> float:
    """Pods a second."""
    return float(run["pods"] / run["seconds"]) if run["seconds"] else NAN


def overall(run: Result) -> float:
    """Pods a second from the start of the process, reading the cluster and the backlog included."""
    return float(run["pods"] / run["from_start"])


def spread(values: Sequence[float]) -> str:
    """Lowest and highest, to be put behind a median."""
    return f"{min(values):.0f}–{max(values):.0f}" if values else ""
