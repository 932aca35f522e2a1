"""`python -m tests.bench memory`: what a large cluster takes, read from JSON as the streams bring it.

The pods are of many templates: Deployments, DaemonSets, StatefulSets with claims and Jobs, of which the last two
label each pod differently.  After that some pods are decided that spread, keep apart and preempt, so that everything
that is kept between decisions is there.  Run it in a fresh process, or what ran before counts, too.
"""

from __future__ import annotations

import gc
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

import moorage.app  # noqa: F401  (what the running scheduler has loaded)
from moorage.adapters.kube.convert import Converter
from moorage.core.engine import Engine
from moorage.core.model.events import NodeApplied, PodBound, PodPending

_MIB = 1 << 20
_TEMPLATES = 2_000


def main(nodes: int = 5_000, pods: int = 150_000) -> None:
    """Print the resident memory at each stage, and what a pod takes."""
    rng = random.Random(5)
    converter, engine = Converter(), Engine()
    print(f"{'stage':44}{'RSS MiB':>9}")
    begin = _told("modules loaded")
    for index in range(nodes):
        engine.handle(NodeApplied(converter.node(_read(_node(index, rng)))), 0.0)
    empty = _told(f"{nodes:,} nodes")
    for index in range(pods):
        engine.handle(PodBound(converter.pod(wired_pod(index, nodes, rng))), 0.0)
    full = _told(f"{pods:,} bound pods")
    for index, asked in enumerate(_asking(200, rng)):
        engine.handle(PodPending(converter.pod(_read(asked))), float(index))
        while engine.step(float(index)):
            pass
    done = _told("200 decisions: spread, affinity, preemption")
    print(f"bytes a pod: {(full - empty) // pods:,}; with all that is kept: {(done - begin) // pods:,}")


def _told(stage: str) -> int:
    gc.collect()
    size = int(Path("/proc/self/statm").read_text().split()[1]) * 4096
    print(f"{stage:44}{size / _MIB:9.0f}", flush=True)
    return size


def _read(obj: Any) -> Any:
    """As from the wire: no string is shared with any other object."""
    return orjson.loads(orjson.dumps(obj))


def wired_pod(index: int, nodes: int, rng: random.Random) -> Any:
    """A bound pod as it comes from the wire."""
    return _read(_pod(index, nodes, rng))


def _node(index: int, rng: random.Random) -> Any:
    room = {"cpu": "64", "memory": "256Gi", "ephemeral-storage": "500Gi", "pods": "110"}
    images = [
        {
            "names": [f"registry.test/team/app-{n}@sha256:{n:064x}", f"registry.test/team/app-{n}:v1"],
            "sizeBytes": 1000 + n,
        }
        for n in rng.sample(range(_TEMPLATES), 30)
    ]
    labels = {
        "kubernetes.io/hostname": f"node-{index}",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": f"m{index % 5}.large",
        "topology.kubernetes.io/region": "region-1",
        "topology.kubernetes.io/zone": f"zone-{index % 3}",
    }
    return {
        "metadata": {"name": f"node-{index}", "uid": _uid(rng), "labels": labels},
        "spec": {
            "taints": [{"key": "dedicated", "value": "batch", "effect": "NoSchedule"}] * (index % 20 == 0)
        },
        "status": {
            "allocatable": room,
            "images": images,
            "conditions": [
                {"type": kind, "status": status}
                for kind, status in (
                    ("Ready", "True"),
                    ("MemoryPressure", "False"),
                    ("DiskPressure", "False"),
                )
            ],
        },
    }


def _pod(index: int, nodes: int, rng: random.Random) -> Any:
    """Six in 30 belong to DaemonSets, four to StatefulSets, three to Jobs, the others to Deployments."""
    kind = index % 30
    template = index % 6 if kind < 6 else 10 + rng.randrange(_TEMPLATES)
    labels = {
        "app.kubernetes.io/name": f"app-{template}",
        "app.kubernetes.io/instance": f"app-{template}-prod",
        "app.kubernetes.io/part-of": f"system-{template % 50}",
        "team": f"team-{template % 40}",
    }
    name, volumes, owner = f"app-{template}-{index:x}", [], "ReplicaSet"
    if kind < 6:
        owner = "DaemonSet"
        labels["controller-revision-hash"] = f"{template:010x}"
    elif kind < 10:
        owner, name = "StatefulSet", f"app-{template}-{index}"
        labels["statefulset.kubernetes.io/pod-name"] = name
        labels["apps.kubernetes.io/pod-index"] = str(index % 7)
        volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": f"data-{name}"}}]
    elif kind < 13:
        owner = "Job"
        labels["batch.kubernetes.io/controller-uid"] = _uid(rng)
        labels["batch.kubernetes.io/job-name"] = name
    else:
        labels["pod-template-hash"] = f"{template:010x}"
    spec = _spec(template, template % 5)
    spec["nodeName"] = f"node-{index % nodes}"
    spec["volumes"] = [*volumes, {"name": "token", "projected": {}}]
    return {
        "metadata": {
            "name": name,
            "namespace": f"team-{template % 40}",
            "uid": _uid(rng),
            "resourceVersion": str(1_000_000 + index),
            "creationTimestamp": "2026-11-01T10:00:00Z",
            "labels": labels,
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": owner,
                    "name": f"app-{template}",
                    "uid": f"owner-{template}",
                    "controller": True,
                }
            ],
        },
        "spec": spec,
        "status": {
            "phase": "Running",
            "startTime": f"2026-11-01T10:{rng.randrange(60):02}:{rng.randrange(60):02}Z",
            "conditions": [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "True"}],
        },
    }


def _spec(template: int, shape: int) -> dict[str, Any]:
    own = {"matchLabels": {"app.kubernetes.io/name": f"app-{template}"}}
    spec: dict[str, Any] = {
        "schedulerName": "moorage",
        "priority": template % 3,
        "containers": [
            {
                "name": "main",
                "image": f"registry.test/team/app-{template}:v1",
                "resources": {
                    "requests": {"cpu": f"{100 + template % 400}m", "memory": f"{256 + template % 900}Mi"}
                },
            },
            {"name": "proxy", "image": "registry.test/proxy:v2", "resources": {"requests": {"cpu": "10m"}}},
        ],
        "tolerations": [
            {
                "key": f"node.kubernetes.io/{why}",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 300,
            }
            for why in ("not-ready", "unreachable")
        ],
    }
    if shape in (1, 2):
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": 1000,
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": own,
            }
        ]
    if shape in (2, 3):
        term = {"labelSelector": own, "topologyKey": "kubernetes.io/hostname"}
        spec["affinity"] = {
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": term}]
            }
        }
    return spec


def _asking(number: int, rng: random.Random) -> Iterator[Any]:
    """Pending pods of other templates, every tenth too large for any node as it is."""
    for index in range(number):
        template = 10 + rng.randrange(_TEMPLATES)
        spec = _spec(template, index % 5)
        if index % 10 == 0:
            spec["priority"] = 100
            spec["containers"][0]["resources"]["requests"]["cpu"] = "60"
        labels = {"app.kubernetes.io/name": f"app-{template}"}
        metadata = {"name": f"asking-{index}", "namespace": f"team-{template % 40}", "uid": _uid(rng)}
        yield {"metadata": {**metadata, "labels": labels}, "spec": spec, "status": {}}


def _uid(rng: random.Random) -> str:
    digits = f"{rng.getrandbits(128):032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
