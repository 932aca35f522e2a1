"""Pods on nodes, confirmed or assumed; every order of changes is tried in ``tests/laws/test_cache_machine.py``."""

from dataclasses import replace

import pytest

from moorage.core.cache.cache import Cache
from moorage.core.snapshot.snapshot import Snapshot
from tests.kit.models import make_node, make_pod, make_spec, requests_of
from tests.kit.strategies import columns_of


@pytest.fixture
def cache():
    """A cache that knows node a."""
    cache = Cache(Snapshot())
    cache.apply_node(make_node("a"))
    return cache


def used(cache, node="a"):
    """Milli-CPU asked for on a node."""
    return columns_of(cache.snapshot)[node]["requested"].get("cpu", 0)


def test_assume_books_the_room_and_forget_gives_it_back(cache):
    pod = make_pod("web", cpu=500)
    placed = cache.assume(pod, "a")
    assert (placed.uid, placed.node_name, pod.node_name) == (pod.uid, "a", "")
    assert (used(cache), cache.assumed_count) == (500, 1)
    assert cache.forget(pod.uid) is placed
    assert (used(cache), len(cache)) == (0, 0)


def test_a_pod_takes_room_once(cache):
    pod = make_pod("web", cpu=500)
    cache.assume(pod, "a")
    with pytest.raises(ValueError, match=r"^pod default/web \(uid-web\) already takes room on a$"):
        cache.assume(pod, "b")
    assert used(cache) == 500


def test_only_assumptions_can_be_forgotten(cache):
    pod = make_pod("web", cpu=500, node="a")
    cache.add(pod)
    assert cache.forget(pod.uid) is None
    assert used(cache) == 500


def test_the_watch_confirms_an_assumption_without_counting_twice(cache):
    pod = make_pod("web", cpu=500)
    placed = cache.assume(pod, "a")
    shown = replace(pod, node_name="a", resource_version="2")
    before = cache.add(shown)
    assert (before.pod, before.assumed) == (placed, True)
    assert cache.state(pod.uid).pod is shown
    assert (used(cache), cache.assumed_count) == (500, 0)
    assert cache.forget(pod.uid) is None


def test_the_watch_has_the_last_word_on_the_node(cache):
    cache.apply_node(make_node("b"))
    pod = make_pod("web", cpu=500)
    cache.assume(pod, "a")
    assert cache.add(replace(pod, node_name="b")).node_name == "a"
    assert (used(cache, "a"), used(cache, "b")) == (0, 500)


def test_the_description_shown_last_is_the_one_on_the_row(cache):
    """A pod's labels and ports are read from there, so a refresh must reach it."""
    pod = make_pod("web", node="a")
    cache.add(pod)
    labelled = replace(pod, labels={"app": "web"})
    cache.add(labelled)
    assert list(cache.snapshot.pods[cache.snapshot.row_of("a")].values()) == [labelled]
    assert cache.pods_on("a") == [labelled]


def test_another_spec_with_other_ports_moves_the_ports(cache):
    pod = make_pod("web", ports=[80], node="a")
    cache.add(pod)
    cache.add(replace(pod, spec=make_spec(ports=[81], requests=pod.requests)))
    taken = {
        port
        for port in (80, 81)
        if cache.snapshot.host_ports.rows_in_conflict(make_spec(ports=[port]).host_ports)
    }
    assert taken == {81}


def test_pods_are_known_before_and_after_their_node(cache):
    pod = make_pod("web", cpu=500, node="late")
    cache.add(pod)
    cache.apply_node(make_node("late"))
    assert used(cache, "late") == 500
    cache.remove_node("late")
    assert cache.pods_on("late") == [pod]
    cache.apply_node(make_node("late"))
    assert used(cache, "late") == 500
    assert cache.remove(pod.uid) is pod
    assert (used(cache, "late"), cache.pods_on("late")) == (0, [])


def test_nodes_come_change_and_go(cache):
    node = make_node("a")
    bigger = make_node("a", cpu=9000)
    assert cache.apply_node(make_node("b")) is None
    assert cache.apply_node(bigger) == node
    assert cache.remove_node("a") is bigger
    assert cache.remove_node("a") is None


@pytest.mark.parametrize(
    ("what", "changes"),
    [
        ("the same node again", False),
        ("another node", False),
        ("a placement of ours", False),
        ("a placement undone", False),
        ("a pod of ours confirmed", False),
        ("a confirmed resize of ours", False),
        ("the node", True),
        ("the node gone", True),
        ("a foreign pod", True),
        ("a foreign pod resized", True),
    ],
)
def test_the_stamp_tells_of_changes_that_we_did_not_make(cache, what, changes):
    foreign = make_pod("foreign", cpu=100, node="a")
    cache.add(foreign)
    ours = cache.assume(make_pod("web", cpu=500), "a")
    stamp = cache.stamp("a")
    match what:
        case "the same node again":
            cache.apply_node(make_node("a"))
        case "another node":
            cache.apply_node(make_node("b"))
        case "a placement of ours":
            cache.assume(make_pod("next"), "a")
        case "a placement undone":
            cache.forget(ours.uid)
        case "a pod of ours confirmed":
            cache.add(replace(ours, resource_version="2"))
        case "a confirmed resize of ours":
            cache.add(replace(ours, requests=requests_of({"cpu": 501})))
        case "the node":
            cache.apply_node(make_node("a", cpu=9))
        case "the node gone":
            cache.remove_node("a")
        case "a foreign pod":
            cache.add(make_pod("thief", node="a"))
        case "a foreign pod resized":
            cache.add(replace(foreign, requests=requests_of({"cpu": 900})))
    assert (cache.stamp("a") != stamp) is changes


def test_a_look_without_a_pod_leaves_no_trace(cache):
    pod = cache.assume(make_pod("web", cpu=500), "a")
    stamp = cache.stamp("a")
    state = cache.take_out(pod.uid)
    assert (used(cache), cache.state(pod.uid)) == (0, None)
    cache.put_back(state)
    assert (used(cache), cache.state(pod.uid).assumed, cache.stamp("a")) == (500, True, stamp)
    assert cache.take_out("unknown") is None
