"""Two replicas: one leads, and a leader that was out of its senses binds nothing."""

import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.controlplane.client import Client
from tests.controlplane.controlplane import ControlPlane
from tests.kit.manifests import node, pod
from tests.kit.operator import Operator
from tests.kit.proxy import Hold, Proxy


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def leading(operator: Operator) -> bool:
    return operator.metric("moorage_leading") == 1


def test_a_standby_takes_over_from_a_leader_that_is_killed(
    control_plane: ControlPlane, cluster: Client, stack: ExitStack
) -> None:
    cluster.apply([node("n1")])
    first = stack.enter_context(Operator(control_plane))
    cluster.wait_for(lambda: leading(first), 5)
    second = stack.enter_context(Operator(control_plane))
    cluster.create(pod("p1"))
    cluster.wait_for(lambda: cluster.node_of("p1"), 5)
    assert not leading(second)
    assert second.metric("moorage_binds_total", outcome="bound") == 0
    first.process.kill()
    cluster.create(pod("p2"))
    cluster.wait_for(lambda: cluster.node_of("p2"), 15)
    assert leading(second)


def test_a_standby_takes_over_at_once_when_the_leader_stops(
    control_plane: ControlPlane, cluster: Client, stack: ExitStack
) -> None:
    cluster.apply([node("n1")])
    first = stack.enter_context(Operator(control_plane))
    cluster.wait_for(lambda: leading(first), 5)
    second = stack.enter_context(Operator(control_plane))
    assert first.process.stop() == 0
    cluster.create(pod("p"))
    created = time.monotonic()
    cluster.wait_for(lambda: cluster.node_of("p"), 15)
    assert time.monotonic() - created < 5
    assert leading(second)


def test_a_leader_that_was_stopped_before_its_bind_does_not_send_it(
    control_plane: ControlPlane, cluster: Client, stack: ExitStack
) -> None:
    """Two pods that exclude each other by their host port, two leaders one after the other (b34)."""
    cluster.apply([node("tide-a", cpu="1"), node("tide-b", cpu="1")])
    proxy = stack.enter_context(Proxy(control_plane))
    kubeconfig = proxy.kubeconfig(control_plane.kubeconfig)
    first = stack.enter_context(Operator(control_plane, "--max-binds", "1", kubeconfig=kubeconfig))
    cluster.wait_for(lambda: leading(first), 5)
    second = stack.enter_context(Operator(control_plane))
    # With one slot, `one` waits behind `blocker`: it is decided, and nothing of it is sent.
    held = proxy.on("POST", "/pods/blocker/binding", Hold())
    cluster.create(pod("blocker", cpu="10m"))
    held.wait()
    cluster.create(pod("one", cpu="900m"))
    cluster.wait_for(lambda: first.metric("scheduler_cache_size", type="assumed_pods") == 2, 5)
    first.process.pause()
    cluster.create(pod("two", cpu="900m"))
    cluster.wait_for(lambda: cluster.node_of("one") and cluster.node_of("two"), 20)
    first.process.resume()
    held.release()
    assert first.process.wait(60) == 1, "it has lost the lease, and ends"
    assert proxy.count("POST", "/pods/(one|two)/binding") == 0
    assert cluster.node_of("one") != cluster.node_of("two")
    assert leading(second)


def test_without_a_lease(control_plane: ControlPlane, cluster: Client, stack: ExitStack) -> None:
    cluster.apply([node("n1")])
    stack.enter_context(Operator(control_plane, "--no-leader-elect"))
    cluster.create(pod("p"))
    cluster.wait_for(lambda: cluster.node_of("p"), 5)
    assert cluster.find("Lease", "moorage", "kube-system") is None
