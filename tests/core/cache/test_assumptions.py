"""When the API server is asked what became of a placement."""

from moorage.core.cache.assumptions import Assumptions
from tests.kit.models import make_pod

POD = make_pod("web", node="a")
OTHER = make_pod("db", node="b")


def assumed(*pods, now=100.0):
    """Placements begun at that time, asked about after 2 s at first and every 30 s at the most."""
    assumptions = Assumptions(confirm_after=2.0, confirm_at_most=30.0)
    for pod in pods:
        assumptions.begin(pod, 7, now)
    return assumptions


def due_times(assumptions):
    """The first six times at which a look-up is due."""
    times: list[float] = []
    while len(times) < 6:
        check = assumptions.next_check()
        assert check is not None
        times.append(check)
        assert assumptions.due(times[-1]) == [POD.ref]
    return times


def test_look_ups_grow_rarer_up_to_a_limit():
    assert due_times(assumed(POD)) == [102.0, 106.0, 114.0, 130.0, 160.0, 190.0]


def test_nothing_is_due_before_its_time_and_all_at_it():
    assumptions = assumed(POD, OTHER)
    assert assumptions.due(101.9) == []
    assert assumptions.due(102.0) == [OTHER.ref, POD.ref]
    assert assumptions.due(102.0) == []


def test_the_pod_and_the_stamp_of_its_node_are_kept():
    found = assumed(POD).get(POD.uid)
    assert found is not None
    assert (found.pod, found.stamp) == (POD, 7)
    assert assumed().get(POD.uid) is None


def test_a_binding_that_was_taken_is_asked_about_at_the_longest_wait():
    """Only the bound stream is missing; the earlier, shorter term does not count any more."""
    assumptions = assumed(POD)
    assumptions.settled(POD.uid, 101.0)
    assert assumptions.due(130.9) == []
    assert assumptions.next_check() == 131.0
    assert assumptions.due(131.0) == [POD.ref]
    assert assumptions.next_check() == 161.0


def test_settling_what_is_not_assumed_does_nothing():
    assumptions = assumed()
    assumptions.settled(POD.uid, 101.0)
    assert assumptions.next_check() is None
    assert len(assumptions) == 0


def test_the_end():
    assumptions = assumed(POD, OTHER)
    ended = assumptions.end(POD.uid)
    assert ended is not None
    assert ended.pod is POD
    assert assumptions.end(POD.uid) is None
    assert len(assumptions) == 1
    assert assumptions.due(102.0) == [OTHER.ref]
    assumptions.end(OTHER.uid)
    assert assumptions.next_check() is None


def test_a_second_placement_of_the_pod_is_not_asked_about_at_the_time_of_the_first():
    assumptions = assumed(POD)
    assumptions.end(POD.uid)
    assumptions.begin(POD, 8, 101.0)
    assert assumptions.due(102.0) == []
    assert assumptions.due(103.0) == [POD.ref]
