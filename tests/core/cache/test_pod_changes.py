"""What counts as a change of a pod."""

from dataclasses import replace

import pytest

from moorage.core.cache.pod_changes import assigned_event, pending_event
from moorage.core.model.cluster_event import Action, ClusterEvent, Resource
from moorage.core.model.taint import Toleration
from tests.kit.models import make_pod, requests_of

POD = make_pod("web", cpu=500, memory=100, labels={"app": "web"})


def with_spec(pod, **fields):
    """The pod with some fields of its template changed."""
    return replace(pod, spec=replace(pod.spec, **fields))


def resized(**amounts):
    """The pod with other requests, in its template, too."""
    asked = requests_of(amounts)
    return with_spec(replace(POD, requests=asked), requests=asked)


TOLERANT = with_spec(POD, tolerations=(Toleration("x", "Exists"),))
GATED = replace(POD, gates=("one", "two"))


@pytest.mark.parametrize(
    ("before", "after", "action"),
    [
        (POD, replace(POD, labels={}), Action.UPDATE_POD_LABEL),
        (POD, TOLERANT, Action.UPDATE_POD_TOLERATIONS | Action.UPDATE_POD_OTHER),
        (POD, with_spec(POD, priority=5), Action.UPDATE_POD_OTHER),
        (POD, resized(cpu=400, memory=900), Action.UPDATE_POD_SCALE_DOWN | Action.UPDATE_POD_OTHER),
        (POD, resized(memory=100), Action.UPDATE_POD_SCALE_DOWN | Action.UPDATE_POD_OTHER),
        (POD, resized(cpu=501, memory=100), Action.UPDATE_POD_OTHER),
        (GATED, POD, Action.UPDATE_POD_GATES_ELIMINATED),
    ],
)
def test_changes_of_a_pending_pod(before, after, action):
    assert pending_event(before, after) == ClusterEvent(Resource.PENDING_POD, action, before, after)


@pytest.mark.parametrize(
    "after",
    [replace(POD, resource_version="2"), replace(POD, scheduled_condition=("False", "Unschedulable", "no"))],
)
def test_its_status_is_no_change(after):
    assert pending_event(POD, after) is None
    assert assigned_event(POD, after) is None


def test_a_gate_less_is_no_change_while_another_is_left():
    assert pending_event(GATED, replace(POD, gates=("two",))) is None


@pytest.mark.parametrize(
    ("after", "action"),
    [
        (replace(POD, labels={"app": "db"}), Action.UPDATE_POD_LABEL),
        (replace(POD, deleting=True), Action.UPDATE_POD_DELETING),
        (replace(POD, requests=requests_of({"cpu": 500, "memory": 99})), Action.UPDATE_POD_SCALE_DOWN),
        (replace(POD, requests=requests_of({"cpu": 600, "memory": 100, "x.com/y": 1})), None),
        (replace(POD, requests=requests_of({"cpu": 500, "memory": 100})), None),
        (TOLERANT, None),
    ],
)
def test_changes_of_a_bound_pod(after, action):
    expected = None if action is None else ClusterEvent(Resource.ASSIGNED_POD, action, POD, after)
    assert assigned_event(POD, after) == expected
