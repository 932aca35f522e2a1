"""The engine and what DeviceClasses and declared features change: who is refused with which words, and who is woken."""

from dataclasses import replace

from moorage.core.model.device_class import DeviceClass
from moorage.core.model.events import DeviceClassApplied, DeviceClassGone
from tests.core.driving import Driven, conditions, plain
from tests.kit.models import make_node, make_pod, make_spec

GPU = "example.com/gpu"
FAST = DeviceClass("fast", GPU)
POD = make_pod("web", more={GPU: 1})
ORDINARY = f"0/1 nodes are available: 1 Insufficient {GPU}."
DEVICES = (
    f"0/1 nodes are available: 1 node(s) could offer {GPU} only as devices of DeviceClass fast, "
    "which this scheduler does not support yet."
)


def texts(instructions):
    return [message for _, _, message in conditions(instructions)]


def test_the_words_follow_the_classes():
    """Each change wakes the pod; each try takes a moment of backoff."""
    driven = plain()
    driven.tell(make_node("a"), POD)
    assert texts(driven.run()) == [ORDINARY]
    driven.tell(DeviceClassApplied(FAST))
    assert texts(driven.later(2)) == [DEVICES]
    driven.tell(DeviceClassApplied(replace(FAST, extended_resource="example.com/other")))
    assert texts(driven.later(5)) == [ORDINARY]
    driven.tell(DeviceClassApplied(FAST))
    assert texts(driven.later(10)) == [DEVICES]
    driven.tell(DeviceClassGone("fast"))
    assert texts(driven.later(10)) == [ORDINARY]


def test_news_of_a_class_that_mean_nothing_to_the_pod_wake_nobody():
    driven = plain()
    driven.tell(make_node("a"), POD)
    driven.run()
    other = DeviceClass("slow", "example.com/slow")
    driven.tell(DeviceClassApplied(other), DeviceClassApplied(other), DeviceClassGone("slow"))
    assert driven.place_of(POD) == "unschedulable"
    driven.tell(DeviceClassGone("slow"))  # gone already
    assert driven.place_of(POD) == "unschedulable"


def test_a_node_that_advertises_the_resource_takes_the_pod():
    driven = plain()
    driven.tell(DeviceClassApplied(FAST), make_node("a"), POD)
    assert texts(driven.run()) == [DEVICES]
    driven.tell(make_node("a", more={GPU: 1}))
    assert driven.bound(seconds=2) == {"web": "a"}


def test_no_pod_has_to_go_for_devices():
    driven = Driven()
    driven.tell(DeviceClassApplied(FAST), make_node("a", cpu=1000), make_pod("low", cpu=1000, node="a"))
    driven.tell(make_pod("web", cpu=1000, more={GPU: 1}, priority=10))
    (text,) = texts(driven.run())
    assert text.endswith("preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.")


def test_a_node_that_declares_the_feature_takes_the_pod():
    driven = plain()
    pod = make_pod("web", required_features=("A",))
    driven.tell(make_node("a"), pod)
    text = "0/1 nodes are available: 1 node(s) didn't match Pod's required features."
    assert texts(driven.run()) == [text]
    driven.tell(make_node("a", declared_features=("B",)))
    assert driven.place_of(pod) == "unschedulable"
    driven.tell(make_node("a", declared_features=("A", "B")))
    assert driven.bound(seconds=2) == {"web": "a"}


def test_a_pod_that_needs_the_feature_no_more_is_tried_again():
    driven = plain()
    pod = make_pod("web", required_features=("A",))
    driven.tell(make_node("a"), pod)
    driven.run()
    driven.tell(replace(pod, spec=make_spec()))
    assert driven.bound(seconds=2) == {"web": "a"}
