"""What is compared: Moorage, kube-scheduler, and a client that only writes bindings, which is the limit here."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.bench import binder
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.process import Process
from tests.controlplane.scheduler import KubeScheduler
from tests.kit.operator import Operator

MOORAGE, KUBE_SCHEDULER, BIND_ONLY = "moorage", "kube-scheduler", "bind-only"
#: By contestant, the scheduler name that pods ask for.
SCHEDULER_NAMES = {MOORAGE: "moorage", KUBE_SCHEDULER: "default-scheduler", BIND_ONLY: "nobody"}

Running = Operator | KubeScheduler | Process

_TICKS = os.sysconf("SC_CLK_TCK")
_BUCKET = re.compile(r'moorage_event_lag_seconds_bucket\{le="([^"]+)"\} (\S+)')


@dataclass(frozen=True)
class Usage:
    """CPU seconds since a process began, and the most memory it has had in MiB."""

    cpu_seconds: float
    memory_mib: float


@dataclass(frozen=True)
class Telling:
    """What Moorage says of its Events: written, dropped, mean lag, a bound of the lag of 99 % (seconds).

    ``longest_turn`` is how long the event loop was held at most, in seconds.
    """

    written: int
    dropped: int
    mean_lag: float
    p99_lag_at_most: float
    longest_turn: float


class Contestant:
    """A running scheduler, or the client that only binds."""

    def __init__(self, running: Running) -> None:
        self._running = running
        self._process = running if isinstance(running, Process) else running.process

    def usage(self) -> Usage:
        """What its process has used so far."""
        return Usage(_cpu_seconds(self._process.pid), _peak_mib(self._process.pid))

    def check(self) -> None:
        """RuntimeError if it has ended."""
        if (code := self._process.returncode) is not None:
            raise RuntimeError(f"{self._process.name} ended with {code}:\n{self._process.tail(20)}")

    def telling(self) -> Telling | None:
        """Moorage's figures of its Events, None for others."""
        running = self._running
        if not isinstance(running, Operator):
            return None
        text = running.scrape()
        written = running.metric("moorage_event_lag_seconds_count")
        total = running.metric("moorage_event_lag_seconds_sum")
        within = [(float(limit), float(count)) for limit, count in _BUCKET.findall(text)]
        reasons = re.findall(r'moorage_events_dropped_total\{reason="[^"]+"\} (\S+)', text)
        return Telling(
            written=int(written),
            dropped=int(sum(map(float, reasons))),
            mean_lag=total / written if written else 0.0,
            p99_lag_at_most=next((limit for limit, count in within if count >= 0.99 * written), 0.0),
            longest_turn=running.metric("moorage_loop_turn_max_seconds"),
        )


@asynccontextmanager
async def running(
    name: str, plane: ControlPlane, pods: Sequence[tuple[str, str]], nodes: int
) -> AsyncIterator[Contestant]:
    """Start a contestant and wait until it is ready; bind-only binds these pods (namespace, name) to nodes in turn."""
    with await asyncio.to_thread(_start, name, plane, pods, nodes) as process:
        yield Contestant(process)


def _start(name: str, plane: ControlPlane, pods: Sequence[tuple[str, str]], nodes: int) -> Running:
    if name == BIND_ONLY:
        return binder.start(plane, pods, nodes)
    if name == KUBE_SCHEDULER:
        return KubeScheduler(plane)
    return Operator(plane, "--no-leader-elect", hurried=False)


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _peak_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024
