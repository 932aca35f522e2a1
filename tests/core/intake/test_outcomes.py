"""Binds that succeed, fail or are answered late."""

from dataclasses import replace

import pytest

from moorage.core.model.events import (
    BindFailure,
    PodLeftPending,
)
from moorage.core.model.instructions import (
    Record,
    RecordType,
)
from tests.core.driving import (
    bound_on_a,
    conditions,
    of_type,
    placements,
    plain,
)
from tests.kit.models import make_node, make_pod
from tests.kit.strategies import columns_of


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


@pytest.mark.parametrize("failure", [BindFailure.STALE, BindFailure.NOT_LEADER])
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


@pytest.mark.parametrize("failure", list(BindFailure))
def test_a_pod_that_left_is_never_tried_again_whatever_the_failure(failure):
    driven = plain()
    driven.tell(make_node("a"))
    pod = bound_on_a(driven)
    driven.tell(PodLeftPending(pod.ref))
    driven.fail(pod, "a", failure)
    assert driven.later(400.0) == []
    assert driven.engine.stats()["pods"] == 0


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
