"""Builders of API objects, which read as sentences: ``make_pod("web", cpu="500m", node="a")``; see also ``models``."""

from __future__ import annotations

from typing import Any

from moorage.adapters.kube.convert import Converter
from moorage.core.model.node import Node
from moorage.core.model.pod import Pod

Obj = dict[str, Any]


def make_pod(name: str = "web", *, namespace: str = "default", node: str = "", **spec: Any) -> Obj:
    """A pod as the API server would give it out.

    ``cpu`` and ``memory`` are requests of its one container; ``labels``, ``status`` and ``metadata`` go where
    they belong, everything else is a field of the spec.
    """
    requests = {key: spec.pop(key) for key in ("cpu", "memory") if key in spec}
    status = spec.pop("status", {})
    metadata = {
        "name": name,
        "namespace": namespace,
        "uid": f"uid-{namespace}-{name}",
        "resourceVersion": "1",
    }
    if "labels" in spec:
        metadata["labels"] = spec.pop("labels")
    metadata |= spec.pop("metadata", {})
    spec = {"containers": [make_container(requests=requests)], **spec}
    if node:
        spec["nodeName"] = node
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def make_container(name: str = "main", **fields: Any) -> Obj:
    """A container; ``requests`` and ``limits`` are its resources."""
    resources = {key: fields.pop(key) for key in ("requests", "limits") if key in fields}
    container: Obj = {"name": name, "image": "registry.test/pause:1", **fields}
    if resources:
        container["resources"] = resources
    return container


def make_node(name: str = "a", **more: Any) -> Obj:
    """A node of 4 cpu, 8Gi and 110 pods; ``allocatable`` adds to that, or changes it.

    ``labels`` and ``status`` go where they belong, everything else is a field of the spec.
    """
    room = {"cpu": "4", "memory": "8Gi", "pods": "110", **more.pop("allocatable", {})}
    metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": "1", "labels": more.pop("labels", {})}
    status = {"allocatable": room, **more.pop("status", {})}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": more, "status": status}


def read_pod(name: str = "web", **more: Any) -> Pod:
    """The pod that ``make_pod`` describes, as the core sees it."""
    return Converter().pod(make_pod(name, **more))


def read_node(name: str = "a", **more: Any) -> Node:
    """The node that ``make_node`` describes, as the core sees it."""
    return Converter().node(make_node(name, **more))
