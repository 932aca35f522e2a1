"""The test control plane is what its users take it for."""

import asyncio
import contextlib

import pytest

from tests.controlplane.apply import FINALIZER
from tests.controlplane.client import ApiError
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.kubelet import FakeKubelet
from tests.controlplane.sandbox import nodes
from tests.controlplane.scheduler import KubeScheduler


def make_pod(name, namespace="default", *, status=None, meta=None, **spec):
    container = {"name": "main", "image": "none"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, **(meta or {})},
        "spec": {"containers": [container], **spec},
        **({"status": status} if status else {}),
    }


def test_version(cluster):
    version = cluster.request("GET", "/version")
    assert (version["gitVersion"], version["major"], version["minor"]) == ("v1.37.2", "1", "37")


def test_user_may_do_what_it_was_given_and_nothing_else(control_plane):
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]
    own = {
        "kube-system": [{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["list"]}]
    }
    with control_plane.client("reader", rules, namespaced=own) as reader:
        assert reader.list("Pod") == []
        assert reader.list("Lease", "kube-system") != []
        for forbidden in (("Node",), ("Lease",), ("Pod", "x")):
            with pytest.raises(ApiError) as caught:
                reader.get("Pod", "x") if len(forbidden) > 1 else reader.list(*forbidden)
            assert caught.value.status == 403


def test_watch_list_sends_what_is_there_and_then_a_bookmark(cluster):
    cluster.apply([make_pod("a"), make_pod("b")])
    with contextlib.closing(cluster.watch("Pod", initial_events=True, timeout=5)) as watch:
        events = [next(watch), next(watch), next(watch)]
    assert [event["type"] for event in events] == ["ADDED", "ADDED", "BOOKMARK"]
    annotations = events[2]["object"]["metadata"]["annotations"]
    assert annotations["k8s.io/initial-events-end"] == "true"


def test_data_survive_an_outage(control_plane, cluster):
    cluster.apply(nodes(2))
    control_plane.stop_apiserver()
    with pytest.raises(ConnectionError):
        cluster.list("Node")
    control_plane.start_apiserver()
    assert [node["metadata"]["name"] for node in cluster.list("Node")] == ["node-1", "node-gpu"]


def test_paused_apiserver_is_silent_and_goes_on(control_plane, cluster):
    cluster.apply(nodes(1))
    control_plane.pause_apiserver()
    impatient = type(cluster)(control_plane.url, token=control_plane.token, ca=control_plane.ca, timeout=0.2)
    with pytest.raises(TimeoutError):
        impatient.list("Node")
    control_plane.resume_apiserver()
    assert len(cluster.list("Node")) == 1


def test_reset_leaves_nothing_of_a_test(control_plane, cluster):
    crd_names = {"plural": "moorings", "singular": "mooring", "kind": "Mooring"}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "moorings.test.moorage.dev"},
        "spec": {
            "group": "test.moorage.dev",
            "names": crd_names,
            "scope": "Namespaced",
            "versions": [version],
        },
    }
    custom = {"apiVersion": "test.moorage.dev/v1", "kind": "Mooring", "metadata": {"name": "m"}}
    held = make_pod("held", "elsewhere", meta={"finalizers": ["example.com/for-ever"]})
    cluster.apply([crd, *nodes(3), held, make_pod("urgent", priority=7)])
    cluster.apply(custom)
    assert cluster.get("Pod", "urgent")["spec"]["priority"] == 7

    control_plane.reset()

    for kind in ("Pod", "Node", "CustomResourceDefinition"):
        assert cluster.list(kind) == []
    names = {
        item["metadata"]["name"] for kind in ("Namespace", "PriorityClass") for item in cluster.list(kind)
    }
    assert not names & {"elsewhere", "value-7"}
    assert "default" in names


def test_apply_writes_what_the_api_keeps_apart(cluster):
    leaving = {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30}
    running = {"phase": "Running"}
    cluster.apply(
        {
            "kind": "List",
            "items": [
                make_pod("leaving", meta=leaving, nodeName="node-1", status=running),
                make_pod("waiting", status={"nominatedNodeName": "node-1"}, priority=-3),
                make_pod("abroad", "new-namespace"),
                *nodes(1),
            ],
        }
    )
    going = cluster.get("Pod", "leaving")
    assert (going["metadata"]["finalizers"], going["metadata"]["deletionGracePeriodSeconds"]) == (
        [FINALIZER],
        30,
    )
    assert going["status"]["phase"] == "Running"
    waiting = cluster.get("Pod", "waiting")
    assert (waiting["status"]["nominatedNodeName"], waiting["spec"]["priority"]) == ("node-1", -3)
    assert cluster.get("Node", "node-1")["status"]["allocatable"]["cpu"] == "4"
    assert cluster.placements() == {
        "default/leaving": "node-1",
        "default/waiting": None,
        "new-namespace/abroad": None,
    }


def test_kube_scheduler_and_fake_kubelet(control_plane, cluster):
    cluster.apply([*nodes(3), make_pod("fits"), make_pod("not", nodeSelector={"no": "such"})])
    with KubeScheduler(control_plane), FakeKubelet(cluster):
        cluster.wait_for(lambda: cluster.get("Pod", "fits")["status"]["phase"] == "Running")
        condition = cluster.wait_for(lambda: cluster.condition("not"))
        assert condition["reason"] == "Unschedulable"
        assert cluster.wait_for(lambda: cluster.events("not", reason="FailedScheduling"))
        cluster.delete("Pod", "fits", grace=30)
        cluster.wait_for(lambda: cluster.find("Pod", "fits") is None)


def test_options_reach_the_apiserver():
    gates = {"GenericWorkload": True}
    apis = ["scheduling.k8s.io/v1beta1=true"]
    with ControlPlane(feature_gates=gates, runtime_config=apis, audit="Metadata") as other:
        assert other.admin.resource("PodGroup").api_version == "scheduling.k8s.io/v1beta1"
        other.admin.apply(make_pod("seen"))
        metrics = other.admin.request("GET", "/metrics")
        requests = [event["requestURI"] for event in other.audit_events() if event["verb"] == "create"]
    assert 'kubernetes_feature_enabled{name="GenericWorkload",stage="BETA"} 1' in metrics
    assert any(uri.startswith("/api/v1/namespaces/default/pods") for uri in requests)


async def test_async_client_leaves_the_loop_free(acluster):
    ticks = 0

    async def tick():
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.001)

    ticker = asyncio.create_task(tick())
    await acluster.apply(nodes(20))
    assert await acluster.wait_for(lambda: acluster.list("Node"))
    ticker.cancel()
    assert ticks > 3
