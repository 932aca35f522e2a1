"""Binds that meet the world: pods and nodes that vanish, rivals, lost and lying answers.

A proxy holds, loses or delays single requests of a scheduler that runs as a process.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.controlplane.client import Client
from tests.controlplane.controlplane import ControlPlane
from tests.kit.manifests import node, pod
from tests.kit.operator import Operator
from tests.kit.proxy import BOUND, PENDING, Answer, Delay, Hold, Lose, Proxy


@pytest.fixture
def proxy(control_plane: ControlPlane) -> Iterator[Proxy]:
    with Proxy(control_plane) as proxy:
        yield proxy


@pytest.fixture
def operator(control_plane: ControlPlane, proxy: Proxy) -> Iterator[Operator]:
    """A scheduler behind the proxy, in a cluster with one node of 1 cpu."""
    control_plane.admin.apply([node("n1", cpu="1")])
    with Operator(control_plane, kubeconfig=proxy.kubeconfig(control_plane.kubeconfig)) as operator:
        yield operator
        assert "Traceback" not in operator.log


def whole(name: str) -> dict[str, Any]:
    """A pod that takes all of a node."""
    return pod(name, cpu="1")


def test_a_pod_deleted_while_it_is_being_bound(cluster: Client, proxy: Proxy, operator: Operator) -> None:
    held = proxy.on("POST", "/pods/p/binding", Hold())
    cluster.create(whole("p"))
    held.wait()
    cluster.delete("Pod", "p")
    held.release()
    cluster.create(whole("next"))
    cluster.wait_for(lambda: cluster.node_of("next") == "n1", 5, "the room is free again")
    assert operator.metric("moorage_binds_total", outcome="gone") == 1
    assert cluster.find("Pod", "p") is None


def test_a_pod_made_anew_while_it_is_being_bound(cluster: Client, proxy: Proxy, operator: Operator) -> None:
    """The name is used again: the Binding of the old one must not bind the new one."""
    held = proxy.on("POST", "/pods/p/binding", Hold())
    cluster.create(whole("p"))
    held.wait()
    cluster.delete("Pod", "p")
    created = cluster.create(whole("p") | {"spec": {**whole("p")["spec"], "schedulerName": "other"}})
    held.release()
    cluster.wait_for(lambda: operator.metric("moorage_binds_total", outcome="gone") == 1, 5)
    cluster.create(whole("next"))
    cluster.wait_for(lambda: cluster.node_of("next") == "n1", 5)
    assert cluster.node_of("p") is None
    assert cluster.get("Pod", "p")["metadata"]["uid"] == created["metadata"]["uid"]


def test_a_node_deleted_after_it_was_chosen(
    control_plane: ControlPlane, cluster: Client, proxy: Proxy
) -> None:
    """With one slot, the second pod waits while its node goes: the last look notices, and it goes elsewhere."""
    cluster.apply([node("n1", cpu="1"), node("n2", cpu="1")])
    kubeconfig = proxy.kubeconfig(control_plane.kubeconfig)
    with Operator(control_plane, "--max-binds", "1", kubeconfig=kubeconfig) as operator:
        held = proxy.on("POST", "/pods/first/binding", Hold())
        cluster.create(pod("first", cpu="100m", nodeSelector={"kubernetes.io/hostname": "n2"}))
        held.wait()
        cluster.create(pod("second", cpu="1"))  # only n1 has room for it
        cluster.wait_for(lambda: operator.metric("scheduler_cache_size", type="assumed_pods") == 2, 5)
        cluster.delete("Node", "n1")
        cluster.wait_for(lambda: operator.metric("scheduler_cache_size", type="nodes") == 1, 5)
        held.release()
        cluster.wait_for(lambda: cluster.node_of("first") == "n2", 5)
        cluster.wait_for(lambda: cluster.condition("second"), 10)
        assert cluster.node_of("second") is None, "not bound to a node that is gone"
        assert operator.metric("moorage_binds_total", outcome="stale") == 1
        assert proxy.count("POST", "/pods/second/binding") == 0
        cluster.apply([node("n3", cpu="1")])
        cluster.wait_for(lambda: cluster.node_of("second") == "n3", 5)


def test_a_pod_that_someone_else_binds_meanwhile(cluster: Client, proxy: Proxy, operator: Operator) -> None:
    cluster.apply([node("n2", cpu="1")])
    cluster.wait_for(lambda: operator.metric("scheduler_cache_size", type="nodes") == 2, 5)
    held = proxy.on("POST", "/pods/p/binding", Hold())
    cluster.create(pod("p", cpu="1", nodeSelector={"kubernetes.io/hostname": "n1"}))
    held.wait()
    cluster.bind("p", "n2")
    held.release()
    cluster.wait_for(lambda: operator.metric("moorage_binds_total", outcome="bound-elsewhere") == 1, 5)
    cluster.create(whole("next"))
    cluster.wait_for(lambda: cluster.node_of("next") == "n1", 5, "n2 is taken, and n1 is free")
    assert cluster.events("p") == []


def test_news_of_a_pod_that_was_bound_by_someone_else_long_ago(
    cluster: Client, proxy: Proxy, operator: Operator
) -> None:
    """The stream of pending pods lags behind the one of bound pods: what it says is out of date."""
    cluster.wait_for(lambda: proxy.silence(PENDING), 5)
    held = proxy.on("GET", PENDING, Hold(), times=None)
    cluster.create(whole("p"))
    cluster.bind("p", "n1")
    cluster.wait_for(lambda: operator.metric("scheduler_cache_size", type="pods") == 1, 5)
    held.release()
    assert proxy.cut(PENDING) >= 1
    cluster.create(pod("small", cpu="0"))
    cluster.wait_for(lambda: cluster.node_of("small") == "n1", 10, "the stream of pending pods works again")
    assert proxy.count("POST", "/pods/p/binding") == 0


@pytest.mark.parametrize("after", [True, False], ids=["it-took-effect", "it-did-not"])
def test_an_answer_that_never_comes(cluster: Client, proxy: Proxy, operator: Operator, after: bool) -> None:
    proxy.on("POST", "/pods/p/binding", Lose(after=after))
    cluster.create(whole("p"))
    cluster.wait_for(lambda: cluster.node_of("p") == "n1", 5)
    cluster.apply([node("n2", cpu="1")])
    cluster.apply([whole("second"), whole("third")])
    cluster.wait_for(lambda: cluster.node_of("second") or cluster.node_of("third"), 10)
    cluster.wait_for(lambda: cluster.condition("second") and cluster.condition("third"), 10)
    bound = [name for name in ("second", "third") if cluster.node_of(name)]
    assert len(bound) == 1, "the room was counted once"
    cluster.wait_for(lambda: operator.metric("moorage_binds_total", outcome="bound") == 2, 5)
    cluster.wait_for(lambda: cluster.events("p", reason="Scheduled"), 5)
    assert [event["reason"] for event in cluster.events("p")] == ["Scheduled"]


@pytest.mark.parametrize("status", [409, 500, 503, 429, 403])
def test_a_refusal_frees_the_room_and_is_tried_again(
    cluster: Client, proxy: Proxy, operator: Operator, status: int
) -> None:
    proxy.on("POST", "/pods/p/binding", Answer(status, headers={"Retry-After": "1"} if status == 429 else {}))
    cluster.create(whole("p"))
    cluster.wait_for(lambda: cluster.node_of("p") == "n1", 10)
    cluster.wait_for(lambda: proxy.count("POST", "/pods/p/binding", 201) == 1, 5)
    cluster.wait_for(lambda: operator.metric("moorage_binds_total", outcome="bound") == 1, 5)


def test_a_slow_answer_keeps_its_room(cluster: Client, proxy: Proxy, operator: Operator) -> None:
    """The bind took effect at once, but neither its answer nor the watch tells: a rival must not get the room."""
    assert proxy.silence(BOUND) == 1
    proxy.on("POST", "/pods/slow/binding", Delay(6))
    cluster.create(whole("slow"))
    cluster.wait_for(lambda: proxy.count("POST", "/pods/slow/binding") == 0 and cluster.node_of("slow"), 5)
    cluster.create(whole("rival"))
    cluster.wait_for(lambda: cluster.condition("rival"), 5)
    cluster.wait_for(lambda: operator.metric("moorage_binds_total", outcome="bound") == 1, 15)
    assert cluster.node_of("rival") is None
    assert proxy.count("POST", "/pods/rival/binding") == 0


def test_a_late_condition_does_not_touch_a_bound_pod(
    cluster: Client, proxy: Proxy, operator: Operator
) -> None:
    """A patch on its way when someone else binds the pod: it must not turn PodScheduled to False again."""
    cluster.create(whole("first"))
    cluster.wait_for(lambda: cluster.node_of("first"), 5)
    held = proxy.on("PATCH", "/pods/p/status", Hold())
    cluster.create(whole("p"))
    held.wait()
    cluster.apply([node("n2", cpu="1")])
    cluster.bind("p", "n2")
    held.release()
    cluster.wait_for(lambda: proxy.count("PATCH", "/pods/p/status") == 1, 5)
    condition = cluster.condition("p")
    assert condition is not None
    assert condition["status"] == "True"
    assert proxy.count("PATCH", "/pods/p/status", 409) == 1


def test_our_own_bind_waits_for_the_condition_on_its_way(
    cluster: Client, proxy: Proxy, operator: Operator
) -> None:
    cluster.create(whole("first"))
    cluster.wait_for(lambda: cluster.node_of("first"), 5)
    held = proxy.on("PATCH", "/pods/p/status", Hold())
    cluster.create(whole("p"))
    held.wait()
    cluster.apply([node("n2", cpu="1")])
    cluster.wait_for(lambda: operator.metric("scheduler_cache_size", type="assumed_pods") == 1, 5)
    assert proxy.count("POST", "/pods/p/binding") == 0
    assert cluster.node_of("p") is None
    held.release()
    cluster.wait_for(lambda: cluster.node_of("p") == "n2", 5)
    condition = cluster.condition("p")
    assert condition is not None
    assert condition["status"] == "True"
