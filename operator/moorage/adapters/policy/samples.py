"""A pod and a node as large as they get in practice, to try on them what an expression costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

SIZES: Final = (1, 3, 10)
_LONG: Final = "x" * 500


def sample_pod(size: int) -> dict[str, Any]:
    """A pod with ``size`` of everything, and numbers as doubles."""
    texts = {f"example.com/key-{i}": f"value-{i}" * 4 for i in range(size)}
    resources = {"cpu": "500m", "memory": "512Mi"}
    container = {
        "image": f"registry.example.com/team/name@sha256:{'0' * 64}",
        "args": [f"--flag-{i}=value" for i in range(size)],
        "env": [{"name": f"NAME_{i}", "value": "value"} for i in range(size)],
        "ports": [{"name": f"p{i}", "containerPort": 8000.0 + i} for i in range(min(size, 3))],
        "resources": {"requests": resources, "limits": resources},
        "volumeMounts": [{"name": f"v{i}", "mountPath": f"/mnt/{i}"} for i in range(min(size, 5))],
    }
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "name-0123456789", "controller": True}
    term = {"topologyKey": "topology.kubernetes.io/zone", "labelSelector": {"matchLabels": texts}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "name-0123456789-abcde",
            "namespace": "namespace",
            "uid": "01234567-89ab-cdef-0123-456789abcdef",
            "labels": texts,
            "annotations": {**texts, "example.com/long": _LONG * size},
            "ownerReferences": [owner],
        },
        "spec": {
            "containers": [{"name": f"c{i}", **container} for i in range(size)],
            "initContainers": [{"name": f"i{i}", **container} for i in range(min(size, 3))],
            "volumes": [{"name": f"v{i}", "configMap": {"name": f"c{i}"}} for i in range(size)],
            "tolerations": [{"key": f"k{i}", "operator": "Exists"} for i in range(size)],
            "nodeSelector": texts,
            "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
            "priority": 0.0,
            "priorityClassName": "low",
            "schedulerName": "moorage",
            "serviceAccountName": "default",
        },
        "status": {"phase": "Pending", "qosClass": "Burstable"},
    }


def sample_node(size: int) -> dict[str, Any]:
    """The fields of a node (see NodeFacts) with ``size`` of everything, ten times as many labels."""
    amounts = {"cpu": 8.0, "memory": 3.2e10, "pods": 110.0, "ephemeral-storage": 1e11, "nvidia.com/gpu": 8.0}
    return {
        "name": "node-0123456789.example.com",
        "labels": {f"example.com/key-{i}": f"value-{i}" * 6 for i in range(10 * size)},
        "taints": [{"key": f"example.com/k{i}", "value": "v", "effect": "NoSchedule"} for i in range(size)],
        "allocatable": amounts | {f"example.com/r{i}": 1.0 for i in range(size)},
        "requested": amounts | {f"example.com/r{i}": 1.0 for i in range(size)},
        "usage": {"cpu": 50.0, "memory": 50.0},
    }


def with_fields(sample: dict[str, Any], paths: Iterable[tuple[str, ...]]) -> Mapping[str, Any]:
    """The sample with a long text wherever an expression speaks of a field that it does not have."""
    for path in paths:
        inner: Any = sample
        for step in path[:-1]:
            inner = inner.setdefault(step, {}) if isinstance(inner, dict) else None
        if path and isinstance(inner, dict):
            inner.setdefault(path[-1], _LONG)
    return sample
