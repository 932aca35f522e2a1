"""Moorage and a real kube-scheduler fill the same nodes at the same time, each with pods of its own."""

import time
from collections import Counter, defaultdict

import pytest

from tests.controlplane.client import Client
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.scheduler import KubeScheduler
from tests.kit.manifests import milli_cpu, node, pod
from tests.kit.operator import Operator

pytestmark = pytest.mark.timeout(300)

NODES = 50
EACH = 150  # of each scheduler; a node holds four, so that there is room for 200 of the 300


def placed(cluster: Client) -> dict[str, list[dict]]:
    """The pods that are on a node and have not failed, by node."""
    found = defaultdict(list)
    for each in cluster.list("Pod", "default"):
        if each["spec"].get("nodeName") and each["status"].get("phase") != "Failed":
            found[each["spec"]["nodeName"]].append(each)
    return found


def asked(pods: list[dict]) -> int:
    return sum(milli_cpu(each["spec"]["containers"][0]["resources"]["requests"]["cpu"]) for each in pods)


def refuse_what_is_too_much(cluster: Client) -> int:
    """The kubelets' part: fail the pods that came last on nodes that hold too much, with the kubelet's reason."""
    refused = 0
    for pods in placed(cluster).values():
        pods.sort(key=lambda each: (int(each["metadata"]["resourceVersion"]), each["metadata"]["name"]))
        while asked(pods) > 1000:
            last = pods.pop()
            status = {
                "phase": "Failed",
                "reason": "OutOfcpu",
                "message": "Node didn't have enough resource: cpu",
            }
            cluster.patch_status("Pod", last["metadata"]["name"], status, "default")
            refused += 1
    return refused


def settle(cluster: Client) -> None:
    """Wait until neither scheduler has bound anything for two seconds."""
    before, since = -1, time.monotonic()
    deadline = since + 120
    while time.monotonic() - since < 2:
        assert time.monotonic() < deadline, "they never stop"
        now = sum(map(len, placed(cluster).values()))
        if now != before:
            before, since = now, time.monotonic()
        time.sleep(0.2)


def test_two_schedulers_fill_the_same_nodes(
    control_plane: ControlPlane, cluster: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.apply([node(f"n{i}", cpu="1") for i in range(NODES)])
    with KubeScheduler(control_plane), Operator(control_plane) as operator:
        names = {"moorage": "m", "default-scheduler": "k"}
        both = [pod(f"{names[s]}{i}", cpu="250m", scheduler=s) for i in range(EACH) for s in names]
        cluster.apply(both)
        settle(cluster)
        over = {name for name, pods in placed(cluster).items() if asked(pods) > 1000}
        # Whether the two got into each other's way is chance; what cannot be chance is made: a pod of the other one
        # that was decided upon by a view that is too old.
        crowded = min(set(placed(cluster)) - over)
        full = len(placed(cluster)[crowded])
        stray = pod("stray", cpu=f"{1001 - asked(placed(cluster)[crowded])}m", scheduler="third")
        cluster.create(stray)
        cluster.bind("stray", crowded)
        assert len(placed(cluster)[crowded]) == full + 1
        over.add(crowded)

        def seen() -> bool:
            return operator.metric("moorage_overcommitted_nodes", resource="cpu") == len(over)

        cluster.wait_for(seen, 60, f"{len(over)} nodes are seen to be overcommitted")
        assert operator.metric("moorage_overcommits_total", resource="cpu") >= len(over)
        operator.process.wait_for_output("is overcommitted: bound pods ask for ")
        refused = 0

        def calm() -> bool:
            """The room that kubelets free is fought for again, until nothing waits that would fit."""
            nonlocal refused
            refused += refuse_what_is_too_much(cluster)
            return operator.metric("moorage_overcommitted_nodes", resource="cpu") == 0

        while not calm():
            cluster.wait_for(calm, 60, "no node is overcommitted any more")
            settle(cluster)
        with capsys.disabled():
            counted = operator.metric("moorage_overcommits_total", resource="cpu")
            print(
                f"\n{len(over)} nodes overcommitted, {refused} pods refused by kubelets, {counted:.0f} counted"
            )

        # No pod is lost: each is on a node, was refused by a kubelet, or still waits and is known to.
        found = cluster.list("Pod", "default")
        assert len(found) == 2 * EACH + 1
        waiting = Counter(
            each["spec"]["schedulerName"]
            for each in found
            if not each["spec"].get("nodeName") and each["status"].get("phase") == "Pending"
        )
        queued = ("active", "backoff", "unschedulable", "gated")

        def known() -> bool:
            return (
                sum(operator.metric("scheduler_pending_pods", queue=q) for q in queued) == waiting["moorage"]
            )

        cluster.wait_for(known, 60, f"{waiting['moorage']} pods are in the queue")
        assert all(asked(pods) <= 1000 for pods in placed(cluster).values())
        # All that waits is placed once there is room for it.
        cluster.apply([node(f"more{i}", cpu="8") for i in range(5)])
        cluster.wait_for(
            lambda: all(each["spec"].get("nodeName") for each in cluster.list("Pod", "default")),
            90,
            "every pod has had a node",
        )
