"""Binds that fail, come late or never answer, and the last look before them."""

from dataclasses import replace

import pytest

from moorage.core.model.events import (
    BindFailure,
    NodeGone,
    PendingListed,
    PodFetched,
    PodGone,
    PodLeftPending,
    PodPending,
)
from moorage.core.model.instructions import (
    FetchPod,
    Placement,
    Record,
    RecordType,
)
from tests.core.driving import (
    bound_on_a,
    conditions,
    of_type,
    placed,
    placements,
    plain,
)
from tests.kit.models import make_node, make_pod, taint
from tests.kit.strategies import columns_of

# -- binds that fail, come late or never answer ----------------------------------------------------


@pytest.mark.parametrize(
    "failure", [BindFailure.CONFLICT, BindFailure.FORBIDDEN, BindFailure.INVALID, BindFailure.UNAVAILABLE]
)
def test_a_bind_that_failed_gives_the_room_back_and_tries_again(failure):
    """The text is kube-scheduler's ``RunBindPlugins``, the reason SchedulerError, the wait the one of errors."""
    driven = plain()
    driven.tell(make_node("a", cpu=1000))
    pod = bound_on_a(driven, cpu=900)
    driven.fail(pod, "a", failure, "the server said no")
    assert columns_of(driven.engine.snapshot)["a"]["pod_count"] == 0
    text = 'running Bind plugin "DefaultBinder": the server said no'
    told = driven.run()
    assert [("web", "SchedulerError", text)] == conditions(told)
    assert [
        Record(pod.ref, RecordType.WARNING, "FailedScheduling", text, "Scheduling", "moorage")
    ] == of_type(told, Record)
    assert driven.bound() == {}
    assert {"web": "a"} == driven.bound(seconds=1.0)


def test_the_server_s_wish_to_wait_is_heard():
    driven = plain()
    driven.tell(make_node("a"))
    pod = bound_on_a(driven)
    driven.fail(pod, "a", BindFailure.UNAVAILABLE, "busy", after=7.0)
    assert driven.bound(seconds=6.9) == {}
    assert {"web": "a"} == driven.bound(seconds=0.1)


@pytest.mark.parametrize("failure", [BindFailure.STALE, BindFailure.NODE_GONE, BindFailure.NOT_LEADER])
def test_what_is_not_the_pod_s_fault_costs_it_no_time(failure):
    driven = plain()
    driven.tell(make_node("a"))
    pod = bound_on_a(driven)
    driven.fail(pod, "a", failure)
    told = driven.run()
    assert {"web": "a"} == placements(told)
    assert conditions(told) == []


@pytest.mark.parametrize("failure", [BindFailure.GONE, BindFailure.BOUND_ELSEWHERE])
def test_a_pod_that_is_gone_or_taken_is_forgotten(failure):
    driven = plain()
    driven.tell(make_node("a"))
    pod = bound_on_a(driven)
    driven.fail(pod, "a", failure)
    assert driven.later(400.0) == []
    assert driven.place_of(pod) == ""
    assert driven.engine.stats()["pods"] == 0


def test_a_failed_bind_wakes_those_who_wait_for_its_room():
    driven = plain()
    driven.tell(make_node("a", cpu=1000))
    pod = bound_on_a(driven, cpu=900)
    driven.tell(make_pod("next", cpu=900))
    driven.run()
    driven.fail(pod, "a", BindFailure.GONE)
    assert {"next": "a"} == driven.bound(seconds=1.0)


def test_a_pod_deleted_while_it_is_being_bound():
    """DELETED on the narrowed stream says only that it left the selector: the bind's answer decides."""
    driven = plain()
    driven.tell(make_node("a", cpu=1000))
    pod = bound_on_a(driven, cpu=900)
    driven.tell(PodLeftPending(pod.ref))
    assert driven.run() == []
    assert driven.engine.stats()["assumed"] == 1
    driven.fail(pod, "a", BindFailure.GONE)
    assert driven.later(400.0) == []
    assert driven.engine.stats()["pods"] == 0
    driven.tell(make_pod("next", cpu=900))
    assert {"next": "a"} == driven.bound()


@pytest.mark.parametrize("failure", list(BindFailure))
def test_a_pod_that_left_is_never_tried_again_whatever_the_failure(failure):
    driven = plain()
    driven.tell(make_node("a"))
    pod = bound_on_a(driven)
    driven.tell(PodLeftPending(pod.ref))
    driven.fail(pod, "a", failure)
    assert driven.later(400.0) == []
    assert driven.engine.stats()["pods"] == 0


def test_leaving_the_narrowed_stream_in_flight_ends_nothing():
    """A successful bind looks like that, too: the room stays until the bound stream shows the pod."""
    driven = plain()
    driven.tell(make_node("a", cpu=1000))
    pod = bound_on_a(driven, cpu=900)
    driven.tell(PodLeftPending(pod.ref), make_pod("next", cpu=900))
    assert driven.bound() == {}
    driven.succeed(pod, "a")
    driven.tell(replace(pod, node_name="a"))
    assert driven.bound(seconds=30.0) == {}


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


def test_a_late_failure_does_not_undo_what_the_stream_has_shown():
    driven = plain()
    driven.tell(make_node("a"))
    pod = bound_on_a(driven)
    driven.tell(replace(pod, node_name="a"))
    driven.fail(pod, "a", BindFailure.UNAVAILABLE, "timed out")
    assert driven.run() == []
    assert columns_of(driven.engine.snapshot)["a"]["pod_count"] == 1


def test_the_answer_after_the_stream_is_recorded_once():
    driven = plain()
    driven.tell(make_node("a"))
    pod = bound_on_a(driven)
    driven.tell(replace(pod, node_name="a"))
    assert driven.run() == []
    driven.succeed(pod, "a")
    assert ["Scheduled"] == [record.reason for record in of_type(driven.run(), Record)]
    assert driven.later(400.0) == []


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


def test_a_name_used_again_with_a_new_uid():
    """The old pod's bind and the new pod's life are two things."""
    driven = plain()
    driven.tell(make_node("a", cpu=1000))
    old = bound_on_a(driven, cpu=400)
    new = make_pod("web", uid="uid-new", cpu=400)
    driven.tell(PodLeftPending(old.ref), new)
    assert [Placement(new.ref, "a")] == placed(driven.run())
    driven.fail(old, "a", BindFailure.GONE)
    driven.succeed(new, "a")
    driven.tell(PodGone(old.ref))
    assert columns_of(driven.engine.snapshot)["a"]["requested"]["cpu"] == 400
    driven.tell(replace(new, node_name="a"))
    assert driven.engine.stats()["pods"] == 1


def test_the_list_of_pending_pods_ends_what_a_broken_stream_left_behind():
    driven = plain()
    gone, here = make_pod("gone", cpu=5000), make_pod("here", cpu=5000)
    driven.tell(make_node("a"), gone, here)
    driven.run()
    driven.now += 10.0
    asked_at = driven.now
    driven.now += 1.0
    young = make_pod("young", cpu=5000)
    driven.tell(young, PendingListed(frozenset({here.uid}), asked_at))
    assert ["", "unschedulable", "active"] == [driven.place_of(p) for p in (gone, here, young)]


# -- the last look ---------------------------------------------------------------------------------


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
