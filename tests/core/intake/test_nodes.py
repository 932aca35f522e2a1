"""Nodes come, change and go, and whom that wakes."""

from dataclasses import replace
from typing import Any

import pytest

from moorage.core.model.taint import NO_EXECUTE, Toleration
from tests.core.driving import (
    conditions,
    placements,
    plain,
)
from tests.kit.models import make_node, make_pod, taint


def test_pods_known_before_their_node():
    driven = plain()
    driven.tell(make_pod("early", cpu=900, node="a"), make_pod("web", cpu=900))
    driven.run()
    driven.tell(make_node("a", cpu=1000))
    assert driven.bound(seconds=1.0) == {}
    driven.tell(make_node("b", cpu=1000))
    assert {"web": "b"} == driven.bound(seconds=3.0)


def test_a_node_made_again_under_its_name_is_a_new_node():
    driven = plain()
    node = make_node("a", unschedulable=True)
    driven.tell(node, make_pod("web"))
    driven.later(20.0)
    driven.tell(replace(node, uid="another", unschedulable=False))
    assert {"web": "a"} == driven.bound()


CHANGES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "uncordon": ({"unschedulable": True}, {}, {"unschedulable": False}),
    "taint removed": ({"taints": [taint("x")]}, {}, {"taints": ()}),
    "label added": ({}, {"node_selector": {"disk": "ssd"}}, {"labels": {"disk": "ssd"}}),
    "node grows": ({"cpu": 100}, {"cpu": 500}, {"allocatable": {"cpu": 500, "pods": 10}}),
    "more pods allowed": ({"pods": 0}, {}, {"allocatable": {"pods": 1}}),
    "resource appears": ({}, {"more": {"x.com/y": 1}}, {"allocatable": {"x.com/y": 1, "pods": 1}}),
}


@pytest.mark.parametrize("name", CHANGES)
def test_the_one_change_that_helps_wakes_the_pod(name):
    """Case B07."""
    node_fields, pod_fields, change = CHANGES[name]
    driven = plain()
    node = make_node("a", **node_fields)
    driven.tell(node, make_pod("web", **pod_fields))
    assert driven.bound(seconds=20.0) == {}
    driven.tell(replace(node, **change))
    assert {"web": "a"} == driven.bound()


@pytest.mark.parametrize("guard", [True, False])
@pytest.mark.parametrize("ready", ["True", "False", "Unknown", ""])
@pytest.mark.parametrize("tainted", [True, False])
@pytest.mark.parametrize("tolerating", [True, False])
def test_a_node_that_is_not_ready_counts_as_tainted(guard, ready, tainted, tolerating):
    """Our own rule: tolerations decide; a node without a Ready condition counts as ready."""
    key = {"False": "node.kubernetes.io/not-ready", "Unknown": "node.kubernetes.io/unreachable"}.get(
        ready, "other"
    )
    driven = plain(node_ready_guard=guard)
    driven.tell(make_node("a", ready=ready, taints=[taint(key)] if tainted else []))
    driven.tell(make_pod("web", tolerations=(Toleration(key, "Exists"),) if tolerating else ()))
    guarded = guard and ready in ("False", "Unknown")
    expected = tolerating or not (guarded or tainted)
    told = driven.run()
    assert ({"web": "a"} if expected else {}) == placements(told)
    if not expected:
        text = "0/1 nodes are available: 1 node(s) had untolerated taint(s)."
        assert [("web", "Unschedulable", text)] == conditions(told)


def test_a_node_that_becomes_ready_wakes_the_pods_it_refused():
    driven = plain(node_ready_guard=True)
    node = make_node("a", ready="False", taints=[taint("node.kubernetes.io/not-ready", effect=NO_EXECUTE)])
    pod = make_pod(
        "web", tolerations=(Toleration("node.kubernetes.io/not-ready", "Exists", effect=NO_EXECUTE),)
    )
    driven.tell(node, pod)
    assert driven.bound(seconds=30.0) == {}
    driven.tell(replace(node, ready="True", taints=()))
    assert {"web": "a"} == driven.bound()
