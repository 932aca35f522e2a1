"""Reserve and Permit, and the words for those who are not let through."""

from dataclasses import replace

import pytest

from moorage.core.cycle.reservation import Waiting, permit, refusal_text, reserve, timed_out, unreserve
from moorage.core.framework.answers import PluginError
from moorage.core.framework.interface import Rejected, Wait
from moorage.core.framework.runner import Runner
from moorage.core.model.decision import Code, Rejection
from moorage.core.model.instructions import Fault
from moorage.core.snapshot.snapshot import Snapshot
from tests.core.driving import Booking, Permitting, SecondBooking, explode, profile_with
from tests.kit.models import make_pod

POD = replace(make_pod("web"), node_name="a")


def runner_with(*plugins):
    """The default profile with these behind."""
    return Runner(profile_with(*plugins).plugins, {}, Snapshot())


class SecondPermitting(Permitting):
    """Another one, behind the first."""

    name = "SecondPermitting"


def test_reserve_stops_at_the_first_rejection():
    first = Booking(lambda pod: Rejected(("all taken",), Code.UNRESOLVABLE))
    second = SecondBooking()
    assert reserve(runner_with(first, second), POD) == Rejection("Booking", ("all taken",), Code.UNRESOLVABLE)
    assert (first.log, second.log) == ([("reserve", "web", "a")], [])


def test_reserve_asks_everybody_else():
    first, second = Booking(), SecondBooking()
    assert reserve(runner_with(first, second), POD) is None
    assert (first.held, second.held) == ({"web"}, {"web"})


def test_an_error_of_reserve_names_plugin_and_point():
    with pytest.raises(PluginError, match=r'^running Reserve plugin "Booking": RuntimeError: boom$'):
        reserve(runner_with(Booking(explode)), POD)


def test_unreserve_goes_backwards_and_tells_what_was_raised():
    order = []

    class Sticking(SecondBooking):
        def unreserve(self, pod, node_name, snapshot):
            order.append(self.name)
            explode()

    class Noting(Booking):
        def unreserve(self, pod, node_name, snapshot):
            order.append(self.name)

    fault = Fault('running Unreserve plugin "SecondBooking": RuntimeError: boom', POD.ref)
    assert unreserve(runner_with(Noting(), Sticking()), POD) == [fault]
    assert order == ["SecondBooking", "Booking"]


def test_permit_lets_go_whom_nobody_stops():
    assert permit(runner_with(Permitting(lambda pod, node: None)), POD, 100.0) is None


def test_the_shortest_wait_counts_whatever_its_place():
    long, short = Permitting(lambda pod, node: Wait(9.0)), SecondPermitting(lambda pod, node: Wait(4.0))
    expected = Waiting(POD, "SecondPermitting", 104.0, 4.0)
    assert permit(runner_with(long, short), POD, 100.0) == expected
    assert permit(runner_with(short, long), POD, 100.0) == expected


def test_a_rejection_beats_a_wait():
    plugins = Permitting(lambda pod, node: Wait(9.0)), SecondPermitting(lambda pod, node: Rejected(("no",)))
    assert permit(runner_with(*plugins), POD, 100.0) == Rejection("SecondPermitting", ("no",))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (10.0, "10s"),
        (1.5, "1.5s"),
        (0.25, "250ms"),
        (60.0, "1m0s"),
        (90.5, "1m30.5s"),
        (3600.0, "1h0m0s"),
        (90061.0, "25h1m1s"),
    ],
)
def test_the_words_of_a_wait_that_was_too_long(seconds, text):
    """Durations are printed as Go's ``time.Duration`` prints them."""
    words = f"rejected due to timeout after waiting {text} at plugin Gang"
    waiting = Waiting(POD, "Gang", 0.0, seconds)
    assert timed_out(waiting) == Rejection("Gang", (words,), Code.UNSCHEDULABLE)


def test_a_rejection_by_the_chosen_node_reads_like_one_node_of_one():
    assert refusal_text(Rejection("Gang", ("b", "a"))) == "0/1 nodes are available: 1 a, 1 b."
