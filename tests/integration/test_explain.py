"""`moorage explain` on a real API server: it agrees with `moorage decide`, and what it says would help does."""

import copy
import json
import os
import random
from functools import partial
from typing import Any

import pytest
from click.testing import CliRunner

from moorage.cli import main
from moorage.cli.cases import decide_case
from tests.controlplane.client import Client, wait_for
from tests.controlplane.controlplane import ControlPlane
from tests.kit.manifests import node, pod
from tests.kit.operator import Operator
from tests.kit.remedy import do

PODS = int(os.environ.get("MOORAGE_EXPLAIN_PODS", "40"))
KINDS = {
    "Node": "v1",
    "Pod": "v1",
    "Namespace": "v1",
    "PriorityClass": "scheduling.k8s.io/v1",
    "Service": "v1",
    "ReplicaSet": "apps/v1",
}


def explain(control_plane: ControlPlane, name: str, *options: str) -> Any:
    words = ["explain", name, "--kubeconfig", str(control_plane.kubeconfig), "-o", "json", *options]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def decided(cluster: Client, name: str) -> Any:
    """What `moorage decide` says about the pod on the same objects, as if it were not bound."""
    objects = [
        {"apiVersion": version, "kind": kind, **obj}
        for kind, version in KINDS.items()
        for obj in cluster.list(kind)
        if obj["metadata"]["name"] != name
    ]
    asked = copy.deepcopy(cluster.get("Pod", name, "default"))
    asked["spec"].pop("nodeName", None)
    asked.get("status", {}).pop("nominatedNodeName", None)
    answer = decide_case({"id": name, "objects": objects, "pods": [asked], "commit": False})
    assert "error" not in answer, answer
    return answer["results"][0]


def settled(cluster: Client, name: str) -> bool:
    """Whether the scheduler has had its say."""
    found = cluster.get("Pod", name, "default")
    conditions = found.get("status", {}).get("conditions", [])
    return bool(found["spec"].get("nodeName")) or any(c["type"] == "PodScheduled" for c in conditions)


def bound(cluster: Client, name: str) -> bool:
    return bool(cluster.get("Pod", name, "default")["spec"].get("nodeName"))


def random_node(rng: random.Random, i: int) -> dict[str, Any]:
    labels = {"kubernetes.io/hostname": f"n{i}", "zone": rng.choice("xy")}
    if rng.random() < 0.5:
        labels["disk"] = "ssd"
    made = node(f"n{i}", cpu=str(rng.randint(1, 3)), pods=str(rng.randint(2, 5)))
    made["metadata"]["labels"] = labels
    made["spec"] = {
        "unschedulable": rng.random() < 0.2,
        "taints": [{"key": "gpu", "value": "a", "effect": "NoSchedule"}] if rng.random() < 0.3 else [],
    }
    return made


def random_pod(rng: random.Random, i: int) -> dict[str, Any]:
    made = pod(f"p{i}", cpu=f"{rng.choice([200, 600, 1100, 2500, 4000])}m")
    made["metadata"]["labels"] = {"app": rng.choice("ab")}
    spec = made["spec"]
    spec["terminationGracePeriodSeconds"] = 0
    if rng.random() < 0.4:
        spec["nodeSelector"] = {"disk": "ssd"}
    if rng.random() < 0.2:
        spec["schedulingGates"] = [{"name": "tests.moorage.dev/wait"}]
    if rng.random() < 0.3:
        term = {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": "kubernetes.io/hostname"}
        spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return made


@pytest.mark.timeout(120 + 10 * PODS)
def test_random_pods_agree_with_decide_and_what_would_help_does(
    control_plane: ControlPlane, cluster: Client
) -> None:
    rng = random.Random(8)
    helped = pending = 0
    with Operator(control_plane, "--scheduler-name", "moorage"):
        for i in range(PODS):
            if i % 10 == 0:  # another cluster, so that proposals are needed again
                for kind in ("Pod", "Node"):
                    for each in cluster.list(kind):
                        cluster.delete(kind, each["metadata"]["name"])
                cluster.apply([random_node(rng, j) for j in range(4)])
            name = f"p{i}"
            cluster.apply([random_pod(rng, i)])
            wait_for(partial(settled, cluster, name), 60, f"a word about {name}")
            found = explain(control_plane, name)
            assert found["decision"] == decided(cluster, name), name
            if found["node"]:
                continue
            pending += 1
            if not found["wouldHelp"]:
                cluster.delete("Pod", name, "default")
                continue
            remedy = rng.choice(found["wouldHelp"])
            do(cluster, remedy, name)
            wait_for(partial(bound, cluster, name), 60, f"{name} bound after {remedy}")
            helped += 1
    assert helped >= PODS // 5, (helped, pending)
