"""Reserve and Permit, and what happens while a pod waits."""

from dataclasses import replace

import pytest

from moorage.core.framework.interface import Rejected, Wait
from moorage.core.model.cluster_event import Action, Resource, WakesOn
from moorage.core.model.events import (
    BindFailure,
    PodFetched,
    PodGone,
    PodLeftPending,
)
from moorage.core.model.instructions import (
    Attempted,
)
from tests.core.driving import (
    Booking,
    Permitting,
    SecondBooking,
    bound_on_a,
    conditions,
    of_type,
    placements,
    plain,
)
from tests.kit.models import make_node, make_pod
from tests.kit.strategies import columns_of

# -- events that happen in the middle --------------------------------------------------------------


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


# -- Permit and Reserve ----------------------------------------------------------------------------


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

    class Listening(Permitting):
        def wakes_on(self):
            return (WakesOn(Resource.ASSIGNED_POD, Action.DELETE),)

    driven = plain(Listening(lambda pod, node: Wait(10.0)))
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
