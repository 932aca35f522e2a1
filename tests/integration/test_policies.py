"""Policies on a live cluster: what `kubectl apply` of one does, and what it leads to.  One scheduler for all tests."""

import time
import urllib.request
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.controlplane.client import ApiError
from tests.kit.manifests import Obj, node, pod
from tests.kit.policies_live import API_VERSION, PolicyCluster
from tests.kit.raw_policies import make_policy

SSD: Obj = {"selector": {"matchLabels": {"disk": "ssd"}}}


# -- applying --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"mode": "Sometimes"}, "spec.mode"),
        ({"nodes": {"keepFree": {"cpu": 101}}}, "spec.nodes.keepFree"),
        ({"limits": [{"topologyKey": "zone"}]}, "spec.limits[0].maxPods"),
        ({"preemption": {"policy": "Never", "maxVictims": 3}}, "spec.preemption"),
    ],
)
def test_a_wrong_policy_is_refused_with_the_field(policies: PolicyCluster, spec: Any, field: str) -> None:
    with pytest.raises(ApiError) as refused:
        policies.cluster.create(make_policy("p", "default", **spec))
    assert refused.value.status == 422
    assert field in str(refused.value)


def test_what_only_the_scheduler_can_find_wrong_shows_and_changes_nothing(policies: PolicyCluster) -> None:
    policies.cluster.apply([node("a"), node("b", disk="ssd")])
    policy = make_policy("p", nodes=SSD)
    policies.apply(policy)
    broken = make_policy("p", nodes={**SSD, "expression": "node.lables['x'] == 'y'"})
    policies.apply(broken)
    accepted = policies.condition(policy, "Accepted")
    assert accepted["status"] == "False"
    assert "spec.nodes.expression" in accepted["message"]
    assert "generation 1 stays in force" in accepted["message"]
    assert policies.condition(policy, "Effective")["status"] == "True"
    policies.cluster.create(pod("p"))
    assert policies.placed("p") == "b"

    policies.apply(make_policy("p", nodes={"expression": "!('disk' in node.labels)", "selector": None}))
    assert policies.condition(policy, "Accepted")["status"] == "True"
    policies.cluster.create(pod("q"))
    assert policies.placed("q") == "a"


def test_one_that_never_was_right_has_no_effect(policies: PolicyCluster) -> None:
    policies.cluster.apply([node("a")])
    policy = make_policy(
        "p", windows=[{"start": "00:00", "end": "00:00", "timeZone": "Mars/Olympus", "action": "Hold"}]
    )
    policies.apply(policy)
    accepted = policies.condition(policy, "Accepted")
    assert "spec.windows[0].timeZone" in accepted["message"]
    assert "no generation is in force" in accepted["message"]
    assert policies.condition(policy, "Effective")["status"] == "False"
    policies.cluster.create(pod("p"))
    assert policies.placed("p") == "a"


def test_a_change_helps_pods_that_wait_and_deleting_undoes_it(policies: PolicyCluster) -> None:
    policies.cluster.apply([node("a"), node("b", disk="ssd")])
    policies.apply(make_policy("fast", nodes={"selector": {"matchLabels": {"disk": "nvme"}}}))
    policies.cluster.apply([pod("p"), pod("q")])
    assert 'policy "fast"' in policies.refusal("p")
    policies.refusal("q")
    policies.await_status(make_policy("fast"), "pods.pending", 2)
    policies.apply(make_policy("fast", nodes=SSD))
    assert policies.placements(["p", "q"]) == ["b", "b"]
    policies.await_status(make_policy("fast"), "pods.bound", 2)

    policies.apply(make_policy("none", nodes={"selector": {"matchLabels": {"disk": "none"}}}))
    policies.cluster.create(pod("r"))
    policies.refusal("r")
    policies.delete(make_policy("none"))
    assert policies.placed("r") == "b"
    policies.delete(make_policy("fast"))
    policies.cluster.wait_for(lambda: policies.operator.metric("moorage_policies", state="in_force") == 0, 30)
    policies.cluster.apply([node("c", cpu="64", memory="256Gi")])
    policies.cluster.create(pod("s", cpu="8"))
    assert policies.placed("s") == "c"


# -- telling ---------------------------------------------------------------------------------------


def _window(action: str, begins: timedelta, ends: timedelta) -> Obj:
    now = datetime.now(UTC)
    start, end = ((now + delta).strftime("%H:%M") for delta in (begins, ends))
    return {"start": start, "end": end, "action": action}


def test_a_held_pod_says_by_which_policy_and_until_when(policies: PolicyCluster) -> None:
    hold = _window("Hold", timedelta(hours=-1), timedelta(hours=2))
    policies.cluster.apply([node("a")])
    policies.apply(make_policy("night", windows=[hold]))
    policies.cluster.create(pod("p"))
    text = policies.refusal("p", reason="PolicyHold")
    assert '"night"' in text
    assert hold["end"] in text
    condition = policies.cluster.condition("p")
    assert condition is not None
    assert condition["status"] == "False"
    assert condition["reason"] != "Unschedulable", "no autoscaler is to add a node for it"
    policies.await_status(make_policy("night"), "pods.pending", 1)
    policies.apply(make_policy("night", windows=[_window("Hold", timedelta(hours=3), timedelta(hours=4))]))
    assert policies.placed("p") == "a"


def test_a_pod_that_waits_too_long_says_so(policies: PolicyCluster) -> None:
    policies.cluster.apply([node("a")])
    policies.apply(make_policy("soon", pendingDeadline="1s"))
    policies.cluster.create(pod("big", cpu="64"))
    kind = "moorage.dev/PendingDeadlineExceeded"
    condition: Any = policies.cluster.wait_for(lambda: policies.cluster.condition("big", kind=kind), 30)
    assert condition["status"] == "True"
    assert "soon" in condition["message"]
    policies.cluster.wait_for(lambda: policies.cluster.events("big", reason="PendingDeadlineExceeded"), 30)
    assert policies.refusal("big"), "the other condition is still there"


def test_a_binding_names_the_policies_that_shaped_it(policies: PolicyCluster) -> None:
    policies.cluster.apply([node("a", disk="ssd")])
    policies.apply(make_policy("ssd", nodes=SSD))
    policies.apply(
        make_policy("own", "default", limits=[{"topologyKey": "kubernetes.io/hostname", "maxPods": 5}])
    )
    policies.apply(make_policy("other", "kube-system", pendingDeadline="1h"))
    policies.apply(make_policy("watching", mode="Audit", nodes=SSD))
    policies.cluster.create(pod("p"))
    policies.placed("p")
    annotations = policies.cluster.get("Pod", "p")["metadata"]["annotations"]
    assert annotations == {"moorage.dev/policies": "ssd,default/own"}


def test_kubectl_shows_what_matters(policies: PolicyCluster) -> None:
    policies.cluster.apply([node("a")])
    policies.apply(make_policy("p", "default", mode="Audit", nodes=SSD))
    policies.cluster.create(pod("x"))
    policies.placed("x")
    policies.await_status(make_policy("p", "default"), "pods.bound", 1)
    path = policies.cluster.path("SchedulingPolicy", None, "default", API_VERSION)
    table = policies.cluster.request("GET", path, accept="application/json;as=Table;v=v1;g=meta.k8s.io")
    (row,) = table["rows"]
    cells = dict(zip((c["name"] for c in table["columnDefinitions"]), row["cells"], strict=True))
    assert list(cells) == ["Name", "Mode", "Matched", "Pending", "Bound", "Accepted", "Age"]
    assert {**cells, "Age": ""} == {
        "Name": "p",
        "Mode": "Audit",
        "Matched": 1,
        "Pending": 0,
        "Bound": 1,
        "Accepted": "True",
        "Age": "",
    }


def test_an_audit_changes_nothing_and_tells_what_it_would(policies: PolicyCluster) -> None:
    policies.cluster.apply([node("a"), node("b", cpu="2", disk="ssd")])
    policies.cluster.apply([pod("there", cpu="1", nodeName="b")])
    policy = make_policy("try", mode="Audit", nodes=SSD)
    policies.apply(policy)
    policies.cluster.create(pod("p"))
    assert policies.placed("p") == "a"
    policies.await_status(policy, "audit.different", 1)
    (sample,) = policies.read(policy)["status"]["audit"]["samples"]
    assert (sample["pod"], sample["chosen"], sample["wouldChoose"]) == ("default/p", "a", "b")
    assert "try" in sample["why"]
    labels = {"policy": "try", "differs": "true"}
    assert policies.operator.metric("moorage_policy_audit_decisions_total", **labels) == 1
    assert policies.condition(policy, "Effective")["reason"] == "Audit"


def test_a_field_that_another_policy_sets_first_is_reported(policies: PolicyCluster) -> None:
    policies.cluster.apply([node("a")])
    first = make_policy("first", precedence=10, scoring={"strategy": {"type": "MostAllocated"}})
    second = make_policy("second", scoring={"strategy": {"type": "LeastAllocated"}})
    policies.apply(first)
    policies.apply(second)
    policies.cluster.create(pod("p"))
    policies.placed("p")
    policies.cluster.wait_for(lambda: policies.condition(second, "Conflicted").get("status") == "True", 30)
    told = policies.condition(second, "Conflicted")["message"]
    assert "scoring.strategy" in told
    assert "first" in told
    assert policies.condition(first, "Conflicted")["status"] == "False"


# -- whom it concerns ------------------------------------------------------------------------------


def test_a_tenant_affects_its_own_namespace_and_nothing_else(policies: PolicyCluster) -> None:
    cluster = policies.cluster
    cluster.apply([node("a")])
    cluster.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}])
    rule = {
        "apiGroups": ["moorage.dev"],
        "resources": ["schedulingpolicies"],
        "verbs": ["create", "patch", "get"],
    }
    kubeconfig = policies.control_plane.user("tenant", namespaced={"team": [rule]})
    tenant = type(cluster).from_kubeconfig(kubeconfig)
    nowhere = {"selector": {"matchLabels": {"there-is": "none"}}}
    for elsewhere in (make_policy("p", nodes=nowhere), make_policy("p", "default", nodes=nowhere)):
        with pytest.raises(ApiError) as refused:
            tenant.create(elsewhere)
        assert refused.value.status == 403
    tenant.create(make_policy("p", "team", nodes=nowhere))
    tenant.close()
    policies.await_status(make_policy("p", "team"), "observedGeneration", 1)
    cluster.apply([pod("ours", namespace="team"), pod("theirs")])
    assert policies.placed("theirs") == "a"
    assert "team/p" in policies.refusal("ours", "team")
    policies.await_status(make_policy("p", "team"), "pods.matched", 1)


def test_a_new_expression_finds_the_pods_that_are_there(policies: PolicyCluster) -> None:
    cluster = policies.cluster
    cluster.apply([node("a"), node("b", cpu="2")])
    marked: Any = {"terminationGracePeriodSeconds": 7}
    cluster.apply([pod(f"old{i}", nodeName="a", **marked) for i in range(2)])
    cluster.apply([pod("plain", nodeName="a"), pod("waits", cpu="64", **marked), pod("waits-too", cpu="64")])
    policies.refusal("waits")
    policies.refusal("waits-too")
    policy = make_policy(
        "marked",
        selector={"expression": "pod.spec.terminationGracePeriodSeconds == 7"},
        limits=[{"topologyKey": "kubernetes.io/hostname", "maxPods": 2}],
    )
    policies.apply(policy)
    policies.await_status(policy, "pods", {"matched": 3, "pending": 1, "bound": 2})
    cluster.apply([pod("new", **marked), pod("free")])
    assert policies.placed("new") == "b", "there are two on the other one"
    assert policies.placed("free")


# -- cost ------------------------------------------------------------------------------------------


def test_status_costs_little_however_many_policies_and_pods(policies: PolicyCluster) -> None:
    cluster, operator = policies.cluster, policies.operator

    def writes() -> float:
        return operator.metric("moorage_policy_status_writes_total", outcome="written")

    before, began = writes(), datetime.now(UTC)
    cluster.apply([node(f"n{i}", cpu="8") for i in range(20)])
    cluster.apply([make_policy(f"p{i:02}", pendingDeadline="1h") for i in range(100)])
    names = [f"w{i}" for i in range(400)]
    cluster.apply([pod(name) for name in names])
    cluster.wait_for(lambda: all(cluster.placements("default").values()), 60, "all pods are bound")
    for i in range(100):
        policies.await_status(make_policy(f"p{i:02}"), "pods.bound", 400)
    taken = (datetime.now(UTC) - began).total_seconds()
    assert writes() - before <= 100 + 10 * (taken + 2), "accepted at once, figures ten a second"

    def quiet() -> bool:
        after = writes()
        time.sleep(3)
        return writes() == after

    cluster.wait_for(quiet, 30, "no more writes while nothing changes")


def test_what_metrics_tell(policies: PolicyCluster) -> None:
    """The endpoint itself, as Prometheus reads it."""
    policies.apply(make_policy("p"))
    with urllib.request.urlopen(f"http://127.0.0.1:{policies.operator.port}/metrics", timeout=5) as response:
        text = response.read().decode()
    assert 'moorage_policies{state="in_force"} 1.0' in text
    assert 'moorage_policies{state="refused"} 0.0' in text
    assert 'moorage_policy_status_writes_total{outcome="written"}' in text
