"""`python -m tests.bench.topology`: what a decision costs where it depends on the pods that are placed already.

Every workload has 5,000 nodes in three zones and some thousand placed pods.  A decision is one step of the engine:
every node filtered and scored, the winner assumed.  Then the stream confirms the pod, which is measured apart.  CPU
time is counted, so that a busy machine does not blur the picture.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from moorage.core.engine import Engine
from moorage.core.model.affinity import PodAffinity, PodAffinityTerm, WeightedTerm
from moorage.core.model.events import NodeApplied, PodBound, PodPending, WorkloadApplied
from moorage.core.model.instructions import Bind
from moorage.core.model.node import Node
from moorage.core.model.pod import OwnerRef, Pod, PodSpec
from moorage.core.model.resources import Requests
from moorage.core.model.selector import LabelSelector, Operator, Requirement
from moorage.core.model.spread import HOSTNAME, ZONE, SpreadConstraint
from moorage.core.model.workload import Workload, WorkloadKind

_GIB = 1 << 30
_REQUESTS = Requests({"cpu": 100, "memory": 500 << 20}, 100, 500 << 20)


@dataclass(frozen=True)
class Row:
    """Microseconds: median and 99th percentile of a decision, median of taking in a placed pod."""

    workload: str
    placed: int
    median: float
    p99: float
    confirm: float


def equals(key: str, value: str) -> LabelSelector:
    """``key In (value)``."""
    return LabelSelector((Requirement(key, Operator.IN, (value,)),))


def spec(**fields: object) -> PodSpec:
    """A template."""
    return PodSpec(scheduler_name="moorage", requests=_REQUESTS, **fields)  # type: ignore[arg-type]


def template(index: int, make: Callable[[str], PodSpec], *, apps: int, unique: bool = False) -> Iterator[Pod]:
    """Endless pods of ``apps`` templates in turn; ``unique`` gives each a label of its own."""
    specs = [make(f"app-{app}") for app in range(apps)]
    labels = [{"app": f"app-{app}", "pod-template-hash": f"h{app}"} for app in range(apps)]
    owners = [OwnerRef("ReplicaSet", f"app-{app}", f"app-{app}", "apps/v1") for app in range(apps)]
    while True:
        app = index % apps
        own = {**labels[app], "statefulset.kubernetes.io/pod-name": f"p-{index}"} if unique else labels[app]
        yield Pod("default", f"p-{index}", f"u-{index}", specs[app], _REQUESTS, labels=own, owner=owners[app])
        index += 1


def plain(app: str) -> PodSpec:
    """Asks nothing of other pods."""
    return spec()


def hard_zone(app: str) -> PodSpec:
    """Evenly over the zones, strictly."""
    return spec(spread=(SpreadConstraint(ZONE, 1, selector=equals("app", app)),))


def soft_host(app: str) -> PodSpec:
    """Evenly over the nodes, if possible."""
    return spec(spread=(SpreadConstraint(HOSTNAME, 1, hard=False, selector=equals("app", app)),))


def both_spreads(app: str) -> PodSpec:
    """Strictly over zones, if possible over nodes."""
    hard, soft = hard_zone(app).spread, soft_host(app).spread
    return spec(spread=hard + soft)


def apart(key: str) -> Callable[[str], PodSpec]:
    """No two in one domain."""
    return lambda app: spec(
        pod_affinity=PodAffinity(required_anti=(PodAffinityTerm(key, equals("app", app)),))
    )


def together(app: str) -> PodSpec:
    """All in one zone."""
    return spec(pod_affinity=PodAffinity(required=(PodAffinityTerm(ZONE, equals("app", app)),)))


def near(app: str) -> PodSpec:
    """On the same node, if possible."""
    term = PodAffinityTerm(HOSTNAME, equals("app", app))
    return spec(pod_affinity=PodAffinity(preferred=(WeightedTerm(1, term),)))


def near_and_spread(app: str) -> PodSpec:
    """A bit of everything."""
    return spec(
        spread=both_spreads(app).spread,
        pod_affinity=PodAffinity(
            required_anti=(PodAffinityTerm(HOSTNAME, equals("app", app)),),
            preferred_anti=(WeightedTerm(10, PodAffinityTerm(ZONE, equals("tier", "none"))),),
        ),
    )


#: Name, template, number of templates, unique labels, pods placed beforehand, workloads known.
WORKLOADS: tuple[tuple[str, Callable[[str], PodSpec], int, bool, int, bool], ...] = (
    ("basic", plain, 1, False, 3000, False),
    ("hard zone spread", hard_zone, 1, False, 5000, False),
    ("soft hostname spread", soft_host, 1, False, 5000, False),
    ("anti-affinity by hostname", apart(HOSTNAME), 1, False, 3000, False),
    ("anti-affinity by zone", apart(ZONE), 3000, False, 3000, False),
    ("required affinity by zone", together, 1, False, 3000, False),
    ("preferred affinity by hostname", near, 1, False, 3000, False),
    ("Services and ReplicaSets", plain, 100, False, 10000, True),
    ("5,000 selectors, both spreads", both_spreads, 5000, False, 10000, False),
    ("unique labels, both spreads", both_spreads, 1, True, 10000, False),
    ("unique labels, anti-affinity by hostname", apart(HOSTNAME), 1, True, 3000, False),
    ("everything, 100 templates", near_and_spread, 100, False, 10000, False),
)


def cluster(
    make: Callable[[str], PodSpec], apps: int, unique: bool, placed: int, workloads: bool, nodes: int = 5000
) -> tuple[Engine, Iterator[Pod]]:
    """An engine with pods that were placed without a decision, and endless more of them; see ``WORKLOADS``."""
    engine = Engine()
    names = [f"node-{index}" for index in range(nodes)]
    for index in range(nodes):
        engine.handle(NodeApplied(_node(index)), 0.0)
    if workloads:
        for app in range(apps):
            labels = {"app": f"app-{app}"}
            service = Workload(WorkloadKind.SERVICE, "default", f"app-{app}", labels)
            selector = LabelSelector(
                tuple(
                    Requirement(k, Operator.IN, (v,))
                    for k, v in {**labels, "pod-template-hash": f"h{app}"}.items()
                )
            )
            owner = Workload(WorkloadKind.REPLICA_SET, "default", f"app-{app}", selector=selector)
            engine.handle(WorkloadApplied(service), 0.0)
            engine.handle(WorkloadApplied(owner), 0.0)
    pods = template(0, make, apps=apps, unique=unique)
    for index in range(placed):
        node = (index + index // nodes) % nodes  # a different zone for each round of an app's pods
        engine.handle(PodBound(replace(next(pods), node_name=names[node])), 0.0)
    return engine, pods


def measure(
    name: str,
    make: Callable[[str], PodSpec],
    apps: int,
    unique: bool,
    placed: int,
    workloads: bool,
    decided: int,
) -> Row:
    """Place pods without a decision, then decide more of them."""
    engine, pods = cluster(make, apps, unique, placed, workloads)
    times: list[float] = []
    confirmed: list[float] = []
    for index in range(decided):
        pod = next(pods)
        engine.handle(PodPending(pod), 0.0)
        started = time.thread_time()
        instructions = engine.step(1.0)
        times.append(time.thread_time() - started)
        bind = next((i for i in instructions if isinstance(i, Bind)), None)
        if bind is None:
            raise RuntimeError(f"{name}: pod {index} was not placed: {instructions}")
        bound = PodBound(replace(pod, node_name=bind.placements[0].node_name))
        started = time.thread_time()
        engine.handle(bound, 1.0)
        confirmed.append(time.thread_time() - started)
    times.sort()
    confirmed.sort()
    return Row(
        name,
        placed,
        times[len(times) // 2] * 1e6,
        times[int(len(times) * 0.99)] * 1e6,
        confirmed[len(confirmed) // 2] * 1e6,
    )


def _node(index: int) -> Node:
    return Node(
        f"node-{index}",
        uid=f"node-{index}",
        labels={HOSTNAME: f"node-{index}", ZONE: f"zone-{index % 3}"},
        allocatable={"cpu": 32_000, "memory": 256 * _GIB, "ephemeral-storage": 500 * _GIB, "pods": 110},
        ready="True",
    )


def main() -> None:
    """Print a line for each workload."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("only", nargs="*", help="workloads whose names contain one of these")
    parser.add_argument("-n", type=int, default=1000, help="decisions of each (default 1000)")
    arguments = parser.parse_args()
    print(f"{'workload':42}{'placed':>8}{'median µs':>11}{'p99 µs':>9}{'confirm µs':>12}")
    for workload in WORKLOADS:
        if arguments.only and not any(word in workload[0] for word in arguments.only):
            continue
        row = measure(*workload, arguments.n)
        print(
            f"{row.workload:42}{row.placed:8}{row.median:11.0f}{row.p99:9.0f}{row.confirm:12.1f}", flush=True
        )


if __name__ == "__main__":
    main()
