"""`make sandbox`: a control plane with a handful of fake nodes, to play with from another terminal."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from pathlib import Path

from tests.controlplane.build import ASSETS, BuildError
from tests.controlplane.client import Obj
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.kubelet import FakeKubelet

KUBECONFIG = ASSETS.parent / "sandbox.kubeconfig"
_ZONES = ("a", "b", "c")
_SIZES = {"small": ("4", "16Gi"), "large": ("16", "64Gi")}

_HELP = """\
Kubernetes {version} is ready, with {nodes} fake nodes. In another terminal:

  export KUBECONFIG={kubeconfig}
  moorage run                               # the scheduler (.venv/bin/moorage)
  kubectl get nodes -L topology.kubernetes.io/zone,size
  kubectl create -f {example}
  kubectl get pods -o wide                  # bound pods are Running: a fake kubelet says so
  kubectl describe pod greedy               # why it fits nowhere

Ctrl-C ends it all, and nothing is kept.
"""

_EXAMPLE = """\
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Pod
  metadata: {name: modest, labels: {app: modest}}
  spec:
    schedulerName: moorage
    containers:
    - {name: main, image: none, resources: {requests: {cpu: 500m, memory: 256Mi}}}
- apiVersion: v1
  kind: Pod
  metadata: {name: learner}
  spec:
    schedulerName: moorage
    tolerations: [{key: nvidia.com/gpu, operator: Exists}]
    containers:
    - {name: main, image: none, resources: {limits: {nvidia.com/gpu: 1}}}
- apiVersion: v1
  kind: Pod
  metadata: {name: greedy}
  spec:
    schedulerName: moorage
    containers:
    - {name: main, image: none, resources: {requests: {cpu: 64}}}
"""


def nodes(count: int) -> list[Obj]:
    """Fake nodes over three zones in two sizes; the last has GPUs, and a taint that keeps other pods off."""
    made = []
    for index in range(count):
        gpu = index == count - 1 and count > 1
        size = "large" if gpu or index % 3 == 2 else "small"
        cpu, memory = _SIZES[size]
        capacity = {"cpu": cpu, "memory": memory, "pods": "110", "ephemeral-storage": "100Gi"}
        if gpu:
            capacity["nvidia.com/gpu"] = "4"
        name = f"node-{index + 1}" if not gpu else "node-gpu"
        labels = {
            "kubernetes.io/hostname": name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
            "topology.kubernetes.io/zone": f"zone-{_ZONES[index % 3]}",
            "size": size,
        }
        taints = [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}] if gpu else []
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "fake"}
        made.append(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "labels": labels},
                "spec": {"taints": taints} if taints else {},
                "status": {"capacity": capacity, "allocatable": capacity, "conditions": [ready]},
            }
        )
    return made


def main() -> int:
    """Start, explain, wait for Ctrl-C, stop."""
    parser = argparse.ArgumentParser(prog="make sandbox ARGS=…", description=__doc__)
    parser.add_argument("--nodes", type=int, default=5, help="how many fake nodes (5)")
    parser.add_argument("--kubeconfig", type=Path, default=KUBECONFIG, help="where to write the kubeconfig")
    options = parser.parse_args()
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    print("Starting etcd and kube-apiserver …", flush=True)
    try:
        control_plane = ControlPlane().start()
    except (BuildError, RuntimeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    try:
        admin = control_plane.admin
        admin.apply(nodes(options.nodes))
        example = options.kubeconfig.with_name("sandbox-pods.yaml")
        options.kubeconfig.parent.mkdir(parents=True, exist_ok=True)
        options.kubeconfig.write_bytes(control_plane.kubeconfig.read_bytes())
        options.kubeconfig.chmod(0o600)
        example.write_text(_EXAMPLE)
        version = admin.request("GET", "/version")["gitVersion"]
        with FakeKubelet(admin):
            facts = {"version": version, "nodes": options.nodes, "example": example}
            print(_HELP.format(kubeconfig=options.kubeconfig, **facts), flush=True)
            ended.wait()
        print("Stopping.")
    finally:
        control_plane.stop()
        options.kubeconfig.unlink(missing_ok=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
