"""The last look before a bind."""

import pytest

from moorage.core.model.events import (
    BindFailure,
    NodeGone,
    PodFetched,
)
from moorage.core.model.instructions import (
    Placement,
)
from tests.core.driving import (
    bound_on_a,
    plain,
)
from tests.kit.models import make_node, make_pod, taint


def test_the_last_look_passes_while_nothing_has_changed():
    driven = plain()
    driven.tell(make_node("a"))
    pod = bound_on_a(driven)
    assert driven.engine.last_look(Placement(pod.ref, "a")) is None
    driven.tell(make_pod("neighbour", cpu=100, node="a"), make_node("a", labels={"x": "y"}))
    assert driven.engine.last_look(Placement(pod.ref, "a")) is None


def test_the_last_look_finds_the_chosen_node_gone():
    driven = plain()
    driven.tell(make_node("a"))
    pod = bound_on_a(driven)
    driven.tell(NodeGone("a"))
    assert driven.engine.last_look(Placement(pod.ref, "a")) == "node a no longer exists"
    driven.fail(pod, "a", BindFailure.STALE)
    driven.tell(make_node("b"))
    assert {"web": "b"} == driven.bound(seconds=1.0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (make_node("a", unschedulable=True), "node(s) were unschedulable"),
        (make_node("a", taints=[taint("x")]), "node(s) had untolerated taint(s)"),
        (make_node("a", cpu=100, pods=0), "Too many pods, Insufficient cpu"),
        (make_pod("thief", cpu=3600, node="a"), "Insufficient cpu"),
        (
            make_pod("thief", ports=[80], node="a"),
            "node(s) didn't have free ports for the requested pod ports",
        ),
    ],
)
def test_the_last_look_finds_the_chosen_node_changed(change, words):
    driven = plain()
    driven.tell(make_node("a"))
    pod = bound_on_a(driven, cpu=500, ports=[80])
    driven.tell(change)
    assert driven.engine.last_look(Placement(pod.ref, "a")) == words
    assert driven.state(pod).node_name == "a"


def test_a_node_made_again_is_looked_at_afresh():
    driven = plain()
    driven.tell(make_node("a"))
    pod = bound_on_a(driven, cpu=500)
    driven.tell(NodeGone("a"), make_node("a", uid="2", cpu=400))
    assert driven.engine.last_look(Placement(pod.ref, "a")) == "Insufficient cpu"
    driven.tell(make_node("a", uid="2", cpu=600))
    assert driven.engine.last_look(Placement(pod.ref, "a")) is None


def test_the_last_look_at_a_placement_that_was_withdrawn():
    driven = plain()
    driven.tell(make_node("a"))
    pod = bound_on_a(driven)
    driven.tell(PodFetched(pod.ref, None))
    assert driven.engine.last_look(Placement(pod.ref, "a")) == "the placement was withdrawn"
