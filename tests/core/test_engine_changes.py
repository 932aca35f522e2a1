"""Changes of nodes and pods, as the streams show them, and whom they wake."""

from dataclasses import replace
from typing import Any

import pytest

from moorage.core.model.events import (
    BindFailed,
    BindFailure,
    BindSucceeded,
    NodeGone,
    PendingListed,
    PodBound,
    PodFetched,
    PodGone,
    PodLeftPending,
    PodPending,
)
from moorage.core.model.instructions import Record
from moorage.core.model.pod import HostPort
from moorage.core.model.taint import NO_EXECUTE, Toleration
from tests.core.driving import (
    assert_empty,
    conditions,
    of_type,
    placements,
    plain,
)
from tests.kit.models import make_node, make_pod, make_spec, requests_of, taint

# -- shapes of the pod in the streams --------------------------------------------------------------


@pytest.mark.parametrize("over", [{"deleting": True}, {"finished": True}], ids=["deleting", "finished"])
def test_pending_pods_that_are_over_are_not_tried(over: dict[str, Any]):
    driven = plain()
    driven.tell(make_node("a"), make_pod("web", **over))
    assert driven.run() == []
    pod = make_pod("other", cpu=5000)
    driven.tell(pod)
    driven.run()
    driven.tell(PodPending(replace(pod, **over)))
    assert driven.place_of(pod) == ""


def test_a_finished_pod_frees_its_room():
    """Case B29, should the stream show it as changed and not as deleted."""
    driven = plain()
    done = make_pod("done", cpu=900, node="a", ports=[80])
    driven.tell(make_node("a", cpu=1000), done, make_pod("web", cpu=900, ports=[80]))
    assert driven.bound() == {}
    driven.tell(replace(done, finished=True))
    assert {"web": "a"} == driven.bound(seconds=1.0)


def test_a_pod_that_shrinks_in_place_makes_room():
    """Case B13, the end of it."""
    driven = plain()
    big = make_pod("big", cpu=900, node="a")
    driven.tell(make_node("a", cpu=1000), big, make_pod("web", cpu=500))
    assert driven.bound() == {}
    driven.tell(replace(big, requests=requests_of({"cpu": 400})))
    assert {"web": "a"} == driven.bound(seconds=1.0)


def test_a_pending_pod_that_asks_for_less_is_tried_again():
    driven = plain()
    pod = make_pod("web", cpu=5000)
    driven.tell(make_node("a", cpu=1000), pod)
    driven.run()
    smaller = make_spec(cpu=500)
    driven.tell(replace(pod, spec=smaller, requests=smaller.requests))
    assert {"web": "a"} == driven.bound(seconds=1.0)


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


def test_a_toleration_added_to_the_pod_wakes_it():
    """Case B07."""
    driven = plain()
    pod = make_pod("web")
    driven.tell(make_node("a", taints=[taint("x")]), make_node("b", unschedulable=True), pod)
    assert driven.bound(seconds=20.0) == {}
    driven.tell(replace(pod, spec=make_spec(tolerations=(Toleration("x", "Exists"),))))
    assert {"web": "a"} == driven.bound()


@pytest.mark.parametrize(
    ("held", "fits"),
    [
        (HostPort("0.0.0.0", "TCP", 80), False),  # noqa: S104
        (HostPort("10.0.0.9", "TCP", 80), False),
        (HostPort("10.0.0.9", "UDP", 80), True),
    ],
)
def test_host_ports(held, fits):
    """Case B17."""
    driven = plain()
    holder = make_pod("holder", ports=[held], node="a")
    driven.tell(make_node("a"), holder, make_pod("web", ports=[80]))
    assert ({"web": "a"} if fits else {}) == driven.bound()
    driven.tell(PodGone(holder.ref))
    assert ({} if fits else {"web": "a"}) == driven.bound(seconds=1.0)


def test_events_of_pods_nobody_knows():
    driven = plain()
    ref = make_pod("unknown").ref
    driven.tell(
        PodLeftPending(ref), PodGone(ref), BindSucceeded(ref, "a"), BindFailed(ref, "a", BindFailure.GONE, ""),
        PodFetched(ref, None), NodeGone("nowhere"), PendingListed(frozenset(), 0.0),
        PodBound(make_pod("done", node="a", finished=True)),
    )  # fmt: skip
    assert ["Scheduled"] == [record.reason for record in of_type(driven.run(), Record)]
    driven.later(100.0)
    assert_empty(driven.engine)


# -- node_ready_guard ------------------------------------------------------------------------------


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
