"""Builders of the core's own values; they read as sentences: ``make_pod("web", cpu=500, node="a")``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from moorage.core.model.node import Node
from moorage.core.model.pod import HostPort, Pod, PodSpec
from moorage.core.model.resources import CPU, DEFAULT_MEMORY, DEFAULT_MILLI_CPU, MEMORY, PODS, Requests
from moorage.core.model.selector import NodeSelector, NodeSelectorTerm, Operator, Requirement
from moorage.core.model.taint import NO_SCHEDULE, Taint
from moorage.core.profile import DEFAULT_SCHEDULER_NAME

MI = 1024 * 1024
GI = 1024 * MI


def make_node(
    name: str,
    *,
    cpu: int | None = 4000,
    memory: int | None = 8 * GI,
    pods: int | None = 110,
    more: Mapping[str, int] | None = None,
    taints: Iterable[Taint] = (),
    **fields: Any,
) -> Node:
    """A node of that size in milli-CPU and bytes (None: the node does not say), with ``more`` of other resources."""
    sizes = {CPU: cpu, MEMORY: memory, PODS: pods, **(more or {})}
    allocatable = {resource: amount for resource, amount in sizes.items() if amount is not None}
    return Node(
        name, fields.pop("uid", f"uid-{name}"), allocatable=allocatable, taints=tuple(taints), **fields
    )


def make_requests(cpu: int | None = None, memory: int | None = None, **more: int) -> Requests:
    """What one container asks for; scoring counts the defaults for what it does not name."""
    return requests_of({k: v for k, v in {CPU: cpu, MEMORY: memory, **more}.items() if v is not None})


def requests_of(amounts: Mapping[str, int]) -> Requests:
    """The same from a mapping of resource names."""
    return Requests(
        dict(amounts),
        scoring_cpu=amounts.get(CPU, DEFAULT_MILLI_CPU),
        scoring_memory=amounts.get(MEMORY, DEFAULT_MEMORY),
    )


def make_spec(
    *,
    cpu: int | None = None,
    memory: int | None = None,
    more: Mapping[str, int] | None = None,
    ports: Sequence[HostPort | int] = (),
    **fields: Any,
) -> PodSpec:
    """A pod template; ``ports`` may be plain numbers (TCP, on all addresses)."""
    return PodSpec(
        scheduler_name=fields.pop("scheduler_name", DEFAULT_SCHEDULER_NAME),
        requests=fields.pop("requests", None) or make_requests(cpu, memory, **(more or {})),
        host_ports=tuple(HostPort("0.0.0.0", "TCP", p) if isinstance(p, int) else p for p in ports),  # noqa: S104
        **fields,
    )


_POD_FIELDS = {
    "created", "deleting", "finished", "gates", "generation", "holds", "labels", "namespace", "nominated_node",
    "owner", "preempted", "resource_version", "scheduled_condition", "started", "uid",
}  # fmt: skip


def make_pod(
    name: str, *, node: str = "", spec: PodSpec | None = None, requests: Requests | None = None, **fields: Any
) -> Pod:
    """A pod, bound to ``node`` if that is given; what is not a field of the pod goes to its template.

    ``requests`` is what the pod counts on a node, where that differs from its template (a resize under way).
    """
    own = {key: fields.pop(key) for key in _POD_FIELDS & fields.keys()}
    if spec is None:
        spec = make_spec(**fields)
    elif fields:
        raise TypeError(f"make_pod takes a template or its fields, not both: {', '.join(fields)}")
    return Pod(
        own.pop("namespace", "default"),
        name,
        own.pop("uid", f"uid-{name}"),
        spec,
        spec.requests if requests is None else requests,
        node_name=node,
        **own,
    )


def term(*expressions: Requirement, names: Sequence[str] = ()) -> NodeSelectorTerm:
    """A node selector term; ``names`` become one matchFields requirement."""
    fields = (Requirement("metadata.name", Operator.IN, tuple(names)),) if names else ()
    return NodeSelectorTerm(expressions, fields)


def label_in(key: str, *values: str) -> Requirement:
    """``key In (values)``."""
    return Requirement(key, Operator.IN, values)


def required(*terms: NodeSelectorTerm) -> NodeSelector:
    """A required node affinity."""
    return NodeSelector(terms)


def taint(key: str, value: str = "", effect: str = NO_SCHEDULE) -> Taint:
    """A taint, NoSchedule unless told otherwise."""
    return Taint(key, value, effect)
