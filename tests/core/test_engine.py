"""Events in, instructions out: what a user sees of a pod's life, the races included."""

from dataclasses import replace

import numpy as np
import pytest

from moorage.core.framework.interface import Narrowed, Reads, Rejected, Skip, Verdict, Wait
from moorage.core.framework.post_filter import PostFiltered
from moorage.core.model.cluster_event import Action, Resource, WakesOn
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
    Attempted,
    AttemptResult,
    Bind,
    FetchPod,
    Placement,
    Record,
    RecordType,
    SetCondition,
)
from moorage.core.model.pod import HostPort
from moorage.core.model.resources import MAX_AMOUNT
from moorage.core.model.taint import NO_EXECUTE, Toleration
from tests.core.driving import (
    Booking,
    Driven,
    Filtering,
    Permitting,
    SecondBooking,
    assert_empty,
    conditions,
    explode,
    of_type,
    placed,
    placements,
    profile_with,
    refuse_all,
)
from tests.kit.models import GI, label_in, make_node, make_pod, make_spec, requests_of, required, taint, term
from tests.kit.strategies import columns_of

NO_VICTIMS = "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."


def plain(*plugins, **config):
    """An engine without preemption, whose texts and evictions have tests of their own."""
    return Driven(*plugins, without=("DefaultPreemption",), **config)


# -- a pod's life --------------------------------------------------------------------------------


def test_a_pod_that_fits_is_bound_and_recorded():
    driven = Driven()
    pod = make_pod("web", cpu=500)
    driven.tell(make_node("a"), pod)
    ref = pod.ref
    assert [
        Bind((Placement(ref, "a"),)),
        Attempted(ref, "moorage", AttemptResult.SCHEDULED, 1, 100.0, "a", 1),
    ] == driven.run()
    driven.succeed(pod, "a")
    text = "Successfully assigned default/web to a"
    assert [Record(ref, RecordType.NORMAL, "Scheduled", text, "Binding")] == driven.run()
    driven.tell(replace(pod, node_name="a"), PodLeftPending(ref))
    assert driven.run() == []
    assert driven.engine.stats()["pods"] == 1
    assert driven.engine.stats()["assumed"] == 0
    assert driven.engine.next_wake() is None


def test_a_pod_that_fits_nowhere_is_told_so_once():
    """One condition and one event an attempt; the condition is not written again while it says the same."""
    driven = plain()
    pod = make_pod("web", cpu=5000)
    driven.tell(
        make_node("a"), make_node("b", taints=[taint("gone")]), make_node("c", unschedulable=True), pod
    )
    text = "0/3 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable."
    ref = pod.ref
    plugins = ("NodeResourcesFit", "NodeUnschedulable", "TaintToleration")
    failed = Record(ref, RecordType.WARNING, "FailedScheduling", text, "Scheduling")
    assert [
        failed,
        SetCondition(ref, "", "Unschedulable", text),
        Attempted(ref, "moorage", AttemptResult.UNSCHEDULABLE, 1, 100.0, plugins=plugins, message=text),
    ] == driven.run()
    shown = replace(pod, resource_version="7", scheduled_condition=("False", "Unschedulable", text))
    driven.tell(shown)
    assert driven.run() == []
    assert driven.later(340.0) == [
        failed,
        Attempted(ref, "moorage", AttemptResult.UNSCHEDULABLE, 2, 100.0, plugins=plugins, message=text),
    ]


def test_the_message_of_preemption_comes_behind():
    driven = Driven()
    driven.tell(
        make_node("a"), make_pod("web", cpu=5000), make_pod("db", cpu=3000, node="a"), make_pod("x", cpu=2000)
    )
    too_big = (
        "0/1 nodes are available: 1 Insufficient cpu. "
        "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    )
    full = f"0/1 nodes are available: 1 Insufficient cpu. {NO_VICTIMS}"
    assert {("web", "Unschedulable", too_big), ("x", "Unschedulable", full)} == set(conditions(driven.run()))


def test_no_node_at_all_has_a_text_of_its_own():
    driven = Driven()
    pod = make_pod("web")
    driven.tell(pod)
    assert [("web", "Unschedulable", "no nodes available to schedule pods")] == conditions(driven.run())


def test_the_first_node_wakes_a_pod_tried_without_any():
    """kube-scheduler: no plugin rejected it, so every event may help."""
    driven = Driven()
    driven.tell(make_pod("web"))
    driven.run()
    driven.tell(make_node("a"))
    assert {"web": "a"} == driven.bound(seconds=1.0)


def test_a_fitting_node_brings_a_waiting_pod_in_at_once():
    driven = plain()
    driven.tell(make_node("a"), make_pod("web", cpu=5000))
    driven.later(5.0)
    driven.tell(make_node("b", cpu=8000))
    assert {"web": "b"} == driven.bound()


def test_reasons_of_narrowed_nodes():
    driven = plain()
    pod = make_pod("web", cpu=9000, required=required(term(names=("a",))))
    driven.tell(make_node("a"), make_node("b"), pod)
    text = "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    assert [("web", "Unschedulable", text)] == conditions(driven.run())


def test_conflicting_names_reject_the_pod_as_a_whole():
    driven = plain()
    both = replace(
        term(names=("a",)), fields=(label_in("metadata.name", "a"), label_in("metadata.name", "b"))
    )
    driven.tell(make_node("a"), make_pod("web", required=required(both)))
    text = "0/1 nodes are available: pod affinity terms conflict."
    assert [("web", "Unschedulable", text)] == conditions(driven.run())


def test_what_is_not_supported_is_refused_with_words():
    driven = plain()
    pod = make_pod("web", unsupported=("volumes",))
    driven.tell(make_node("a"), pod)
    text = "0/1 nodes are available: pod asks for volumes, which this scheduler does not support yet."
    assert [("web", "Unschedulable", text)] == conditions(driven.run())
    driven.tell(replace(pod, spec=make_spec()))
    assert {"web": "a"} == driven.bound(seconds=1.0)


def test_pods_of_other_schedulers_are_counted_and_never_placed():
    """Case B30."""
    driven = plain()
    foreign = make_pod("foreign", scheduler_name="other")
    driven.tell(
        make_node("a", cpu=1000), foreign, make_pod("theirs", cpu=800, node="a", scheduler_name="other")
    )
    assert driven.run() == []
    driven.tell(make_pod("ours", cpu=300))
    assert driven.bound() == {}


# -- the order of the queue ----------------------------------------------------------------------


def test_higher_priority_goes_first_then_age():
    driven = plain()
    driven.tell(make_node("a"))
    for name, priority in (("old", 0), ("urgent", 5), ("young", 0), ("urgent-too", 5)):
        driven.tell(make_pod(name, priority=priority))
        driven.now += 1.0
    told = [p.ref.name for p in placed(driven.run())]
    assert ["urgent", "urgent-too", "old", "young"] == told


def test_a_hopeless_pod_of_high_priority_does_not_block_the_rest():
    """Case B25: heartbeats are no events, and the others get their turn."""
    driven = plain()
    node = make_node("a", cpu=1000)
    hopeless = [make_pod(f"h{i}", cpu=5000, priority=5000) for i in range(30)]
    gated = [make_pod(f"g{i}", gates=("wait",)) for i in range(30)]
    driven.tell(node, *hopeless, *gated)
    driven.run()
    driven.tell(make_pod("small", cpu=100, priority=10))
    assert {"small": "a"} == placements(driven.step())
    tries = 0
    for beat in range(60):
        driven.tell(replace(node, images={"image": beat}))
        tries += len(of_type(driven.later(0.5), Attempted))
    assert tries <= 4 * len(hopeless)


def test_gated_pods_wait_outside_until_the_last_gate_is_gone():
    """Cases B31 and B07."""
    driven = plain()
    pod = make_pod("web", gates=("one", "two"))
    driven.tell(make_node("a"), pod)
    assert driven.run() == []
    assert driven.place_of(pod) == "gated"
    decision = driven.engine.evaluate(pod, driven.now)
    assert ("waiting for scheduling gates: [one two]",) == decision.preenqueue.reasons
    driven.tell(replace(pod, gates=("two",)))
    assert driven.later(400.0) == []
    driven.tell(replace(pod, gates=()))
    assert {"web": "a"} == driven.bound()


def test_backoff_doubles_from_one_second_to_ten():
    """Another pod keeps the queue from being idle, for an idle scheduler tries pods before their backoff ends."""
    driven = plain()
    node = make_node("a", cpu=1000)
    pod = make_pod("web", cpu=900)
    blocker = make_pod("blocker", cpu=900, node="a")
    driven.tell(node, blocker, pod)
    driven.run()
    for expected in (1.0, 2.0, 4.0, 8.0, 10.0, 10.0):
        queued = driven.engine.queue.get(pod.uid)
        assert queued.backoff_until - driven.now == expected
        driven.tell(
            make_pod("decoy", node="a"), PodGone(make_pod("decoy").ref)
        )  # a delete that does not help
        driven.now += expected
        driven.run()
    driven.tell(PodGone(blocker.ref))
    assert driven.place_of(pod) in ("backoff", "active")


def test_the_flush_tries_a_pod_after_five_minutes_at_the_latest():
    driven = plain()
    pod = make_pod("web", cpu=5000)
    driven.tell(make_node("a"), pod)
    driven.run()
    assert of_type(driven.later(299.0), Attempted) == []
    assert len(of_type(driven.later(32.0), Attempted)) == 1


# -- binds that fail, come late or never answer --------------------------------------------------


def bound_on_a(driven, **fields):
    """A pod whose Bind to node a is on its way."""
    pod = make_pod("web", **fields)
    driven.tell(pod)
    assert placements(driven.run()).get("web") == "a"
    return pod


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
    assert [Record(pod.ref, RecordType.WARNING, "FailedScheduling", text, "Scheduling")] == of_type(
        told, Record
    )
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
        driven.now = driven.engine.next_wake()
        asked += [driven.now - start for _ in of_type(driven.run(), FetchPod)]
        driven.tell(PodFetched(pod.ref, pod))  # still pending: the bind may still land
    assert [2.0, 6.0, 14.0, 30.0, 60.0, 90.0] == asked[:6]
    assert driven.engine.stats()["assumed"] == 1
    assert {"web": "a"} == {s.pod.name: s.node_name for s in [driven.engine.cache.state(pod.uid)]}


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
    assert ["Scheduled"] == [record.reason for record in driven.run()]
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


# -- the last look -------------------------------------------------------------------------------


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
    assert driven.engine.cache.state(pod.uid).node_name == "a"


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


# -- events that happen in the middle ------------------------------------------------------------


def test_a_change_while_the_bind_is_under_way_is_not_lost_to_the_pod():
    """The pod comes back as unschedulable by its own fault at last; what happened meanwhile counts."""
    driven = plain(Permitting(lambda pod, node: Wait(5.0) if pod.name == "web" else None))
    pod = make_pod("web", cpu=900)
    driven.tell(make_node("a", cpu=1000), pod)
    driven.run()
    assert driven.place_of(pod) == "in-flight"
    driven.tell(make_node("b"))
    driven.later(5.0)
    assert driven.place_of(pod) != "unschedulable"


def test_a_change_of_the_pod_itself_while_it_is_in_flight():
    driven = plain(Booking(lambda pod: Rejected(("not yet",))))
    pod = make_pod("web", cpu=100)
    driven.tell(make_node("a"), pod)
    driven.run()
    assert driven.place_of(pod) == "unschedulable"


# -- Permit and Reserve --------------------------------------------------------------------------


def test_a_waiting_pod_keeps_its_place_until_permitted():
    """A gang of two: the second pod's coming lets the first go, without waiting for its deadline."""
    gang = Permitting(lambda pod, node: None if "second" in gang.asked else Wait(60.0))
    driven = plain(gang)
    first, second = make_pod("first", cpu=600), make_pod("second", cpu=300)
    driven.tell(make_node("a", cpu=1000), first)
    assert placements(driven.run()) == {}
    driven.tell(make_pod("third", cpu=500), second)
    assert {"first": "a", "second": "a"} == driven.bound(seconds=1.0)


def test_a_pod_that_waited_too_long_gives_its_place_up():
    """The words are kube-scheduler's (``newWaitingPod``)."""
    booking = Booking()
    driven = plain(booking, Permitting(lambda pod, node: Wait(10.0) if pod.name == "web" else None))
    pod = make_pod("web", cpu=900)
    driven.tell(make_node("a", cpu=1000), pod)
    driven.run()
    driven.tell(make_pod("next", cpu=900))
    assert placements(driven.later(9.9)) == {}
    told = driven.later(0.2)
    text = "0/1 nodes are available: 1 rejected due to timeout after waiting 10s at plugin Permitting."
    assert [("web", "Unschedulable", text)] == [c for c in conditions(told) if c[0] == "web"]
    assert {"next": "a"} == placements(told + driven.later(1.0))
    assert booking.held == {"next"}


def test_the_end_of_its_own_wait_does_not_wake_the_pod():
    """kube-scheduler leaves the pod itself out when it tells that its room is free (``handleBindingCycleError``)."""
    permit = Permitting(lambda pod, node: Wait(10.0))
    permit.wakes_on = lambda: (WakesOn(Resource.ASSIGNED_POD, Action.DELETE),)
    driven = plain(permit)
    pod = make_pod("web")
    driven.tell(make_node("a"), pod)
    driven.run()
    driven.later(10.0)
    assert driven.place_of(pod) == "unschedulable"


def test_the_shortest_of_several_waits_counts():
    class Patient(Permitting):
        name = "Patient"

    driven = plain(Patient(lambda pod, node: Wait(100.0)), Permitting(lambda pod, node: Wait(3.0)))
    driven.tell(make_node("a"), make_pod("web"))
    driven.run()
    assert driven.engine.next_wake() == driven.now + 3.0


def test_permit_refuses():
    booking = Booking()
    driven = plain(booking, Permitting(lambda pod, node: Rejected(("the gang is broken",))))
    pod = make_pod("web", cpu=900)
    driven.tell(make_node("a"), pod)
    text = "0/1 nodes are available: 1 the gang is broken."
    told = driven.run()
    assert [("web", "Unschedulable", text)] == conditions(told)
    assert ("Permitting",) == of_type(told, Attempted)[-1].plugins
    assert columns_of(driven.engine.snapshot)["a"]["pod_count"] == 0
    assert booking.held == set()


def test_reserve_refuses_and_what_was_reserved_before_is_undone():
    first, second = Booking(), SecondBooking(lambda pod: Rejected(("all taken",)))
    driven = plain(first, second)
    pod = make_pod("web")
    driven.tell(make_node("a"), pod)
    assert [("web", "Unschedulable", "0/1 nodes are available: 1 all taken.")] == conditions(driven.run())
    assert first.log == [("reserve", "web", "a"), ("unreserve", "web", "a")]
    assert driven.engine.stats()["pods"] == 0
    assert driven.place_of(pod) == "unschedulable"


def test_reserve_is_kept_through_a_successful_bind():
    booking = Booking()
    driven = plain(booking)
    driven.tell(make_node("a"))
    pod = bound_on_a(driven)
    driven.succeed(pod, "a")
    driven.tell(replace(pod, node_name="a"), PodLeftPending(pod.ref))
    driven.run()
    assert booking.log == [("reserve", "web", "a")]


@pytest.mark.parametrize("end", ["failed", "look-up", "elsewhere", "left-waiting", "gone-waiting"])
def test_every_end_of_a_placement_but_success_undoes_what_was_reserved(end):
    booking = Booking()
    waiting = end.endswith("waiting")
    driven = plain(booking, Permitting(lambda pod, node: Wait(100.0) if waiting else None))
    pod = make_pod("web")
    driven.tell(make_node("a"), make_node("b", unschedulable=True), pod)
    driven.run()
    assert booking.held == {"web"}
    match end:
        case "failed":
            driven.fail(pod, "a", BindFailure.GONE)
        case "look-up":
            driven.tell(PodFetched(pod.ref, None))
        case "elsewhere":
            driven.tell(replace(pod, node_name="b"))
        case "left-waiting":
            driven.tell(PodLeftPending(pod.ref))
        case "gone-waiting":
            driven.tell(PodGone(pod.ref))
    assert booking.held == set()


def test_a_waiting_pod_that_is_bound_by_someone_else():
    driven = plain(Permitting(lambda pod, node: Wait(50.0)))
    pod = make_pod("web", cpu=900)
    driven.tell(make_node("a", cpu=1000), make_node("b", cpu=1000, unschedulable=True), pod)
    driven.run()
    driven.tell(replace(pod, node_name="b"))
    assert driven.later(100.0) == []
    told = columns_of(driven.engine.snapshot)
    assert [0, 1] == [told["a"]["pod_count"], told["b"]["pod_count"]]


# -- plugins that break --------------------------------------------------------------------------


def assert_fails_only_odd(driven):
    """The odd pod fails with a reason that names the plugin, the other is placed, and all goes on."""
    odd, even = make_pod("odd"), make_pod("even")
    driven.tell(make_node("a"), make_node("b"), odd, even)
    told = driven.run()
    assert "even" in placements(told)
    assert "odd" not in placements(told)
    (reason, message) = next(c[1:] for c in conditions(told) if c[0] == "odd")
    assert reason == "SchedulerError"
    assert "boom" in message or "Filtering" in message
    assert driven.engine.cache.state(odd.uid) is None
    assert driven.place_of(odd) == "backoff"
    assert len(of_type(driven.later(40.0), Attempted)) >= 3


def test_a_raising_filter_fails_only_that_pod():
    assert_fails_only_odd(plain(Filtering(explode)))


@pytest.mark.parametrize(
    "answer",
    [
        lambda nodes: None,
        lambda nodes: Verdict((), np.zeros((0, len(nodes) + 1), dtype=np.bool_)),
        lambda nodes: Verdict(refuse_all(nodes).reasons, np.ones((1, 3), dtype=np.bool_)),
        lambda nodes: Verdict(refuse_all(nodes).reasons, np.ones(len(nodes), dtype=np.bool_)),
    ],
    ids=["no-verdict", "too-long", "too-short", "no-matrix"],
)
def test_a_filter_that_breaks_its_contract_fails_only_that_pod(answer):
    assert_fails_only_odd(plain(Filtering(answer)))


@pytest.mark.parametrize("point", ["pre_filter", "reserve", "permit", "pre_score", "score", "normalize"])
def test_a_plugin_that_raises_at_any_point_fails_only_that_pod(point):
    def odd_explodes(pod, *_):
        return explode() if pod.name.startswith("odd") else None

    class Scoring:
        name = "Filtering"
        reads = Reads.CLUSTER

        def pre_score(self, pod, snapshot, nodes):
            if point == "pre_score":
                odd_explodes(pod)
            return pod

        def score(self, state, nodes):
            if point == "score":
                odd_explodes(state)
            return np.full(len(nodes), 1000 if state.name.startswith("odd") and point == "normalize" else 50)

        def normalize(self, raw):
            return explode() if raw[0] == 1000 else raw

        def wakes_on(self):
            return ()

    if point == "pre_filter":
        plugin = Filtering(refuse_all)
        plugin.pre_filter = lambda pod, snapshot: odd_explodes(pod) or Skip.SKIP
    elif point == "reserve":
        plugin = Booking(odd_explodes)
    elif point == "permit":
        plugin = Permitting(odd_explodes)
    else:
        plugin = Scoring()
    assert_fails_only_odd(plain(plugin))


@pytest.mark.parametrize(
    "scores",
    [
        lambda n: np.full(n, 101),
        lambda n: np.full(n, -1),
        lambda n: np.full(n + 1, 5),
        lambda n: np.full(n, np.nan),
        lambda n: np.full(n, 50.5),
        lambda n: None,
        lambda n: [50] * n,
    ],
    ids=["above", "below", "too-long", "not-a-number", "floats", "nothing", "a-list"],
)
def test_scores_out_of_contract_fail_only_that_pod(scores):
    class Scoring:
        name = "Filtering"
        reads = Reads.CLUSTER

        def pre_score(self, pod, snapshot, nodes):
            return pod.name if pod.name.startswith("odd") else Skip.SKIP

        def score(self, state, nodes):
            return scores(len(nodes))

        def normalize(self, raw):
            return raw

        def wakes_on(self):
            return ()

    assert_fails_only_odd(plain(Scoring()))


def test_a_reserve_that_raises_leaves_nothing_reserved():
    """kube-scheduler runs Unreserve of all plugins when Reserve fails, an error included (``assumeAndReserve``)."""
    first, second = Booking(), SecondBooking(explode)
    driven = plain(first, second)
    driven.tell(make_node("a"), make_pod("web"))
    driven.run()
    assert first.held == set()
    assert driven.engine.stats()["pods"] == 0


def test_an_unreserve_that_raises_stops_nobody():
    """Neither ``handle`` fails, nor does the pod keep its room, nor do the other plugins keep what they reserved."""
    first, second = Booking(), SecondBooking()
    second.unreserve = explode
    driven = plain(first, second)
    driven.tell(make_node("a", cpu=1000))
    pod = bound_on_a(driven, cpu=900)
    driven.fail(pod, "a", BindFailure.GONE)
    assert first.held == set()
    assert driven.engine.stats()["pods"] == 0


def test_a_hint_that_raises_counts_as_help():
    """kube-scheduler: ``isPodWorthRequeuing`` queues the pod when a hint returns an error."""
    plugin = Filtering(refuse_all)
    plugin.wakes_on = lambda: (WakesOn(Resource.NODE, Action.ADD, explode),)
    driven = plain(plugin)
    odd = make_pod("odd")
    driven.tell(make_node("a"), odd)
    driven.later(2.0)
    driven.tell(make_node("b"))
    assert driven.place_of(odd) == "active"


def test_a_pre_enqueue_that_raises_keeps_only_that_pod_out():
    class Gate:
        name = "Gate"

        def pre_enqueue(self, pod):
            return explode() if pod.name == "odd" else None

        def wakes_on(self):
            return (WakesOn(Resource.PENDING_POD, Action.UPDATE_POD_LABEL),)

    driven = plain(Gate())
    driven.tell(make_node("a"), make_pod("odd"), make_pod("even"))
    assert {"even": "a"} == driven.bound()
    assert driven.engine.evaluate(make_pod("odd"), driven.now).chosen is None


def test_two_plugins_that_narrow_to_nothing_are_both_waited_for():
    """``findNodesThatFitPod`` takes all plugins that narrowed as the ones that rejected the pod."""

    class Naming(Filtering):
        reads = Reads.NODE

        def pre_filter(self, pod, snapshot):
            return Narrowed("", frozenset({"a"}))

        def filter(self, state, nodes):
            return Verdict((), np.zeros((0, len(nodes)), dtype=np.bool_))

    class AlsoNaming(Naming):
        name = "AlsoNaming"

        def pre_filter(self, pod, snapshot):
            return Narrowed("", frozenset({"b"}))

    driven = plain(Naming(refuse_all), AlsoNaming(refuse_all))
    driven.tell(make_node("a"), make_node("b"), make_pod("web"))
    told = driven.run()
    text = "0/2 nodes are available: node(s) didn't satisfy plugin(s) [AlsoNaming Filtering] simultaneously."
    assert [("web", "Unschedulable", text)] == conditions(told)
    assert ("AlsoNaming", "Filtering") == of_type(told, Attempted)[0].plugins


# -- nominated pods ------------------------------------------------------------------------------


def nominated(name, node, **fields):
    """A pending pod that was promised a node."""
    return make_pod(name, nominated_node=node, **fields)


class Patience:
    """A PostFilter plugin without a remedy that lets promises stand (a profile with none at all clears them)."""

    name = "Patience"

    def post_filter(self, pod, attempt):
        return PostFiltered("")

    def wakes_on(self):
        return ()


def test_without_post_filter_a_promise_that_does_not_hold_is_cleared():
    """Source: ``schedulingAlgorithm`` of kube-scheduler's ``schedule_one.go``."""
    driven = plain()
    driven.tell(make_node("a", cpu=4000), nominated("waiting", "a", cpu=5000, priority=1000))
    told = driven.run()
    assert [""] == [change.nominated_node for change in of_type(told, SetCondition)]
    driven.tell(make_pod("low", cpu=4000))
    assert {"low": "a"} == driven.bound()


def test_promised_room_counts_against_lower_and_equal_priorities_only():
    """Case B10: a node of 4 cpus, 2 of them dying, 3 promised to a pod of priority 1000."""
    driven = plain(Patience())
    dying = make_pod("dying", cpu=2000, node="a", deleting=True)
    waiting = nominated("waiting", "a", cpu=3000, priority=1000)
    driven.tell(make_node("a", cpu=4000), dying, waiting)
    assert driven.bound() == {}
    driven.tell(make_pod("equal", cpu=1500, priority=1000), make_pod("low", cpu=1500, priority=10))
    told = driven.run()
    assert placements(told) == {}
    text = "0/1 nodes are available: 1 Insufficient cpu."
    assert {("equal", "Unschedulable", text), ("low", "Unschedulable", text)} == set(conditions(told))
    driven.tell(make_pod("higher", cpu=1500, priority=2000))
    assert {"higher": "a"} == driven.bound()
    driven.tell(make_pod("tiny", cpu=0, priority=10))
    assert {"tiny": "a"} == driven.bound()


def test_a_promise_on_a_node_that_does_not_exist_is_ignored():
    driven = plain()
    driven.tell(make_node("a"), nominated("web", "ghost", cpu=100), make_pod("other", cpu=3900))
    assert {"web": "a", "other": "a"} == driven.bound()


def test_the_promised_node_is_taken_even_if_another_is_better():
    driven = plain()
    driven.tell(make_node("a", cpu=2000), make_node("b", cpu=64000), nominated("web", "a", cpu=1000))
    assert {"web": "a"} == driven.bound()


def test_a_promise_kept_is_not_counted_twice():
    """Placed on its promised node, the pod counts as a pod there, not as promised besides."""
    driven = plain()
    waiting = nominated("waiting", "a", cpu=3000, priority=1000)
    driven.tell(make_node("a", cpu=4000), waiting)
    assert {"waiting": "a"} == driven.bound()
    driven.tell(make_pod("low", cpu=1000))
    assert {"low": "a"} == driven.bound()
    driven.fail(waiting, "a", BindFailure.GONE)
    assert columns_of(driven.engine.snapshot)["a"]["requested"] == {"cpu": 1000}


@pytest.mark.parametrize("end", ["deleted", "cleared", "moved", "placed-elsewhere"])
def test_the_end_of_a_promise_wakes_those_it_kept_out(end):
    """Source: ``hasNominatedNodeNameChanged`` and ``deletePodFromSchedulingQueue`` of kube-scheduler."""
    driven = plain(Patience())
    waiting = nominated("waiting", "a", cpu=3000, priority=1000, node_selector={"good": "yes"})
    driven.tell(make_node("a", cpu=4000), waiting, make_pod("low", cpu=2000))
    assert driven.bound() == {}
    driven.later(20.0)
    match end:
        case "deleted":
            driven.tell(PodLeftPending(waiting.ref))
        case "cleared":
            driven.tell(replace(waiting, nominated_node="", resource_version="2"))
        case "moved":
            driven.tell(replace(waiting, nominated_node="c", resource_version="2"))
        case "placed-elsewhere":
            driven.tell(make_node("b", cpu=4000, labels={"good": "yes"}, taints=[taint("x")]))
            driven.run()
            spec = make_spec(
                cpu=3000,
                priority=1000,
                node_selector={"good": "yes"},
                tolerations=(Toleration("x", "Exists"),),
            )
            driven.tell(replace(waiting, spec=spec))
    assert driven.bound(seconds=2.0).get("low") == "a"


# -- node_ready_guard ----------------------------------------------------------------------------


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


# -- amounts without measure ---------------------------------------------------------------------


@pytest.mark.parametrize("resource", ["cpu", "memory", "example.com/gpu", "ephemeral-storage"])
@pytest.mark.parametrize("amount", [MAX_AMOUNT, MAX_AMOUNT - 1, 1 << 62, 9 * 10**18])
def test_huge_requests_stay_pending_and_stop_nobody(resource, amount):
    """Case B03."""
    driven = plain()
    size = {"example.com/gpu": 8, "ephemeral-storage": 100 * GI}
    driven.tell(make_node("a", more=size), make_node("b", more=size))
    driven.tell(
        make_pod("huge", spec=make_spec(requests=requests_of({resource: amount}))), make_pod("plain", cpu=100)
    )
    told = driven.run()
    assert ["plain"] == list(placements(told))
    assert [("huge", "Unschedulable", f"0/2 nodes are available: 2 Insufficient {resource}.")] == conditions(
        told
    )


def test_huge_pods_on_a_node_are_counted_and_taken_off_exactly():
    driven = plain()
    huge = [
        make_pod(f"h{i}", spec=make_spec(requests=requests_of({"cpu": MAX_AMOUNT})), node="a")
        for i in range(5)
    ]
    driven.tell(make_node("a", cpu=1000), make_pod("small", cpu=600, node="a"), *huge)
    driven.tell(make_pod("web", cpu=300))
    assert driven.bound() == {}
    driven.tell(*(PodGone(pod.ref) for pod in huge))
    assert {"web": "a"} == driven.bound(seconds=1.0)
    assert columns_of(driven.engine.snapshot)["a"]["requested"] == {"cpu": 900}


def test_images_without_measure_cost_nobody_a_try():
    """A node may report any int64 as an image's size."""
    driven = plain()
    images = {"app:latest": MAX_AMOUNT, "db:1": MAX_AMOUNT}
    driven.tell(make_node("a", images=images), make_node("b", images=images))
    driven.tell(make_pod("web", images=("app:latest", "db:1"), image_containers=2))
    assert list(driven.bound()) == ["web"]


def test_an_ignored_resource_beyond_measure_costs_nobody_a_try():
    """An extender looks after the resource, so Fit lets the pod through, and its scores must stay in range."""
    from moorage.core.framework.resource_scoring import ScoringStrategy, StrategyType, Weighted
    from moorage.core.plugins.node_resources_fit import NodeResourcesFit
    from moorage.core.profile import Profile

    for kind in (StrategyType.LEAST_ALLOCATED, StrategyType.MOST_ALLOCATED):
        strategy = ScoringStrategy(kind, (Weighted("example.com/gpu"), Weighted("cpu")))
        base = profile_with(without=("DefaultPreemption", "NodeResourcesFit"))
        fit = NodeResourcesFit(strategy, ignored=frozenset({"example.com/gpu"}))
        driven = Driven(profiles={"moorage": Profile("moorage", (*base.plugins, fit), {})})
        gpu = {"example.com/gpu": MAX_AMOUNT}
        driven.tell(make_node("a", more=gpu), make_node("b", more=gpu))
        driven.tell(make_pod("p", spec=make_spec(requests=requests_of(gpu)), node="a"))
        driven.tell(make_pod("q", spec=make_spec(requests=requests_of(gpu)), node="b"))
        driven.tell(make_pod("web", spec=make_spec(requests=requests_of(gpu))))
        assert list(driven.bound()) == ["web"]


# -- evaluate ------------------------------------------------------------------------------------


def state_of(engine):
    """What decisions rest on, as one value to compare."""
    queue, cache = engine.queue, engine.cache
    return repr((
        columns_of(engine.snapshot),
        [list(pods) for pods in engine.snapshot.pods],
        list(engine.snapshot.nodes),
        {uid: (q.place, q.since, q.attempts, q.backoff_until, q.rejectors) for uid, q in queue._pods.items()},
        {uid: (s.pod.name, s.node_name, s.assumed) for uid, s in cache._pods.items()},
        {node: list(pods) for node, pods in cache._by_node.items()},
        cache._stamps,
        engine.stats(),
        engine.next_wake(),
        engine.nominator._by_uid,
        engine._outbox,
        engine._attempts._rng.bit_generator.state,
    ))  # fmt: skip


def test_evaluate_changes_nothing():
    driven = Driven()
    driven.tell(
        make_node("a", cpu=4000), make_node("b", cpu=4000, labels={"zone": "z"}, images={"app:latest": GI})
    )
    driven.tell(make_pod("p", cpu=500, node="a", ports=[80]), make_pod("p2", cpu=100, node="a"))
    driven.tell(
        nominated("n1", "a", cpu=3600, priority=9), nominated("n2", "b", cpu=5000, ports=[81], priority=9)
    )
    driven.tell(make_pod("flight", cpu=10, priority=10))
    driven.step()
    driven.tell(make_pod("queued"))
    before = state_of(driven.engine)
    for pod in (
        make_pod("ask", cpu=100, ports=[80, 81], images=("app:latest",), image_containers=1),
        make_pod("too-big", cpu=9000, priority=20),
        make_pod("evicting", cpu=3800, priority=20),
        make_pod("gated", gates=("x",)),
        make_pod("named", required=required(term(names=("a", "ghost")))),
        make_pod("selecting", node_selector={"zone": "z"}),
    ):
        driven.engine.evaluate(pod, driven.now)
        driven.engine.evaluate(pod, driven.now, ["b", "ghost"])
    assert before == state_of(driven.engine)


def test_a_cycle_that_places_nothing_changes_no_column():
    driven = Driven()
    driven.tell(make_node("a", cpu=1000), make_pod("p", cpu=500, node="a"), make_pod("p2", cpu=100, node="a"))
    driven.tell(nominated("n", "a", cpu=3600, priority=9, preemption_policy="Never"))
    driven.run()
    before = columns_of(driven.engine.snapshot), [list(pods) for pods in driven.engine.snapshot.pods]
    driven.tell(make_pod("web", cpu=600, preemption_policy="Never"))
    driven.run()
    assert before == (columns_of(driven.engine.snapshot), [list(p) for p in driven.engine.snapshot.pods])


def test_evaluate_and_step_agree():
    driven = plain()
    driven.tell(make_node("a", cpu=1000), make_node("b", cpu=4000), make_node("c", cpu=2000))
    pod = make_pod("web", cpu=500)
    decision = driven.engine.evaluate(pod, driven.now)
    assert ("a", "b", "c") == decision.feasible
    assert ("b",) == decision.best
    driven.tell(pod)
    assert {"web": decision.chosen} == driven.bound()


def test_evaluate_among_some_nodes_only():
    driven = plain()
    driven.tell(make_node("a"), make_node("b"), make_node("c", unschedulable=True), make_node("d", cpu=8000))
    decision = driven.engine.evaluate(make_pod("web", cpu=500), driven.now, ["c", "a", "ghost"])
    assert ("a",) == decision.feasible
    assert ["c"] == list(decision.filtered)
    assert decision.chosen == "a"


# -- time, chance and memory ---------------------------------------------------------------------


def test_the_same_events_give_the_same_instructions():
    def told(seed):
        driven = plain(seed=seed)
        driven.tell(*(make_node(f"n{i}") for i in range(9)), *(make_pod(f"p{i}") for i in range(9)))
        return driven.run()

    assert told(1) == told(1)
    assert placements(told(1)) != placements(told(2))


def test_a_standby_that_never_steps_does_not_grow():
    """Case B35: it takes in events for days, and pods come and go."""
    driven = plain()
    driven.tell(make_node("a"), make_pod("stays"))
    for i in range(3000):
        pod = make_pod(f"p{i}", cpu=10)
        driven.tell(pod, PodLeftPending(pod.ref), replace(pod, node_name="a"), PodGone(pod.ref))
    queue = driven.engine.queue
    sizes = {name: len(getattr(queue, name)) for name in ("_active", "_backoff", "_early", "_pods")}
    assert {name: size for name, size in sizes.items() if size > 1000} == {}


def test_nothing_stays_behind_when_all_pods_and_nodes_are_gone():
    """Case B35."""
    driven = Driven()
    driven.tell(*(make_node(f"n{i}", cpu=1000) for i in range(5)))
    for i in range(400):
        pod = make_pod(f"p{i}", cpu=10 + i * 5, ports=[i], node_selector={} if i % 3 else {"k": str(i)})
        driven.tell(pod)
        told = placements(driven.run())
        for node in told.values():
            if i % 2:
                driven.succeed(pod, node)
                driven.tell(replace(pod, node_name=node))
            else:
                driven.fail(pod, node, BindFailure.UNAVAILABLE)
        driven.run()
        driven.tell(PodLeftPending(pod.ref), PodGone(pod.ref))
        driven.now += 0.1
    driven.tell(*(NodeGone(f"n{i}") for i in range(5)))
    driven.later(100.0)
    assert_empty(driven.engine)


# -- shapes of the pod in the streams ------------------------------------------------------------


@pytest.mark.parametrize("field", ["deleting", "finished"])
def test_pending_pods_that_are_over_are_not_tried(field):
    driven = plain()
    driven.tell(make_node("a"), make_pod("web", **{field: True}))
    assert driven.run() == []
    pod = make_pod("other", cpu=5000)
    driven.tell(pod)
    driven.run()
    driven.tell(PodPending(replace(pod, **{field: True})))
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


CHANGES = {
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
        (HostPort("0.0.0.0", "TCP", 80), False),
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
    assert ["Scheduled"] == [record.reason for record in driven.run()]
    driven.later(100.0)
    assert_empty(driven.engine)
