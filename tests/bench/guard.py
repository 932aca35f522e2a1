"""Figures of the core that a busy machine does not change, to be compared with recorded ones.

* *Lines*: how many lines of Moorage's code run for a pod, from its arrival to the confirmation of its placement.
  They are counted, so the figure is exact; it tells of everything that is done in Python, loops above all.
* *Ratio*: what a decision takes on so many nodes that nearly all of it is work on whole arrays, divided by what a
  reference loop takes that does the least there is to do, in the same process and in turn with it.

`python -m tests.bench guard` prints them, with ``--record`` it writes them to ``recorded.json``.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import moorage
from moorage.adapters.kube.convert import Converter
from moorage.core.engine import Engine
from moorage.core.model.events import PodBound, PodLeftPending, PodPending
from moorage.core.model.instructions import Bind, Evict
from moorage.core.model.pod import Pod, PodSpec
from moorage.core.model.resources import Requests
from tests.bench import memory, preemption, topology

RECORDED = Path(__file__).with_name("recorded.json")
#: How much more than what is recorded is a regression.
ALLOWED = 1.3

_SOURCE = str(Path(moorage.__file__).parent)
_WARM, _COUNTED = 20, 50
#: Nodes of the counts, of which half have a pod, and of the ratios.
_FEW, _MANY = 300, 20_000
_DECISIONS = 20


def lines_of(action: Callable[[], object]) -> int:
    """How many lines of Moorage's code an action runs; each turn of a loop counts, also of a comprehension."""
    count = 0
    ours: dict[str, bool] = {}

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        file = frame.f_code.co_filename
        known = ours.get(file)
        if known is None:
            known = ours[file] = file.startswith(_SOURCE)
        return line if known else None

    def line(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal count
        count += event == "line"
        return line

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        action()
    finally:
        sys.settrace(before)
    return count


def lines() -> Iterator[tuple[str, float]]:
    """Lines a pod for each workload: arrival, decision, confirmation."""
    for name, *_ in topology.WORKLOADS:
        yield name, lines_at(_FEW, name)
    engine, _ = topology.cluster(topology.plain, 1, False, 0, False, _FEW)
    yield "all different", _lines_a_pod(partial(_place_next, engine, different()))
    for name, make, budgets in preemption.WORKLOADS:
        engine = preemption.cluster(_FEW, 4, budgets)
        yield f"preemption: {name}", _lines_a_pod(partial(_evict_next, engine, _preemptors(make())))
    yield "a bound pod read from JSON", _reading_lines()


def lines_at(nodes: int, workload: str) -> float:
    """Lines a pod for one of ``topology.WORKLOADS`` on so many nodes, of which half have a pod."""
    _, make, apps, unique, placed, known = next(w for w in topology.WORKLOADS if w[0] == workload)
    engine, pods = topology.cluster(make, apps, unique, min(placed, nodes // 2), known, nodes)
    return _lines_a_pod(partial(_place_next, engine, pods))


def _lines_a_pod(place: Callable[[], object]) -> float:
    for _ in range(_WARM):
        place()
    return sum(lines_of(place) for _ in range(_COUNTED)) / _COUNTED


def _place_next(engine: Engine, pods: Iterator[Pod]) -> None:
    pod = next(pods)
    engine.handle(PodPending(pod), 0.0)
    bind = next((i for i in engine.step(1.0) if isinstance(i, Bind)), None)
    if bind is None:
        raise RuntimeError(f"{pod.name} was not placed")
    engine.handle(PodBound(replace(pod, node_name=bind.placements[0].node_name)), 1.0)


def _evict_next(engine: Engine, pods: Iterator[Pod]) -> None:
    pod = next(pods)
    engine.handle(PodPending(pod), 0.0)
    if not any(isinstance(instruction, Evict) for instruction in engine.step(1.0)):
        raise RuntimeError(f"nobody was evicted for {pod.name}")
    engine.handle(PodLeftPending(pod.ref), 1.0)


def _preemptors(spec: PodSpec) -> Iterator[Pod]:
    labels = {"app": "app-1", "tier": "back"}
    for index in range(_WARM + _COUNTED):
        yield Pod("default", f"urgent-{index}", f"urgent-{index}", spec, spec.requests, labels=labels)


def different() -> Iterator[Pod]:
    """Endless pods of which each asks for amounts of its own."""
    rng = random.Random(7)
    index = 0
    while True:
        milli, size = rng.randrange(50, 500), rng.randrange(64 << 20, 1 << 30)
        requests = Requests({"cpu": milli, "memory": size}, milli, size)
        spec = PodSpec(scheduler_name="moorage", requests=requests)
        yield Pod("default", f"d-{index}", f"d-{index}", spec, requests)
        index += 1


def _reading_lines() -> float:
    converter, rng, indices = Converter(), random.Random(5), iter(range(10_000))
    return _lines_a_pod(lambda: converter.pod(memory.wired_pod(next(indices), 100, rng)))


class Ratios:
    """Decisions beside a reference loop; each ``take`` makes the figures better, never worse.

    The least time of each is what counts: whatever else the machine does only adds to it.
    """

    def __init__(self, workloads: Sequence[str] = ("all different", "hard zone spread")) -> None:
        self._reference = _Reference(_MANY)
        self._turns: dict[str, Callable[[], None]] = {}
        for name in workloads:
            alike = name != "all different"
            make = topology.hard_zone if alike else topology.plain
            engine, pods = topology.cluster(make, 1, False, 0, False, _MANY)
            self._turns[name] = partial(_decide, engine, pods if alike else different())
        self.forget()
        for turn in self._turns.values():  # what is made once and kept
            turn()

    def forget(self) -> None:
        """Begin anew."""
        self._least = dict.fromkeys([*self._turns, ""], float("inf"))

    def take(self, rounds: int = 5) -> dict[str, float]:
        """Run each in turn so often; the ratios as they are known by then."""
        for _ in range(rounds):
            for name, turn in {**self._turns, "": self._reference.run}.items():
                began = time.process_time()
                turn()
                self._least[name] = min(self._least[name], time.process_time() - began)
        return {name: self._least[name] / self._least[""] for name in self._turns}


def _decide(engine: Engine, pods: Iterator[Pod]) -> None:
    for _ in range(_DECISIONS):
        _place_next(engine, pods)


class _Reference:
    """The least there is to do: which nodes a pod fits on, and which has the most left, on whole arrays."""

    def __init__(self, nodes: int) -> None:
        self._room = np.full((4, nodes), 1 << 38, dtype=np.int64)
        self._used = np.zeros((4, nodes), dtype=np.int64)
        self._asked = np.array([[100], [500 << 20], [0], [1]], dtype=np.int64)

    def run(self) -> None:
        """As many decisions as a turn of the engine."""
        for _ in range(_DECISIONS):
            after = self._used + self._asked
            fits = (after <= self._room).all(axis=0)
            left = (self._room[:2] - after[:2]) * 100 // self._room[:2]
            total = left.sum(axis=0) // 2
            balance = 100.0 * (1.0 - np.abs(np.diff(after[:2] / self._room[:2], axis=0)[0]) / 2)
            total += balance.astype(np.int64)
            best = int(np.where(fits, total, -1).argmax())
            self._used[:, best] += self._asked[:, 0]


def worse(recorded: float, measured: float) -> bool:
    """Whether it is a regression."""
    return measured > recorded * ALLOWED


def read() -> dict[str, dict[str, float]]:
    """What is recorded: ``lines`` and ``ratios`` by workload."""
    held: dict[str, dict[str, float]] = json.loads(RECORDED.read_text())
    return held


def main(*, record: bool) -> None:
    """Print the figures beside the recorded ones, or record them."""
    found = {"lines": dict(lines()), "ratios": Ratios().take(20)}
    known = read() if RECORDED.exists() else {"lines": {}, "ratios": {}}
    for kind, figures in found.items():
        for name, figure in figures.items():
            before = known[kind].get(name, float("nan"))
            print(f"{kind:7} {name:46}{figure:9.2f}{before:10.2f} recorded")
    if record:
        rounded = {
            kind: {name: round(f, 2) for name, f in figures.items()} for kind, figures in found.items()
        }
        RECORDED.write_text(json.dumps(rounded, indent=1) + "\n")
