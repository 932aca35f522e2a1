"""Streams that die or lie: 410 while objects vanish, silence without an end, resets."""

from collections.abc import Iterator
from functools import partial

import pytest

from tests.controlplane.client import Client
from tests.controlplane.controlplane import ControlPlane
from tests.kit.manifests import node, pod
from tests.kit.operator import Operator
from tests.kit.proxy import BOUND, NODES, PENDING, Answer, Fault, Gone, Hold, Proxy

#: The two ways to say that a resource version is too old.
TOO_OLD = [Gone(), Answer(410, reason="Expired")]


@pytest.fixture
def proxy(control_plane: ControlPlane) -> Iterator[Proxy]:
    with Proxy(control_plane) as proxy:
        yield proxy


@pytest.fixture
def operator(control_plane: ControlPlane, proxy: Proxy) -> Iterator[Operator]:
    """A scheduler behind the proxy that takes a stream for dead after 3 s; one node of 1 cpu."""
    control_plane.admin.apply([node("n1", cpu="1")])
    kubeconfig = proxy.kubeconfig(control_plane.kubeconfig)
    with Operator(
        control_plane, kubeconfig=kubeconfig, MOORAGE_WATCH_SILENCE="3", MOORAGE_PENDING_INTERVAL="2"
    ) as operator:
        yield operator
        assert "Traceback" not in operator.log


@pytest.mark.parametrize("answer", TOO_OLD, ids=["event", "status"])
def test_a_bound_pod_that_vanishes_while_the_watch_is_down(
    cluster: Client, proxy: Proxy, operator: Operator, answer: Fault
) -> None:
    """Its delete is never seen; the list after the 410 must free its room and wake who waits for it (b32)."""
    cluster.create(pod("tenant", cpu="1"))
    cluster.wait_for(lambda: cluster.node_of("tenant"), 5)
    cluster.wait_for(lambda: operator.metric("scheduler_cache_size", type="assumed_pods") == 0, 5)
    cluster.create(pod("waiting", cpu="1"))
    cluster.wait_for(lambda: cluster.condition("waiting"), 5)
    held = proxy.on("GET", BOUND, Hold(), times=None)
    assert proxy.cut(BOUND) >= 1
    held.wait()
    cluster.delete("Pod", "tenant")
    proxy.forget(held)
    proxy.on("GET", BOUND, answer)
    held.release(drop=True)
    cluster.wait_for(lambda: cluster.node_of("waiting") == "n1", 15)


@pytest.mark.parametrize("answer", TOO_OLD, ids=["event", "status"])
def test_a_pending_pod_that_vanishes_while_the_watch_is_down(
    cluster: Client, proxy: Proxy, operator: Operator, answer: Fault
) -> None:
    """Kopf lists again after a 410 without telling what has vanished; the list of names does, soon."""
    cluster.create(pod("hopeless", cpu="64"))
    cluster.wait_for(lambda: operator.metric("scheduler_pending_pods", queue="unschedulable") == 1, 5)
    held = proxy.on("GET", PENDING, Hold(), times=None)
    assert proxy.cut(PENDING) >= 1
    held.wait()
    cluster.delete("Pod", "hopeless")
    proxy.forget(held)
    proxy.on("GET", PENDING, answer)
    held.release(drop=True)
    cluster.create(pod("next"))
    cluster.wait_for(lambda: cluster.node_of("next") == "n1", 10, "the stream of pending pods works again")
    cluster.wait_for(lambda: operator.metric("scheduler_pending_pods", queue="unschedulable") == 0, 10)


def test_a_stream_of_nodes_that_has_gone_silent(cluster: Client, proxy: Proxy, operator: Operator) -> None:
    assert proxy.silence(NODES) == 1
    cluster.apply([node("n2", cpu="2")])
    cluster.create(pod("p", cpu="2"))
    cluster.wait_for(lambda: cluster.node_of("p") == "n2", 15)


def test_a_stream_of_bound_pods_that_has_gone_silent(
    cluster: Client, proxy: Proxy, operator: Operator
) -> None:
    cluster.apply([pod("tenant", cpu="1", nodeName="n1", scheduler="x")])
    cluster.wait_for(lambda: operator.metric("scheduler_cache_size", type="pods") == 1, 5)
    assert proxy.silence(BOUND) == 1
    cluster.delete("Pod", "tenant")
    cluster.create(pod("p", cpu="1"))
    cluster.wait_for(lambda: cluster.condition("p"), 5, "it does not know yet")
    cluster.wait_for(lambda: cluster.node_of("p") == "n1", 15)


def test_a_stream_of_pending_pods_that_has_gone_silent(
    cluster: Client, proxy: Proxy, operator: Operator
) -> None:
    cluster.wait_for(lambda: proxy.silence(PENDING) == 1, 5)
    cluster.create(pod("p", cpu="1"))
    cluster.wait_for(lambda: cluster.node_of("p") == "n1", 15)


def test_streams_that_are_reset_again_and_again(cluster: Client, proxy: Proxy, operator: Operator) -> None:
    for i in range(5):
        proxy.cut("watch=true")
        cluster.create(pod(f"p{i}"))
        cluster.wait_for(partial(cluster.node_of, f"p{i}"), 10)
    assert operator.metric("moorage_watch_lists", resource="nodes") == 1, "went on where it was"
