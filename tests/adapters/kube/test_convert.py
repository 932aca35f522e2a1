"""API objects to the core's pods and nodes."""

import gc
import time
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.adapters.kube.convert import Converter, MalformedObject
from moorage.core.model.affinity import PodAffinity, PodAffinityTerm, WeightedTerm
from moorage.core.model.budget import DisruptionBudget
from moorage.core.model.pod import HostPort, OwnerRef
from moorage.core.model.pod_volumes import ClaimUse
from moorage.core.model.resources import Requests
from moorage.core.model.selector import (
    LabelSelector,
    NodeSelector,
    NodeSelectorTerm,
    Operator,
    PreferredTerm,
    Requirement,
)
from moorage.core.model.spread import SpreadConstraint
from moorage.core.model.taint import Taint, Toleration
from moorage.core.turns import DEADLINE_CONDITION
from tests.adapters.kube.test_fields import anything
from tests.kit.builders import make_container, make_node, make_pod, read_node, read_pod

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
ANY = "0.0.0.0"  # noqa: S104
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


# -- pods: what is their own ---------------------------------------------------------------------


def test_the_pod_itself():
    metadata = {
        "resourceVersion": "77",
        "generation": 3,
        "creationTimestamp": "1970-01-01T00:01:00Z",
        "ownerReferences": [
            {"kind": "Node", "name": "x", "uid": "1"},
            {"kind": "ReplicaSet", "name": "web-5d", "uid": "2", "controller": True},
        ],
    }
    status = {
        "phase": "Pending",
        "startTime": "1970-01-01T00:02:00.5Z",
        "nominatedNodeName": "b",
        "conditions": [
            {"type": "Ready", "status": "False"},
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"},
        ],
    }
    pod = read_pod("web", namespace="shop", cpu="1", labels={"app": "web"}, metadata=metadata, status=status)
    assert (pod.key, pod.uid, pod.resource_version, pod.generation) == (
        "shop/web",
        "uid-shop-web",
        "77",
        3,
    )
    assert (pod.created, pod.started) == (60.0, 120.5)
    assert (pod.node_name, pod.nominated_node) == ("", "b")
    assert pod.labels == {"app": "web"}
    assert pod.owner == OwnerRef("ReplicaSet", "web-5d", "2")
    assert pod.scheduled_condition == ("False", "Unschedulable", "no room")
    assert not any((pod.finished, pod.deleting, pod.preempted, pod.gates, pod.spec.invalid))
    assert pod.requests is pod.spec.requests


@pytest.mark.parametrize(
    ("phase", "finished"),
    [("Pending", False), ("Running", False), ("Succeeded", True), ("Failed", True), (None, False)],
)
def test_finished_pods(phase, finished):
    assert read_pod(status={"phase": phase}).finished is finished


def test_gates_and_deletion():
    pod = read_pod(
        schedulingGates=[{"name": "a/b"}, {"name": "c"}],
        metadata={"deletionTimestamp": "2026-01-05T10:00:00Z"},
    )
    assert pod.gates == ("a/b", "c")
    assert pod.deleting
    assert not pod.preempted


@pytest.mark.parametrize(
    ("status", "reason", "preempted"),
    [
        ("True", "PreemptionByScheduler", True),
        ("False", "PreemptionByScheduler", False),
        ("True", "EvictionByTaint", False),
    ],
)
def test_victims_of_preemption(status, reason, preempted):
    condition = {"type": "DisruptionTarget", "status": status, "reason": reason}
    pod = read_pod(metadata={"deletionTimestamp": "2026-01-05T10:00:00Z"}, status={"conditions": [condition]})
    assert pod.preempted is preempted


def test_a_bound_pod_counts_as_its_status_says():
    status = {"containerStatuses": [{"name": "main", "allocatedResources": {"cpu": "1500m"}}]}
    assert read_pod(cpu="500m", node="a", status=status).requests.amounts == {"cpu": 1500}
    assert read_pod(cpu="500m", status=status).requests.amounts == {"cpu": 500}  # pending: by its spec


def test_a_status_that_says_the_same_shares_the_spec_s_requests():
    pod = read_pod(
        cpu="500m",
        node="a",
        status={
            "containerStatuses": [{"name": "main", "allocatedResources": {"cpu": "500m"}, "resources": {}}]
        },
    )
    assert pod.requests is pod.spec.requests


# -- pods: what their template asks for ----------------------------------------------------------


def test_defaults_of_a_spec():
    spec = read_pod().spec
    assert spec.scheduler_name == "default-scheduler"
    assert (spec.priority, spec.preemption_policy) == (0, "PreemptLowerPriority")
    assert spec.required is None
    assert not any((spec.node_selector, spec.preferred, spec.tolerations, spec.host_ports))
    assert not any((spec.unsupported, spec.required_features, spec.invalid))


def test_plain_fields():
    spec = read_pod(
        schedulerName="moorage", priority=-5, preemptionPolicy="Never", nodeSelector={"disk": "ssd"}
    ).spec
    assert (spec.scheduler_name, spec.priority, spec.preemption_policy) == ("moorage", -5, "Never")
    assert spec.node_selector == {"disk": "ssd"}
    assert spec.node_name == ""


def test_node_affinity():
    term = {
        "matchExpressions": [
            {"key": "gen", "operator": "Gt", "values": ["9"]},
            {"key": "x", "operator": "Exists"},
        ],
        "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}],
    }
    affinity = {REQUIRED: {"nodeSelectorTerms": [term, {}]}, PREFERRED: [{"weight": 7, "preference": term}]}
    spec = read_pod(affinity={"nodeAffinity": affinity}).spec
    read = NodeSelectorTerm(
        (Requirement("gen", Operator.GT, ("9",)), Requirement("x", Operator.EXISTS)),
        (Requirement("metadata.name", Operator.IN, ("a",)),),
    )
    assert spec.required == NodeSelector((read, NodeSelectorTerm()))
    assert spec.preferred == (PreferredTerm(7, read),)


def test_tolerations():
    spec = read_pod(
        tolerations=[
            {"operator": "Exists"},
            {"key": "k", "value": "v", "effect": "NoExecute", "tolerationSeconds": 300},
        ]
    ).spec
    assert spec.tolerations == (Toleration("", "Exists"), Toleration("k", "Equal", "v", "NoExecute"))


def ports(*numbers, **fields):
    return [{"containerPort": number, **fields} for number in numbers]


def test_host_ports_of_containers_and_sidecars():
    spec = read_pod(
        initContainers=[
            make_container("once", ports=ports(1, hostPort=1)),
            make_container("side", restartPolicy="Always", ports=ports(2, hostPort=2)),
        ],
        containers=[
            make_container(ports=[*ports(3), *ports(4, hostPort=40, protocol="UDP", hostIP="10.0.0.1")]),
        ],
    ).spec
    assert spec.host_ports == (HostPort(ANY, "TCP", 2), HostPort("10.0.0.1", "UDP", 40))


def test_on_the_host_s_network_every_port_is_a_host_port():
    spec = read_pod(hostNetwork=True, containers=[make_container(ports=ports(80))]).spec
    assert spec.host_ports == (HostPort(ANY, "TCP", 80),)


def test_images():
    spec = read_pod(
        initContainers=[make_container("i", image="init")],
        containers=[
            make_container(image="reg:5000/app"),
            make_container("b", image="app:2"),
            make_container("c"),
        ],
        volumes=[{"name": "v", "image": {"reference": "data@sha256:00"}}, {"name": "w", "emptyDir": {}}],
    ).spec
    assert spec.images == (
        "init:latest", "reg:5000/app:latest", "app:2", "registry.test/pause:1", "data@sha256:00",
    )  # fmt: skip
    assert len(spec.images) == 5


@pytest.mark.parametrize(
    ("fields", "phrase"),
    [
        ({"resourceClaims": [{"name": "c"}]}, "resource claims"),
        ({"schedulingGroup": {"podGroupName": "g"}}, "a pod group"),
        ({"workloadRef": {"name": "g"}}, "a pod group"),
    ],
)
def test_what_this_version_cannot_honour(fields, phrase):
    spec = read_pod(**fields).spec
    assert spec.unsupported == (phrase,)
    assert spec.invalid == ()


def test_volumes_are_the_pod_s_and_its_template_s_not():
    converter = Converter()
    pods = [
        converter.pod(
            make_pod(f"p{i}", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": f"c{i}"}}])
        )
        for i in range(2)
    ]
    assert pods[0].spec is pods[1].spec
    assert [pod.volumes.claims for pod in pods] == [(ClaimUse("c0"),), (ClaimUse("c1"),)]
    assert read_pod(volumes=[{"persistentVolumeClaim": {"claimName": 1}}]).spec.invalid == (
        "spec.volumes[0].persistentVolumeClaim.claimName: must be a string, not a number (1)",
    )


def test_harmless_volumes_and_empty_lists_are_no_obstacle():
    volumes = [
        {"configMap": {}},
        {"secret": {}},
        {"emptyDir": {}},
        {"projected": {}},
        {"hostPath": {"path": "/"}},
        {"csi": {}},
    ]
    spec = read_pod(
        volumes=volumes,
        affinity={"podAffinity": {REQUIRED: []}},
        topologySpreadConstraints=[],
        resourceClaims=[],
    ).spec
    assert spec.unsupported == ()


def test_what_a_pod_asks_of_other_pods():
    spec = read_pod(
        affinity={"podAffinity": {PREFERRED: [{"weight": 2}]}, "podAntiAffinity": {REQUIRED: [{}]}},
        topologySpreadConstraints=[{"whenUnsatisfiable": "ScheduleAnyway"}],
    ).spec
    assert spec.unsupported == ()
    assert spec.pod_affinity == PodAffinity(
        required_anti=(PodAffinityTerm(""),), preferred=(WeightedTerm(2, PodAffinityTerm("")),)
    )
    assert spec.spread == (SpreadConstraint("", 0, hard=False),)


@pytest.mark.parametrize(
    ("container", "feature"),
    [
        (
            {"restartPolicyRules": [{"action": "RestartAllContainers"}]},
            "RestartAllContainersOnContainerExits",
        ),
        ({"volumeMounts": [{"name": "v", "bindMountOptions": ["noexec"]}]}, "VolumeBindMountOptions"),
    ],
)
def test_features_that_a_node_must_declare(container, feature):
    """By a container of any kind, but that rules of restarting are not looked for in ephemeral ones."""
    ephemeral = feature == "VolumeBindMountOptions"
    for kind, needs in (("containers", True), ("initContainers", True), ("ephemeralContainers", ephemeral)):
        found: dict[str, Any] = {
            "containers": [make_container()],
            kind: [make_container(), make_container(**container)],
        }
        spec = read_pod(**found).spec
        assert spec.required_features == ((feature,) if needs else ()), kind
        assert spec.unsupported == spec.invalid == ()


@pytest.mark.parametrize(
    ("network", "users", "needed"),
    [
        (True, False, True),
        (True, True, False),
        (True, None, False),
        (False, False, False),
        (None, False, False),
    ],
)
def test_own_users_on_the_host_s_network_are_a_feature(network, users, needed):
    spec = read_pod(hostNetwork=network, hostUsers=users).spec
    assert spec.required_features == (("UserNamespacesHostNetworkSupport",) if needed else ())


def test_pods_that_need_other_features_do_not_share_their_spec():
    converter = Converter()
    templates: list[dict[str, Any]] = [
        {"containers": [make_container(volumeMounts=[{"name": "v", "bindMountOptions": options}])]}
        for options in ([], ["noexec"])
    ]
    templates.append(
        {"containers": templates[0]["containers"], "ephemeralContainers": templates[1]["containers"]}
    )
    needed = [converter.pod(make_pod(**template)).spec.required_features for template in templates]
    assert needed == [(), ("VolumeBindMountOptions",), ("VolumeBindMountOptions",)]


# -- sharing -------------------------------------------------------------------------------------


def test_pods_of_one_template_share_their_spec():
    converter = Converter()
    first, second = (
        converter.pod(
            make_pod(
                f"web-{i}",
                cpu="1",
                labels={"app": "web"},
                node=node,
                hostname=f"web-{i}",
                schedulingGates=[{"name": f"g{i}"}] if i else [],
                ephemeralContainers=[{"name": f"debug-{i}"}],
                volumes=[{"name": f"kube-api-access-{i}", "projected": {"sources": []}}],
                containers=[make_container(volumeMounts=[{"name": f"kube-api-access-{i}"}])],
                metadata={"ownerReferences": [{"kind": "Job", "name": "j", "uid": "u", "controller": True}]},
            )
        )
        for i, node in enumerate(["", "a"])
    )
    assert first.spec is second.spec
    assert first.labels is second.labels
    assert first.owner is second.owner


@pytest.mark.parametrize(
    "field",
    [
        {"schedulerName": "x"}, {"priority": 1}, {"preemptionPolicy": "Never"}, {"nodeSelector": {"a": "b"}},
        {"tolerations": [{"operator": "Exists"}]}, {"overhead": {"cpu": "1"}},
        {"resources": {"requests": {"cpu": "1"}}},
        {"affinity": {"nodeAffinity": {PREFERRED: [{"weight": 1, "preference": {}}]}}},
        {"containers": [make_container(requests={"cpu": "2"})]}, {"containers": [make_container(image="other")]},
        {"containers": [make_container(ports=ports(1, hostPort=1))]}, {"initContainers": [make_container("i")]},
        {"volumes": [{"image": {"reference": "x"}}]},
        {"hostNetwork": True}, {"hostNetwork": True, "hostUsers": False}, {"resourceClaims": [{"name": "x"}]},
        {"schedulingGroup": {}}, {"topologySpreadConstraints": [{}]},
    ],
)  # fmt: skip
def test_whatever_scheduling_reads_makes_another_template(field):
    converter = Converter()
    assert converter.pod(make_pod("a")).spec is not converter.pod(make_pod("b", **field)).spec


def test_templates_that_are_gone_are_forgotten():
    converter = Converter(recent_templates=10)
    alive = converter.pod(make_pod("alive", priority=-1))
    for priority in range(100):
        converter.pod(make_pod("p", priority=priority))
    gc.collect()
    assert len(converter._specs) <= 21
    assert converter.pod(make_pod("again", priority=-1)).spec is alive.spec


def test_a_template_whose_pods_come_one_at_a_time_is_read_once():
    converter = Converter()
    spec = id(converter.pod(make_pod("a")).spec)
    gc.collect()
    assert id(converter.pod(make_pod("b")).spec) == spec


def test_specs_that_differ_share_what_they_have_in_common():
    converter = Converter()

    def daemon(node):
        fields = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
        return converter.pod(
            make_pod(
                f"daemon-{node}",
                cpu="1",
                tolerations=[{"operator": "Exists"}],
                affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [fields]}}},
            )
        ).spec

    one, other = daemon("a"), daemon("b")
    assert one is not other
    assert one.requests is other.requests
    assert one.tolerations is other.tolerations


def test_a_known_template_costs_little():
    converter = Converter()
    objects = [
        orjson.loads(orjson.dumps(make_pod(f"web-{i}", cpu="1", labels={"app": "web"}))) for i in range(2000)
    ]
    converter.pod(objects[0])
    costs = []
    for start in range(0, 2000, 200):
        begun = time.process_time()
        for obj in objects[start : start + 200]:
            converter.pod(obj)
        costs.append((time.process_time() - begun) / 200)
    assert min(costs) < 60e-6


# -- what cannot be read -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("obj", "field"),
    [
        ({}, "metadata"),
        ({"metadata": []}, "metadata"),
        ({"metadata": {}}, "metadata.name"),
        ({"metadata": {"name": 5}}, "metadata.name"),
        ({"metadata": {"name": "a"}}, "metadata.uid"),
        ({"metadata": {"name": "a", "uid": 5}}, "metadata.uid"),
        ("pod", ""),
        (None, ""),
    ],
)
def test_an_object_without_identity(obj, field):
    with pytest.raises(MalformedObject) as caught:
        Converter().pod(obj)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"cpu": "1x"}, "spec.containers[0].resources.requests.cpu: not a quantity: '1x'"),
        ({"priority": "high"}, "spec.priority: must be an integer, not a string ('high')"),
        ({"priority": 2**31}, "spec.priority: must be between -2147483648 and 2147483647, not 2.14748e+09"),
        ({"tolerations": {}}, "spec.tolerations: must be a list, not an object"),
        ({"nodeSelector": {"a": 1}}, "spec.nodeSelector.a: must be a string, not a number (1)"),
        ({"containers": [5]}, "spec.containers[0]: must be an object, not a number"),
        ({"metadata": {"labels": {"a": 1}}}, "metadata.labels.a: must be a string, not a number (1)"),
        ({"metadata": {"labels": {"a": []}}}, "metadata.labels.a: must be a string, not a list ([])"),
        (
            {"metadata": {"creationTimestamp": "noon"}},
            "metadata.creationTimestamp: must be an RFC 3339 time, not 'noon'",
        ),
        ({"schedulingGates": [{"name": 1}]}, "spec.schedulingGates[0].name: must be a string, not a number (1)"),
        ({"status": {"nominatedNodeName": []}}, "status.nominatedNodeName: must be a string, not a list ([])"),
        (
            {"node": "a", "status": {"containerStatuses": [{"name": "main", "allocatedResources": {"cpu": "?"}}]}},
            "status.containerStatuses[0].allocatedResources.cpu: not a quantity: '?'",
        ),
        ({"node": "a", "status": {"containerStatuses": 7}}, "status.containerStatuses: must be a list, not a number"),
    ],
)  # fmt: skip
def test_a_bad_field_is_named_in_the_spec(fields, line):
    pod = read_pod(**fields)
    assert line in pod.spec.invalid
    assert pod.name == "web"


def test_an_unknown_operator_is_named():
    term = {"matchExpressions": [{"key": "a", "operator": "Like", "values": ["x"]}]}
    pod = read_pod(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}})
    field = f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0].operator"
    message = "unknown operator 'Like', must be one of In, NotIn, Exists, DoesNotExist, Gt, Lt"
    assert pod.spec.invalid == (f"{field}: {message}",)


def test_one_bad_pod_does_not_spoil_the_template_for_others():
    converter = Converter()
    bad = converter.pod(make_pod("a", metadata={"labels": 5}))
    good = converter.pod(make_pod("b"))
    assert bad.spec.invalid
    assert good.spec.invalid == ()
    assert good.spec is converter.pod(make_pod("c")).spec


POD_PATHS = (
    "metadata.labels metadata.namespace metadata.ownerReferences metadata.creationTimestamp metadata.resourceVersion "
    "spec spec.containers spec.nodeName spec.affinity spec.affinity.nodeAffinity spec.priority spec.tolerations "
    f"spec.affinity.nodeAffinity.{REQUIRED} spec.affinity.nodeAffinity.{PREFERRED} spec.volumes spec.initContainers "
    "spec.topologySpreadConstraints spec.resources spec.overhead spec.hostNetwork spec.schedulingGates "
    "spec.resourceClaims spec.schedulerName status status.conditions status.containerStatuses status.startTime "
    "status.phase status.resources status.allocatedResources status.nominatedNodeName"
).split()
CONTAINER_FIELDS = [
    "name",
    "image",
    "resources",
    "ports",
    "restartPolicy",
    "restartPolicyRules",
    "volumeMounts",
]
NODE_PATHS = [
    "metadata.labels",
    "metadata.annotations",
    "spec",
    "spec.taints",
    "spec.unschedulable",
    "status",
    "status.allocatable",
    "status.conditions",
    "status.images",
    "status.declaredFeatures",
]


def put(obj, path, value):
    *way, last = path.split(".")
    for step in way:
        obj = obj[step]
    obj[last] = value


@given(st.sampled_from(POD_PATHS), anything)
def test_no_field_of_a_pod_can_raise(path, value):
    status = {"containerStatuses": [{"name": "main"}]}
    pod = make_pod(cpu="1", node="a", affinity={"nodeAffinity": {}}, status=status)
    put(pod, path, value)
    Converter().pod(pod)


@given(st.sampled_from(["containers", "initContainers"]), st.sampled_from(CONTAINER_FIELDS), anything)
def test_no_field_of_a_container_can_raise(key, field, value):
    pod = make_pod()
    pod["spec"][key] = [{**make_container(), field: value}]
    Converter().pod(pod)


@given(st.sampled_from(NODE_PATHS), anything)
def test_no_field_of_a_node_can_raise(path, value):
    node = make_node()
    put(node, path, value)
    Converter().node(node)


# -- nodes ---------------------------------------------------------------------------------------


def test_a_node():
    node = read_node(
        "a",
        labels={"zone": "z"},
        taints=[{"key": "k", "value": "v", "effect": "NoExecute", "timeAdded": "2026-01-05T10:00:00Z"}],
        unschedulable=True,
        allocatable={"nvidia.com/gpu": "2", "storage": "1Gi", "memory": "1000m"},
        status={
            "conditions": [
                {"type": "Ready", "status": "Unknown", "lastHeartbeatTime": "2026-01-05T10:00:00Z"},
                {"type": "DiskPressure", "status": "False"},
            ],
            "images": [
                {"names": ["app:1", "app@sha256:0"], "sizeBytes": 300000000},
                {"names": ["app:1"], "sizeBytes": 5},
            ],
            "declaredFeatures": ["A", "B"],
        },
    )
    assert (node.name, node.uid, node.labels) == ("a", "uid-a", {"zone": "z"})
    assert node.taints == (Taint("k", "v", "NoExecute"),)
    assert node.unschedulable
    assert node.allocatable == {"cpu": 4000, "memory": 1, "pods": 110, "nvidia.com/gpu": 2}
    assert node.images == {"app:1": 300000000, "app@sha256:0": 300000000}
    assert node.ready == "Unknown"
    assert node.condition_statuses == (("Ready", "Unknown"), ("DiskPressure", "False"))
    assert node.declared_features == ("A", "B")
    assert node.invalid == ()


def test_a_bare_node_needs_no_uid():
    node = Converter().node({"metadata": {"name": "a"}})
    assert (node.name, node.uid, node.ready, node.allocatable) == ("a", "", "", {})


def test_a_node_s_bad_field_counts_as_absent_and_is_named():
    node = read_node(allocatable={"cpu": "four"})
    assert "cpu" not in node.allocatable
    assert node.invalid == ("status.allocatable.cpu: not a quantity: 'four'",)


# -- budgets -------------------------------------------------------------------------------------


def test_a_disruption_budget():
    obj = {
        "metadata": {"name": "b", "namespace": "shop"},
        "spec": {
            "selector": {
                "matchLabels": {"app": "web"},
                "matchExpressions": [{"key": "x", "operator": "Exists"}],
            }
        },
        "status": {"disruptionsAllowed": 1, "disruptedPods": {"web-1": "2026-01-05T10:00:00Z"}},
    }
    assert Converter().budget(obj) == DisruptionBudget(
        "shop",
        "b",
        LabelSelector((Requirement("app", Operator.IN, ("web",)), Requirement("x", Operator.EXISTS))),
        allowed=1,
        disrupted=frozenset({"web-1"}),
    )


def test_a_budget_without_selector_or_with_an_unreadable_one_guards_nothing():
    for spec in (
        {},
        {"selector": None},
        {"selector": {"matchExpressions": [{"key": "x", "operator": "Like"}]}},
    ):
        assert Converter().budget({"metadata": {"name": "b"}, "spec": spec}).selector is None


def test_requests_compare_by_value():
    assert read_pod(cpu="1", memory="1Ki").requests == Requests({"cpu": 1000, "memory": 1024}, 1000, 1024)


@pytest.mark.parametrize(
    ("condition", "overdue"),
    [
        ({"type": DEADLINE_CONDITION, "status": "True"}, True),
        ({"type": DEADLINE_CONDITION, "status": "False"}, False),
        ({"type": "Ready", "status": "True"}, False),
        (None, False),
    ],
)
def test_a_pod_that_was_told_of_its_deadline_is_not_told_again(condition, overdue):
    status = {} if condition is None else {"conditions": [condition]}
    pod = Converter().pod({"metadata": {"name": "p", "uid": "u"}, "spec": {}, "status": status})
    assert pod.overdue is overdue
