"""`python -m tests.bench soak`: whether memory and CPU stay flat while pods come, are bound and go.

In process: pods go into the engine as JSON as the streams bring it, are decided, bound by nobody, seen bound, and
deleted; what ends up in a leak would be in there.  With ``--live`` the running operator does the same on a real control
plane, where creating and deleting costs far more than scheduling, so fewer events are enough to keep it busy for long.
"""

from __future__ import annotations

import gc
import os
import random
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from moorage.adapters.kube.convert import Converter
from moorage.adapters.telemetry.metrics import Metrics
from moorage.adapters.telemetry.observer import Observer
from moorage.core.engine import Engine
from moorage.core.framework.watching import watched
from moorage.core.model.events import BindSucceeded, NodeApplied, PodBound, PodGone, PodPending
from moorage.core.model.instructions import Bind, Placement
from moorage.core.model.pod import Pod
from tests.controlplane.client import Client
from tests.controlplane.controlplane import ControlPlane
from tests.kit.manifests import node, pod
from tests.kit.operator import Operator

_MIB = 1 << 20
_TICKS = os.sysconf("SC_CLK_TCK")
_TEMPLATES = 200
#: The first windows fill caches and heaps; what counts is what comes after them.
_WARM_UP = 0.3
#: What later windows may differ from earlier ones, as a share, and still count as flat.
_MEMORY_SLACK, _CPU_SLACK = 0.05, 0.25


@dataclass(frozen=True)
class Window:
    """A part of the run: events in it, resident memory at its end, CPU time it took for each event."""

    events: int
    resident: int
    cpu: float

    @property
    def microseconds(self) -> float:
        """CPU time for one event."""
        return 1e6 * self.cpu / self.events


@dataclass(frozen=True)
class Verdict:
    """How the last third of the windows after warming up compares with the first third: 0.1 is a tenth more."""

    memory: float
    cpu: float

    @property
    def flat(self) -> bool:
        """Whether neither grows."""
        return self.memory <= _MEMORY_SLACK and self.cpu <= _CPU_SLACK


def judge(windows: Sequence[Window]) -> Verdict:
    """Compare the end of the run with its beginning, medians of thirds; raises ValueError for too few windows."""
    kept = windows[int(len(windows) * _WARM_UP) :]
    third = len(kept) // 3
    if not third:
        raise ValueError(f"{len(windows)} windows are too few to tell")
    first, last = kept[:third], kept[-third:]

    def growth(figures: Sequence[float], later: Sequence[float]) -> float:
        return _median(later) / _median(figures) - 1

    return Verdict(
        growth([w.resident for w in first], [w.resident for w in last]),
        growth([w.microseconds for w in first], [w.microseconds for w in last]),
    )


def _median(figures: Sequence[float]) -> float:
    return sorted(figures)[len(figures) // 2]


def churn(events: int, *, nodes: int = 500, windows: int = 20, standing: int = 5_000) -> Iterator[Window]:
    """Create, bind and delete pods until there were so many events, three of each pod; yields each window."""
    converter, engine, clock = Converter(), Engine(), _Clock()
    observer = Observer(Metrics(clock))
    rng = random.Random(3)
    for index in range(nodes):
        engine.handle(NodeApplied(converter.node(_read(_node(index)))), clock.now())
    alive: deque[Pod] = deque()
    each = events // windows
    done = serial = 0
    for _ in range(windows):
        began, target = time.process_time(), done + each
        at_start = done
        while done < target:
            clock.time += 0.01
            raw = _pod(serial, rng)
            serial += 1
            engine.handle(PodPending(converter.pod(_read(raw))), clock.now())
            for placement in _decide(engine, observer, clock):
                raw["spec"]["nodeName"] = placement.node_name
                engine.handle(BindSucceeded(placement.ref, placement.node_name), clock.now())
                bound = converter.pod(_read(raw))
                engine.handle(PodBound(bound), clock.now())
                alive.append(bound)
            done += 2
            if len(alive) > standing:
                engine.handle(PodGone(alive.popleft().ref), clock.now())
                done += 1
        taken = time.process_time() - began
        gc.collect()
        yield Window(done - at_start, _resident(os.getpid()), taken)


class _Clock:
    def __init__(self) -> None:
        self.time = 1_800_000_000.0

    def now(self) -> float:
        return self.time


def _decide(engine: Engine, observer: Observer, clock: _Clock) -> list[Placement]:
    placements: list[Placement] = []
    while engine.ready(clock.now()):
        started = time.perf_counter()
        observer.timer.begin()
        instructions = watched(observer.timer, engine.step, clock.now())
        observer.cycle(instructions, time.perf_counter() - started)
        for instruction in instructions:
            if isinstance(instruction, Bind):
                placements += instruction.placements
    for placement in placements:
        observer.bound(BindSucceeded(placement.ref, placement.node_name), 0.001)
    return placements


def churn_live(
    events: int, *, nodes: int = 500, windows: int = 20, standing: int = 1_000
) -> Iterator[Window]:
    """The same with the running operator: pods are created and deleted by the batch, and it binds them."""
    with ControlPlane() as plane, Operator(plane) as operator:
        cluster = plane.admin
        cluster.apply([node(f"n{index}", cpu="64") for index in range(nodes)])
        pid = operator.process.pid
        each = events // windows
        alive: deque[str] = deque()
        serial = done = 0
        for _ in range(windows):
            began, target, at_start = _cpu(pid), done + each, done
            while done < target:
                batch = [f"p{serial + index}" for index in range(100)]
                serial += len(batch)
                cluster.apply([pod(name, cpu="10m") for name in batch])
                _wait_bound(operator, serial)
                alive.extend(batch)
                done += 2 * len(batch)
                while len(alive) > standing:
                    _delete(cluster, alive.popleft())
                    done += 1
            yield Window(done - at_start, _resident(pid), _cpu(pid) - began)


def _wait_bound(operator: Operator, number: int) -> None:
    deadline = time.monotonic() + 120
    while operator.metric("moorage_binds_total", outcome="bound") < number:
        if time.monotonic() > deadline:
            raise RuntimeError(f"not all of {number} pods are bound:\n{operator.process.tail()}")
        time.sleep(0.1)


def _delete(cluster: Client, name: str) -> None:
    cluster.delete("Pod", name, "default", grace=0)


def _resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _read(obj: Any) -> Any:
    """As from the wire: no string is shared with any other object."""
    return orjson.loads(orjson.dumps(obj))


def _node(index: int) -> Any:
    made = node(f"node-{index}", cpu="64", memory="256Gi")
    made["metadata"]["uid"] = f"node-{index}"
    made["metadata"]["labels"] |= {
        "kubernetes.io/hostname": f"node-{index}",
        "topology.kubernetes.io/zone": f"zone-{index % 3}",
    }
    return made


def _pod(serial: int, rng: random.Random) -> Any:
    """Of 200 templates; each pod has a label of its own as Jobs' have, a fifth spread over zones."""
    template = rng.randrange(_TEMPLATES)
    name = f"app-{template}"
    made = pod(
        f"{name}-{serial:x}", cpu=f"{50 + template}m", memory=f"{64 + template}Mi", priority=template % 3
    )
    made["metadata"] |= {
        "uid": f"{serial:032x}",
        "resourceVersion": str(serial),
        "creationTimestamp": "2026-11-01T10:00:00Z",
        "labels": {"app": name, "batch.kubernetes.io/controller-uid": f"{serial:x}"},
    }
    if template % 5 == 0:
        made["spec"]["topologySpreadConstraints"] = [
            {
                "maxSkew": 1000,
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": name}},
            }
        ]
    return made
