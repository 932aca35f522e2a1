"""Turns without an engine around them: a line of pods, each with one turn at a time."""

from dataclasses import replace

import pytest

from moorage.core.framework.runner import Runner
from moorage.core.model.instructions import Record, SetCondition
from moorage.core.model.policy import Backoff
from moorage.core.policy.book import PolicyBook
from moorage.core.policy.census import Census
from moorage.core.profile import default_profile
from moorage.core.queue.nominator import Nominator
from moorage.core.queue.scheduling_queue import Place, SchedulingQueue
from moorage.core.snapshot.snapshot import Snapshot
from moorage.core.turns import Turns
from tests.core.driving import of_type
from tests.kit.models import make_pod
from tests.kit.policy_builders import at, make_policy, window

NOON = at("2026-12-01 12:00")
NIGHT = (window("", "22:00", "23:00"),)
POD = make_pod("web", created=NOON)


class World:
    """Turns and what they work on."""

    def __init__(self, *policies):
        profile = default_profile()
        self.runner = Runner(profile.plugins, profile.weights, Snapshot())
        self.queue = SchedulingQueue(lambda pod, since: (since,), lambda pod: self.runner.wakes)
        self.nominator, self.census = Nominator(), Census()
        self.book = PolicyBook(lambda name: {})
        for policy in policies:
            self.book.apply(policy)
        self.turns = Turns(
            queue=self.queue,
            nominator=self.nominator,
            book=self.book,
            census=self.census,
            runner_of=lambda pod: self.runner,
        )

    def add(self, pod=POD, now=NOON):
        self.queue.add(pod, now, gated=bool(pod.gates))
        return self.turns.look(pod.uid, now)

    @property
    def place(self):
        queued = self.queue.get(POD.uid)
        assert queued is not None
        return queued.place


def test_without_policies_nothing_is_noted():
    world = World()
    assert world.add() == []
    assert (world.place, world.turns.next_turn()) == (Place.ACTIVE, None)


def test_a_pod_that_is_not_in_the_queue_is_left_alone():
    assert World(make_policy(windows=NIGHT)).turns.look("nobody", NOON) == []


def test_a_policy_that_says_nothing_of_time_sets_no_turn():
    world = World(make_policy(backoff=Backoff(1.0)))
    world.add()
    assert world.turns.next_turn() is None


def test_a_hold_has_an_end_and_a_beginning():
    world = World(make_policy(windows=NIGHT))
    told = world.add()
    assert [type(i) for i in told] == [Record, SetCondition]
    assert world.place is Place.GATED
    ten, eleven = at("2026-12-01 22:00"), at("2026-12-01 23:00")
    assert world.turns.next_turn() == ten
    assert world.turns.due(ten - 1) == []
    assert world.turns.due(ten) == []
    assert (world.place, world.turns.next_turn()) == (Place.ACTIVE, eleven)
    assert len(of_type(world.turns.due(eleven), SetCondition)) == 1
    assert world.place is Place.GATED


def test_a_second_look_does_not_set_a_second_turn():
    world = World(make_policy(windows=NIGHT))
    for _ in range(3):
        world.add() if world.queue.get(POD.uid) is None else world.turns.look(POD.uid, NOON)
    world.turns.due(at("2026-12-01 22:00"))
    assert world.turns.next_turn() == at("2026-12-01 23:00")


def test_a_pod_that_leaves_takes_its_turn_with_it():
    world = World(make_policy(windows=NIGHT))
    world.add()
    world.queue.remove(POD.uid)
    assert world.turns.next_turn() is None


def test_a_pod_that_was_held_is_as_old_as_it_was():
    world = World(make_policy(labels={"tier": "batch"}, windows=NIGHT))
    world.add(replace(POD, labels={"tier": "batch"}))
    world.add(make_pod("young"), at("2026-12-01 21:00"))
    ten = at("2026-12-01 22:00")
    world.turns.due(ten)
    tried = [world.queue.pop(ten) for _ in range(2)]
    assert [queued and queued.pod.name for queued in tried] == ["web", "young"]


def test_the_end_of_a_hold_is_the_end_of_what_is_told_about_it():
    policy = make_policy(windows=NIGHT)
    world = World(policy)
    world.census.enter(POD.uid, (policy.ref,))
    world.add()
    assert [blocked.plugin for blocked in world.census.blocked(policy.ref, 5)] == ["PolicyWindows"]
    world.turns.due(at("2026-12-01 22:00"))
    assert world.census.blocked(policy.ref, 5) == ()


def test_a_deadline_begins_when_the_gates_are_gone():
    world = World(make_policy(pending_deadline=60.0))
    world.add(replace(POD, ungated=NOON + 30))
    assert world.turns.next_turn() == NOON + 90


def test_time_does_not_count_for_gated_pods():
    world = World(make_policy(windows=NIGHT, pending_deadline=60.0))
    assert world.add(make_pod("web", gates=("g",))) == []
    assert world.turns.next_turn() is None


@pytest.mark.parametrize("flight", [False, True])
def test_a_rejection_lapses(flight):
    world = World(make_policy())
    world.add()
    queued = world.queue.pop(NOON)
    assert queued is not None
    if not flight:
        world.queue.requeue(POD.uid, frozenset({"NodeName"}), NOON)
    queued.lapses = NOON + 100
    world.turns.look(POD.uid, NOON)
    assert world.turns.next_turn() == NOON + 100
    world.turns.due(NOON + 100)
    if flight:
        world.queue.requeue(POD.uid, frozenset({"NodeName"}), NOON + 100)
        assert world.place is Place.BACKOFF
    else:
        assert world.place is Place.ACTIVE
    assert world.turns.next_turn() is None


def test_a_deadline_in_flight_is_told_when_the_pod_is_back():
    world = World(make_policy(pending_deadline=60.0))
    world.add()
    world.queue.pop(NOON)
    assert world.turns.due(NOON + 60) == []
    world.queue.requeue(POD.uid, frozenset({"NodeName"}), NOON + 70)
    told = world.turns.look(POD.uid, NOON + 70)
    assert [i.reason for i in of_type(told, Record, SetCondition)] == ["PendingDeadlineExceeded"] * 2
    assert world.turns.look(POD.uid, NOON + 80) == []


@pytest.mark.parametrize(
    ("seconds", "text"), [(90.0, "1m30s"), (3600.0, "1h"), (5400.0, "1h30m"), (0.5, "0.5s"), (0.0, "0s")]
)
def test_durations_are_written_as_policies_write_them(seconds, text):
    world = World(make_policy("p", pending_deadline=seconds))
    told = world.add(now=NOON + 10_000)
    assert (
        of_type(told, SetCondition)[0].message == f'pending for longer than the {text} that policy "p" allows'
    )


def test_a_pod_whose_victims_are_going_keeps_its_place():
    world = World(make_policy(windows=NIGHT))
    world.queue.add(POD, NOON, gated=False)
    world.queue.hold(POD.uid, NOON)
    assert world.turns.look(POD.uid, NOON) == []
    assert world.queue.held(POD.uid)
