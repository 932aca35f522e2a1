"""What an API server adds to terse objects."""

from copy import deepcopy

import pytest

from moorage.adapters.kube.convert import Converter
from moorage.adapters.kube.defaults import (
    PriorityClasses,
    complete_node,
    complete_pod,
    expand,
    with_identity,
)
from moorage.adapters.kube.kinds import look_up
from tests.kit.builders import make_container, make_pod

POD, NODE = look_up("v1", "Pod"), look_up("v1", "Node")


def requests_of(spec):
    """Requests of a terse pod, as the core sees them."""
    return Converter().pod(complete_pod(make_pod(**spec))).requests.amounts


# -- lists and identity --------------------------------------------------------------------------


def test_lists_are_expanded_however_deep():
    pod = {"kind": "Pod", "apiVersion": "v1"}
    nested = {"kind": "List", "items": [pod, {"kind": "List", "items": [pod]}]}
    assert list(expand(nested)) == [("items[0]", pod), ("items[1].items[0]", pod)]
    assert [path for path, _ in expand(nested, "objects[2]")] == [
        "objects[2].items[0]",
        "objects[2].items[1].items[0]",
    ]


def test_items_of_a_typed_list_get_its_kind():
    pods = {"kind": "PodList", "apiVersion": "v1", "items": [{"metadata": {"name": "a"}}]}
    assert list(expand(pods)) == [
        ("items[0]", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}})
    ]


@pytest.mark.parametrize(
    "obj", [{"kind": "Pod"}, {"kind": "List"}, {"kind": "List", "items": 5}, {"kind": 7}, 3, None]
)
def test_what_is_no_list_stays_as_it_is(obj):
    assert list(expand(obj, "p")) == [("p", obj)]


def test_identity_of_a_namespaced_object():
    pod = with_identity({"metadata": {"name": "web-0"}}, POD, 7)
    assert pod["metadata"] == {
        "name": "web-0",
        "namespace": "default",
        "uid": "pod:default/web-0",
        "resourceVersion": "7",
    }


def test_identity_of_a_cluster_scoped_object():
    node = with_identity({"metadata": {"name": "a", "namespace": "x", "managedFields": []}}, NODE, 7)
    assert node["metadata"] == {"name": "a", "uid": "node:a", "resourceVersion": "7"}


def test_what_is_there_is_kept_and_nothing_is_changed_in_place():
    given = {"metadata": {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "9"}}
    before = deepcopy(given)
    assert with_identity(given, POD, 7) == given == before


# -- nodes ---------------------------------------------------------------------------------------


def test_a_node_gives_away_its_capacity_unless_it_says_otherwise():
    assert complete_node({"status": {"capacity": {"cpu": "2"}}})["status"]["allocatable"] == {"cpu": "2"}
    both = {"status": {"capacity": {"cpu": "2"}, "allocatable": {"cpu": "1"}}}
    assert complete_node(both) == both
    assert complete_node({"spec": {}}) == {"spec": {}}


# -- pods ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["containers", "initContainers"])
def test_what_is_limited_is_requested(key):
    container = make_container(limits={"cpu": "2", "memory": "1Ki"}, requests={"cpu": "1"})
    assert requests_of({"containers": [], key: [container]}) == {"cpu": 1000, "memory": 1024}
    container = make_container(limits={"cpu": "2"})
    assert requests_of({"containers": [], key: [container]}) == {"cpu": 2000}


def test_a_zero_request_is_a_request():
    assert requests_of({"containers": [make_container(limits={"cpu": "2"}, requests={"cpu": "0"})]}) == {
        "cpu": 0
    }


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({}, {"cpu": 300}),
        ({"limits": {"memory": "1Ki"}}, {"cpu": 300, "memory": 1024}),  # nobody requests memory: the limit
        ({"limits": {"cpu": "2"}}, {"cpu": 300}),  # the containers do request cpu
        ({"requests": {"memory": "1Ki"}}, {"cpu": 300, "memory": 1024}),
        ({"requests": {"cpu": "1"}}, {"cpu": 1000}),
        ({"limits": {"hugepages-2Mi": "4Mi"}}, {"cpu": 300, "hugepages-2Mi": 4 << 20}),
    ],
)
def test_pod_level_resources(resources, expected):
    containers = [make_container(requests={"cpu": "100m"}), make_container("b", requests={"cpu": "200m"})]
    assert requests_of({"containers": containers, "resources": resources}) == expected


def test_huge_pages_of_the_containers_become_the_pod_s():
    container = make_container(limits={"hugepages-2Mi": "4Mi", "cpu": "1"})
    pod = complete_pod(make_pod(containers=[container], resources={"requests": {"cpu": "2"}}))
    assert pod["spec"]["resources"] == {
        "limits": {"hugepages-2Mi": f"{4 << 20}000m"},
        "requests": {"cpu": "2", "hugepages-2Mi": f"{4 << 20}000m"},
    }


def test_a_pod_is_not_changed_in_place():
    pod = make_pod(containers=[make_container(limits={"cpu": "1"})], resources={"limits": {"memory": "1Gi"}})
    before = deepcopy(pod)
    complete_pod(pod)
    assert pod == before


@pytest.mark.parametrize(
    "spec",
    [
        {"containers": 5},
        {"containers": [5]},
        {"containers": [{"resources": 5}]},
        {"containers": [{"resources": {"limits": 5}}]},
        {"containers": [{"resources": {"limits": {}, "requests": 5}}]},
        {"resources": 5},
        {"resources": {"limits": 5}},
        {"resources": {"limits": {"cpu": []}}},
        {"containers": None},
    ],
)
def test_broken_specs_are_left_for_validation(spec):
    complete_pod(make_pod(**spec))
    complete_pod({"metadata": {"name": "a"}})


# -- priorities ----------------------------------------------------------------------------------


def priority_class(name, value, **fields):
    return {"metadata": {"name": name}, "value": value, **fields}


def classes(*given):
    result = PriorityClasses()
    for one in given:
        result.add(one)
    return result


@pytest.mark.parametrize(
    ("spec", "priority", "policy"),
    [
        ({"priorityClassName": "high"}, 1000, "PreemptLowerPriority"),
        ({"priorityClassName": "polite"}, 10, "Never"),
        ({"priorityClassName": "system-node-critical"}, 2_000_001_000, None),
        ({"priorityClassName": "system-cluster-critical"}, 2_000_000_000, None),
        ({"priorityClassName": "high", "priority": 5}, 5, None),
        ({"priority": 0}, 0, None),
        ({}, -5, "PreemptLowerPriority"),  # of two global defaults the lower one
    ],
)
def test_priority_of_a_pod(spec, priority, policy):
    known = classes(
        priority_class("high", 1000),
        priority_class("polite", 10, preemptionPolicy="Never"),
        priority_class("default-a", 7, globalDefault=True),
        priority_class("default-b", -5, globalDefault=True),
    )
    pod, warning = known.apply(make_pod(**spec))
    assert (pod["spec"]["priority"], pod["spec"].get("preemptionPolicy"), warning) == (priority, policy, "")


def test_without_a_global_default_the_priority_is_0():
    pod, warning = classes().apply(make_pod())
    assert (pod["spec"]["priority"], warning) == (0, "")


def test_an_unknown_class_is_remarked_on():
    pod, warning = classes().apply(make_pod(priorityClassName="high"))
    assert pod["spec"]["priority"] == 0
    assert warning == "there is no PriorityClass 'high'; priority 0 is taken"
