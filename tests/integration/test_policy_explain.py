"""`moorage policy explain` asks a cluster."""

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from moorage.cli import main
from tests.kit.builders import make_pod
from tests.kit.raw_policies import make_policy

CRDS = sorted((Path(__file__).parents[2] / "crds").glob("*.yaml"))


@pytest.fixture
def explain(control_plane):
    def call(pod, *options):
        words = ["policy", "explain", pod, "--kubeconfig", str(control_plane.kubeconfig), *options]
        return CliRunner().invoke(main, words)

    return call


def pod(name, **more):
    obj = make_pod(name, **more)
    del obj["metadata"]["uid"], obj["metadata"]["resourceVersion"]
    return obj


def test_policies_of_the_cluster_and_of_the_namespace(cluster, explain):
    cluster.apply([yaml.safe_load(path.read_text()) for path in CRDS])
    cluster.apply(
        [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team", "labels": {"of": "data"}}},
            pod("p", namespace="team"),
            make_policy(
                "all",
                selector={
                    "namespaceSelector": {"matchLabels": {"of": "data"}},
                    "expression": "size(pod.spec.containers) == 1",
                },
                scoring={"strategy": {"type": "MostAllocated"}},
            ),
            make_policy("mine", "team", scoring={"strategy": {"type": "LeastAllocated"}}),
            make_policy("mine", "default", pendingDeadline="1h"),
        ]
    )
    result = explain("p", "-n", "team", "-o", "json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["selected_by"] == ["all", "team/mine"]
    assert [(line["policy"], line["in_force"]) for line in found["lines"]] == [
        ("all", True),
        ("team/mine", False),
    ]


def test_a_cluster_without_the_crds(cluster, explain):
    cluster.apply([pod("p")])
    result = explain("p")
    assert (result.exit_code, result.stdout) == (0, "No policy is about pod default/p.\n")


def test_no_such_pod(control_plane, explain):
    result = explain("nobody")
    assert result.exit_code == 2
    assert "there is no pod default/nobody" in result.stderr
