"""What an API server would refuse, all of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.adapters.kube.convert import Converter
from moorage.adapters.kube.validate import Problem, check, check_type
from tests.adapters.kube.test_fields import anything
from tests.kit.builders import make_container, make_node, make_pod

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
NODE_AFFINITY = "spec.affinity.nodeAffinity"


def wrong(obj, kind=None):
    return check(obj, kind or obj["kind"], Converter()).wrong


def fields(obj, kind=None):
    return [field for field, _ in wrong(obj, kind)]


def terms(*expressions, key="matchExpressions"):
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{key: list(expressions)}]}}}


def first_expression(field, key="matchExpressions"):
    return f"{NODE_AFFINITY}.{REQUIRED}.nodeSelectorTerms[0].{key}[0].{field}"


def test_good_objects_have_nothing_wrong():
    pod = make_pod(
        cpu="1",
        labels={"app": "web", "example.com/x": ""},
        tolerations=[
            {"operator": "Exists"},
            {"key": "a", "value": "b", "effect": "NoExecute", "tolerationSeconds": 3},
        ],
        nodeSelector={"disk": "ssd"},
        priority=-1,
        affinity={
            **terms({"key": "a", "operator": "Gt", "values": ["1"]}),
            "podAffinity": {
                REQUIRED: [{"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}}]
            },
        },
        topologySpreadConstraints=[
            {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}
        ],
        schedulingGates=[{"name": "example.com/gate"}],
        overhead={"cpu": "1m"},
        resources={"limits": {"cpu": "2"}},
    )
    assert wrong(pod) == []
    assert (
        wrong(make_node(taints=[{"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoExecute"}]))
        == []
    )
    assert wrong({"kind": "PriorityClass", "metadata": {"name": "a"}, "value": 5}) == []
    assert wrong({"kind": "Namespace", "metadata": {"name": "a"}}) == []


@pytest.mark.parametrize(
    "spec", [{}, {"containers": []}, {"containers": [{}]}, {"containers": [{"ports": [{}]}]}]
)
def test_terse_pods_have_nothing_wrong(spec):
    assert wrong(make_pod() | {"spec": spec}) == []


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        # quantities
        ({"cpu": "-1"}, "spec.containers[0].resources.requests.cpu"),
        ({"memory": "1 GB"}, "spec.containers[0].resources.requests.memory"),
        ({"overhead": {"cpu": "-1m"}}, "spec.overhead.cpu"),
        ({"containers": [make_container(limits={"cpu": "x"})]}, "spec.containers[0].resources.limits.cpu"),
        (
            {"containers": [make_container(requests={"cpu": "2"}, limits={"cpu": "1"})]},
            "spec.containers[0].resources.requests.cpu",
        ),
        (
            {"containers": [make_container(requests={"a.b/c": "1"}, limits={"a.b/c": "2"})]},
            "spec.containers[0].resources.requests.a.b/c",
        ),
        (
            {"containers": [make_container(requests={"a.b/c": "1500m"})]},
            "spec.containers[0].resources.requests.a.b/c",
        ),
        (
            {"containers": [make_container(requests={"gpu": "1"})]},
            "spec.containers[0].resources.requests.gpu",
        ),
        (
            {"containers": [make_container(requests={"pods": "1"})]},
            "spec.containers[0].resources.requests.pods",
        ),
        ({"resources": {"requests": {"a.b/c": "1"}}}, "spec.resources.requests.a.b/c"),
        ({"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}, "spec.resources.requests.cpu"),
        # numbers too big
        ({"priority": 3_000_000_000}, "spec.priority"),
        ({"priority": 1e20}, "spec.priority"),
        (
            {"containers": [make_container(ports=[{"containerPort": 70000}])]},
            "spec.containers[0].ports[0].containerPort",
        ),
        # ports
        (
            {"containers": [make_container(ports=[{"containerPort": 0}])]},
            "spec.containers[0].ports[0].containerPort",
        ),
        (
            {"containers": [make_container(ports=[{"containerPort": 1, "protocol": "HTTP"}])]},
            "spec.containers[0].ports[0].protocol",
        ),
        (
            {
                "hostNetwork": True,
                "containers": [make_container(ports=[{"containerPort": 1, "hostPort": 2}])],
            },
            "spec.containers[0].ports[0].hostPort",
        ),
        # names and kinds of words
        ({"containers": [make_container("a"), make_container("a")]}, "spec.containers[1].name"),
        ({"preemptionPolicy": "Maybe"}, "spec.preemptionPolicy"),
        ({"schedulingGates": [{}]}, "spec.schedulingGates[0].name"),
        ({"schedulingGates": [{"name": "a"}], "nodeName": "n"}, "spec.nodeName"),
        # tolerations
        ({"tolerations": [{"operator": "Like", "key": "a"}]}, "spec.tolerations[0].operator"),
        ({"tolerations": [{"effect": "NoRun", "operator": "Exists"}]}, "spec.tolerations[0].effect"),
        ({"tolerations": [{"value": "a"}]}, "spec.tolerations[0].operator"),
        ({"tolerations": [{"key": "a b", "operator": "Exists"}]}, "spec.tolerations[0].key"),
        ({"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]}, "spec.tolerations[0].value"),
        ({"tolerations": [{"key": "a", "tolerationSeconds": 5}]}, "spec.tolerations[0].effect"),
        # selectors
        ({"nodeSelector": {"a b": "c"}}, "spec.nodeSelector.a b"),
        ({"nodeSelector": {"a": "c d"}}, "spec.nodeSelector.a"),
        ({"affinity": terms({"key": "a", "operator": "Like"})}, first_expression("operator")),
        ({"affinity": terms({"key": "a", "operator": "In"})}, first_expression("values")),
        (
            {"affinity": terms({"key": "a", "operator": "Exists", "values": ["x"]})},
            first_expression("values"),
        ),
        (
            {"affinity": terms({"key": "a", "operator": "Gt", "values": ["1", "2"]})},
            first_expression("values"),
        ),
        ({"affinity": terms({"operator": "Exists"})}, first_expression("key")),
        (
            {
                "affinity": terms(
                    {"key": "metadata.uid", "operator": "In", "values": ["x"]}, key="matchFields"
                )
            },
            first_expression("key", "matchFields"),
        ),
        (
            {
                "affinity": terms(
                    {"key": "metadata.name", "operator": "Exists", "values": ["x"]}, key="matchFields"
                )
            },
            first_expression("operator", "matchFields"),
        ),
        (
            {"affinity": terms({"key": "metadata.name", "operator": "In", "values": []}, key="matchFields")},
            first_expression("values", "matchFields"),
        ),
        ({"affinity": {"nodeAffinity": {REQUIRED: {}}}}, f"{NODE_AFFINITY}.{REQUIRED}.nodeSelectorTerms"),
        (
            {"affinity": {"nodeAffinity": {PREFERRED: [{"weight": 101, "preference": {}}]}}},
            f"{NODE_AFFINITY}.{PREFERRED}[0].weight",
        ),
        # pod affinity and spread
        (
            {"affinity": {"podAffinity": {REQUIRED: [{}]}}},
            f"spec.affinity.podAffinity.{REQUIRED}[0].topologyKey",
        ),
        (
            {
                "affinity": {
                    "podAntiAffinity": {
                        PREFERRED: [{"weight": 0, "podAffinityTerm": {"topologyKey": "zone"}}]
                    }
                }
            },
            f"spec.affinity.podAntiAffinity.{PREFERRED}[0].weight",
        ),
        (
            {
                "affinity": {
                    "podAffinity": {
                        REQUIRED: [
                            {
                                "topologyKey": "z",
                                "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Gt"}]},
                            }
                        ]
                    }
                }
            },
            f"spec.affinity.podAffinity.{REQUIRED}[0].labelSelector.matchExpressions[0].operator",
        ),
        (
            {
                "topologySpreadConstraints": [
                    {"topologyKey": "z", "maxSkew": 0, "whenUnsatisfiable": "DoNotSchedule"}
                ]
            },
            "spec.topologySpreadConstraints[0].maxSkew",
        ),
        (
            {"topologySpreadConstraints": [{"topologyKey": "z", "maxSkew": 1}]},
            "spec.topologySpreadConstraints[0].whenUnsatisfiable",
        ),
        ({"labels": {"a": "b c"}}, "metadata.labels.a"),
        ({"labels": {"/a": ""}}, "metadata.labels./a"),
        ({"namespace": "a.b"}, "metadata.namespace"),
    ],
)
def test_one_thing_wrong_with_a_pod(spec, field):
    assert field in fields(make_pod(**spec))


@pytest.mark.parametrize(
    ("name", "message"),
    [(None, "is missing"), ("", "is missing"), ("Web_1", "lower-case"), (5, "must be a string")],
)
def test_names(name, message):
    pod = make_pod()
    pod["metadata"]["name"] = name
    ((field, text),) = wrong(pod)
    assert field == "metadata.name"
    assert message in text


@pytest.mark.parametrize("metadata", [None, 5])
def test_no_metadata(metadata):
    assert fields({"kind": "Pod", "metadata": metadata}) == [
        "metadata.name" if metadata is None else "metadata"
    ]


def test_everything_wrong_is_found_at_once():
    pod = make_pod(
        cpu="-1", priority="high", tolerations=[{"operator": "Like", "key": "a"}], nodeSelector={"a": 1}
    )
    assert sorted(fields(pod)) == [
        "spec.containers[0].resources.requests.cpu",
        "spec.nodeSelector.a",
        "spec.priority",
        "spec.tolerations[0].operator",
    ]


def test_messages_are_for_people():
    assert wrong(make_pod(cpu="-1")) == [
        ("spec.containers[0].resources.requests.cpu", "must not be negative, got '-1'")
    ]
    container = make_container(requests={"cpu": "2"}, limits={"cpu": "1500m"})
    assert wrong(make_pod(containers=[container])) == [
        ("spec.containers[0].resources.requests.cpu", "must not be more than the limit, which is 1500m")
    ]
    assert wrong(make_node(taints=[{"key": "a", "effect": "NoRun"}])) == [
        ("spec.taints[0].effect", "must be one of NoSchedule, PreferNoSchedule, NoExecute, not 'NoRun'")
    ]


@pytest.mark.parametrize(
    ("node", "field"),
    [
        (make_node(taints=[{"key": "a"}]), "spec.taints[0].effect"),
        (make_node(taints=[{"effect": "NoSchedule"}]), "spec.taints[0].key"),
        (make_node(taints=[{"key": "a", "value": "b c", "effect": "NoSchedule"}]), "spec.taints[0].value"),
        (make_node(taints=[{"key": "a", "effect": "NoSchedule"}] * 2), "spec.taints[1]"),
        (make_node(taints={}), "spec.taints"),
        (make_node(unschedulable="yes"), "spec.unschedulable"),
        (make_node(allocatable={"cpu": "-4"}), "status.allocatable.cpu"),
        (make_node(allocatable={"cpu": "many"}), "status.allocatable.cpu"),
    ],
)
def test_one_thing_wrong_with_a_node(node, field):
    assert field in fields(node)


@pytest.mark.parametrize(
    ("declared", "messages"),
    [
        (["A", "AB", "B/c", "B/d"], []),
        (["a"], ["'a' is not a name of a feature, like MyFeature or MyFeature/itsPart"]),
        (["A/", "B1"], ["'A/' is not a name of a feature, like MyFeature or MyFeature/itsPart"]),
        (["B", "A"], ["must come after 'B': they are in order, and each is there once"]),
        (["A", "A"], ["must come after 'A': they are in order, and each is there once"]),
    ],
)
def test_declared_features_have_names_and_an_order(declared, messages):
    node = make_node(status={"declaredFeatures": declared})
    assert [message for _, message in wrong(node)] == messages


@pytest.mark.parametrize(
    ("spec", "wrong_fields"),
    [
        ({}, []),
        ({"extendedResourceName": "example.com/gpu"}, []),
        ({"extendedResourceName": "cpu"}, ["spec.extendedResourceName"]),
        ({"extendedResourceName": "deviceclass.resource.kubernetes.io/x"}, ["spec.extendedResourceName"]),
        ({"extendedResourceName": "example.com/g p u"}, ["spec.extendedResourceName"]),
        ({"extendedResourceName": 7}, ["spec.extendedResourceName"]),
        (7, ["spec"]),
    ],
)
def test_a_device_class_names_an_extended_resource_or_none(spec, wrong_fields):
    metadata = {"name": "fast", "uid": "1"}
    device_class = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": metadata}
    assert fields({**device_class, "spec": spec}) == wrong_fields


@pytest.mark.parametrize(
    ("status", "field"),
    [({}, "status.allocatable"), ({"allocatable": {"cpu": "1"}}, "status.allocatable.pods")],
)
def test_a_node_that_takes_no_pods_is_odd_but_not_wrong(status, field):
    node = make_node()
    node["status"] = status
    found = check(node, "Node", Converter())
    assert found.wrong == []
    assert [field for field, _ in found.odd] == [field]


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({}, "value"),
        ({"value": "high"}, "value"),
        ({"value": 2_000_000_000}, "value"),
        ({"value": 2**40}, "value"),
        ({"value": 1, "preemptionPolicy": "Maybe"}, "preemptionPolicy"),
        ({"value": 1, "globalDefault": "yes"}, "globalDefault"),
    ],
)
def test_one_thing_wrong_with_a_priority_class(more, field):
    assert field in fields({"metadata": {"name": "a"}, **more}, "PriorityClass")


def test_a_budget_with_a_broken_selector():
    budget = {
        "metadata": {"name": "a"},
        "spec": {"selector": {"matchExpressions": [{"key": "a", "operator": "~"}]}},
    }
    assert fields(budget, "PodDisruptionBudget") == ["spec.selector.matchExpressions[0].operator"]


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        ({"apiVersion": "v1", "kind": "Pod"}, []),
        ({"apiVersion": "v1"}, ["kind"]),
        ({}, ["apiVersion", "kind"]),
        ({"apiVersion": 1, "kind": ["Pod"]}, ["apiVersion", "kind"]),
        ({"apiVersion": "", "kind": "Pod"}, ["apiVersion"]),
        ("Pod", [""]),
        (None, [""]),
    ],
)
def test_type_of_an_object(obj, expected):
    assert [field for field, _ in check_type(obj)] == expected


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        (Problem("a.yaml", 3, "spec.x", "is bad"), "a.yaml, document 3: spec.x: is bad"),
        (Problem("a.yaml", 0, "", "No such file"), "a.yaml: No such file"),
        (Problem("", 0, "pods[0].spec", "is bad"), "pods[0].spec: is bad"),
    ],
)
def test_a_problem_as_text(problem, text):
    assert str(problem) == text


POD_FIELDS = [
    *["containers", "initContainers", "tolerations", "affinity", "topologySpreadConstraints", "resources"],
    *[
        "priority",
        "nodeSelector",
        "schedulingGates",
        "overhead",
        "preemptionPolicy",
        "nodeName",
        "hostNetwork",
    ],
]
ITEM_FIELDS = ["name", "key", "operator", "ports", "resources", "effect", "maxSkew"]
PODS = st.dictionaries(
    st.sampled_from(POD_FIELDS),
    anything | st.lists(st.dictionaries(st.sampled_from(ITEM_FIELDS), anything)),
)


@given(PODS)
def test_nothing_raises(spec):
    pod = make_pod()
    pod["spec"] = spec
    wrong(pod)


@given(
    st.sampled_from(["Pod", "Node", "PriorityClass", "PodDisruptionBudget", "Namespace"]), anything, anything
)
def test_no_object_raises(kind, metadata, rest):
    wrong({"kind": kind, "metadata": metadata, "spec": rest, "status": rest, "value": rest})
