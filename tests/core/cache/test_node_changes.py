"""What counts as a change of a node."""

from dataclasses import replace

import pytest

from moorage.core.cache.node_changes import guard_ready, node_event
from moorage.core.model.cluster_event import Action, ClusterEvent, Resource
from moorage.core.model.taint import NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE, Taint
from tests.kit.models import make_node, taint

NODE = make_node("a", labels={"zone": "x"}, taints=[taint("old")], condition_statuses=(("Ready", "True"),))


def test_a_new_node():
    assert node_event(None, NODE) == ClusterEvent(Resource.NODE, Action.ADD, None, NODE)


@pytest.mark.parametrize(
    ("after", "action"),
    [
        (replace(NODE, allocatable={"cpu": 1}), Action.UPDATE_NODE_ALLOCATABLE),
        (replace(NODE, labels={"zone": "y"}), Action.UPDATE_NODE_LABEL),
        (replace(NODE, taints=()), Action.UPDATE_NODE_TAINT),
        (replace(NODE, unschedulable=True), Action.UPDATE_NODE_TAINT),
        (replace(NODE, condition_statuses=(("Ready", "False"),)), Action.UPDATE_NODE_CONDITION),
        (replace(NODE, annotations={"a": "b"}), Action.UPDATE_NODE_ANNOTATION),
        (replace(NODE, declared_features=("f",)), Action.UPDATE_NODE_DECLARED_FEATURE),
        (replace(NODE, labels={}, taints=()), Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT),
    ],
)
def test_each_part_has_an_action_of_its_own(after, action):
    assert node_event(NODE, after) == ClusterEvent(Resource.NODE, action, NODE, after)


def test_heartbeats_and_images_are_no_change():
    assert node_event(NODE, replace(NODE, images={"app:1": 5})) is None
    assert node_event(NODE, replace(NODE)) is None


@pytest.mark.parametrize(
    ("ready", "key"),
    [("False", "node.kubernetes.io/not-ready"), ("Unknown", "node.kubernetes.io/unreachable")],
)
def test_a_node_that_is_not_ready_gets_the_taint_it_lacks(ready, key):
    node = replace(NODE, ready=ready)
    assert guard_ready(node).taints == (*NODE.taints, Taint(key, "", NO_SCHEDULE))


@pytest.mark.parametrize("effect", [NO_EXECUTE, PREFER_NO_SCHEDULE])
def test_the_taint_of_another_effect_is_not_enough(effect):
    mark = Taint("node.kubernetes.io/not-ready", "", effect)
    assert guard_ready(replace(NODE, ready="False", taints=(mark,))).taints == (
        mark,
        replace(mark, effect=NO_SCHEDULE),
    )


def test_a_node_with_the_taint_stays_as_it_is():
    node = replace(NODE, ready="False", taints=(taint("node.kubernetes.io/not-ready", "any value"),))
    assert guard_ready(node) is node


@pytest.mark.parametrize("ready", ["True", "", "Nonsense"])
def test_other_nodes_stay_as_they_are(ready):
    node = replace(NODE, ready=ready)
    assert guard_ready(node) is node
