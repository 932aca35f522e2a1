"""The whole path on a real control plane: from a backlog of pods to the last binding."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.controlplane.client import Client
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.process import Process
from tests.controlplane.scheduler import KubeScheduler

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Run:
    """One scheduler's figures: pods a second from its start to the last binding, and what it used meanwhile."""

    scheduler: str
    nodes: int
    pods: int
    seconds: float
    cpu_seconds: float
    memory_mib: float

    @property
    def rate(self) -> float:
        """Pods a second."""
        return self.pods / self.seconds


def measure(scheduler: str, node_count: int, pod_count: int, log: Path) -> Run:
    """Run ``moorage`` or ``kube-scheduler`` over a backlog on a control plane of its own."""
    with ControlPlane() as plane:
        _fill(plane.admin, scheduler, node_count, pod_count)
        with _running(scheduler, plane, log) as pid:
            began_cpu = _cpu_seconds(pid)
            started, ended = _watch_bindings(plane.admin, pod_count)
            cpu = _cpu_seconds(pid) - began_cpu
            memory = _peak_mib(pid)
    return Run(scheduler, node_count, pod_count, ended - started, cpu, memory)


def _fill(client: Client, scheduler: str, node_count: int, pod_count: int) -> None:
    name = "default-scheduler" if scheduler == "kube-scheduler" else "moorage"
    nodes = [_node(index) for index in range(node_count)]
    pods = [_pod(index, name) for index in range(pod_count)]
    with ThreadPoolExecutor(4) as pool:
        for _ in pool.map(client.apply, (nodes[i : i + 250] for i in range(0, node_count, 250))):
            pass
        for _ in pool.map(client.apply, (pods[i : i + 250] for i in range(0, pod_count, 250))):
            pass


def _node(index: int) -> dict[str, Any]:
    room = {"cpu": "32", "memory": "256Gi", "ephemeral-storage": "500Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": f"node-{index}",
            "labels": {
                "kubernetes.io/hostname": f"node-{index}",
                "topology.kubernetes.io/zone": f"zone-{index % 3}",
            },
        },
        "status": {
            "capacity": room,
            "allocatable": room,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _pod(index: int, scheduler: str) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "registry.test/pause:1",
        "resources": {"requests": {"cpu": "100m", "memory": "500Mi"}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"pod-{index}", "namespace": "default", "labels": {"app": "bench"}},
        "spec": {"schedulerName": scheduler, "containers": [container], "terminationGracePeriodSeconds": 0},
    }


@contextmanager
def _running(scheduler: str, plane: ControlPlane, log: Path) -> Iterator[int]:
    if scheduler == "kube-scheduler":
        config = {"clientConnection": {"qps": 10_000, "burst": 10_000}}
        with KubeScheduler(plane, config) as kube:
            yield kube.process.pid
        return
    command = [
        sys.executable,
        "-m",
        "moorage",
        "run",
        "--no-leader-elect",
        "--kubeconfig",
        str(plane.kubeconfig),
    ]
    process = Process(command, log=log)
    try:
        yield process.pid
    finally:
        process.stop()


def _watch_bindings(client: Client, expected: int) -> tuple[float, float]:
    """When the first and the last of the pods were seen bound (monotonic seconds)."""
    bound: set[str] = set()
    first = 0.0
    for event in client.watch("Pod", initial_events=True, timeout=600):
        pod = event["object"]
        if event["type"] in ("ADDED", "MODIFIED") and pod["spec"].get("nodeName"):
            first = first or time.monotonic()
            bound.add(pod["metadata"]["uid"])
            if len(bound) >= expected:
                return first, time.monotonic()
    raise RuntimeError(f"only {len(bound)} of {expected} pods were bound")


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _peak_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024
