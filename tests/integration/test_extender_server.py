"""An unchanged kube-scheduler that asks Moorage: what each verb changes, in both cache modes."""

import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.controlplane.client import Client
from tests.controlplane.controlplane import ControlPlane
from tests.kit.extender_process import Extender, kube_scheduler
from tests.kit.manifests import Obj, node, pod
from tests.kit.policies_live import API_VERSION, install_crds
from tests.kit.raw_policies import make_policy

_WAIT = 60.0
SSD: Obj = {"selector": {"matchLabels": {"disk": "ssd"}}}
_MINE: Obj = {"podSelector": {"matchLabels": {"app": "mine"}}}


class Rig:
    """A cluster with an extender; ``clean`` it before each test."""

    def __init__(self, control_plane: ControlPlane, extender: Extender) -> None:
        self.control_plane = control_plane
        self.cluster: Client = control_plane.admin
        self.extender = extender

    def clean(self) -> None:
        """No policies, pods or nodes, and the extender knows it."""
        for kind, version in (("ClusterSchedulingPolicy", API_VERSION), ("Pod", "v1"), ("Node", "v1")):
            for obj in self.cluster.list(kind, api_version=version):
                meta = obj["metadata"]
                self.cluster.delete(kind, meta["name"], meta.get("namespace"), api_version=version)
        self.knows(nodes=0, pods=0, policies=0)

    def knows(self, *, nodes: int, policies: int, pods: int | None = None) -> None:
        """Wait until the extender has seen so many."""

        def told() -> bool:
            sizes = {
                kind: self.extender.metric("scheduler_cache_size", type=kind) for kind in ("nodes", "pods")
            }
            in_force = self.extender.metric("moorage_policies", state="in_force")
            return (sizes["nodes"], in_force) == (nodes, policies) and pods in (None, sizes["pods"])

        self.cluster.wait_for(told, _WAIT, "the extender knows")

    def policy(self, name: str = "p", **spec: Any) -> None:
        """A policy for the pods of our app."""
        self.cluster.apply([make_policy(name, **{"selector": _MINE, **spec})])

    def pod(self, name: str, **spec: Any) -> Obj:
        """A pod of our app."""
        return self.cluster.create(mine(name, **spec))

    def placed(self, name: str) -> str:
        """The node that it gets."""
        return str(self.cluster.wait_for(lambda: self.cluster.node_of(name), _WAIT, f"{name} is bound"))

    def event(self, name: str) -> str:
        """Why kube-scheduler does not place it."""
        found = self.cluster.wait_for(
            lambda: self.cluster.events(name, reason="FailedScheduling"), _WAIT, f"{name} has an event"
        )
        return str(found[-1]["message"] if "message" in found[-1] else found[-1]["note"])


def mine(name: str, **spec: Any) -> Obj:
    """A pod of our app, for the cluster's own scheduler."""
    made = pod(name, scheduler="default-scheduler", **spec)
    made["metadata"]["labels"] = {"app": "mine"}
    return made


@pytest.fixture(scope="module")
def _rig(_session_control_plane: ControlPlane) -> Iterator[Rig]:
    control_plane = _session_control_plane
    control_plane.reset()
    install_crds(control_plane.admin)
    with Extender(control_plane, "--write-status") as extender:
        yield Rig(control_plane, extender)
    assert extender.process.returncode == 0, extender.log
    assert "Traceback" not in extender.log


@pytest.fixture(scope="module")
def _scheduler(_rig: Rig) -> Iterator[None]:
    with kube_scheduler(_rig.control_plane, _rig.extender.url):
        yield


@pytest.fixture
def rig(_rig: Rig, _scheduler: None) -> Rig:
    """One extender and one kube-scheduler for all tests, which sends names."""
    _rig.clean()
    return _rig


def test_nodes_that_a_policy_rules_out_are_avoided(rig: Rig) -> None:
    rig.cluster.apply([node("a"), node("b", disk="ssd"), node("c")])
    rig.policy(nodes=SSD)
    rig.knows(nodes=3, policies=1)
    for index in range(4):
        rig.pod(f"web-{index}")
    assert {rig.placed(f"web-{index}") for index in range(4)} == {"b"}
    rig.cluster.create(pod("other", scheduler="default-scheduler", nodeName=""))
    assert rig.placed("other") in ("a", "b", "c")

    def status() -> Any:
        found = rig.cluster.get("ClusterSchedulingPolicy", "p", api_version=API_VERSION).get("status", {})
        conditions = {each["type"]: each["status"] for each in found.get("conditions", ())}
        return conditions.get("Accepted"), found.get("pods", {}).get("bound")

    rig.cluster.wait_for(lambda: status() == ("True", 4), _WAIT, "the status tells of the policy")
    rig.cluster.delete("Node", "b")
    rig.knows(nodes=2, policies=1)
    rig.pod("sad")
    text = 'node(s) didn\'t match the node selector of policy "p"'
    assert f"0/2 nodes are available: 2 {text}." in rig.event("sad")
    rig.cluster.create(node("d", disk="ssd"))
    assert rig.placed("sad") == "d"


def test_a_preferred_node_is_chosen(rig: Rig) -> None:
    """Although kube-scheduler itself would rather spread pods over all three."""
    rig.cluster.apply([node("a"), node("b", disk="ssd"), node("c")])
    rig.policy(scoring={"prefer": [{**SSD, "weight": 10}]})
    rig.knows(nodes=3, policies=1)
    for index in range(5):
        rig.pod(f"web-{index}", cpu="200m")
    assert {rig.placed(f"web-{index}") for index in range(5)} == {"b"}


def test_a_hold_is_told_and_ends(rig: Rig) -> None:
    rig.cluster.apply([node("a")])
    tomorrow = (datetime.now(UTC) + timedelta(days=2)).strftime("%a")
    rig.policy(windows=[{"days": [tomorrow], "start": "00:00", "end": "00:00", "action": "Allow"}])
    rig.knows(nodes=1, policies=1)
    rig.pod("early")
    assert 'held by policy "p" until ' in rig.event("early")
    rig.cluster.delete("ClusterSchedulingPolicy", "p", api_version=API_VERSION)
    rig.knows(nodes=1, policies=0)
    rig.cluster.create(
        node("b")
    )  # something must happen, or kube-scheduler does not look again for 5 minutes
    assert rig.placed("early") in ("a", "b")


def test_victims_that_a_policy_guards_are_spared(rig: Rig) -> None:
    """kube-scheduler alone evicts the least important pod, which has just begun; the policy wants an old one."""
    for name, value in (("low", 10), ("middle", 20), ("high", 1000)):
        rig.cluster.apply([_priority_class(name, value)])
    rig.cluster.apply([node("a", cpu="1"), node("b", cpu="1")])
    rig.policy(preemption={"minVictimRuntime": "1h"})
    rig.knows(nodes=2, policies=1)
    _running(rig, "young", "a", "low", timedelta(minutes=1))
    _running(rig, "old", "b", "middle", timedelta(hours=3))
    rig.knows(nodes=2, policies=1, pods=2)
    rig.pod("urgent", cpu="900m", priorityClassName="high")
    assert rig.placed("urgent") == "b"
    assert rig.cluster.node_of("young") == "a"
    assert rig.cluster.find("Pod", "old") is None

    rig.cluster.delete("ClusterSchedulingPolicy", "p", api_version=API_VERSION)
    rig.knows(nodes=2, policies=0)
    rig.policy(preemption={"policy": "Never"})
    rig.knows(nodes=2, policies=1)
    rig.pod("patient", cpu="900m", priorityClassName="high")
    assert "Insufficient cpu" in rig.event("patient")
    assert rig.cluster.node_of("young") == "a"


def test_whole_nodes(_rig: Rig) -> None:  # noqa: PT019 - it has a value
    """The same answers for a kube-scheduler that sends all it knows of the nodes."""
    rig = _rig
    rig.clean()
    rig.cluster.apply([node("a"), node("b", disk="ssd"), node("c", disk="ssd", fast="yes"), node("d")])
    prefer = [{"selector": {"matchLabels": {"fast": "yes"}}, "weight": 10}]
    rig.policy(nodes=SSD, scoring={"prefer": prefer})
    rig.knows(nodes=4, policies=1)
    with kube_scheduler(rig.control_plane, rig.extender.url, whole_nodes=True):
        for index in range(4):
            rig.pod(f"whole-{index}", cpu="200m")
        assert {rig.placed(f"whole-{index}") for index in range(4)} == {"c"}
        for name in ("b", "c"):
            rig.cluster.delete("Node", name)
        rig.knows(nodes=2, policies=1)
        rig.pod("whole-sad")
        assert "2 node(s) didn't match the node selector" in rig.event("whole-sad")


def test_the_trial(_rig: Rig) -> None:  # noqa: PT019 - it has a value
    """Of the command line, about nodes of the cluster."""
    rig = _rig
    rig.clean()
    rig.cluster.apply([node("a"), node("b", disk="ssd"), make_policy("p", nodes=SSD)])
    rig.knows(nodes=2, policies=1)
    command = [sys.executable, "-m", "moorage", "extender", "--check", "--url", rig.extender.url]
    environ = {**os.environ, "KUBECONFIG": str(rig.control_plane.kubeconfig)}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("1 of 2 nodes pass") == 2
    assert done.stdout.splitlines()[-1].endswith("off")


def _priority_class(name: str, value: int) -> Obj:
    api = "scheduling.k8s.io/v1"
    return {"apiVersion": api, "kind": "PriorityClass", "metadata": {"name": name}, "value": value}


def _running(rig: Rig, name: str, where: str, priority: str, since: timedelta) -> None:
    rig.cluster.create(pod(name, cpu="900m", nodeName=where, priorityClassName=priority))
    started = (datetime.now(UTC) - since).strftime("%Y-%m-%dT%H:%M:%SZ")
    rig.cluster.patch_status("Pod", name, {"phase": "Running", "startTime": started})
