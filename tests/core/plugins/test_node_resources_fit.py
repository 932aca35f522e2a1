"""NodeResourcesFit; its strategies have tests of their own, next to ``resource_scoring``."""

from dataclasses import replace

import pytest

from moorage.core.cache.node_changes import node_event
from moorage.core.cache.pod_changes import assigned_event, pending_event
from moorage.core.model.cluster_event import Action, ClusterEvent, Resource
from moorage.core.plugins.node_resources_fit import NodeResourcesFit
from moorage.core.snapshot.snapshot import Snapshot
from tests.kit.models import GI, make_node, make_pod, make_spec, requests_of
from tests.kit.plugin_checks import refusals, wakes

GPU = "example.com/gpu"
NODE = make_node("a", cpu=1000, memory=GI)
FIT = NodeResourcesFit()


def refused(pod, *pods, node=NODE, plugin=FIT):
    """The reasons against one node with these pods on it."""
    return refusals(plugin, pod, [node], pods).get(node.name, [])


def test_to_the_last_unit():
    there = make_pod("there", cpu=600, memory=GI - 1, node="a")
    assert refused(make_pod("web", cpu=400, memory=1), there) == []
    assert refused(make_pod("web", cpu=401, memory=1), there) == ["Insufficient cpu"]
    assert refused(make_pod("web", cpu=400, memory=2), there) == ["Insufficient memory"]


def test_every_shortage_is_told_in_the_order_of_kube_scheduler():
    asked = {"z.com/b": 1, "a.com/b": 1, "ephemeral-storage": 1, "memory": 2 * GI, "cpu": 9000}
    pod = make_pod("web", spec=make_spec(requests=requests_of(asked)))
    full = make_node("a", cpu=1, memory=1, pods=0)
    assert [text.strip("()") for text in refused(pod, node=full)] == [
        "Too many pods",
        "Insufficient cpu",
        "Insufficient memory",
        "Insufficient ephemeral-storage",
        "Insufficient a.com/b",
        "Insufficient z.com/b",
    ]


def test_what_even_an_empty_node_lacks_cannot_be_resolved():
    there = make_pod("there", cpu=500, node="a")
    assert refused(make_pod("web", cpu=1000), there) == ["Insufficient cpu"]
    assert refused(make_pod("web", cpu=1001), there) == ["(Insufficient cpu)"]
    assert refused(make_pod("web", more={GPU: 1})) == [f"(Insufficient {GPU})"]


def test_pods_are_counted_the_dying_ones_included():
    node = make_node("a", pods=1)
    assert refused(make_pod("web"), make_pod("dying", deleting=True, node="a"), node=node) == [
        "Too many pods"
    ]
    assert refused(make_pod("web"), node=make_node("a", pods=None)) == ["Too many pods"]


def test_asking_for_nothing_fits_even_an_overcommitted_node():
    there = make_pod("there", cpu=9000, node="a")
    assert refused(make_pod("web", cpu=0, more={GPU: 0}), there) == []
    assert refused(make_pod("web", cpu=1), there) == ["Insufficient cpu"]


def test_what_a_pod_takes_during_a_resize_counts_and_not_its_template():
    resized = make_pod("there", cpu=100, requests=requests_of({"cpu": 900}), node="a")
    assert refused(make_pod("web", cpu=200), resized) == ["Insufficient cpu"]


@pytest.mark.parametrize(
    ("plugin", "expected"),
    [
        (NodeResourcesFit(ignored=frozenset({GPU})), []),
        (NodeResourcesFit(ignored_groups=frozenset({"example.com"})), []),
        (NodeResourcesFit(ignored=frozenset({"example.com/other"})), [f"(Insufficient {GPU})"]),
        (
            NodeResourcesFit(ignored=frozenset({"cpu"}), ignored_groups=frozenset({"example"})),
            [f"(Insufficient {GPU})"],
        ),
    ],
)
def test_extended_resources_that_an_extender_looks_after(plugin, expected):
    assert refused(make_pod("web", more={GPU: 1}), plugin=plugin) == expected


def test_only_extended_resources_can_be_ignored():
    plugin = NodeResourcesFit(ignored=frozenset({"cpu", "hugepages-2Mi"}))
    pod = make_pod("web", cpu=5000, more={"hugepages-2Mi": 1})
    assert refused(pod, plugin=plugin) == ["(Insufficient cpu)", "(Insufficient hugepages-2Mi)"]


def test_the_pod_count_is_no_resource_to_ask_for():
    assert FIT.pre_filter(make_pod("web", more={"pods": 5}), Snapshot()) == ()


# -- what helps ------------------------------------------------------------------------------------

POD = make_pod("web", cpu=500)


@pytest.mark.parametrize(
    ("before", "after", "helps"),
    [
        (None, make_node("a", cpu=500), True),
        (None, make_node("a", cpu=499), False),
        (None, make_node("a", pods=0), False),
        (make_node("a", cpu=400), make_node("a", cpu=500), True),
        (make_node("a", cpu=400), make_node("a", cpu=499), False),
        (make_node("a", cpu=600), make_node("a", cpu=700), True),
        (make_node("a", cpu=700), make_node("a", cpu=600), False),
        (make_node("a", memory=1), make_node("a", memory=2), False),
        (make_node("a", pods=5), make_node("a", pods=6), True),
        (make_node("a", pods=0), make_node("a", pods=0, cpu=9000), False),
    ],
)
def test_nodes(before, after, helps):
    """A node that grows in what the pod asks for, if it would take the pod were it empty."""
    assert wakes(FIT, POD, node_event(before, after)) is helps


def test_labels_of_nodes_do_not():
    assert not wakes(FIT, POD, node_event(NODE, replace(NODE, labels={"x": "y"})))


def test_pods_that_go_or_shrink():
    there = make_pod("there", cpu=500, memory=500, node="a")
    assert wakes(FIT, POD, ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE, there, None))
    for cpu, memory, helps in ((499, 500, True), (500, 400, False), (600, 400, False)):
        smaller = replace(there, requests=requests_of({"cpu": cpu, "memory": memory}))
        assert wakes(FIT, POD, assigned_event(there, smaller)) is helps


def test_the_pod_itself_asking_for_less():
    for cpu, helps in ((400, True), (600, False)):
        asked = requests_of({"cpu": cpu})
        changed = replace(POD, spec=replace(POD.spec, requests=asked), requests=asked)
        assert wakes(FIT, POD, pending_event(POD, changed)) is helps
