"""What one decision of the core costs, without any I/O: every node filtered and scored, the winner assumed."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass

from moorage.core.engine import Engine
from moorage.core.model.events import NodeApplied, PodPending
from moorage.core.model.instructions import Bind
from moorage.core.model.node import Node
from moorage.core.model.pod import Pod, PodSpec
from moorage.core.model.resources import Requests

_GIB = 1 << 30


@dataclass(frozen=True)
class Row:
    """Median and 99th percentile of a decision, in microseconds."""

    nodes: int
    workload: str
    median: float
    p99: float


def measure(node_count: int, pod_count: int, *, alike: bool) -> Row:
    """Decide ``pod_count`` plain pods on that many nodes; alike pods share a template, the others have one each."""
    engine = Engine()
    for index in range(node_count):
        engine.handle(NodeApplied(node(index)), 0.0)
    rng = random.Random(7)
    shared = spec(100, 500 << 20)
    for index in range(pod_count):
        own = shared if alike else spec(rng.randrange(50, 500), rng.randrange(64 << 20, _GIB))
        pod = Pod("default", f"pod-{index}", f"uid-{index}", own, own.requests, created=float(index))
        engine.handle(PodPending(pod), 0.0)
    times: list[float] = []
    while True:
        started = time.perf_counter()
        instructions = engine.step(1.0)
        times.append(time.perf_counter() - started)
        if not any(isinstance(i, Bind) for i in instructions):
            break
    times.pop()
    if len(times) != pod_count:
        raise RuntimeError(f"only {len(times)} of {pod_count} pods were placed")
    times.sort()
    name = "alike" if alike else "all different"
    return Row(node_count, name, times[len(times) // 2] * 1e6, times[int(len(times) * 0.99)] * 1e6)


def node(index: int) -> Node:
    """A node of 32 CPUs in one of three zones."""
    return Node(
        f"node-{index}",
        uid=f"node-{index}",
        labels={
            "kubernetes.io/hostname": f"node-{index}",
            "topology.kubernetes.io/zone": f"zone-{index % 3}",
        },
        allocatable={"cpu": 32_000, "memory": 256 * _GIB, "ephemeral-storage": 500 * _GIB, "pods": 110},
        ready="True",
    )


def spec(milli_cpu: int, memory: int) -> PodSpec:
    """A template that asks for so much."""
    requests = Requests({"cpu": milli_cpu, "memory": memory}, milli_cpu, memory)
    return PodSpec(scheduler_name="moorage", requests=requests)
