"""Extension points of a configuration: Moorage and kube-scheduler's own code expand them to the same decisions."""

from collections.abc import Iterator
from typing import Any

import pytest

from moorage.cli.cases import decide_case
from tests.controlplane.build import BuildError
from tests.kit.manifests import node, pod
from tests.parity.build import find
from tests.parity.compare import compare
from tests.parity.oracle import Oracle
from tests.parity.sides import for_oracle

pytestmark = [pytest.mark.integration, pytest.mark.parity]

#: A pod that several plugins have something against on several nodes, and one that all of them like.
PICKY = pod("picky", cpu="3", scheduler="default-scheduler", nodeSelector={"zone": "x"})
EASY = pod("easy", scheduler="default-scheduler")
TAINTED = node("tainted", zone="y")
TAINTED["spec"] = {"taints": [{"key": "k", "effect": "NoSchedule"}]}
SMALL = node("small", cpu="1", zone="y")
OBJECTS = [TAINTED, SMALL, node("good", cpu="8", zone="x"), node("other", zone="z")]


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    try:
        program = find()
    except BuildError as error:
        pytest.skip(str(error))
    with Oracle(program, workers=1) as oracle:
        yield oracle


def on(*names: str, **weights: int) -> list[dict[str, Any]]:
    return [{"name": name} for name in names] + [{"name": n, "weight": w} for n, w in weights.items()]


BOTH = {"disabled": on("NodeAffinity")}
PLUGINS: dict[str, dict[str, Any]] = {
    "a filter off": {"filter": {"disabled": on("NodeResourcesFit")}},
    "a filter off and what prepares it": {"preFilter": BOTH, "filter": BOTH},
    "narrowing, but no filter": {"filter": BOTH},
    "another order": {"filter": {"enabled": on("NodeResourcesFit", "NodeAffinity")}},
    "another order before": {"preFilter": {"enabled": on("NodeResourcesFit", "NodeAffinity")}},
    "some filters only": {
        "preFilter": {"disabled": on("*"), "enabled": on("NodePorts", "NodeResourcesFit")},
        "filter": {"disabled": on("*"), "enabled": on("NodeResourcesFit", "NodePorts")},
        # Without its PreFilter, kube-scheduler's VolumeBinding fails the attempt at the points that follow.
        "preScore": {"disabled": on("VolumeBinding")},
        "score": {"disabled": on("VolumeBinding")},
        "reserve": {"disabled": on("VolumeBinding")},
        "preBind": {"disabled": on("VolumeBinding")},
    },
    "off everywhere and on at filter": {
        "multiPoint": BOTH,
        "preFilter": {"enabled": on("NodeAffinity")},
        "filter": {"enabled": on("NodeAffinity")},
    },
    "off and on at one point": {"filter": {"disabled": on("NodeAffinity"), "enabled": on("NodeAffinity")}},
    "no preemption": {"postFilter": {"disabled": on("*")}},
    "weights at score": {"score": {"enabled": on(ImageLocality=7, NodeResourcesFit=3)}},
    "weights at both": {
        "multiPoint": {"enabled": on(NodeResourcesFit=9)},
        "score": {"enabled": on(NodeResourcesFit=3)},
    },
    "some scores only": {"score": {"disabled": on("*"), "enabled": on(NodeResourcesFit=2)}},
    "a score off and what prepares it": {
        "preScore": {"disabled": on("TaintToleration")},
        "score": {"disabled": on("TaintToleration")},
    },
    "no gates": {"preEnqueue": {"disabled": on("*")}},
}


@pytest.mark.parametrize("name", PLUGINS)
def test_extension_points(oracle: Oracle, name: str) -> None:
    gated = EASY | {
        "metadata": {"name": "gated"},
        "spec": EASY["spec"] | {"schedulingGates": [{"name": "g"}]},
    }
    case = {
        "id": 1,
        "objects": OBJECTS,
        "pods": [PICKY, EASY, gated],
        "config": {"profiles": [{"plugins": PLUGINS[name]}]},
    }
    theirs = oracle.ask(for_oracle(case))
    assert "results" in theirs, theirs
    assert compare(decide_case(case), theirs) == []


@pytest.mark.parametrize(
    "config",
    [
        {"profiles": [{"plugins": {"postFilter": {"enabled": on("NodeName")}}}]},
        {"profiles": [{"plugins": {"queueSort": {"disabled": on("*")}}}]},
        {"profiles": [{"plugins": {"bind": {"disabled": on("*")}}}]},
        {"profiles": [{"plugins": {"filter": {"enabled": on("NodeName", "NodeName")}}}]},
        {"profiles": [{}, {"schedulerName": "b"}]},
        {"profiles": [{"schedulerName": "b"}, {"schedulerName": "b"}]},
        {"podInitialBackoffSeconds": 5, "podMaxBackoffSeconds": 4},
        {"extenders": [{"urlPrefix": "http://x", "prioritizeVerb": "p"}]},
        {"extenders": [{"urlPrefix": "http://x", "bindVerb": "b"}] * 2},
        {"extenders": [{"urlPrefix": "http://x", "managedResources": [{"name": "cpu"}]}]},
    ],
)
def test_what_kube_scheduler_refuses_is_refused(oracle: Oracle, config: dict[str, Any]) -> None:
    case = {"id": 1, "objects": OBJECTS, "pods": [EASY], "config": config}
    assert "error" in oracle.ask(case)
    assert decide_case(case, allow_http=True)["error"].startswith("config: ")
