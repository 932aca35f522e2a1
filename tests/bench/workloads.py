"""The workloads of the comparison, each a small declaration: what is there before, and what the pods are like."""

from __future__ import annotations

import random
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

from tests.bench import background
from tests.bench.api import Api
from tests.bench.objects import (
    HOSTNAME,
    ZONE,
    Obj,
    affinity,
    claim,
    namespace,
    node_affinity,
    owned_by,
    pod,
    priority_class,
    replica_set,
    service,
    spread,
    storage_class,
    with_claim,
)

#: Pods whose bindings are counted have names that begin so; others are there beside them, and come first by name.
COUNTED, ASIDE = "bench-", "aside-"
#: Pods a second that arrive in the latency row.
PACE = 100
_APPS = 100
_CLASS = "on-demand"


class Mode(Enum):
    """How the counted pods come, and from when to when time is taken."""

    #: They are there when the scheduler starts: from the first binding to the last.
    BACKLOG = "backlog"
    #: They are created as fast as can be once it is ready: from the first creation to the last binding.
    ARRIVAL = "arrival"
    #: They are created at a steady pace: from each one's creation to its binding.
    PACED = "paced"


@dataclass(frozen=True)
class Size:
    """How many nodes and counted pods a run has."""

    nodes: int
    pods: int


Template = Callable[[str, int], Obj]
Before = Callable[[Size], Iterator[Obj]]
Background = Callable[[Api, str], Coroutine[Any, Any, None]]


def _nothing(size: Size) -> Iterator[Obj]:
    yield from ()


@dataclass(frozen=True)
class Workload:
    """``pod(name, index)`` is a counted pod, ``before`` yields what else there is, ``beside`` acts during the run.

    ``target`` is how many times kube-scheduler's throughput is wanted, None if nothing is said.  With ``limit`` the
    bindings alone are measured, too.  ``at_most`` limits pods to so many a node.  ``scales`` names the workload of
    which this one is the same with another number of nodes.
    """

    name: str
    title: str
    pod: Template
    nodes: int = 5000
    pods: int = 3000
    mode: Mode = Mode.BACKLOG
    before: Before = _nothing
    beside: Background | None = None
    target: float | None = None
    limit: bool = False
    at_most: int = 110
    scales: str = ""

    def size(self, nodes: int | None = None, pods: int | None = None) -> Size:
        """Its own size, unless another one is asked for."""
        nodes = nodes or self.nodes
        return Size(nodes, min(pods or self.pods, nodes * self.at_most))


def counted(workload: Workload, size: Size) -> Iterator[Obj]:
    """The pods that are measured."""
    for index in range(size.pods):
        yield workload.pod(f"{COUNTED}{index:05}", index)


def _with(**spec: object) -> Template:
    """Pods that are all alike."""
    return lambda name, index: pod(name, **spec)  # type: ignore[arg-type]


def _different(name: str, index: int) -> Obj:
    """Each asks for amounts of its own."""
    rng = random.Random(index)
    return pod(name, cpu=f"{rng.randrange(50, 500)}m", memory=f"{rng.randrange(64, 1024)}Mi")


def _of_app(name: str, index: int) -> Obj:
    """Of a hundred Deployments in turn."""
    app = f"app-{index % _APPS}"
    return pod(name, app=app, owner=owned_by(app))


def _apps(size: Size) -> Iterator[Obj]:
    for index in range(_APPS):
        yield service(f"app-{index}")
        yield replica_set(f"app-{index}")


def _rolling(size: Size) -> Iterator[Obj]:
    """The apps, whose old pods run already."""
    yield from _apps(size)
    for index in range(min(size.pods, size.nodes * 4)):
        app = f"app-{index % _APPS}"
        yield pod(f"{ASIDE}{index:05}", app=app, owner=owned_by(app), nodeName=f"node-{index % size.nodes}")


def _teams(size: Size) -> Iterator[Obj]:
    """Fifty namespaces of a team, with four pods each that those who come like to be near."""
    for index in range(50):
        yield namespace(f"team-{index}", team="devops")
    for index in range(200):
        yield pod(f"{ASIDE}{index:05}", namespace=f"team-{index % 50}", nodeName=f"node-{index % size.nodes}")


def _too_large(size: Size) -> Iterator[Obj]:
    for index in range(min(2000, size.pods)):
        yield pod(f"{ASIDE}{index:05}", cpu="64")


def _gated(size: Size) -> Iterator[Obj]:
    for index in range(min(5000, 2 * size.pods)):
        yield pod(f"{ASIDE}{index:05}", schedulingGates=[{"name": "bench.moorage.dev/later"}])


def _full(size: Size) -> Iterator[Obj]:
    """Every node's CPUs are taken by four pods of no priority."""
    yield priority_class("urgent", 1000)
    for index in range(4 * size.nodes):
        yield pod(f"{ASIDE}{index:05}", cpu="8", memory="1Gi", nodeName=f"node-{index % size.nodes}")


def _claims(size: Size) -> Iterator[Obj]:
    yield storage_class(_CLASS)
    for index in range(size.pods):
        yield claim(f"data-{index}", _CLASS)


def _claiming(name: str, index: int) -> Obj:
    return pod(name, **with_claim(f"data-{index}"))


_PLAIN = _with()
_ZONES = _with(**spread(ZONE, hard=True))
_NEAR_TEAMS = _with(
    **affinity("podAffinity", ZONE, required=True, namespaceSelector={"matchLabels": {"team": "devops"}})
)

_ALL = (
    Workload("basic", "Pods all alike", _PLAIN, target=2, limit=True),
    Workload("basic-10000-pods", "Pods all alike, 10,000 of them", _PLAIN, pods=10_000, limit=True),
    Workload("different", "Pods all different", _different, target=2),
    Workload("services", "Deployments with Services", _of_app, before=_apps, target=3),
    Workload("node-affinity", "Node affinity", _with(**node_affinity(ZONE, "zone-0", "zone-1")), target=2.5),
    Workload("zone-spread", "Zone spread, required", _ZONES, target=3.5),
    Workload("host-spread", "Hostname spread, preferred", _with(**spread(HOSTNAME, hard=False)), target=3.5),
    Workload(
        "anti-affinity",
        "Anti-affinity by hostname, required",
        _with(**affinity("podAntiAffinity", HOSTNAME, required=True)),
        target=4,
        at_most=1,
    ),
    Workload(
        "affinity",
        "Affinity by zone, required",
        _with(**affinity("podAffinity", ZONE, required=True)),
        target=4,
    ),
    Workload(
        "preferred-affinity",
        "Affinity by hostname, preferred",
        _with(**affinity("podAffinity", HOSTNAME, required=False)),
        target=5,
    ),
    Workload("namespace-affinity", "Affinity across namespaces", _NEAR_TEAMS, before=_teams),
    Workload("churn", "Services rolling meanwhile", _of_app, before=_rolling, beside=background.churn),
    Workload("unschedulable", "2,000 pods that fit nowhere", _PLAIN, before=_too_large),
    Workload("gated", "5,000 gated pods", _PLAIN, before=_gated),
    Workload(
        "preemption",
        "Preemption on full nodes",
        _with(cpu="16", memory="1Gi", priorityClassName="urgent"),
        nodes=1000,
        pods=500,
        mode=Mode.ARRIVAL,
        before=_full,
        target=2,
        at_most=2,
    ),
    Workload(
        "volumes",
        "Volumes made on demand",
        _claiming,
        pods=3000,
        before=_claims,
        beside=background.provision,
    ),
    *(
        Workload(f"{name}-{nodes}", f"{title}, {nodes:,} nodes", template, nodes=nodes, scales=name)
        for nodes in (100, 1000, 15_000)
        for name, title, template in (
            ("basic", "Pods all alike", _PLAIN),
            ("different", "Pods all different", _different),
            ("zone-spread", "Zone spread, required", _ZONES),
        )
    ),
    Workload("latency", "100 pods/s arriving", _PLAIN, mode=Mode.PACED),
)
#: By name, in the order in which they are told.
WORKLOADS = {workload.name: workload for workload in _ALL}
