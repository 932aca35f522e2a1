"""Pods on nodes, bound by us or by others, and what a look-up finds."""

from dataclasses import replace

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
from moorage.core.model.instructions import (
    FetchPod,
    Record,
)
from moorage.core.model.pod import HostPort
from tests.core.driving import (
    assert_empty,
    bound_on_a,
    of_type,
    plain,
)
from tests.kit.models import make_node, make_pod, requests_of
from tests.kit.strategies import columns_of


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


def test_a_bind_whose_answer_never_comes_is_asked_about_at_two_seconds_and_then_ever_more_rarely():
    driven = plain()
    driven.tell(make_node("a"))
    pod = bound_on_a(driven)
    asked = []
    start = driven.now
    while driven.now < start + 100.0:
        wake = driven.engine.next_wake()
        assert wake is not None
        driven.now = wake
        asked += [driven.now - start for _ in of_type(driven.run(), FetchPod)]
        driven.tell(PodFetched(pod.ref, pod))  # still pending: the bind may still land
    assert [2.0, 6.0, 14.0, 30.0, 60.0, 90.0] == asked[:6]
    assert driven.engine.stats()["assumed"] == 1
    assert (driven.state(pod).node_name, driven.state(pod).assumed) == ("a", True)


@pytest.mark.parametrize("live", ["nothing", "another", "finished"])
def test_the_look_up_finds_the_pod_gone(live):
    """Nothing of that name, another pod of that name (a new UID), or a finished one: the room is free at once."""
    driven = plain()
    driven.tell(make_node("a", cpu=1000))
    pod = bound_on_a(driven, cpu=900)
    driven.tell(make_pod("next", cpu=900))
    driven.run()
    found = {
        "nothing": None,
        "another": make_pod("web", uid="uid-2", cpu=900),
        "finished": replace(pod, finished=True),
    }[live]
    driven.tell(PodFetched(pod.ref, found))
    assert {"next": "a"} == driven.bound(seconds=1.0)
    assert driven.place_of(pod) == ""


def test_the_look_up_finds_the_pod_bound_elsewhere():
    driven = plain()
    driven.tell(make_node("a", cpu=1000))
    pod = bound_on_a(driven, cpu=900)
    driven.tell(make_node("b", cpu=1000, unschedulable=True))
    driven.tell(PodFetched(pod.ref, replace(pod, node_name="b")))
    told = columns_of(driven.engine.snapshot)
    assert [0, 1] == [told["a"]["pod_count"], told["b"]["pod_count"]]
    driven.fail(pod, "a", BindFailure.BOUND_ELSEWHERE)  # and then the answer comes after all
    assert columns_of(driven.engine.snapshot)["b"]["pod_count"] == 1


def test_an_answer_to_a_look_up_that_nobody_needs_any_more():
    driven = plain()
    driven.tell(make_node("a"))
    pod = bound_on_a(driven)
    driven.succeed(pod, "a")
    driven.tell(replace(pod, node_name="a"))
    driven.run()
    driven.tell(PodFetched(pod.ref, None))
    assert driven.engine.stats()["pods"] == 1


def test_a_pod_deleted_while_the_bound_stream_is_broken_is_found_out():
    """The bind succeeded, the pod went before any stream showed it: only a look-up can tell."""
    driven = plain()
    driven.tell(make_node("a", cpu=1000))
    pod = bound_on_a(driven, cpu=900)
    driven.succeed(pod, "a")
    told = driven.later(31.0)
    assert [FetchPod(pod.ref)] == of_type(told, FetchPod)
    driven.tell(PodFetched(pod.ref, None))
    assert driven.engine.stats()["pods"] == 0


def test_a_pod_bound_by_someone_else():
    """The handler's event for it comes late and must not bring it back."""
    driven = plain()
    pod = make_pod("web", cpu=100)
    bound = replace(pod, node_name="b")
    driven.tell(make_node("a"), make_node("b"), bound, PodPending(pod))
    assert driven.run() == []
    assert driven.place_of(pod) == ""
    driven.tell(PodLeftPending(pod.ref), PodPending(bound))
    assert driven.run() == []
    assert columns_of(driven.engine.snapshot)["b"]["pod_count"] == 1


def test_a_pod_taken_out_of_the_queue_by_the_bound_stream():
    driven = plain()
    pod = make_pod("web", cpu=5000)
    driven.tell(make_node("a"), make_node("b"), pod)
    driven.run()
    driven.tell(replace(pod, node_name="b"))
    assert driven.place_of(pod) == ""
    assert driven.later(400.0) == []


def test_assumed_here_and_bound_elsewhere():
    driven = plain()
    driven.tell(make_node("a", cpu=1000))
    pod = bound_on_a(driven, cpu=900)
    driven.tell(make_node("b", cpu=1000), make_pod("next", cpu=900, node_selector={"on": "a"}))
    driven.tell(make_node("a", cpu=1000, labels={"on": "a"}))
    driven.run()
    driven.tell(replace(pod, node_name="b"))
    assert {"next": "a"} == driven.bound(seconds=1.0)
