"""How long the extender takes to answer, over HTTP on loopback and from a process of its own.

Each pod is filtered for, prioritized for and bound, as kube-scheduler would do it, so that no two questions meet the
same state.
"""

from __future__ import annotations

import asyncio
import http.client
import multiprocessing
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import orjson

from moorage.assembly.startup import tune_collector
from moorage.core.model.pod import Pod, PodRef
from moorage.core.model.policy import LimitRule, NodeRules, Policy, Preference, Scoring
from tests.kit.builders import make_node, make_pod, read_pod
from tests.kit.extender_rig import ExtenderRig
from tests.kit.policy_builders import labelled, make_policy

_TEMPLATES = 20
_WARM = 25  # pods before those that count
_HOST = "kubernetes.io/hostname"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table; times in milliseconds, ``size`` in KiB a request."""

    nodes: int
    mode: str
    verb: str
    size: float
    median: float
    p99: float


def measure(nodes: int, pods: int, *, whole: bool) -> list[Row]:
    """Ask about that many nodes, for as many pods."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    server = context.Process(target=_serve, args=(nodes, theirs), daemon=True)
    server.start()
    try:
        return _ask(ours.recv(), nodes, pods, whole=whole)
    finally:
        ours.send("stop")
        server.join(10)


def _ask(port: int, nodes: int, pods: int, *, whole: bool) -> list[Row]:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    names = [f"node-{i}" for i in range(nodes)]
    bodies = [_full_node(name, i) for i, name in enumerate(names)] if whole else []
    times: dict[str, list[float]] = {"filter": [], "prioritize": []}
    sizes: dict[str, int] = {}
    for number in range(_WARM + pods):
        pod = _pod(f"p{number}")
        left = names
        for verb, taken in times.items():
            listed = {"items": [bodies[int(name[5:])] for name in left]} if whole else None
            body = orjson.dumps({"Pod": pod, "Nodes": listed, "NodeNames": None if whole else left})
            began = time.perf_counter()
            content = _post(connection, verb, body)
            if number >= _WARM:
                taken.append((time.perf_counter() - began) * 1000)
            answer = orjson.loads(content)
            sizes[verb] = len(body)
            if verb == "filter":
                found = answer["Nodes"]["items"] if whole else answer["NodeNames"]
                left = [node["metadata"]["name"] for node in found] if whole else found
        best = max(answer, key=lambda each: each["Score"])["Host"]
        meta = pod["metadata"]
        binding = {"PodName": meta["name"], "PodNamespace": "default", "PodUID": meta["uid"], "Node": best}
        said = orjson.loads(_post(connection, "bind", orjson.dumps(binding)))["Error"]
        if said:
            raise RuntimeError(said)
    mode = "whole nodes" if whole else "names"
    return [
        Row(
            nodes,
            mode,
            verb,
            sizes[verb] / 1024,
            sorted(taken)[len(taken) // 2],
            sorted(taken)[int(len(taken) * 0.99)],
        )
        for verb, taken in times.items()
    ]


def _post(connection: http.client.HTTPConnection, verb: str, body: bytes) -> bytes:
    connection.request("POST", f"/scheduler/{verb}", body, {"Content-Type": "application/json"})
    with connection.getresponse() as response:
        content = response.read()
        if response.status != 200:
            raise RuntimeError(f"{verb}: {response.status} {content[:200]!r}")
        return content


# -- the server ------------------------------------------------------------------------------------


def _serve(nodes: int, parent: Connection) -> None:
    try:
        import uvloop
    except ImportError:
        factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    else:
        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(_served(nodes, parent))


async def _served(nodes: int, parent: Connection) -> None:
    tune_collector()
    labels = {f"node-{i}": _labels(f"node-{i}", i) for i in range(nodes)}
    async with ExtenderRig(_policy(), nodes=labels) as rig:
        rig.service._reader = _AnyPod()
        parent.send(rig.server.address[1])
        while not parent.poll():
            await asyncio.sleep(0.2)


class _AnyPod:
    """There is each pod that is asked for."""

    async def fetch(self, ref: PodRef) -> Pod | None:
        return read_pod(**{**_template(ref.name), "name": ref.name})


# -- what is asked ---------------------------------------------------------------------------------


def _policy() -> Policy:
    """Two thirds of the nodes, at most 20 pods each, and some liked better."""
    zones = labelled({"pool": "batch"})
    return make_policy(
        "batch",
        labels={"app": "batch"},
        nodes=NodeRules(selector=zones, keep_free={"cpu": 5}),
        limits=(LimitRule(_HOST, 20),),
        scoring=Scoring(prefer=(Preference(selector=labelled({"disk": "ssd"}), expression=None, weight=5),)),
    )


def _labels(name: str, index: int) -> dict[str, str]:
    pool, disk = "batch" if index % 3 else "web", "ssd" if index % 5 == 0 else "hdd"
    return {_HOST: name, "topology.kubernetes.io/zone": f"z{index % 3}", "pool": pool, "disk": disk}


def _template(name: str) -> dict[str, Any]:
    number = int(name[1:]) % _TEMPLATES
    return {
        "labels": {"app": "batch", "template": str(number), "pod": name},
        "cpu": f"{10 + number}m",
        "memory": "16Mi",
        "schedulerName": "default-scheduler",
    }


def _pod(name: str) -> dict[str, Any]:
    return make_pod(name, **_template(name))


def _full_node(name: str, index: int) -> dict[str, Any]:
    """With addresses, conditions, and as many images as the kubelet reports."""
    node = make_node(name, labels=_labels(name, index))
    node["status"] |= {
        "addresses": [{"type": "InternalIP", "address": f"10.0.{index // 256}.{index % 256}"}],
        "conditions": [
            {"type": kind, "status": "False", "message": "m" * 60} for kind in ("A", "B", "C", "Ready")
        ],
        "images": [
            {"names": [f"registry.example.org/team/app-{i}@sha256:{'0' * 64}"], "sizeBytes": 10**8}
            for i in range(50)
        ],
    }
    return node
