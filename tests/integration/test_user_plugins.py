"""Users' plugins on the real API server, by ``moorage run`` and by Kopf's own command."""

import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.client import Client
from tests.controlplane.controlplane import ControlPlane
from tests.kit.manifests import node, pod
from tests.kit.operator import Operator
from tests.kit.policies_live import PolicyCluster, install_crds
from tests.kit.raw_policies import make_policy

RULES = '''
import math
import time

import moorage


@moorage.score(weight=100)
def cheaper_first(pod, nodes):
    if pod.labels.get("fault") == "nan":
        return nodes.label_number("example.com/price", default=math.nan) * math.nan
    if pod.labels.get("fault") == "shape":
        return [1.0]
    if pod.labels.get("fault") == "slow":
        time.sleep(0.1)
    return -nodes.label_number("example.com/price", default=0)


@moorage.filter(reason="node(s) were of another generation")
def same_generation(pod, nodes):
    if pod.labels.get("fault") == "raise":
        raise ValueError("no such luck")
    return nodes.label("example.com/gen") == pod.labels.get("gen", "1")


@moorage.plugin(name="fresh", refresh_every=1)
class Fresh:
    """Closes the cluster to pods that want it fresh until it is."""

    def __init__(self):
        self.count = 0

    async def refresh(self):
        self.count += 1

    def filter(self, pod, nodes):
        return pod.labels.get("wants") != "fresh" or self.count >= 1
'''


def _is_on(cluster: Client, name: str, where: str) -> bool:
    return cluster.node_of(name) == where


def labelled(name: str, **labels: str) -> dict[str, Any]:
    """A pod with these labels."""
    made = pod(name)
    made["metadata"]["labels"] = labels
    return made


@pytest.mark.parametrize("by_kopf", [False, True], ids=["moorage-run", "kopf-run"])
def test_a_file_changes_placement_and_its_faults_cost_one_pod(
    control_plane: ControlPlane, cluster: Client, tmp_path: Path, by_kopf: bool
) -> None:
    rules = tmp_path / "rules.py"
    rules.write_text(RULES)
    price, gen = "example.com/price", "example.com/gen"
    cluster.apply(
        [
            node("dear", cpu="64", **{price: "9", gen: "1"}),
            node("cheap", cpu="4", **{price: "1", gen: "1"}),
            node("free", cpu="64", **{price: "0", gen: "2"}),
        ]
    )
    with Operator(control_plane, str(rules), by_kopf=by_kopf) as operator:
        cluster.create(labelled("raising", fault="raise"))
        cluster.create(labelled("nan", fault="nan"))
        cluster.create(labelled("shape", fault="shape"))
        cluster.create(labelled("slow", fault="slow"))
        cluster.create(labelled("nowhere", gen="3"))
        cluster.create(labelled("fresh", wants="fresh"))
        cluster.apply([labelled(f"p{number}") for number in range(5)])
        for number in range(5):
            cluster.wait_for(partial(_is_on, cluster, f"p{number}", "cheap"), 30)
        cluster.create(labelled("second", gen="2"))
        cluster.wait_for(lambda: cluster.node_of("second") == "free", 30)
        cluster.wait_for(lambda: cluster.node_of("fresh") == "cheap", 30)

        raising: Any = cluster.wait_for(lambda: cluster.condition("raising"), 30)
        assert (raising["status"], raising["reason"]) == ("False", "SchedulerError")
        told = 'running "same_generation" filter plugin: same_generation() raised ValueError: no such luck'
        assert raising["message"].startswith(told)
        assert f"{rules}:22, in same_generation" in raising["message"]
        cluster.wait_for(lambda: any(told in event["message"] for event in cluster.events("raising")), 30)
        nan: Any = cluster.wait_for(lambda: cluster.condition("nan"), 30)
        assert (
            nan["message"]
            == 'running Score plugin "cheaper_first": cheaper_first() gave nan for node cheap, dear'
        )
        shape: Any = cluster.wait_for(lambda: cluster.condition("shape"), 30)
        assert "cheaper_first() must give 2 numbers, one a node, not 1" in shape["message"]
        cluster.wait_for(lambda: cluster.node_of("slow") == "cheap", 30)
        slow = r"Plugin cheaper_first: cheaper_first\(\) took \d+ ms"
        cluster.wait_for(lambda: re.search(slow, operator.log), 30)
        nowhere: Any = cluster.wait_for(lambda: cluster.condition("nowhere"), 30)
        assert nowhere["reason"] == "Unschedulable"
        assert nowhere["message"].startswith("0/3 nodes are available: 3 node(s) were of another generation.")
        assert cluster.node_of("raising") is None
        assert cluster.node_of("nan") is None
        assert cluster.node_of("shape") is None
        # What lifts a rejection wakes the pod: by default, anything.
        cluster.patch("Node", "dear", {"metadata": {"labels": {gen: "3"}}}, how="merge")
        cluster.wait_for(lambda: cluster.node_of("nowhere") == "dear", 60)
        assert "Plugin same_generation: same_generation() raised ValueError" in operator.log
        assert "Plugin cheaper_first (score) from" in operator.log
    assert operator.process.returncode == 0, operator.log


def test_a_file_that_cannot_be_used_ends_the_start(
    control_plane: ControlPlane, cluster: Client, tmp_path: Path
) -> None:
    rules = tmp_path / "rules.py"
    rules.write_text(
        "import moorage\n\n\n@moorage.score(name='NodeAffinity')\ndef f(pod, nodes):\n    return 1\n"
    )
    ours = Operator(control_plane, str(rules), wait=False)
    assert ours.process.wait(60) == 2, ours.log
    assert f"{rules}:4: 'NodeAffinity' is the name of a built-in plugin" in ours.log
    kopfs = Operator(control_plane, str(rules), by_kopf=True, wait=False)
    assert kopfs.process.wait(60) not in (0, None), kopfs.log
    assert f"{rules}:4: 'NodeAffinity' is the name of a built-in plugin" in kopfs.log


def test_arguments_from_a_configuration_and_their_change(
    control_plane: ControlPlane, cluster: Client, tmp_path: Path
) -> None:
    rules = tmp_path / "rules.py"
    rules.write_text(
        "import moorage\n\n@moorage.score(weight=100)\n"
        "def by_label(pod, nodes, *, label='a'):\n    return nodes.label_number(label, default=0)\n"
    )
    config = tmp_path / "config.yaml"

    def write(label: str) -> None:
        config.write_text(
            "profiles:\n- schedulerName: moorage\n"
            f"  pluginConfig: [{{name: by_label, args: {{label: {label}}}}}]\n"
        )

    write("b")
    cluster.apply([node("one", a="1"), node("two", b="1"), node("three", c="1")])
    with Operator(control_plane, str(rules), "--config", str(config)) as operator:
        cluster.create(pod("first"))
        cluster.wait_for(lambda: cluster.node_of("first") == "two", 30)
        write("c")
        cluster.wait_for(lambda: operator.metric("moorage_config_changes_total", outcome="accepted") == 1, 30)
        cluster.create(pod("second"))
        cluster.wait_for(lambda: cluster.node_of("second") == "three", 30)


def test_a_policy_weighs_a_plugin(control_plane: ControlPlane, cluster: Client, tmp_path: Path) -> None:
    rules = tmp_path / "rules.py"
    rules.write_text(
        "import moorage\n\n@moorage.score(weight=100)\n"
        "def by_rank(pod, nodes):\n    return nodes.label_number('rank', default=0)\n\n"
        "@moorage.score\n"
        "def by_price(pod, nodes):\n    return -nodes.label_number('price', default=0)\n"
    )
    install_crds(cluster)
    cluster.apply([node("first", rank="2", price="9"), node("cheap", rank="1", price="1")])
    with Operator(control_plane, str(rules)) as operator:
        policies = PolicyCluster(control_plane, operator)
        cluster.create(pod("before"))
        assert policies.placed("before") == "first"
        thrifty = make_policy("thrifty", scoring={"weights": {"by_price": 100, "by_rank": 0}})
        policies.apply(thrifty)
        assert policies.condition(thrifty, "Accepted")["status"] == "True"
        cluster.create(pod("after"))
        assert policies.placed("after") == "cheap"
        policies.clean()
