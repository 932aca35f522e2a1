"""Two replicas in the middle of a backlog: the leader is killed, stopped for a while, or told to go."""

import json
import signal
import time
import urllib.request

import pytest

from tests.controlplane.client import Client
from tests.controlplane.controlplane import ControlPlane
from tests.kit.manifests import node, pod
from tests.kit.proxy import Hold
from tests.kit.replicas import PATIENCE, Pair

pytestmark = pytest.mark.timeout(300)

PODS = 500


def prepare(cluster: Client, nodes: int = 50) -> None:
    cluster.apply([node(f"n{i}", cpu="32") for i in range(nodes)])


def backlog(cluster: Client, number: int = PODS) -> None:
    cluster.apply([pod(f"p{i}") for i in range(number)])


def all_bound(cluster: Client, number: int = PODS) -> None:
    def left() -> bool:
        placements = cluster.placements("default")
        return len(placements) == number and all(placements.values())

    cluster.wait_for(left, 2 * PATIENCE, f"{number} pods are bound")


def test_the_leader_is_killed_in_the_middle_of_a_backlog(
    control_plane: ControlPlane, cluster: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    prepare(cluster)
    with Pair(control_plane, "--max-binds", "4") as pair:
        pair.first.slow_down()
        backlog(cluster)
        cluster.wait_for(lambda: len(pair.first.bound()) > 20, PATIENCE, "the first replica is at work")
        pair.first.process.kill()
        killed = time.monotonic()
        by_the_first = len(pair.first.bound())
        assert by_the_first < PODS, "the backlog was too small to be in the middle of it"
        assert pair.second.bindings() == []
        all_bound(cluster)
        first_bind = min(binding.arrived for binding in pair.second.bindings())
        with capsys.disabled():
            print(
                f"\n{by_the_first} bound by the first; the standby's first Binding {first_bind - killed:.1f} s after"
            )
        counts = pair.bound()
        assert len(counts) == PODS
        assert set(counts.values()) == {1}
        assert pair.second.operator.metric("moorage_lease_terms_total") == 1


def test_a_standby_is_warm_and_says_who_leads(control_plane: ControlPlane, cluster: Client) -> None:
    prepare(cluster, 7)
    with Pair(control_plane) as pair:
        backlog(cluster, 20)
        all_bound(cluster, 20)
        standby = pair.second.operator
        cluster.wait_for(lambda: standby.metric("scheduler_cache_size", type="pods") == 20, PATIENCE)
        assert standby.metric("scheduler_cache_size", type="nodes") == 7
        assert standby.metric("moorage_leading") == 0
        assert standby.metric("leader_election_master_status", name="moorage") == 0
        holder = cluster.get("Lease", "moorage", "kube-system")["spec"]["holderIdentity"]
        assert standby.metric("moorage_lease_holder_info", holder=holder) == 1
        assert pair.first.operator.metric("moorage_lease_holder_info", holder=holder) == 1
        assert pair.first.operator.metric("leader_election_master_status", name="moorage") == 1
        assert pair.first.operator.metric("moorage_lease_valid_seconds") > 0
        assert holder in standby.log
        assert pair.second.bindings() == []


def test_a_leader_that_was_stopped_past_its_lease_sends_no_binding_when_it_wakes(
    control_plane: ControlPlane, cluster: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    """And what it had sent before, and took effect, it counts as late."""
    prepare(cluster)
    with Pair(control_plane, "--max-binds", "8") as pair:
        # Two Bindings of the first replica take effect, and their answers are kept from it.
        answers = [pair.first.proxy.on("POST", f"/pods/late-{i}/binding", Hold(after=True)) for i in range(2)]
        cluster.apply([pod(f"late-{i}") for i in range(2)])
        for answer in answers:
            answer.wait(PATIENCE)
        cluster.wait_for(lambda: all(cluster.placements("default").values()), PATIENCE)
        pair.first.slow_down()
        backlog(cluster)
        cluster.wait_for(lambda: len(pair.first.bound()) > 20, PATIENCE, "the first replica is at work")
        pair.first.process.pause()
        by_the_first = len(pair.first.bound())
        assert by_the_first < PODS, "the backlog was too small to be in the middle of it"
        all_bound(cluster, PODS + 2)
        assert pair.second.leads
        woken = time.monotonic()
        pair.first.process.resume()
        answers[0].release()
        cluster.wait_for(
            lambda: pair.first.operator.metric("moorage_late_binds_total") >= 1,
            15,
            "a late binding is counted",
        )
        answers[1].release()
        assert pair.first.process.wait(30) == 1, "it has lost the lease, and ends"
        late = [binding.arrived - woken for binding in pair.first.bindings() if binding.arrived > woken]
        with capsys.disabled():
            print(f"\n{by_the_first} bound before it was stopped; Bindings after it woke: {late}")
        # One may have been between its last look at the lease and its first byte.
        assert len(late) <= 1
        counts = pair.bound()
        assert {name: count for name, count in counts.items() if count != 1} == {}
        assert {f"p{i}" for i in range(PODS)} <= set(counts)
        assert "while the lease was lost" in pair.first.operator.log


def test_a_leader_that_is_told_to_stop_hands_over_at_once(
    control_plane: ControlPlane, cluster: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the lease of 15 s that everybody has: had it not been released, it would take as long."""
    prepare(cluster)
    with Pair(control_plane, "--max-binds", "4", hurried=False) as pair:
        pair.first.slow_down()
        backlog(cluster)
        cluster.wait_for(lambda: len(pair.first.bound()) > 20, PATIENCE, "the first replica is at work")
        told = time.monotonic()
        pair.first.process.send(signal.SIGTERM)
        assert pair.first.process.wait(30) == 0
        ended = time.monotonic()
        assert len(pair.first.bound()) < PODS, "the backlog was too small to be in the middle of it"
        all_bound(cluster)
        first_bind = min(binding.arrived for binding in pair.second.bindings())
        with capsys.disabled():
            print(
                f"\nended {ended - told:.1f} s after it was told to; first Binding {first_bind - ended:.1f} s later"
            )
        assert first_bind - told < 12, "the standby has waited for the lease to run out"
        last_bind = max(binding.arrived for binding in pair.first.bindings())
        assert last_bind < first_bind, "the first began no Binding after it gave the lease up"
        counts = pair.bound()
        assert len(counts) == PODS
        assert set(counts.values()) == {1}
        assert "is released" in pair.first.operator.log


def test_a_standby_answers_for_debugging(control_plane: ControlPlane, cluster: Client) -> None:
    """What a standby believes can be compared with the cluster before it ever leads."""
    prepare(cluster, 3)
    with Pair(control_plane, "--debug-listen", "127.0.0.1:0") as pair:
        backlog(cluster, 10)
        all_bound(cluster, 10)
        log = pair.second.process.wait_for_output("Debugging at http://")
        url = log.split("Debugging at ")[1].split()[0]
        with urllib.request.urlopen(url + "compare", timeout=30) as response:
            lines = [json.loads(line) for line in response]
        assert lines == [{"differences": 0}]
