"""The whole path on a real API server: pods come, are placed, bound and told of."""

import json
import signal
import time
import urllib.request
from collections import Counter
from typing import Any

import pytest

from tests.controlplane.client import PATIENCE, Client
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.etcd import free_port
from tests.kit.manifests import milli_cpu, node, pod
from tests.kit.operator import Operator


def all_bound(cluster: Client, count: int, timeout: float = 60) -> None:
    """Wait until so many pods exist and each has a node."""

    def done() -> bool:
        found = cluster.placements("default").values()
        return len(found) == count and all(found)

    deadline = time.monotonic() + timeout * PATIENCE
    while not done():
        assert time.monotonic() < deadline, Counter(bool(n) for n in cluster.placements().values())
        time.sleep(0.2)


def assert_within_allocatable(cluster: Client) -> None:
    """No node holds more than it has."""
    room = {n["metadata"]["name"]: n["status"]["allocatable"] for n in cluster.list("Node")}
    used: Counter[str] = Counter()
    number: Counter[str] = Counter()
    for each in cluster.list("Pod"):
        name = each["spec"].get("nodeName")
        if name:
            number[name] += 1
            for container in each["spec"]["containers"]:
                used[name] += milli_cpu(container["resources"]["requests"]["cpu"])
    over = [n for n in used if used[n] > milli_cpu(room[n]["cpu"]) or number[n] > int(room[n]["pods"])]
    assert over == []


@pytest.mark.timeout(180)
def test_two_thousand_pods_on_five_hundred_nodes(control_plane: ControlPlane, cluster: Client) -> None:
    cluster.apply([node(f"n{i}", cpu="1", pods="5") for i in range(500)])
    with Operator(control_plane) as operator:
        cluster.apply([pod(f"p{i}", cpu="230m") for i in range(2000)])
        all_bound(cluster, 2000, 90)
        assert_within_allocatable(cluster)
        cluster.wait_for(lambda: operator.metric("moorage_binds_total", outcome="bound") == 2000, 5)
        assert (
            operator.metric("scheduler_schedule_attempts_total", result="scheduled", profile="moorage")
            == 2000
        )
        cluster.wait_for(lambda: len(cluster.list("Event")) == 2000, 30, "an event for each pod")
    assert "ERROR" not in operator.log
    assert "Traceback" not in operator.log


@pytest.mark.parametrize("by_kopf", [False, True], ids=["moorage-run", "kopf-run"])
def test_a_pod_is_bound_and_told_of_as_kube_scheduler_does(
    control_plane: ControlPlane, cluster: Client, by_kopf: bool
) -> None:
    cluster.apply([node("n1")])
    with Operator(control_plane, by_kopf=by_kopf) as operator:
        created = cluster.create(pod("p"))
        cluster.wait_for(lambda: cluster.node_of("p") == "n1", 5)
        (event,) = cluster.wait_for(lambda: cluster.events("p"), 5)
        assert (event["type"], event["reason"]) == ("Normal", "Scheduled")
        assert event["message"] == "Successfully assigned default/p to n1"
        assert event["reportingComponent"] == "moorage"
        assert event["reportingInstance"].startswith("moorage-")
        assert event["action"] == "Binding"
        # What `kubectl describe` selects events by, and what it shows as their age:
        assert event["involvedObject"]["uid"] == created["metadata"]["uid"]
        assert event["eventTime"]
        bound = cluster.get("Pod", "p")
        assert "annotations" not in bound["metadata"], "nothing is written into users' pods"
        assert "finalizers" not in bound["metadata"]
        (condition,) = bound["status"]["conditions"]
        assert (condition["type"], condition["status"]) == ("PodScheduled", "True")
    assert operator.process.returncode == 0, operator.log
    warnings = [line for line in operator.log.splitlines() if "WARNING" in line]
    warnings = [line for line in warnings if "Policies are off" not in line]
    assert len(warnings) <= 1, "the lease's release, at most"


@pytest.mark.parametrize("by_kopf", [False, True], ids=["moorage-run", "kopf-run"])
def test_a_pod_that_fits_nowhere_says_so_once_and_is_bound_when_a_node_comes(
    control_plane: ControlPlane, cluster: Client, by_kopf: bool
) -> None:
    cluster.apply([node("small", cpu="1"), node("other", cpu="1")])
    with Operator(control_plane, by_kopf=by_kopf):
        cluster.create(pod("big", cpu="3"))
        condition: Any = cluster.wait_for(lambda: cluster.condition("big"), 5)
        text = (
            "0/2 nodes are available: 2 Insufficient cpu. preemption: 0/2 nodes are available: "
            "2 Preemption is not helpful for scheduling."
        )
        assert condition["status"] == "False"
        assert condition["reason"] == "Unschedulable"
        assert condition["message"] == text
        time.sleep(4)  # it is tried again meanwhile
        (event,) = cluster.events("big")
        assert (event["type"], event["reason"]) == ("Warning", "FailedScheduling")
        assert event["message"] == condition["message"]
        assert cluster.condition("big") == condition, "written once"
        cluster.apply([node("large", cpu="4")])
        added = time.monotonic()
        cluster.wait_for(lambda: cluster.node_of("big") == "large", 5)
        assert time.monotonic() - added < 2
        cluster.wait_for(lambda: cluster.events("big", reason="Scheduled"), 5)
        bound = cluster.condition("big")
        assert bound is not None
        assert bound["status"] == "True"


def test_pods_of_other_schedulers_are_left_alone_and_take_room(
    control_plane: ControlPlane, cluster: Client
) -> None:
    cluster.apply([node("n1", cpu="1")])
    cluster.apply(
        [pod("theirs", cpu="800m", scheduler="other", nodeName="n1"), pod("pending", scheduler="other")]
    )
    with Operator(control_plane):
        cluster.create(pod("ours", cpu="500m"))
        condition: Any = cluster.wait_for(lambda: cluster.condition("ours"), 5)
        assert "Insufficient cpu" in condition["message"]
        assert cluster.node_of("pending") is None
        cluster.delete("Pod", "theirs")
        cluster.wait_for(lambda: cluster.node_of("ours") == "n1", 5)


def test_several_scheduler_names(control_plane: ControlPlane, cluster: Client) -> None:
    cluster.apply([node("n1")])
    with Operator(control_plane, "--scheduler-name", "one", "--scheduler-name", "two"):
        cluster.apply([pod(name, scheduler=name) for name in ("one", "two", "three")])
        cluster.wait_for(lambda: cluster.node_of("one") and cluster.node_of("two"), 5)
        time.sleep(0.5)
        assert cluster.node_of("three") is None


def test_a_gated_pod_waits_for_its_gate(control_plane: ControlPlane, cluster: Client) -> None:
    cluster.apply([node("n1")])
    with Operator(control_plane) as operator:
        cluster.create(pod("gated", schedulingGates=[{"name": "example.com/gate"}]))
        cluster.create(pod("free"))
        cluster.wait_for(lambda: cluster.node_of("free"), 5)
        cluster.wait_for(lambda: operator.metric("scheduler_pending_pods", queue="gated") == 1, 5)
        assert cluster.node_of("gated") is None
        cluster.patch("Pod", "gated", {"spec": {"schedulingGates": []}}, how="merge")
        cluster.wait_for(lambda: cluster.node_of("gated"), 5)


def test_a_name_used_again_is_another_pod(control_plane: ControlPlane, cluster: Client) -> None:
    cluster.apply([node("n1", cpu="1")])
    with Operator(control_plane) as operator:
        for _ in range(20):
            created = cluster.create(pod("p", cpu="700m"))
            cluster.wait_for(lambda: cluster.node_of("p"), 5)
            assert cluster.get("Pod", "p")["metadata"]["uid"] == created["metadata"]["uid"]
            cluster.delete("Pod", "p")
        cluster.wait_for(lambda: operator.metric("moorage_binds_total", outcome="bound") == 20, 5)
        cluster.wait_for(lambda: operator.metric("scheduler_cache_size", type="pods") == 0, 5)


@pytest.mark.timeout(180)
def test_killed_in_the_middle_and_started_again(control_plane: ControlPlane, cluster: Client) -> None:
    cluster.apply([node(f"n{i}", cpu="1", pods="5") for i in range(500)])
    cluster.apply([pod(f"p{i}", cpu="230m") for i in range(2000)], threads=8)
    with Operator(control_plane) as operator:
        cluster.wait_for(lambda: operator.metric("moorage_binds_total", outcome="bound") > 300, 30)
        operator.process.kill()
    bound = sum(map(bool, cluster.placements().values()))
    assert 300 < bound < 2000
    with Operator(control_plane):
        all_bound(cluster, 2000, 90)
        assert_within_allocatable(cluster)


def test_stopping_ends_the_binds_and_releases_the_lease(control_plane: ControlPlane, cluster: Client) -> None:
    cluster.apply([node(f"n{i}") for i in range(50)])
    cluster.apply([pod(f"p{i}") for i in range(500)])
    with Operator(control_plane, hurried=False) as operator:
        cluster.wait_for(lambda: operator.metric("moorage_binds_total", outcome="bound") > 20, 30)
        operator.process.send(signal.SIGTERM)
        assert operator.process.wait(60) == 0, operator.log
    lease = cluster.get("Lease", "moorage", "kube-system")
    assert not lease["spec"].get("holderIdentity")
    bound = sum(map(bool, cluster.placements().values()))
    assert len(cluster.list("Event")) == bound, "what was bound is told of"
    assert "Unprocessed" not in operator.log
    with Operator(control_plane):  # and another one begins at once
        all_bound(cluster, 500, 30)


def test_the_probe_that_kopf_serves(control_plane: ControlPlane, cluster: Client) -> None:
    port = free_port()
    with (
        Operator(control_plane, "--liveness", f"127.0.0.1:{port}"),
        urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5) as response,
    ):
        assert json.load(response) == {"scheduler": "ok"}
