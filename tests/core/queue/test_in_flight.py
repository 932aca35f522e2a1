"""No change is lost to a pod that is being tried."""

import pytest

from moorage.core.model.cluster_event import Action, ClusterEvent, Resource
from moorage.core.queue.in_flight import InFlight

EVENTS = [ClusterEvent(Resource.NODE, Action.ADD, None, number) for number in range(6)]


@pytest.fixture
def in_flight():
    """Nobody is in flight."""
    return InFlight()


def numbers(missed):
    """Which of the events they are."""
    return None if missed is None else [event.new for event in missed]


def test_each_pod_gets_the_changes_since_its_own_start(in_flight):
    in_flight.note(EVENTS[0])
    in_flight.begin("a")
    in_flight.note(EVENTS[1])
    in_flight.begin("b")
    in_flight.note(EVENTS[2])
    assert numbers(in_flight.end("b")) == [2]
    in_flight.note(EVENTS[3])
    assert numbers(in_flight.end("a")) == [1, 2, 3]


def test_the_oldest_may_end_first(in_flight):
    in_flight.begin("a")
    in_flight.note(EVENTS[0])
    in_flight.begin("b")
    in_flight.note(EVENTS[1])
    assert numbers(in_flight.end("a")) == [0, 1]
    assert len(in_flight._log) == 1
    in_flight.note(EVENTS[2])
    assert numbers(in_flight.end("b")) == [1, 2]


def test_a_pod_in_flight_again_starts_anew(in_flight):
    in_flight.begin("a")
    in_flight.begin("b")
    in_flight.note(EVENTS[0])
    in_flight.end("a")
    in_flight.begin("a")
    in_flight.note(EVENTS[1])
    assert numbers(in_flight.end("a")) == [1]
    assert numbers(in_flight.end("b")) == [0, 1]


def test_nothing_is_kept_when_nobody_is_in_flight(in_flight):
    in_flight.begin("a")
    in_flight.note(EVENTS[0])
    in_flight.end("a")
    in_flight.note(EVENTS[1])
    assert (len(in_flight._log), len(in_flight)) == (0, 0)
    in_flight.begin("b")
    assert numbers(in_flight.end("b")) == []


def test_too_many_changes_mean_that_anything_may_have_changed(in_flight, monkeypatch):
    monkeypatch.setattr(InFlight, "LIMIT", 3)
    in_flight.begin("a")
    in_flight.note(EVENTS[0])
    in_flight.begin("b")
    for event in EVENTS[1:4]:
        in_flight.note(event)
    assert len(in_flight._log) == 3
    assert in_flight.end("a") is None
    assert numbers(in_flight.end("b")) == [1, 2, 3]


def test_pods_that_are_not_in_flight(in_flight):
    in_flight.begin("a")
    in_flight.note(EVENTS[0])
    assert in_flight.end("unknown") == []
    assert ("a" in in_flight, "unknown" in in_flight) == (True, False)


def test_a_pod_that_is_to_be_tried_again_whatever_happened(in_flight):
    for uid in ("a", "b", "c"):
        in_flight.begin(uid)
    in_flight.note(EVENTS[0])
    in_flight.lose_track_of("a")
    in_flight.lose_track_of("nobody")
    assert in_flight.end("a") is None
    assert numbers(in_flight.end("b")) == [0]
    in_flight.note(EVENTS[1])
    assert numbers(in_flight.end("c")) == [0, 1]
    assert len(in_flight._log) == 0


def test_the_pods_in_flight_can_be_told(in_flight):
    for uid in ("a", "b"):
        in_flight.begin(uid)
    in_flight.end("a")
    assert list(in_flight) == ["b"]
