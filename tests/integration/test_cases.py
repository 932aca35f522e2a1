"""The cases of tests/scenarios on a real API server, with the operator as users run it."""

import time
from pathlib import Path

import pytest

from moorage.core.profile import REGISTRY
from tests.controlplane.client import Client
from tests.controlplane.controlplane import ControlPlane
from tests.kit.operator import Operator
from tests.kit.volume_controller import tend
from tests.scenarios.reading import CASES, HERE, NEEDS, Json, case, expectations, victims
from tests.scenarios.steps import Player, ours

COVERED = [folder for folder in CASES if REGISTRY.keys() >= set(NEEDS.get(folder.name, ()))]
#: Pods of moving cases that need what may not be there yet.
STEPS_NEED = {"p-claim": "VolumeBinding", "p-lead": "InterPodAffinity"}


def name_of(obj: Json) -> tuple[str, str]:
    """Name and namespace."""
    return obj["metadata"]["name"], obj["metadata"].get("namespace", "default")


def looked_at(cluster: Client, pod: Json) -> bool:
    """Whether the pod says why it has no node; a pod that is none of ours never does."""
    if pod["spec"].get("schedulerName", "moorage") != "moorage":
        return True
    condition = cluster.condition(*name_of(pod))
    return condition is not None and condition["status"] == "False"


@pytest.mark.parametrize("folder", COVERED, ids=lambda folder: folder.name)
def test_a_case_that_stands_still(control_plane: ControlPlane, cluster: Client, folder: Path) -> None:
    question, expected = case(folder), expectations(folder)
    bound = [name_of(o) for o in cluster.apply(question["objects"]) if o["kind"] == "Pod"]
    pods = {"/".join(reversed(name_of(pod))): pod for pod in question["pods"]}
    cluster.apply([ours(pod) for pod in question["pods"]], threads=1)

    def right() -> bool:
        tend(cluster)
        placements = cluster.placements()
        for pod, nodes in expected.items():
            assert placements[pod] in (None, *nodes), f"{pod} is on {placements[pod]}, not {nodes}"
        if any(placements[pod] not in nodes for pod, nodes in expected.items()):
            return False
        return all(placements[name] or looked_at(cluster, pod) for name, pod in pods.items())

    with Operator(control_plane) as operator:
        cluster.wait_for(right, 15, f"pods are on {expected}")
        time.sleep(0.2)  # and stay there
        assert right()
    if (wanted := victims(folder)) is not None:
        left = cluster.placements()
        assert [f"{space}/{name}" for name, space in bound if f"{space}/{name}" not in left] == wanted
    assert "Traceback" not in operator.log


def test_the_one_event_that_helps_wakes_the_pod(control_plane: ControlPlane, cluster: Client) -> None:
    without = {pod for pod, plugin in STEPS_NEED.items() if plugin not in REGISTRY}
    with Operator(control_plane) as operator:
        Player(cluster, HERE / "cases" / "b07-requeue-on-the-right-event", without=without).play()
    assert "Traceback" not in operator.log


def test_hopeless_pods_and_heartbeats_hold_nobody_up(control_plane: ControlPlane, cluster: Client) -> None:
    with Operator(control_plane) as operator:
        Player(cluster, HERE / "cases" / "b25-queue-head-not-blocked", rest=5).play()
        tries = operator.metric(
            "scheduler_schedule_attempts_total", result="unschedulable", profile="moorage"
        )
        assert 300 <= tries <= 2 * 300, "heartbeats are no reason to try again"
    assert "Traceback" not in operator.log
