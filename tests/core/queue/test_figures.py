"""What the queue counts for metrics, in kube-scheduler's words."""

import pytest

from moorage.core.model.cluster_event import Action, ClusterEvent, Resource, WakesOn
from moorage.core.queue.figures import Cause, QueueFigures, cause_of
from moorage.core.queue.scheduling_queue import SchedulingQueue
from tests.kit.models import make_pod

NODE_ADDED = ClusterEvent(Resource.NODE, Action.ADD)


@pytest.mark.parametrize(
    ("resource", "action", "label"),
    [
        (Resource.NODE, Action.ADD, "NodeAdd"),
        (Resource.ASSIGNED_POD, Action.DELETE, "AssignedPodDelete"),
        (Resource.NODE, Action.UPDATE_NODE_TAINT, "NodeUpdateNodeTaint"),
        (Resource.NODE, Action.UPDATE_NODE_TAINT | Action.UPDATE_NODE_LABEL, "NodeUpdate"),
        (Resource.PENDING_POD, Action.UPDATE_POD_TOLERATIONS, "TargetPodUpdatePodToleration"),
        (Resource.STORAGE_CLASS, Action.ADD, "storage.k8s.io/StorageClassAdd"),
        (Resource.PERSISTENT_VOLUME, Action.UPDATE_OTHER, "PersistentVolumeUpdate"),
    ],
)
def test_changes_have_kube_schedulers_names(resource, action, label):
    assert cause_of(resource, action) == label


@pytest.fixture
def queue():
    """Pods rejected by Fussy wake when a node comes."""
    wakes = {"Fussy": (WakesOn(Resource.NODE, Action.ADD),), "Other": ()}
    return SchedulingQueue(lambda pod, age: (float(-pod.priority), age), lambda pod: wakes)


def came(queue):
    return dict(queue.figures.incoming)


def test_a_pod_is_counted_whenever_it_comes_into_a_place(queue):
    pod = make_pod("p")
    queue.add(pod, 0.0, gated=False)
    assert queue.pop(0.0).pod is pod
    queue.requeue(pod.uid, frozenset({"Fussy"}), 0.0)
    queue.wake(NODE_ADDED, 0.5)
    assert queue.pop(2.0).pod is pod
    assert came(queue) == {
        ("active", Cause.POD_ADDED): 1,
        ("unschedulable", Cause.FAILED): 1,
        ("backoff", "NodeAdd"): 1,
        ("active", Cause.BACKOFF_OVER): 1,
    }


def test_a_pod_that_is_taken_before_its_backoff_is_over(queue):
    pod = make_pod("p")
    queue.add(pod, 0.0, gated=False)
    queue.pop(0.0)
    queue.wake(NODE_ADDED, 0.0)
    queue.requeue(pod.uid, frozenset({"Fussy"}), 0.0)
    assert queue.pop(0.1).pod is pod
    assert came(queue)["backoff", Cause.FAILED] == 1
    assert came(queue)["active", Cause.TAKEN_EARLY] == 1


def test_gates_errors_and_the_periodic_flush(queue):
    pod = make_pod("p")
    queue.add(pod, 0.0, gated=True)
    queue.ungate(pod.uid, 1.0)
    queue.pop(1.0)
    queue.retry_after_error(pod.uid, 1.0)
    assert came(queue) == {
        ("gated", Cause.POD_ADDED): 1,
        ("active", Cause.GATE_CHANGED): 1,
        ("backoff", Cause.FAILED): 1,
    }
    queue.pop(10.0)
    queue.requeue(pod.uid, frozenset({"Other"}), 10.0)
    assert queue.pop(1000.0).pod is pod
    assert came(queue)["active", Cause.WAITED_LONG] == 1


def test_who_keeps_pods_from_being_placed(queue):
    first, second = make_pod("a"), make_pod("b")
    for pod in (first, second):
        queue.add(pod, 0.0, gated=False)
        queue.pop(0.0)
        queue.requeue(pod.uid, frozenset({"Fussy", "Other"}), 0.0)
    name = first.spec.scheduler_name
    assert queue.figures.rejected == {("Fussy", name): 2, ("Other", name): 2}
    queue.wake(NODE_ADDED, 5.0)
    queue.pop(5.0)
    queue.requeue(first.uid, frozenset({"Other"}), 5.0)
    assert queue.figures.rejected == {("Fussy", name): 1, ("Other", name): 2}
    queue.remove(second.uid)
    assert queue.figures.rejected == {("Other", name): 1}
    queue.remove(first.uid)
    assert queue.figures.rejected == {}


def test_a_pod_without_a_cause_was_there_already():
    figures = QueueFigures()
    figures.came("gated", "")
    assert not figures.incoming
