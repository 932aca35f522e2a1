"""Extenders of a configuration and the real API server: they filter, prioritize, bind, and come with a changed file."""

from pathlib import Path
from typing import Any

import yaml

from tests.controlplane.client import Client
from tests.controlplane.controlplane import ControlPlane
from tests.kit.extender import FakeExtender, Status, keep, rate
from tests.kit.manifests import node, pod
from tests.kit.operator import Operator


def _write(path: Path, fake: FakeExtender, **extender: Any) -> None:
    extenders = [{"urlPrefix": fake.url, "httpTimeout": "2s"} | extender]
    path.write_text(yaml.safe_dump({"profiles": [{"schedulerName": "moorage"}], "extenders": extenders}))


def _condition(cluster: Client, name: str) -> dict[str, Any]:
    found = cluster.wait_for(lambda: cluster.condition(name), 10)
    assert found is not None
    return found


def test_filter_and_prioritize(control_plane: ControlPlane, cluster: Client, tmp_path: Path) -> None:
    """Whole objects are sent, as the API server has them; the answers decide; a refusal is told and tried again."""
    config = tmp_path / "config.yaml"
    cluster.apply([node("a"), node("b"), node("c")])
    with FakeExtender(filter=keep("b", "c"), prioritize=rate(c=10)) as fake:
        _write(config, fake, filterVerb="filter", prioritizeVerb="prioritize", weight=10)
        with Operator(control_plane, "--config", str(config)) as operator:
            cluster.create(pod("web"))
            cluster.wait_for(lambda: cluster.node_of("web") == "c", 10)
            (body,) = fake.bodies("filter")
            live = cluster.get("Pod", "web")
            assert body["Pod"]["metadata"]["uid"] == live["metadata"]["uid"]
            assert body["Pod"]["spec"]["containers"][0]["image"] == live["spec"]["containers"][0]["image"]
            assert [each["metadata"]["name"] for each in body["Nodes"]["items"]] == ["a", "b", "c"]
            assert "managedFields" not in body["Nodes"]["items"][0]["metadata"]

            fake.verbs["filter"] = keep(failed=dict.fromkeys("abc", "out of luck"))
            cluster.create(pod("sad"))
            condition = _condition(cluster, "sad")
            assert condition["reason"] == "Unschedulable"
            assert condition["message"].startswith("0/3 nodes are available: 3 out of luck.")
            fake.verbs["filter"] = keep("a")
            cluster.create(node("d"))
            cluster.wait_for(lambda: cluster.node_of("sad") == "a", 15)

            fake.verbs["filter"] = lambda body: Status(500)
            cluster.create(pod("unlucky"))
            condition = _condition(cluster, "unlucky")
            assert condition["reason"] == "SchedulerError"
            assert "code 500" in condition["message"]
            fake.verbs["filter"] = keep("b")
            cluster.wait_for(lambda: cluster.node_of("unlucky") == "b", 15)
            duration = "moorage_extender_call_duration_seconds_count"
            labels = {"extender": fake.url, "verb": "filter"}
            assert operator.metric(duration, outcome="error", **labels) >= 1
            assert "Traceback" not in operator.log


def test_bind(control_plane: ControlPlane, cluster: Client, tmp_path: Path) -> None:
    """An extender that binds does it instead of us; when it says no, the pod is tried again."""
    config = tmp_path / "config.yaml"
    cluster.apply([node("a")])

    def bind(body: dict[str, Any]) -> dict[str, Any]:
        if len(fake.bodies("bind")) == 1:
            return {"Error": "come again"}
        cluster.bind(body["PodName"], body["Node"])
        return {}

    with FakeExtender(bind=bind) as fake:
        _write(config, fake, bindVerb="bind")
        with Operator(control_plane, "--config", str(config)) as operator:
            created = cluster.create(pod("web"))
            cluster.wait_for(lambda: cluster.node_of("web") == "a", 15)
            uid = created["metadata"]["uid"]
            wanted = {"PodName": "web", "PodNamespace": "default", "PodUID": uid, "Node": "a"}
            assert fake.bodies("bind") == [wanted, wanted]
            assert operator.metric("moorage_binds_total", outcome="extender") == 1
            assert operator.metric("moorage_binds_total", outcome="bound") == 1


def test_an_extender_comes_with_a_changed_file(
    control_plane: ControlPlane, cluster: Client, tmp_path: Path
) -> None:
    """Nodes that were seen before anybody wanted them whole are sent whole."""
    config = tmp_path / "config.yaml"
    config.write_text("profiles: [{schedulerName: moorage}]\n")
    cluster.apply([node("a"), node("b")])
    with FakeExtender(filter=keep("b")) as fake, Operator(control_plane, "--config", str(config)) as operator:
        _write(config, fake, filterVerb="filter")
        accepted = "moorage_config_changes_total"
        cluster.wait_for(lambda: operator.metric(accepted, outcome="accepted") == 1, 10)
        cluster.create(pod("web"))
        cluster.wait_for(lambda: cluster.node_of("web") == "b", 10)
        assert len(fake.bodies("filter")) == 1
