"""Where pods wait and what brings them back; any order of calls is tried in ``tests/laws/test_queue_machine.py``."""

from dataclasses import replace

import pytest

from moorage.core.model.cluster_event import Action, ClusterEvent, Resource, WakesOn
from moorage.core.model.instructions import Fault
from moorage.core.model.policy import Backoff
from moorage.core.queue.scheduling_queue import Place, QueueSettings, SchedulingQueue
from tests.core.driving import explode
from tests.kit.models import make_pod, make_spec

NODE_ADDED = ClusterEvent(Resource.NODE, Action.ADD, None, "a node")
POD_GONE = ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE, "a pod", None)


class Hints:
    """What wakes pods that plugin Fit rejected, and the pods it was asked about."""

    def __init__(self, *, per_spec: bool = True) -> None:
        self.asked: list[str] = []
        interest = WakesOn(Resource.NODE, Action.ADD, self.hint, per_spec=per_spec)
        self.wakes = {"Fit": (interest,), "Other": (WakesOn(Resource.ASSIGNED_POD, Action.DELETE),)}

    def hint(self, pod, event):
        """Only pods with the label."""
        self.asked.append(pod.name)
        return "awake" in pod.labels


def queue_with(*pods, hints=None, **settings):
    """A queue of these pods, all in at 100."""
    wakes = (hints or Hints()).wakes
    queue = SchedulingQueue(
        lambda pod, since: (-pod.priority, since), lambda pod: wakes, QueueSettings(**settings)
    )
    for pod in pods:
        queue.add(pod, 100.0, gated=False)
    return queue


def rejected(*pods, by="Fit", now=100.0, hints=None, **settings):
    """The pods were tried, and rejected by that plugin."""
    queue = queue_with(*pods, hints=hints, **settings)
    for _ in pods:
        queue.pop(now)
    for pod in pods:
        queue.requeue(pod.uid, frozenset({by}), now)
    return queue


def place(queue, pod):
    """Where the pod is."""
    return queue.get(pod.uid).place


WEB = make_pod("web", labels={"awake": "yes"})
DEAF = make_pod("deaf")


def test_a_try_begins_and_ends():
    queue = queue_with(WEB)
    queued = queue.pop(101.0)
    assert (queued.pod, queued.attempts, queued.place) == (WEB, 1, Place.IN_FLIGHT)
    assert queue.pop(101.0) is None
    assert queue.remove(WEB.uid) is queued
    assert (len(queue), queue.remove(WEB.uid)) == (0, None)


def test_names_of_the_places_are_the_metric_s_labels():
    queue = queue_with(WEB)
    counts = {name.value: number for name, number in queue.counts().items()}
    assert counts == {"active": 1, "backoff": 0, "unschedulable": 0, "gated": 0, "in-flight": 0}


def test_a_change_wakes_those_whose_plugin_says_it_helps():
    queue = rejected(WEB, DEAF)
    assert queue.wake(POD_GONE, 200.0) == 0
    assert queue.wake(NODE_ADDED, 200.0) == 1
    assert (place(queue, WEB), place(queue, DEAF)) == (Place.ACTIVE, Place.UNSCHEDULABLE)


def test_a_pod_woken_in_its_backoff_waits_the_rest_of_it():
    queue = rejected(WEB)
    queue.wake(NODE_ADDED, 100.5)
    assert place(queue, WEB) is Place.BACKOFF
    assert queue.next_wake() == 101.0


def test_a_pod_woken_at_the_very_end_of_its_backoff_is_active():
    queue = rejected(WEB)
    queue.wake(NODE_ADDED, 101.0)
    assert place(queue, WEB) is Place.ACTIVE


def test_a_pod_that_no_plugin_rejected_is_woken_by_everything():
    queue = queue_with(WEB)
    queue.pop(100.0)
    queue.requeue(WEB.uid, frozenset(), 100.0)
    assert queue.wake(POD_GONE, 200.0) == 1


def test_one_pod_can_be_left_out():
    queue = rejected(WEB)
    assert queue.wake(NODE_ADDED, 200.0, but=WEB.uid) == 0
    assert place(queue, WEB) is Place.UNSCHEDULABLE


def test_a_change_during_the_try_counts_at_its_end():
    queue = queue_with(WEB, DEAF)
    queue.pop(100.0)
    queue.pop(100.0)
    queue.wake(NODE_ADDED, 100.0)
    for pod in (WEB, DEAF):
        queue.requeue(pod.uid, frozenset({"Fit"}), 100.0)
    assert (place(queue, WEB), place(queue, DEAF)) == (Place.BACKOFF, Place.UNSCHEDULABLE)


def test_hints_are_asked_once_for_alike_pods_unless_they_read_more_than_the_spec():
    spec = make_spec()
    for per_spec, asked in ((True, 1), (False, 3)):
        hints = Hints(per_spec=per_spec)
        queue = rejected(*(make_pod(f"p{i}", spec=spec) for i in range(3)), hints=hints)
        queue.wake(NODE_ADDED, 200.0)
        assert len(hints.asked) == asked


def test_a_hint_that_raises_counts_as_help_and_is_told_once():
    hints = Hints()
    hints.wakes["Fit"] = (WakesOn(Resource.NODE, Action.ADD, explode),)
    queue = rejected(DEAF, hints=hints)
    assert queue.wake(NODE_ADDED, 200.0) == 1
    assert queue.drain_faults() == [Fault("queueing hint explode: RuntimeError: boom", DEAF.ref)]
    assert queue.drain_faults() == []


def test_backoff_doubles_for_rejections_and_for_errors_apart():
    queue = queue_with(WEB)
    waits = []
    for now in (1000.0, 2000.0, 3000.0, 4000.0, 5000.0):
        queue.activate(WEB.uid, now)
        queue.pop(now)
        queue.requeue(WEB.uid, frozenset({"Fit"}), now)
        waits.append(queue.get(WEB.uid).backoff_until - now)
    assert waits == [1.0, 2.0, 4.0, 8.0, 10.0]
    queue.activate(WEB.uid, 6000.0)
    queue.pop(6000.0)
    queue.retry_after_error(WEB.uid, 6000.0)
    assert queue.get(WEB.uid).backoff_until == 6001.0


def test_an_error_waits_at_least_as_long_as_the_server_asks():
    queue = queue_with(WEB)
    queue.pop(100.0)
    queue.retry_after_error(WEB.uid, 100.0, 7.0)
    assert queue.pop(106.9) is None
    assert queue.pop(107.0).pod is WEB


def test_a_rejection_ends_a_row_of_errors():
    queue = queue_with(WEB)
    for now in (100.0, 200.0, 300.0):
        queue.pop(now)
        queue.retry_after_error(WEB.uid, now)
    assert queue.get(WEB.uid).backoff_until == 304.0
    queue.pop(400.0)
    queue.requeue(WEB.uid, frozenset(), 400.0)
    queue.activate(WEB.uid, 400.0)
    queue.pop(400.0)
    queue.retry_after_error(WEB.uid, 400.0)
    assert queue.get(WEB.uid).backoff_until == 401.0


def test_an_idle_queue_tries_a_pod_before_its_backoff_ends_but_not_after_an_error():
    queue = rejected(WEB)
    queue.wake(NODE_ADDED, 100.1)
    assert queue.ready(100.1)
    assert queue.pop(100.1).pod is WEB
    queue.retry_after_error(WEB.uid, 100.1)
    assert not queue.ready(100.2)
    assert queue.pop(100.2) is None


def test_the_flush_takes_those_that_waited_long_and_leaves_the_others():
    queue = rejected(WEB, flush_after=60.0, flush_every=10.0)
    late = make_pod("late")
    queue.add(late, 130.0, gated=False)
    queue.pop(130.0)
    queue.requeue(late.uid, frozenset({"Fit"}), 130.0)
    assert queue.pop(159.0) is None
    assert queue.pop(169.0).pod is WEB
    assert place(queue, late) is Place.UNSCHEDULABLE


def test_a_pod_is_flushed_at_the_very_end_of_its_time():
    queue = rejected(DEAF, flush_every=1.0)
    assert queue.pop(399.0) is None
    assert queue.pop(400.0).pod is DEAF


def test_an_active_pod_goes_before_one_that_backs_off_whatever_their_priorities():
    urgent, plain = make_pod("urgent", labels={"awake": "yes"}, priority=9), make_pod("plain")
    queue = rejected(urgent)
    queue.wake(NODE_ADDED, 100.5)
    assert place(queue, urgent) is Place.BACKOFF
    queue.add(plain, 100.5, gated=False)
    assert [queue.pop(100.5).pod, queue.pop(100.5).pod] == [plain, urgent]


def test_gates():
    queue = queue_with()
    queue.add(WEB, 100.0, gated=True)
    assert (place(queue, WEB), queue.pop(100.0)) == (Place.GATED, None)
    queue.activate(WEB.uid, 150.0)
    assert place(queue, WEB) is Place.GATED
    queue.ungate(WEB.uid, 200.0)
    assert (queue.get(WEB.uid).added, place(queue, WEB)) == (200.0, Place.ACTIVE)
    queue.gate(WEB.uid, 201.0)
    assert queue.pop(201.0) is None


def test_a_pod_in_flight_is_neither_gated_nor_woken():
    queue = queue_with(WEB)
    queue.pop(100.0)
    queue.gate(WEB.uid, 100.0)
    queue.activate(WEB.uid, 100.0)
    queue.wake(NODE_ADDED, 100.0)
    assert place(queue, WEB) is Place.IN_FLIGHT


def test_a_new_priority_changes_the_place_in_line():
    first, second = make_pod("first"), make_pod("second")
    queue = queue_with(first, second)
    queue.update(replace(second, spec=make_spec(priority=5)), 101.0)
    assert [queue.pop(102.0).pod.name for _ in range(2)] == ["second", "first"]


def test_an_update_of_a_pod_nobody_knows():
    with pytest.raises(LookupError, match=r"pod default/web \(uid-web\) is not in the queue"):
        queue_with().update(WEB, 100.0)


def test_who_was_tried_last_goes_behind_its_equals():
    first, second = make_pod("first"), make_pod("second")
    queue = queue_with(first)
    queue.add(second, 100.5, gated=False)
    queue.pop(101.0)
    queue.retry_now(first.uid, 101.0)
    assert queue.pop(101.0).pod is first
    queue.requeue(first.uid, frozenset({"Fit"}), 101.0)
    queue.activate(first.uid, 102.0)
    assert queue.pop(102.0).pod is second


def test_a_change_of_a_pod_itself_is_judged_for_that_pod_alone():
    hints = Hints()
    hints.wakes["Fit"] = (WakesOn(Resource.PENDING_POD, Action.UPDATE_POD_LABEL),)
    queue = rejected(WEB, DEAF, hints=hints)
    queue.wake_pod(WEB.uid, ClusterEvent(Resource.PENDING_POD, Action.UPDATE_POD_LABEL, WEB, WEB), 200.0)
    assert (place(queue, WEB), place(queue, DEAF)) == (Place.ACTIVE, Place.UNSCHEDULABLE)


def test_nothing_to_wait_for():
    queue = queue_with(WEB)
    assert (queue.ready(100.0), queue.next_wake()) == (True, None)
    queue.pop(100.0)
    assert (queue.ready(100.0), queue.next_wake()) == (False, None)


def test_a_nudge_wakes_one_pod_whatever_rejected_it():
    queue = rejected(WEB, DEAF)
    queue.nudge(DEAF.uid, 200.0)
    assert (place(queue, WEB), place(queue, DEAF)) == (Place.UNSCHEDULABLE, Place.ACTIVE)
    queue.nudge(DEAF.uid, 200.0)
    assert place(queue, DEAF) is Place.ACTIVE


def test_a_nudge_in_the_backoff_waits_for_its_end():
    queue = rejected(WEB)
    queue.nudge(WEB.uid, 100.5)
    assert place(queue, WEB) is Place.BACKOFF


def test_a_nudge_in_flight_counts_at_the_end_of_the_try():
    queue = queue_with(DEAF)
    queue.pop(100.0)
    queue.nudge(DEAF.uid, 100.0)
    queue.requeue(DEAF.uid, frozenset({"Fit"}), 100.0)
    assert place(queue, DEAF) is Place.BACKOFF


def test_a_nudge_under_hold_counts_at_its_end():
    queue = rejected(DEAF)
    queue.hold(DEAF.uid, 101.0)
    queue.nudge(DEAF.uid, 102.0)
    assert place(queue, DEAF) is Place.GATED
    queue.end_hold(DEAF.uid, 200.0)
    assert place(queue, DEAF) is Place.ACTIVE


def test_a_pod_that_is_held_back_has_not_been_tried():
    queue = queue_with(WEB)
    queue.pop(100.0)
    queue.hold_back(WEB.uid, 100.0)
    assert (place(queue, WEB), queue.get(WEB.uid).attempts, list(queue.in_flight())) == (Place.GATED, 0, [])


def test_a_pod_that_was_only_held_keeps_its_age():
    old, young = make_pod("old"), make_pod("young")
    queue = queue_with(old, young)
    for pod in (young, old):
        queue.gate(pod.uid, 110.0)
    queue.ungate(young.uid, 120.0, keeps_age=True)
    queue.get(old.uid).age_from = 90.0
    queue.ungate(old.uid, 120.0, keeps_age=True)
    assert queue.pop(120.0).pod is old
    assert queue.get(old.uid).added == 120.0


def test_who_leaves_is_told():
    left: list[str] = []
    queue = SchedulingQueue(lambda pod, since: (since,), lambda pod: {}, left=left.append)
    queue.add(WEB, 100.0, gated=False)
    queue.remove("nobody")
    queue.remove(WEB.uid)
    assert left == [WEB.uid]


@pytest.mark.parametrize(
    ("own", "seconds"),
    [
        (Backoff(), [1, 2, 4, 8, 10]),
        (Backoff(initial=3.0), [3, 6, 10, 10, 10]),
        (Backoff(initial=30.0), [30, 30, 30, 30, 30]),
        (Backoff(longest=3.0), [1, 2, 3, 3, 3]),
        (Backoff(longest=0.5), [0.5, 0.5, 0.5, 0.5, 0.5]),
        (Backoff(2.0, 20.0), [2, 4, 8, 16, 20]),
    ],
)
def test_a_backoff_of_the_pods_own(own, seconds):
    queue = SchedulingQueue(lambda pod, since: (since,), lambda pod: {}, backoff_of=lambda pod: own)
    assert [queue._backoff_seconds(WEB, count) for count in range(1, 6)] == seconds


def test_errors_go_by_a_backoff_of_the_pods_own_too():
    own = Backoff(initial=3.0)
    queue = SchedulingQueue(lambda pod, since: (since,), lambda pod: {}, backoff_of=lambda pod: own)
    queue.add(WEB, 100.0, gated=False)
    queue.pop(100.0)
    queue.retry_after_error(WEB.uid, 100.0)
    queued = queue.get(WEB.uid)
    assert queued is not None
    assert queued.backoff_until == 103.0


def test_pods_of_other_profiles_wait_apart_until_they_are_regrouped():
    """The names of plugins are the same, what wakes them is not."""
    sleepy: dict = {"Fit": (WakesOn(Resource.NODE, Action.DELETE),)}
    lively: dict = {"Fit": (WakesOn(Resource.NODE, Action.ADD),)}
    profiles = {WEB.uid: sleepy, DEAF.uid: lively}
    queue = SchedulingQueue(lambda pod, since: (since,), lambda pod: profiles[pod.uid])
    for pod in (WEB, DEAF):
        queue.add(pod, 100.0, gated=False)
        queue.pop(100.0)
        queue.requeue(pod.uid, frozenset({"Fit"}), 100.0)
    queue.wake(NODE_ADDED, 200.0)
    assert (place(queue, WEB), place(queue, DEAF)) == (Place.UNSCHEDULABLE, Place.ACTIVE)
    profiles[WEB.uid] = lively
    queue.regroup(WEB.uid)
    queue.wake(NODE_ADDED, 200.0)
    assert place(queue, WEB) is Place.ACTIVE
