"""Nodes that hold more than they have, because somebody else binds pods, too."""

from moorage.core.model.events import PodGone
from moorage.core.model.instructions import Bind
from tests.core.driving import Driven
from tests.kit.models import GI, make_node, make_pod

NODE = make_node("n", cpu=1000, memory=4 * GI, pods=3)


def seen(driven):
    return dict(driven.engine.overcommits.seen)


def test_a_pod_of_somebody_else_that_is_too_much():
    driven = Driven()
    driven.tell(NODE, make_pod("a", cpu=600, node="n"))
    assert seen(driven) == {}
    driven.tell(make_pod("b", cpu=500, node="n"))
    assert seen(driven) == {"cpu": 1}
    (last,) = driven.engine.overcommits.recent
    assert (last.node_name, last.resource, last.requested, last.allocatable) == ("n", "cpu", 1100, 1000)
    assert driven.engine.overcommits.nodes() == {"cpu": 1}


def test_more_on_top_is_the_same_overcommit_and_a_new_one_counts_again():
    driven = Driven()
    pods = [make_pod(name, cpu=600, node="n") for name in "abc"]
    driven.tell(NODE, *pods)
    assert seen(driven) == {"cpu": 1}
    driven.tell(PodGone(pods[1].ref), PodGone(pods[2].ref))
    assert driven.engine.overcommits.nodes() == {}
    driven.tell(pods[1])
    assert seen(driven) == {"cpu": 2}


def test_a_change_of_a_pod_that_was_there_is_none():
    driven = Driven()
    driven.tell(NODE, make_pod("a", cpu=1200, node="n"))
    driven.tell(make_pod("a", cpu=1200, node="n", labels={"x": "y"}))
    assert seen(driven) == {"cpu": 1}


def test_the_number_of_pods():
    driven = Driven()
    driven.tell(NODE, *(make_pod(f"p{i}", cpu=1, node="n") for i in range(4)))
    assert seen(driven) == {"pods": 1}
    assert driven.engine.overcommits.nodes() == {"pods": 1}


def test_a_node_that_does_not_say_how_many_pods_it_takes():
    driven = Driven()
    driven.tell(make_node("n", pods=None), make_pod("p", node="n"))
    assert seen(driven) == {}
    assert driven.engine.overcommits.nodes() == {}


def test_a_placement_of_ours_counts_when_it_is_bound():
    """Until then a last look may withdraw it; when its binding is seen it is too late."""
    driven = Driven()
    driven.tell(NODE, make_pod("ours", cpu=600))
    (bind,) = [each for each in driven.engine.step(driven.now) if isinstance(each, Bind)]
    driven.tell(make_pod("theirs", cpu=600, node="n"))
    assert seen(driven) == {}
    assert driven.engine.last_look(bind.placements[0]) is not None
    driven.tell(make_pod("ours", cpu=600, node="n"))
    assert seen(driven) == {"cpu": 1}


def test_a_pod_on_a_node_that_is_not_known():
    driven = Driven()
    driven.tell(make_pod("p", cpu=600, node="elsewhere"))
    assert seen(driven) == {}
