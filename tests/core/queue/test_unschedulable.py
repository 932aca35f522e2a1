"""Waiting pods: alike ones wait together, and hints are asked no more often than they have to be."""

from dataclasses import replace

from moorage.core.model.cluster_event import Action, ClusterEvent, Resource, WakesOn
from moorage.core.queue.scheduling_queue import Place, QueuedPod, SchedulingQueue
from moorage.core.queue.unschedulable import UnschedulablePods
from tests.kit.models import make_pod, make_spec


def labels_of(pod):
    return pod.namespace, tuple(pod.labels.items())


NODE = ClusterEvent(Resource.NODE, Action.ADD)
LABELS = {"app": "web"}
SPEC = make_spec()


class Asked:
    """A hint that remembers whom it was asked about and says yes to pods of these names."""

    def __init__(self, *helped, raises=False):
        self.helped = helped
        self.pods = []
        self.raises = raises

    def __call__(self, pod, event):
        self.pods.append(pod.name)
        if self.raises:
            raise RuntimeError("boom")
        return pod.name in self.helped


def room(hint=None, **scope):
    wakes = {"Fit": (WakesOn(Resource.NODE, Action.ADD, hint, **scope),)}
    return UnschedulablePods(lambda pod: wakes)


def queued(name, *, rejectors=("Fit",), **fields):
    pod = make_pod(name, spec=fields.pop("spec", SPEC), labels=fields.pop("labels", LABELS), **fields)
    return QueuedPod(pod, 0.0, Place.UNSCHEDULABLE, 0.0, 0.0, 0.0, rejectors=frozenset(rejectors))


def filled(waiting, *entries):
    for entry in entries:
        waiting.add(entry)
    return waiting


def names(found):
    return [entry.pod.name for entry in found]


def test_without_a_hint_every_change_of_the_kind_helps_everybody():
    waiting = filled(room(), queued("a"), queued("b"), queued("c", rejectors=("Other",)))
    assert names(waiting.helped_by(NODE)) == ["a", "b"]
    assert names(waiting.helped_by(ClusterEvent(Resource.NODE, Action.DELETE))) == []
    assert names(waiting.helped_by(NODE, but="uid-a")) == ["b"]


def test_a_hint_about_specs_is_asked_once_for_a_template():
    hint = Asked("a")
    waiting = filled(room(hint), queued("a"), queued("b", labels={}), queued("c", spec=make_spec()))
    assert names(waiting.helped_by(NODE)) == ["a", "b"]
    assert hint.pods == ["a", "c"]


def test_a_hint_that_says_who_is_alike_is_asked_once_for_those():
    hint = Asked("a")
    waiting = filled(
        room(hint, alike=labels_of),
        queued("a"),
        queued("b"),
        queued("c", labels={}),
        queued("d", namespace="other"),
    )
    assert names(waiting.helped_by(NODE)) == ["a", "b"]
    assert hint.pods == ["a", "c", "d"]


def test_a_hint_about_pods_is_asked_about_each():
    hint = Asked("b")
    waiting = filled(room(hint, per_spec=False), queued("a"), queued("b"))
    assert names(waiting.helped_by(NODE)) == ["b"]
    assert hint.pods == ["a", "b"]


def test_a_changed_pod_waits_among_its_new_likes():
    hint = Asked("b")
    waiting = filled(room(hint, alike=labels_of), queued("a"), queued("b"))
    changed = queued("b")
    changed.pod = replace(changed.pod, labels={"other": "labels"})
    waiting.add(changed)
    assert names(waiting.helped_by(NODE)) == ["b"]
    assert len(waiting) == 2


def test_pods_without_a_rejector_are_helped_by_anything():
    waiting = filled(room(Asked()), queued("a", rejectors=()))
    assert names(waiting.helped_by(ClusterEvent(Resource.WORKLOAD, Action.DELETE))) == ["a"]
    assert waiting.helps(queued("b", rejectors=()), NODE)


def test_profiles_are_told_apart():
    waiting = UnschedulablePods(
        lambda pod: {"Fit": (WakesOn(Resource.NODE, Action.ADD),)} if pod.spec.scheduler_name == "one" else {}
    )
    filled(
        waiting,
        queued("a", spec=make_spec(scheduler_name="two")),
        queued("b", spec=make_spec(scheduler_name="one")),
    )
    assert names(waiting.helped_by(NODE)) == ["b"]


def test_a_hint_that_raises_counts_as_help_and_is_told():
    waiting = filled(room(Asked(raises=True)), queued("a"))
    assert names(waiting.helped_by(NODE)) == ["a"]
    (fault,) = waiting.drain_faults()
    assert "RuntimeError: boom" in fault.message
    assert waiting.drain_faults() == []


def test_pods_leave():
    waiting = filled(room(), queued("a"), queued("b"))
    waiting.discard("uid-a")
    waiting.discard("uid-a")
    assert names(waiting.everyone()) == ["b"]
    waiting.discard("uid-b")
    assert len(waiting) == 0
    assert waiting._rooms == {}


def test_the_queue_files_a_changed_pod_anew():
    hint = Asked("b")
    interest = WakesOn(Resource.NODE, Action.ADD, hint, alike=labels_of)
    queue = SchedulingQueue(lambda pod, since: (since,), lambda pod: {"Fit": (interest,)})
    for name in "ab":
        queue.add(make_pod(name, spec=SPEC, labels=LABELS), 0.0, gated=False)
        queue.pop(0.0)
        queue.requeue(f"uid-{name}", frozenset(("Fit",)), 0.0)
    queue.update(make_pod("b", spec=SPEC, labels={"other": "labels"}), 1.0)
    assert queue.wake(NODE, 1.0) == 1
    assert hint.pods == ["a", "b"]


def test_a_change_that_concerns_nobody_asks_nobody():
    hint = Asked("a")
    waiting = filled(room(hint, concerns=lambda event: event.new is not None), queued("a"))
    assert names(waiting.helped_by(NODE)) == []
    assert hint.pods == []
    assert names(waiting.helped_by(replace(NODE, new=1))) == ["a"]


def test_pods_that_come_later_are_sorted_in():
    hint = Asked("a", "c")
    waiting = filled(room(hint, alike=labels_of), queued("a"))
    assert names(waiting.helped_by(NODE)) == ["a"]
    filled(waiting, queued("b"), queued("c", labels={}))
    waiting.discard("uid-a")
    assert names(waiting.helped_by(NODE)) == ["c"]
    assert hint.pods == ["a", "b", "c"]


def test_one_answer_counts_for_all_rooms():
    hint = Asked("a")
    interest = (WakesOn(Resource.NODE, Action.ADD, hint),)
    waiting = UnschedulablePods(lambda pod: {"Fit": interest, "Other": interest})
    filled(waiting, queued("a"), queued("b", rejectors=("Fit", "Other")))
    assert names(waiting.helped_by(NODE)) == ["a", "b"]
    assert hint.pods == ["a"]
