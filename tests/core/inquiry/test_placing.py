"""Where pods would go, how many fit, what a policy changes."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from moorage.core.engine import Engine
from moorage.core.inquiry.placing import capacity, elsewhere, place_all, reasons_of
from moorage.core.model.events import NodeApplied, PodBound, PolicyApplied
from moorage.core.model.policy import NodeRules
from tests.kit.builders import make_container, read_node, read_pod
from tests.kit.policy_builders import labelled, make_policy

SPREAD = {
    "maxSkew": 1,
    "topologyKey": "zone",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "x"}},
}


def engine_of(*things):
    engine = Engine()
    for thing in things:
        engine.handle(PodBound(thing) if hasattr(thing, "spec") else NodeApplied(thing), 0)
    return engine


def copies(pod, number):
    return [replace(pod, name=f"{pod.name}-{i}", uid=f"{pod.uid}-{i}") for i in range(number)]


def test_each_pod_sees_what_the_ones_before_it_took():
    engine = engine_of(read_node("a", allocatable={"cpu": "2"}), read_node("b", allocatable={"cpu": "1"}))
    placed = list(place_all(engine, copies(read_pod("p", cpu="1"), 4), 0))
    assert Counter(one.node for one in placed) == {"a": 2, "b": 1, None: 1}
    assert placed[3].refusal is not None
    assert reasons_of(placed[3].refusal) == {"Insufficient cpu": 2}


def test_alike_pods_after_a_refused_one_are_not_tried_again_until_something_changes():
    engine = engine_of(read_node("a", allocatable={"cpu": "2"}))
    big, small = copies(read_pod("big", cpu="3"), 3), read_pod("small", cpu="1")
    placed = list(place_all(engine, [*big[:2], small, big[2]], 0))
    assert [one.node for one in placed] == [None, None, "a", None]
    assert placed[0].refusal is placed[1].refusal
    assert placed[3].refusal is not placed[0].refusal


def test_victims_go_for_more_important_pods():
    engine = engine_of(read_node("a", allocatable={"cpu": "1"}), read_pod("low", node="a", cpu="1"))
    pod = read_pod("high", cpu="1", priority=5)
    (kept,) = place_all(engine, [pod], 0, evict=False)
    assert (kept.node, kept.victims) == (None, ())
    (placed,) = place_all(engine, [pod], 0)
    assert (placed.node, [victim.key for victim in placed.victims]) == ("a", ["default/low"])
    assert [on.key for on in engine.cache.pods_on("a")] == ["default/high"]


def test_gated_pods_go_nowhere():
    (placed,) = place_all(engine_of(read_node("a")), [read_pod("p", schedulingGates=[{"name": "x/y"}])], 0)
    assert placed.node is None
    assert placed.refusal is not None
    assert placed.refusal.preenqueue is not None


PODS: dict[str, Any] = {
    "plain": {"cpu": "700m"},
    "port": {"containers": [make_container(ports=[{"containerPort": 80, "hostPort": 80}])]},
    "spread": {"cpu": "700m", "topologySpreadConstraints": [SPREAD]},
    "alone": {
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "x"}}}
                ]
            }
        }
    },
    "somewhere": {"cpu": "100m", "nodeSelector": {"zone": "z0"}},
}


@pytest.mark.parametrize("kind", PODS)
def test_as_many_fit_as_can_be_placed_one_after_the_other(kind):
    def cluster():
        nodes = [
            read_node(f"n{i}", labels={"zone": f"z{i % 2}"}, allocatable={"cpu": str(1 + i % 3), "pods": "4"})
            for i in range(5)
        ]
        return engine_of(*nodes, read_pod("there", node="n1", cpu="300m", labels={"app": "x"}))

    pod = read_pod("p", labels={"app": "x"}, **PODS[kind])
    fits = capacity(cluster(), pod, 0)
    placed = list(place_all(cluster(), copies(pod, 40), 0, evict=False))
    assert fits.fit == sum(one.node is not None for one in placed)
    assert fits.nodes == Counter(one.node for one in placed if one.node is not None)
    assert fits.complete
    assert fits.fit == sum(fits.nodes.values())
    assert sum(fits.reasons.values()) >= 5
    assert fits.message.startswith("0/5 nodes are available")


def test_counting_ends_somewhere():
    fits = capacity(engine_of(read_node("a")), read_pod("p"), 0, at_most=7)
    assert (fits.fit, fits.nodes, fits.complete) == (7, {"a": 7}, False)


def test_pods_that_a_policy_would_place_elsewhere():
    things = (
        read_node("a", labels={"pool": "spot"}),
        read_node("b", labels={"pool": "dear"}),
        read_pod("there", node="a", cpu="1"),
        read_pod("here", node="b", cpu="1"),
        read_pod("other", node="b", cpu="1", namespace="system"),
    )
    before, after = engine_of(*things), engine_of(*things)
    policy = make_policy("spot", namespace="default", nodes=NodeRules(selector=labelled({"pool": "spot"})))
    after.handle(PolicyApplied(policy), 0)
    (item,) = elsewhere(before, after, [*things[2:]], 0)
    assert (item.pod.key, item.before, item.after) == ("default/here", "a", "a")
    assert item.refused == ('node(s) didn\'t match the node selector of policy "default/spot"',)
    assert [pod.key for pod in after.cache.pods_on("b")] == ["default/here", "system/other"]
