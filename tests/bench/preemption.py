"""`python -m tests.bench preemption`: what it costs to find whom to evict, all candidates considered.

Every node is full of pods of lower priority, so that each of them is a candidate.  A decision is one step of the
engine that ends in an eviction: the pod is screened, the reasons are found, every node is dry-run.  CPU time is
counted, so that a busy machine does not blur the picture.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from moorage.core.engine import Engine
from moorage.core.model.affinity import PodAffinity, PodAffinityTerm
from moorage.core.model.budget import DisruptionBudget
from moorage.core.model.events import (
    BudgetApplied,
    EvictionFinished,
    NodeApplied,
    PodBound,
    PodGone,
    PodLeftPending,
    PodPending,
)
from moorage.core.model.instructions import Bind, Evict
from moorage.core.model.pod import HostPort, Pod, PodSpec
from moorage.core.model.resources import Requests
from moorage.core.model.spread import HOSTNAME, ZONE, SpreadConstraint
from tests.bench.core import node
from tests.bench.topology import equals

_GIB = 1 << 30


@dataclass(frozen=True)
class Row:
    """Milliseconds of CPU: the first decision after start-up, the median and the worst of the others."""

    workload: str
    nodes: int
    placed: int
    first: float
    median: float
    worst: float


def _preemptor(**fields: object) -> PodSpec:
    requests = Requests({"cpu": 16_000, "memory": 4 * _GIB}, 16_000, 4 * _GIB)
    return PodSpec(scheduler_name="moorage", priority=1000, requests=requests, **fields)  # type: ignore[arg-type]


def _apart() -> PodSpec:
    """Keeps away from victims, one node each."""
    term = PodAffinityTerm(HOSTNAME, equals("app", "app-1"))
    return _preemptor(pod_affinity=PodAffinity(required_anti=(term,)))


def _together() -> PodSpec:
    """Must be near some of those that could be evicted."""
    term = PodAffinityTerm(ZONE, equals("app", "app-1"))
    return _preemptor(pod_affinity=PodAffinity(required=(term,)))


def _spread() -> PodSpec:
    """Evenly over zones and nodes, strictly, counting the victims."""
    zone = SpreadConstraint(ZONE, 3, selector=equals("app", "app-1"))
    return _preemptor(spread=(zone, SpreadConstraint(HOSTNAME, 2, selector=equals("tier", "back"))))


def _ports() -> PodSpec:
    """Wants a port that some victims hold."""
    return _preemptor(host_ports=(HostPort("0.0.0.0", "TCP", 8080),))  # noqa: S104


#: Name, the preemptor's template, number of disruption budgets.
WORKLOADS: tuple[tuple[str, Callable[[], PodSpec], int], ...] = (
    ("resources only", _preemptor, 0),
    ("resources only, 100 budgets", _preemptor, 100),
    ("host ports", _ports, 0),
    ("anti-affinity by hostname", _apart, 0),
    ("required affinity by zone", _together, 0),
    ("spread over zones and hosts", _spread, 0),
)


def cluster(nodes: int, per_node: int, budgets: int = 0) -> Engine:
    """An engine whose nodes are full of pods of low priority."""
    engine = Engine()
    for index in range(nodes):
        engine.handle(NodeApplied(node(index)), 0.0)
    for pod in victims(nodes, per_node):
        engine.handle(PodBound(pod), 0.0)
    for index in range(budgets):
        selector = equals("app", f"app-{index}")
        engine.handle(BudgetApplied(DisruptionBudget("default", f"budget-{index}", selector, index % 4)), 0.0)
    return engine


def measure(
    workload: str,
    make: Callable[[], PodSpec],
    budgets: int,
    *,
    nodes: int,
    per_node: int,
    decisions: int = 20,
) -> Row:
    """Decide so often on the same cluster; the preemptor is withdrawn each time before anybody is evicted."""
    engine = cluster(nodes, per_node, budgets)
    spec = make()
    times: list[float] = []
    for index in range(decisions):
        labels = {"app": "app-1", "tier": "back"}
        pod = Pod("default", f"urgent-{index}", f"urgent-{index}", spec, spec.requests, labels=labels)
        engine.handle(PodPending(pod), 0.0)
        started = time.process_time()
        instructions = engine.step(1.0)
        times.append((time.process_time() - started) * 1e3)
        if not any(isinstance(instruction, Evict) for instruction in instructions):
            raise RuntimeError(f"{workload}: nobody is evicted: {instructions}")
        engine.handle(PodLeftPending(pod.ref), 1.0)
        for instruction in engine.step(1.0):
            raise RuntimeError(f"{workload}: not expected: {instruction}")
    first, *rest = times
    rest.sort()
    return Row(workload, nodes, nodes * per_node, first, rest[len(rest) // 2], rest[-1])


@dataclass(frozen=True)
class Backlog:
    """So many pods that each have to evict: CPU seconds until all are bound, milliseconds of the longest step."""

    nodes: int
    pods: int
    seconds: float
    worst: float


def measure_backlog(nodes: int, pods: int) -> Backlog:
    """Full nodes, and a backlog whose victims go once the queue has come to rest."""
    engine = Engine()
    for index in range(nodes):
        engine.handle(NodeApplied(node(index)), 0.0)
    there = {pod.uid: pod for pod in victims(nodes, 4)}
    for pod in there.values():
        engine.handle(PodBound(pod), 0.0)
    spec = _preemptor()
    waiting = {}
    for index in range(pods):
        name = f"urgent-{index}"
        waiting[name] = pod = Pod("default", name, name, spec, spec.requests, created=float(index))
        engine.handle(PodPending(pod), 0.0)
    began, worst, now = time.process_time(), 0.0, 1.0
    evictions: list[Evict] = []
    while waiting:
        started = time.process_time()
        instructions = engine.step(now)
        worst = max(worst, time.process_time() - started)
        for instruction in instructions:
            if isinstance(instruction, Evict):
                evictions.append(instruction)
            elif isinstance(instruction, Bind):
                for placement in instruction.placements:
                    pod = waiting.pop(placement.ref.uid)
                    engine.handle(PodBound(replace(pod, node_name=placement.node_name)), now)
        if not instructions:
            if not evictions:
                raise RuntimeError(f"{len(waiting)} pods wait, and nobody is evicted")
            for eviction in evictions:
                engine.handle(EvictionFinished(eviction.preemptor), now)
                for ref in eviction.victims:
                    if there.pop(ref.uid, None) is not None:
                        engine.handle(PodGone(ref), now)
            evictions.clear()
            now += 1.0
    return Backlog(nodes, pods, time.process_time() - began, worst * 1e3)


def victims(nodes: int, per_node: int) -> Iterator[Pod]:
    """Pods of 100 templates that fill the nodes; priorities and starts differ."""
    rng = random.Random(3)
    milli, memory = 32_000 // per_node, 100 * _GIB // per_node
    requests = Requests({"cpu": milli, "memory": memory}, milli, memory)
    specs = [
        PodSpec(
            scheduler_name="moorage",
            priority=app % 7,
            requests=requests,
            host_ports=(HostPort("0.0.0.0", "TCP", 8080),) if app == 3 else (),  # noqa: S104
        )
        for app in range(100)
    ]
    labels = [{"app": f"app-{app}", "tier": ("front", "back")[app % 2]} for app in range(100)]
    for index in range(nodes * per_node):
        app = rng.randrange(100)
        name = f"victim-{index}"
        pod = Pod("default", name, name, specs[app], requests, labels=labels[app])
        yield replace(pod, node_name=f"node-{index % nodes}", started=float(rng.randrange(1000)))
