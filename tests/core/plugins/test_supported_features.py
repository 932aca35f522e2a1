"""SupportedFeatures: ours; what cannot be honoured is refused with words."""

from dataclasses import replace

import pytest

from moorage.core.cache.node_changes import node_event
from moorage.core.cache.pod_changes import pending_event
from moorage.core.framework.interface import Rejected, Skip
from moorage.core.model.cluster_event import Action, ClusterEvent, Resource
from moorage.core.model.decision import Code
from moorage.core.model.device_class import DeviceClass
from moorage.core.plugins.supported_features import SupportedFeatures
from moorage.core.snapshot.snapshot import Snapshot
from tests.kit.models import make_node, make_pod
from tests.kit.plugin_checks import alive_rows, wakes
from tests.kit.plugin_checks import told as all_told
from tests.kit.strategies import Cluster, build

ODD = make_pod("web", unsupported=("resource claims",), invalid=("spec.x: not a number",))


def test_every_feature_and_every_unreadable_field_is_named():
    reasons = (
        "pod asks for resource claims, which this scheduler does not support yet",
        "pod cannot be read: spec.x: not a number",
    )
    assert SupportedFeatures().pre_filter(ODD, Snapshot()) == Rejected(reasons, Code.UNRESOLVABLE)


def test_a_pod_that_asks_for_nothing_odd_is_let_through():
    assert SupportedFeatures().pre_filter(make_pod("web"), Snapshot()) is Skip.SKIP


GPU, IMPLICIT = "example.com/gpu", "deviceclass.resource.kubernetes.io/fast"
FAST = DeviceClass("fast", GPU)
TEXT = (
    "(node(s) could offer {} only as devices of DeviceClass fast, which this scheduler does not support yet)"
)


def told(pod, *nodes, classes=(FAST,)):
    snapshot = build(Cluster(nodes, (), device_classes=tuple(classes)))
    answers = all_told(SupportedFeatures(), snapshot, pod, alive_rows(snapshot))
    return {
        name: [f"({text})" for text, resolvable in reasons if not resolvable]
        for name, reasons in answers.items()
    }


@pytest.mark.parametrize("resource", [GPU, IMPLICIT])
def test_devices_are_refused_where_the_node_does_not_advertise_the_resource(resource):
    pod = make_pod("web", more={resource: 1})
    nodes = make_node("plain"), make_node("none", more={resource: 0}), make_node("plugin", more={resource: 1})
    refused = [TEXT.format(resource)]
    assert told(pod, *nodes) == {"plain": refused, "none": refused, "plugin": []}


def test_without_a_class_the_resource_is_an_ordinary_one():
    pod = make_pod("web", more={GPU: 1, IMPLICIT: 1})
    for classes in ((), (DeviceClass("slow", "example.com/slow"),)):
        assert told(pod, make_node("plain"), classes=classes) == {"plain": []}
    assert told(make_pod("web", more={GPU: 0}), make_node("plain")) == {"plain": []}


def test_each_resource_has_its_reason():
    pod = make_pod("web", more={GPU: 1, IMPLICIT: 1})
    nodes = make_node("plain"), make_node("plugin", more={GPU: 1})
    both = [TEXT.format(IMPLICIT), TEXT.format(GPU)]
    assert told(pod, *nodes) == {"plain": both, "plugin": both[:1]}


def test_a_class_that_goes_or_changes_its_resource_helps():
    plugin, pod = SupportedFeatures(), make_pod("web", more={GPU: 1})
    other = replace(FAST, extended_resource="example.com/other")
    for old, new, helps in (
        (FAST, None, True),
        (FAST, other, True),
        (other, FAST, False),
        (other, None, False),
        (FAST, replace(FAST, created=1.0), False),
    ):
        action = Action.DELETE if new is None else Action.UPDATE
        assert wakes(plugin, pod, ClusterEvent(Resource.DEVICE_CLASS, action, old, new)) is helps
    assert not wakes(plugin, pod, ClusterEvent(Resource.DEVICE_CLASS, Action.ADD, None, FAST))


def test_a_node_that_begins_to_advertise_the_resource_helps():
    plugin, pod = SupportedFeatures(), make_pod("web", more={GPU: 1})
    without, one, two = make_node("a"), make_node("a", more={GPU: 1}), make_node("a", more={GPU: 2})
    assert wakes(plugin, pod, node_event(None, one))
    assert wakes(plugin, pod, node_event(without, one))
    assert not wakes(plugin, pod, node_event(one, two))
    assert not wakes(plugin, pod, node_event(None, without))
    assert not wakes(plugin, make_pod("other"), node_event(without, one))


def test_only_another_template_helps():
    changed = replace(ODD, spec=replace(ODD.spec, unsupported=()))
    assert wakes(SupportedFeatures(), ODD, pending_event(ODD, changed))
    assert not wakes(SupportedFeatures(), ODD, pending_event(ODD, replace(ODD, labels={"x": "y"})))
    assert not wakes(SupportedFeatures(), ODD, node_event(None, make_node("a")))
