"""The API server goes away in the middle: stopped, restarted, frozen."""

import time

import pytest

from tests.controlplane.client import Client
from tests.controlplane.controlplane import ControlPlane
from tests.integration.test_operator import all_bound, assert_within_allocatable
from tests.kit.manifests import node, pod
from tests.kit.operator import Operator


@pytest.mark.timeout(180)
def test_stopped_for_ten_seconds_in_the_middle_of_two_thousand_pods(
    control_plane: ControlPlane, cluster: Client
) -> None:
    cluster.apply([node(f"n{i}", cpu="1", pods="5") for i in range(500)])
    cluster.apply([pod(f"p{i}", cpu="230m") for i in range(2000)], threads=8)
    with Operator(
        control_plane, hurried=False, MOORAGE_LEASE_DURATION="30", MOORAGE_RENEW_DEADLINE="25"
    ) as operator:
        cluster.wait_for(lambda: operator.metric("moorage_binds_total", outcome="bound") > 300, 30)
        control_plane.stop_apiserver()
        time.sleep(10)
        assert operator.process.returncode is None, operator.log
        control_plane.start_apiserver()
        all_bound(cluster, 2000, 90)
        assert_within_allocatable(cluster)
        assert operator.process.returncode is None, operator.log
    assert "Traceback" not in operator.log


def test_an_outage_longer_than_the_lease_ends_the_process_and_the_next_one_goes_on(
    control_plane: ControlPlane, cluster: Client
) -> None:
    """It cannot know whether it still leads, so it ends with an error, as kube-scheduler does."""
    cluster.apply([node("n1")])
    with Operator(control_plane) as operator:
        cluster.create(pod("p1"))
        cluster.wait_for(lambda: cluster.node_of("p1"), 5)
        control_plane.stop_apiserver()
        assert operator.process.wait(60) == 1
        assert "lease is lost" in operator.log
    control_plane.start_apiserver()
    with Operator(control_plane):
        cluster.create(pod("p2"))
        cluster.wait_for(lambda: cluster.node_of("p2"), 15)


def test_frozen_for_a_while(control_plane: ControlPlane, cluster: Client) -> None:
    """Connections stay open and nothing comes: nothing may hang longer than the freeze."""
    cluster.apply([node(f"n{i}") for i in range(20)])
    with Operator(control_plane, hurried=False) as operator:
        cluster.apply([pod(f"p{i}") for i in range(200)])
        control_plane.pause_apiserver()
        time.sleep(5)
        assert operator.metric("moorage_loop_turn_seconds_count") > 0, "probes are answered"
        control_plane.resume_apiserver()
        all_bound(cluster, 200, 30)
        assert_within_allocatable(cluster)
    assert operator.process.returncode == 0


def test_started_before_the_api_server(control_plane: ControlPlane, cluster: Client) -> None:
    cluster.apply([node("n1")])
    cluster.create(pod("p"))
    control_plane.stop_apiserver()
    with Operator(control_plane, wait=False) as operator:
        operator.process.wait_for_output("cannot be asked", 15)
        control_plane.start_apiserver()
        cluster.wait_for(lambda: cluster.node_of("p"), 20)
