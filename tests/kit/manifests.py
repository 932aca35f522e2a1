"""Terse API objects for tests against a control plane."""

from __future__ import annotations

from typing import Any

Obj = dict[str, Any]


def node(name: str, *, cpu: str = "4", memory: str = "16Gi", pods: str = "110", **labels: str) -> Obj:
    """A node that is ready."""
    room = {"cpu": cpu, "memory": memory, "pods": pods}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "status": {
            "allocatable": room,
            "capacity": room,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def pod(
    name: str,
    *,
    cpu: str = "100m",
    memory: str = "64Mi",
    scheduler: str = "moorage",
    namespace: str = "default",
    **spec: Any,
) -> Obj:
    """A pod of one container; ``spec`` adds to or changes its spec."""
    container = {
        "name": "main",
        "image": "registry.test/pause:1",
        "resources": {"requests": {"cpu": cpu, "memory": memory}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "schedulerName": scheduler,
            "terminationGracePeriodSeconds": 0,
            "containers": [container],
            **spec,
        },
    }


def milli_cpu(text: str) -> int:
    """A cpu quantity as these tests write it."""
    return int(text[:-1]) if text.endswith("m") else int(text) * 1000
