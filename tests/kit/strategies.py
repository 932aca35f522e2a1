"""Hypothesis strategies for clusters and pods, from small pools so that things meet.

The profile is ``ci`` (the same examples every time) where the variable CI is set, else ``dev``; another one is chosen
by HYPOTHESIS_PROFILE: ``hunt`` takes long and is for looking for trouble.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from moorage.core.cache.cache import Cache
from moorage.core.model.device_class import DeviceClass
from moorage.core.model.node import Node
from moorage.core.model.pod import HostPort, Pod, PodSpec
from moorage.core.model.resources import CPU, EPHEMERAL_STORAGE, MAX_AMOUNT, MEMORY, PODS, Requests
from moorage.core.model.selector import NodeSelector, NodeSelectorTerm, Operator, PreferredTerm, Requirement
from moorage.core.model.storage import StorageObject
from moorage.core.model.taint import (
    NO_EXECUTE,
    NO_SCHEDULE,
    PREFER_NO_SCHEDULE,
    UNSCHEDULABLE_KEY,
    Taint,
    Toleration,
)
from moorage.core.snapshot.snapshot import Snapshot
from tests.kit.models import GI, MI, make_pod, requests_of

_CHECKS = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
settings.register_profile(
    "dev", max_examples=25, stateful_step_count=30, deadline=None, suppress_health_check=_CHECKS
)
settings.register_profile("ci", settings.get_profile("dev"), derandomize=True, print_blob=True)
settings.register_profile("hunt", settings.get_profile("dev"), max_examples=3000, stateful_step_count=60)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "dev"))


def thoroughly(times: int) -> settings:
    """That many times the examples of the profile, for what is worth its time: the machines."""
    return settings(max_examples=times * settings().max_examples)


GPU = "example.com/gpu"
FEATURES = ("A", "B")
HUGE_PAGES = "hugepages-2Mi"
NODE_NAMES = ("n0", "n1", "n2", "n3")
LABEL_KEYS = ("zone", "gen")
LABEL_VALUES = ("a", "b", "9", "10", "-1", "")
TAINT_KEYS = ("dedicated", "gone", UNSCHEDULABLE_KEY)
IMAGES = ("app:latest", "db:1", "tool:2")
#: An image's size is the same wherever it is, so that the order of the rows does not matter.
IMAGE_SIZES = {"app:latest": 3 * GI, "db:1": 300 * MI, "tool:2": 5 * MI}

_CPU = (0, 1, 100, 250, 500, 1000, 2000, 4000)
_MEMORY = (0, 1, 100 * MI, 200 * MI, GI, GI + 1, 8 * GI)
_SOME = (0, 1, 2, 4)
_HUGE = ((1 << 53) + 1, 1 << 56, (1 << 61) + 7, 1 << 62, MAX_AMOUNT - 1, MAX_AMOUNT)


def _amounts(*, huge: bool) -> dict[str, st.SearchStrategy[int]]:
    more = _HUGE if huge else ()
    return {
        CPU: st.sampled_from(_CPU + more),
        MEMORY: st.sampled_from(_MEMORY + more),
        EPHEMERAL_STORAGE: st.sampled_from((0, GI, 5 * GI, *more)),
        GPU: st.sampled_from(_SOME + more),
        HUGE_PAGES: st.sampled_from((0, 2 * MI, *more)),
    }


def amounts(*, huge: bool = True) -> st.SearchStrategy[dict[str, int]]:
    """Amounts of some resources; any may be missing."""
    return st.fixed_dictionaries({}, optional=_amounts(huge=huge))


def requests(*, huge: bool = True) -> st.SearchStrategy[Requests]:
    """What a pod asks for, nothing included."""
    return amounts(huge=huge).map(requests_of)


taints = st.builds(
    Taint,
    st.sampled_from(TAINT_KEYS),
    st.sampled_from(("", "x", "y")),
    st.sampled_from((NO_SCHEDULE, PREFER_NO_SCHEDULE, NO_EXECUTE)),
)
tolerations = st.builds(
    Toleration,
    st.sampled_from(("", *TAINT_KEYS)),
    st.sampled_from(("", "Equal", "Exists", "Lt")),
    st.sampled_from(("", "x", "y")),
    st.sampled_from(("", NO_SCHEDULE, PREFER_NO_SCHEDULE, NO_EXECUTE)),
)
labels = st.fixed_dictionaries({}, optional=dict.fromkeys(LABEL_KEYS, st.sampled_from(LABEL_VALUES)))
host_ports = st.builds(
    HostPort,
    st.sampled_from(("0.0.0.0", "10.0.0.1", "10.0.0.2")),  # noqa: S104
    st.sampled_from(("TCP", "UDP")),
    st.sampled_from((80, 443)),
)

features = st.sampled_from(((), (), ("A",), ("B",), ("A", "B")))
device_classes = st.builds(
    DeviceClass,
    st.sampled_from(("c1", "c2")),
    st.sampled_from(("", "example.org/other", GPU)),
    st.sampled_from((0.0, 1.0)),
)


@st.composite
def requirements(draw: st.DrawFn) -> Requirement:
    """A requirement on a label, with as many values as its operator takes."""
    operator = draw(st.sampled_from(Operator))
    key = draw(st.sampled_from(LABEL_KEYS))
    match operator:
        case Operator.EXISTS | Operator.DOES_NOT_EXIST:
            return Requirement(key, operator)
        case Operator.GT | Operator.LT:
            return Requirement(key, operator, (draw(st.sampled_from(("9", "10", "-1", "x"))),))
        case _:
            values = st.lists(st.sampled_from(LABEL_VALUES), min_size=1, max_size=2, unique=True)
            return Requirement(key, operator, tuple(draw(values)))


field_requirements = st.builds(
    Requirement,
    st.just("metadata.name"),
    st.sampled_from((Operator.IN, Operator.IN, Operator.NOT_IN)),
    st.sampled_from((*NODE_NAMES, "nowhere")).map(lambda name: (name,)),
)
terms = st.builds(
    NodeSelectorTerm,
    st.lists(requirements(), max_size=2).map(tuple),
    st.one_of(st.just(()), st.lists(field_requirements, max_size=2).map(tuple)),
)
node_selectors = st.builds(NodeSelector, st.lists(terms, max_size=3).map(tuple))
preferred_terms = st.builds(PreferredTerm, st.sampled_from((1, 3, 50, 100)), terms)


@st.composite
def nodes(draw: st.DrawFn, name: str | None = None, *, huge: bool = True) -> Node:
    """A node; resources, the pod count included, may be missing."""
    allocatable = draw(amounts(huge=huge))
    pods = draw(st.sampled_from((None, 0, 1, 2, 110, 110, 110, 110)))
    if pods is not None:
        allocatable[PODS] = pods
    return Node(
        draw(st.sampled_from(NODE_NAMES)) if name is None else name,
        draw(st.sampled_from(("1", "1", "1", "2"))),
        labels=draw(labels),
        taints=tuple(draw(st.lists(taints, max_size=2))),
        unschedulable=draw(st.sampled_from((False, False, False, True))),
        allocatable=allocatable,
        images={name: IMAGE_SIZES[name] for name in draw(st.sets(st.sampled_from(IMAGES)))},
        declared_features=draw(features),
    )


@st.composite
def specs(draw: st.DrawFn, *, huge: bool = True) -> PodSpec:
    """A pod template that uses one or more of the features that plugins look at."""
    images = tuple(draw(st.lists(st.sampled_from(IMAGES), min_size=1, max_size=2)))
    plain = draw(st.booleans())
    return PodSpec(
        scheduler_name="moorage",
        priority=draw(st.sampled_from((0, 0, 10))),
        node_name="" if plain else draw(st.sampled_from(("", "", "", "n0", "nowhere"))),
        requests=draw(requests(huge=huge)),
        node_selector={} if plain else draw(st.one_of(st.just({}), labels)),
        required=None if plain else draw(st.one_of(st.none(), node_selectors)),
        preferred=tuple(draw(st.lists(preferred_terms, max_size=2))),
        tolerations=tuple(draw(st.lists(tolerations, max_size=2))),
        host_ports=tuple(draw(st.lists(host_ports, max_size=2))),
        images=images,
        required_features=() if plain else draw(features),
        unsupported=() if plain else draw(st.sampled_from(((), (), (), ("volumes",)))),
    )


@dataclass(frozen=True)
class Cluster:
    """Nodes, the pods on them, and storage objects, as plain lists."""

    nodes: tuple[Node, ...]
    pods: tuple[Pod, ...]
    storage: tuple[StorageObject, ...] = ()
    device_classes: tuple[DeviceClass, ...] = ()

    def on(self, name: str) -> list[Pod]:
        """The pods on a node."""
        return [pod for pod in self.pods if pod.node_name == name]


@st.composite
def clusters(draw: st.DrawFn, *, huge: bool = True, min_nodes: int = 0) -> Cluster:
    """Up to four nodes with up to six pods; some are overcommitted."""
    names = draw(st.lists(st.sampled_from(NODE_NAMES), min_size=min_nodes, unique=True))
    made = tuple(draw(nodes(name, huge=huge)) for name in names)
    pods = []
    if names:
        for number in range(draw(st.integers(0, 6))):
            ports = tuple(draw(st.lists(host_ports, max_size=1)))
            spec = PodSpec(scheduler_name="moorage", requests=draw(requests(huge=huge)), host_ports=ports)
            pods.append(make_pod(f"p{number}", spec=spec, node=draw(st.sampled_from(names))))
    classes = draw(st.lists(device_classes, max_size=2, unique_by=lambda each: each.name))
    return Cluster(made, tuple(pods), device_classes=tuple(classes))


def build(cluster: Cluster, *, order: Sequence[int] | None = None, holes: Sequence[int] = ()) -> Snapshot:
    """The cluster as a snapshot; ``order`` permutes the rows, ``holes`` are free rows before that many nodes."""
    cache = Cache(Snapshot())
    for obj in cluster.storage:
        cache.apply_storage(obj)
    for device_class in cluster.device_classes:
        cache.snapshot.device_classes.apply(device_class)
    chosen = range(len(cluster.nodes)) if order is None else order
    fillers = []
    for place, index in enumerate(chosen):
        if place in holes:
            filler = Node(
                f"hole-{place}",
                allocatable={CPU: 7, PODS: 7},
                taints=(Taint("hole"),),
                labels={"zone": "hole"},
            )
            cache.apply_node(filler)
            cache.add(make_pod(f"in-{filler.name}", node=filler.name, cpu=3, ports=[80]))
            fillers.append(filler.name)
        cache.apply_node(cluster.nodes[index])
    for pod in cluster.pods:
        cache.add(pod)
    for name in fillers:
        cache.remove(f"uid-in-{name}")
        cache.remove_node(name)
    return cache.snapshot


def columns_of(snapshot: Snapshot) -> dict[str, dict[str, Any]]:
    """Everything a snapshot says about its nodes, by node name: equal for equal clusters, whatever the rows."""
    told: dict[str, dict[str, Any]] = {}
    for row, node in enumerate(snapshot.nodes):
        if node is None:
            continue
        told[node.name] = {
            "node": node,
            "alive": bool(snapshot.alive[row]),
            "unschedulable": bool(snapshot.unschedulable[row]),
            "pod_count": int(snapshot.pod_count[row]),
            "pods": dict(snapshot.pods[row]),
            "scoring": (int(snapshot.scoring_cpu.values[row]), int(snapshot.scoring_memory.values[row])),
            "allocatable": {r: int(v) for r in snapshot.resources if (v := snapshot.allocatable(r)[row])},
            "requested": {r: int(v) for r in snapshot.resources if (v := snapshot.requested(r)[row])},
            "taints": snapshot.taints.of(row),
            "features": [
                feature
                for feature in FEATURES
                if snapshot.features.declaring((feature,), snapshot.nodes, snapshot.capacity)[row]
            ],
        }
    return told
