"""What an attempt leaves behind; the engine's tests tell the whole stories."""

from dataclasses import replace

import pytest

from moorage.core.framework.interface import Rejected, Wait
from moorage.core.framework.post_filter import Candidate, PostFiltered
from moorage.core.model.events import PodFetched, PodLeftPending
from moorage.core.model.instructions import (
    Attempted,
    AttemptResult,
    Bind,
    Evict,
    Fault,
    Placement,
    Record,
    RecordType,
    SetCondition,
)
from tests.core.driving import (
    Booking,
    Driven,
    Filtering,
    Patience,
    Permitting,
    explode,
    of_type,
    placements,
    plain,
)
from tests.kit.models import make_node, make_pod


class Remedy(Patience):
    """A PostFilter plugin whose answer is given."""

    def __init__(self, answer: PostFiltered) -> None:
        self.answer = answer

    def post_filter(self, pod, attempt):
        """The answer given."""
        return self.answer


TEXT = "0/1 nodes are available: 1 Insufficient cpu. "


def tried(pod, *plugins):
    """What comes of the first try of a pod that fits nowhere."""
    driven = plain(*plugins)
    driven.tell(make_node("a", cpu=1), pod)
    return driven, driven.step()


def test_the_condition_is_written_only_if_it_says_something_new():
    pod = make_pod("web", cpu=5, resource_version="7")
    told = tried(pod, Patience())[1]
    message = TEXT.rstrip()
    record = Record(pod.ref, RecordType.WARNING, "FailedScheduling", message, "Scheduling", "moorage")
    assert told[:2] == [record, SetCondition(pod.ref, "7", "Unschedulable", message)]
    other = replace(pod, scheduled_condition=("False", "Unschedulable", "other"), generation=3)
    assert of_type(tried(other, Patience())[1], SetCondition) == [
        SetCondition(pod.ref, "7", "Unschedulable", message, generation=3, transition=False)
    ]
    known = replace(pod, scheduled_condition=("False", "Unschedulable", message))
    assert of_type(tried(known, Patience())[1], SetCondition) == []
    assert of_type(tried(known, Patience())[1], Record) == [record]


@pytest.mark.parametrize(
    ("promised", "clear", "nomination"),
    [("a", False, None), ("a", True, ""), ("", True, None), ("", False, None)],
)
def test_a_promise_is_cleared_when_the_remedy_says_so(promised, clear, nomination):
    pod = make_pod("web", cpu=5, nominated_node=promised)
    driven, told = tried(pod, Remedy(PostFiltered("no", clear_nomination=clear)))
    assert of_type(told, SetCondition)[0].nominated_node == nomination
    assert driven.engine.nominator.node_of(pod.uid) == ("" if clear else promised)


def test_a_remedy_is_carried_out_and_the_promise_told():
    victim = make_pod("victim", node="a")
    pod = make_pod("web", cpu=5)
    driven, told = tried(pod, Remedy(PostFiltered("evicting", Candidate("a", (victim,)))))
    assert of_type(told, Evict) == [Evict(pod.ref, "moorage", "a", (victim.ref,))]
    assert of_type(told, SetCondition) == [SetCondition(pod.ref, "", "Unschedulable", TEXT + "evicting", "a")]
    assert driven.engine.nominator.node_of(pod.uid) == "a"


def test_a_pod_that_takes_room_already_is_not_tried():
    """It came back by mistake; nothing is said about it."""
    driven = plain()
    pod = make_pod("web")
    driven.tell(make_node("a"), pod)
    driven.engine.cache.add(replace(pod, node_name="a"))
    assert driven.step() == []
    assert driven.place_of(pod) == ""


def test_the_promise_of_ours_counts_before_the_server_shows_it():
    """Node a is promised and node b is better, yet the pod goes to a."""
    driven = plain()
    pod = make_pod("web", cpu=1000)
    driven.tell(make_node("a", cpu=1000), make_node("b", cpu=64000), pod)
    driven.engine.nominator.nominate(pod, "a")
    assert placements(driven.step()) == {"web": "a"}


def test_an_error_is_told_as_one():
    driven = plain(Filtering(explode))
    pod = make_pod("odd")
    driven.tell(make_node("a"), pod)
    text = 'running "Filtering" filter plugin: RuntimeError: boom'
    assert driven.step() == [
        Record(pod.ref, RecordType.WARNING, "FailedScheduling", text, "Scheduling", "moorage"),
        SetCondition(pod.ref, "", "SchedulerError", text),
        Attempted(pod.ref, "moorage", AttemptResult.ERROR, 1, 100.0, message=text),
    ]


def test_a_waiting_pod_is_asked_about_again_when_another_was_placed_and_not_before():
    permit = Permitting(lambda pod, node: Wait(60.0))
    driven = plain(permit)
    driven.tell(make_node("a"), make_pod("first"))
    driven.run()
    driven.later(30.0)
    assert permit.asked == ["first"]
    driven.tell(make_pod("second"))
    driven.run()
    assert permit.asked == ["first", "second", "first"]


def test_a_waiting_pod_that_left_is_not_asked_about_again():
    permit = Permitting(lambda pod, node: Wait(60.0) if pod.name == "first" else None)
    driven = plain(permit)
    first = make_pod("first")
    driven.tell(make_node("a"), first)
    driven.run()
    driven.tell(make_pod("second"))
    assert placements(driven.step()) == {"second": "a"}
    assert driven.engine.ready(driven.now)
    driven.tell(PodLeftPending(first.ref))
    assert not driven.engine.ready(driven.now)
    driven.later(1.0)
    assert permit.asked == ["first", "second"]


@pytest.mark.parametrize(
    ("word", "told_so"),
    [
        (lambda: Rejected(("broken",)), ("Unschedulable", "0/1 nodes are available: 1 broken.")),
        (explode, ("SchedulerError", 'running Permit plugin "Permitting": RuntimeError: boom')),
    ],
)
def test_permit_s_second_word_can_be_a_rejection_or_an_error(word, told_so):
    """The wait is over and the room is free."""
    permit = Permitting(
        lambda pod, node: word() if pod.name == "first" and "second" in permit.asked else Wait(60.0)
    )
    driven = plain(permit)
    first = make_pod("first", cpu=100)
    driven.tell(make_node("a"), first)
    driven.run()
    driven.tell(make_pod("second", cpu=100))
    told = driven.run()
    assert [(c.reason, c.message) for c in of_type(told, SetCondition)] == [told_so]
    assert driven.engine.cache.state(first.uid) is None


def test_a_wait_that_ends_well_is_bound_once():
    """The plugin is asked a last time at the deadline."""
    permit = Permitting(lambda pod, node: None if driven.now >= 105.0 else Wait(5.0))
    driven = plain(permit)
    pod = make_pod("web")
    driven.tell(make_node("a"), pod)
    assert of_type(driven.run(), Bind) == []
    assert of_type(driven.later(60.0), Bind)[0] == Bind((Placement(pod.ref, "a"),))
    assert driven.engine.stats()["assumed"] == 1


def test_what_unreserve_raises_is_told_as_a_fault():
    class Sticking(Booking):
        def unreserve(self, pod, node_name, snapshot):
            explode()

    driven = plain(Sticking())
    pod = make_pod("web")
    driven.tell(make_node("a"), pod)
    driven.run()
    driven.tell(PodFetched(pod.ref, None))
    fault = Fault('running Unreserve plugin "Booking": RuntimeError: boom', pod.ref)
    assert of_type(driven.step(), Fault) == [fault]


def test_attempts_are_counted_from_the_pod_s_coming():
    driven = Driven(without=("DefaultPreemption",))
    pod = make_pod("web", cpu=5000)
    driven.tell(make_node("a"), pod)
    driven.run()
    driven.later(20.0)
    driven.tell(make_node("b", cpu=9000))
    told = of_type(driven.run(), Attempted)
    assert told == [Attempted(pod.ref, "moorage", AttemptResult.SCHEDULED, 2, 100.0, "b", 1)]
