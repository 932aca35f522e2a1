"""`moorage what-if` on a real API server: what it says is what happens."""

import json
import time
from collections import Counter
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from moorage.cli import main
from tests.controlplane.client import Client
from tests.controlplane.controlplane import ControlPlane
from tests.kit.manifests import node, pod
from tests.kit.operator import Operator


@pytest.fixture
def what_if(control_plane: ControlPlane, tmp_path: Any) -> Any:
    def call(*options: str, **manifests: Any) -> Any:
        words = ["what-if", "--kubeconfig", str(control_plane.kubeconfig), "-o", "json", *options]
        for option, documents in manifests.items():
            path = tmp_path / f"{option}.yaml"
            path.write_text(yaml.safe_dump_all(documents))
            words += [f"--{option}", str(path)]
        result = CliRunner().invoke(main, words)
        assert result.exit_code in (0, 3), result.output
        return json.loads(result.stdout)

    return call


def settle(cluster: Client, names: list[str]) -> Counter[bool]:
    """Wait until each pod has a node or was refused, and nothing changes any more; how many have one."""

    def look() -> dict[str, Any]:
        pods = {p["metadata"]["name"]: p for p in cluster.list("Pod", "default")}
        return {name: pods[name] for name in names}

    def done(found: dict[str, Any]) -> bool:
        return all(
            p["spec"].get("nodeName")
            or any(c["type"] == "PodScheduled" for c in p.get("status", {}).get("conditions", ()))
            for p in found.values()
        )

    before: Any = None
    deadline = time.monotonic() + 60
    while True:
        found = look()
        now = {name: p["spec"].get("nodeName") for name, p in found.items()}
        if done(found) and now == before:
            return Counter(bool(where) for where in now.values())
        assert time.monotonic() < deadline, now
        before = now
        time.sleep(1)


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("cpu", "extra"),
    [
        ("700m", {}),
        (
            "600m",
            {
                "topologySpreadConstraints": [
                    {
                        "maxSkew": 1,
                        "topologyKey": "zone",
                        "whenUnsatisfiable": "DoNotSchedule",
                        "labelSelector": {"matchLabels": {"app": "web"}},
                    }
                ]
            },
        ),
        (
            "100m",
            {
                "affinity": {
                    "podAntiAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": [
                            {
                                "topologyKey": "kubernetes.io/hostname",
                                "labelSelector": {"matchLabels": {"app": "web"}},
                            }
                        ]
                    }
                }
            },
        ),
    ],
    ids=["room", "spread", "alone"],
)
def test_replicas_are_what_happens_when_they_are_created(
    control_plane: ControlPlane, cluster: Client, what_if: Any, cpu: str, extra: dict[str, Any]
) -> None:
    cluster.apply([node(f"n{i}", cpu=str(1 + i % 3), zone=f"z{i % 2}") for i in range(6)])
    cluster.apply([pod("there", cpu="500m", nodeName="n1")])
    template = pod("web", cpu=cpu, **extra)
    template["metadata"]["labels"] = {"app": "web"}
    number = 30
    said = what_if("--replicas", str(number), file=[template])
    unchanged = cluster.list("Pod", "default")
    assert [p["metadata"]["name"] for p in unchanged] == ["there"]
    names = [f"web-{i}" for i in range(number)]
    with Operator(control_plane):
        cluster.apply([{**template, "metadata": {**template["metadata"], "name": name}} for name in names])
        happened = settle(cluster, names)
    assert happened[True] == said["placed"]
    assert happened[False] == said["pending"] > 0


@pytest.mark.timeout(120)
def test_the_evicted_are_those_that_are_evicted(
    control_plane: ControlPlane, cluster: Client, what_if: Any
) -> None:
    cluster.apply([node("a", cpu="1"), node("b", cpu="1")])
    low = [pod(f"low-{name}", cpu="800m", nodeName=name, priority=i) for i, name in enumerate("ab", 1)]
    cluster.apply(low)
    high = pod("high", cpu="800m", priority=100)
    said = what_if(file=[high])
    assert said["evicted"] == [{"pod": "default/low-a", "node": "a", "for": "default/high"}]
    with Operator(control_plane):
        cluster.apply([high])
        cluster.wait_for(lambda: cluster.node_of("high") == "a", 60, "high in the place of low-a")
    assert cluster.find("Pod", "low-a") is None
    assert cluster.node_of("low-b") == "b"
