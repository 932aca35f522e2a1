"""Preemption on a real API server: victims go as they do by kube-scheduler's hand, and the preemptor takes over."""

from typing import Any

from tests.controlplane.client import Client
from tests.controlplane.controlplane import ControlPlane
from tests.kit.manifests import node, pod
from tests.kit.operator import Operator

Obj = dict[str, Any]


def _class(name: str, value: int, policy: str = "PreemptLowerPriority") -> Obj:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        "preemptionPolicy": policy,
    }


def _filled(cluster: Client) -> None:
    """Two full nodes: the pods on ``guarded`` are under a budget that allows no disruption."""
    cluster.apply([_class("low", 10), _class("high", 1000), _class("patient", 1000, "Never")])
    cluster.apply([node("free", cpu="2"), node("guarded", cpu="2")])
    for name in ("free", "guarded"):
        for number in range(2):
            victim = pod(f"{name}-{number}", cpu="1", priorityClassName="low", nodeName=name)
            victim["metadata"]["labels"] = {"on": name}
            cluster.apply([victim])
    cluster.apply(
        [
            {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {"name": "guard", "namespace": "default"},
                "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"on": "guarded"}}},
            }
        ]
    )


def test_the_least_harm_is_done_and_told(control_plane: ControlPlane, cluster: Client) -> None:
    _filled(cluster)
    with Operator(control_plane) as operator:
        preemptor = cluster.create(pod("urgent", cpu="1500m", priorityClassName="high"))
        cluster.wait_for(lambda: cluster.node_of("urgent") == "free", 10)
        assert set(cluster.placements("default")) == {
            "default/urgent",
            "default/guarded-0",
            "default/guarded-1",
        }
        told = {event["regarding"]["name"]: event for event in _preempted(cluster, 2)}
        assert set(told) == {"free-0", "free-1"}
        text = f"Preempted by pod {preemptor['metadata']['uid']} on node free"
        assert {event["note"] for event in told.values()} == {text}
        # When the first victim is gone another try may come, and fail with a text of its own until the second is.
        texts = [event["message"] for event in cluster.events("urgent", reason="FailedScheduling")]
        expected = "0/2 nodes are available: 2 Insufficient cpu. preemption: found a potential"
        assert any(text.startswith(expected) for text in texts), texts
        assert "ERROR" not in operator.log


def _preempted(cluster: Client, number: int) -> list[Obj]:
    def found() -> list[Obj]:
        events = cluster.list("Event", api_version="events.k8s.io/v1")
        return [event for event in events if event["reason"] == "Preempted"]

    cluster.wait_for(lambda: len(found()) == number, 10)
    return found()


def test_a_victim_with_time_to_go_is_marked_and_waited_for(
    control_plane: ControlPlane, cluster: Client
) -> None:
    """The promise is written, and kept against others, while the victim is dying."""
    cluster.apply([_class("low", 10), _class("high", 1000), node("only", cpu="2")])
    cluster.apply(
        [pod("dying", cpu="2", priorityClassName="low", nodeName="only", terminationGracePeriodSeconds=30)]
    )
    with Operator(control_plane):
        cluster.create(pod("urgent", cpu="2", priorityClassName="high"))
        cluster.wait_for(lambda: _get(cluster, "urgent")["status"].get("nominatedNodeName") == "only", 10)
        victim = cluster.wait_for(lambda: _dying(cluster, "dying"), 10)
        assert victim is not None
        (condition,) = [c for c in victim["status"]["conditions"] if c["type"] == "DisruptionTarget"]
        assert (condition["status"], condition["reason"]) == ("True", "PreemptionByScheduler")
        assert condition["message"] == "moorage: preempting to accommodate a higher priority pod"
        cluster.create(pod("greedy", cpu="2", priorityClassName="low"))
        cluster.wait_for(lambda: cluster.condition("greedy"), 5)
        cluster.delete("Pod", "dying", grace=0)
        cluster.wait_for(lambda: cluster.node_of("urgent") == "only", 10)
        assert not cluster.node_of("greedy")


def _get(cluster: Client, name: str) -> Obj:
    found: Obj = cluster.get("Pod", name)
    return found


def _dying(cluster: Client, name: str) -> Obj | None:
    found = _get(cluster, name)
    return found if found["metadata"].get("deletionTimestamp") else None


def test_a_pod_of_policy_never_evicts_nobody(control_plane: ControlPlane, cluster: Client) -> None:
    _filled(cluster)
    with Operator(control_plane):
        cluster.create(pod("calm", cpu="1500m", priorityClassName="patient"))
        condition = cluster.wait_for(lambda: cluster.condition("calm"), 10)
        assert condition is not None
        assert condition["message"] == (
            "0/2 nodes are available: 2 Insufficient cpu. preemption: not eligible due to preemptionPolicy=Never."
        )
        assert len(cluster.list("Pod")) == 5
