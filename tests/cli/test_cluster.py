"""Objects from files become a cluster."""

import pytest

from moorage.cli.cluster import Intake, Source
from moorage.core.engine import EngineConfig
from moorage.core.model.events import UsageSample
from tests.kit.builders import make_node, make_pod
from tests.kit.raw_policies import make_policy

NOW = 1000.0


def intake(*objects, **options):
    result = Intake(**options)
    for number, obj in enumerate(objects, 1):
        result.add(obj, Source("f.yaml", number))
    return result


def problems(result):
    return [str(problem) for problem in result.problems]


def test_everything_finds_its_place():
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}}
    result = intake(
        make_node("a"),
        {"apiVersion": "v1", "kind": "List", "items": [make_pod("bound", node="a"), make_pod("waiting")]},
        make_pod("done", node="a", status={"phase": "Succeeded"}),
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}},
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}},
        budget,
    )
    result.add_pod({"metadata": {"name": "asked"}}, Source("f.yaml", 9))
    cluster = result.cluster(NOW)
    assert problems(result) == []
    assert [node.name for node in cluster.nodes] == ["a"]
    assert [pod.key for pod in cluster.bound] == ["default/bound"]
    assert [pod.key for pod in cluster.waiting] == ["default/waiting"]
    assert [(pod.key, pod.uid) for pod in cluster.asked] == [("default/asked", "pod:default/asked")]
    assert [b.name for b in cluster.budgets] == ["b"]
    assert cluster.skipped == {"ConfigMap": 1, "Deployment": 1}


def test_nodes_and_bound_pods_are_in_the_order_of_their_names():
    given = [make_pod("z", node="b"), make_node("b"), make_pod("w2"), make_pod("a", node="b")]
    given += [make_pod("q", node="b", namespace="a"), make_node("a"), make_pod("w1")]
    cluster = intake(*given).cluster(NOW)
    assert [node.name for node in cluster.nodes] == ["a", "b"]
    assert [pod.key for pod in cluster.bound] == ["a/q", "default/a", "default/z"]
    assert [pod.name for pod in cluster.waiting] == ["w2", "w1"], "as they were given"


def test_a_bound_pod_that_does_not_say_when_it_started_did_so_now():
    cluster = intake(
        make_pod("a", node="n"), make_pod("b", node="n", status={"startTime": "1970-01-01T00:01:00Z"})
    ).cluster(NOW)
    assert [pod.started for pod in cluster.bound] == [NOW, 60.0]


def test_priority_classes_count_wherever_they_stand():
    high = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "high"},
        "value": 9,
    }
    result = intake(make_pod("a", priorityClassName="high"), make_pod("b", priorityClassName="low"), high)
    assert [pod.priority for pod in result.cluster(NOW).waiting] == [9, 0]
    assert problems(result) == [
        "f.yaml, document 2: spec.priorityClassName: there is no PriorityClass 'low'; priority 0 is taken"
    ]
    assert result.errors == []


def test_pods_that_go_at_once():
    cluster = intake(
        make_pod("a", node="n", terminationGracePeriodSeconds=0), make_pod("b", node="n")
    ).cluster(NOW)
    assert cluster.abrupt == {"uid-default-a"}


def test_problems_of_all_objects_are_found_with_their_place():
    result = intake(
        make_pod("a", cpu="-1"),
        {
            "kind": "List",
            "apiVersion": "v1",
            "items": [make_node("n"), make_node("m", taints=[{"key": "a"}])],
        },
        {"kind": "Pod", "apiVersion": "v1", "metadata": {}},
        {"kind": "Pod"},
        {"kind": "Pod", "apiVersion": "apps/v1", "metadata": {"name": "x"}},
        {"kind": "pods", "apiVersion": "v1", "metadata": {"name": "x"}},
        "text",
        make_policy("x", "default", mode="On"),
    )
    cluster = result.cluster(NOW)
    effects = "NoSchedule, PreferNoSchedule, NoExecute"
    assert sorted(problems(result)) == [
        "f.yaml, document 1: spec.containers[0].resources.requests.cpu: must not be negative, got '-1'",
        f"f.yaml, document 2: items[1].spec.taints[0].effect: must be one of {effects}, not ''",
        "f.yaml, document 3: metadata.name: is missing",
        "f.yaml, document 4: apiVersion: is missing",
        "f.yaml, document 5: kind: Pod is a kind of v1, not of apps/v1",
        "f.yaml, document 6: kind: v1 has no kind 'pods'; is Pod meant?",
        "f.yaml, document 7: must be an object, not a string",
        "f.yaml, document 8: spec.mode: must be one of Enforce, Audit, Disabled, not 'On'",
    ]
    assert len(result.errors) == 8
    assert [node.name for node in cluster.nodes] == ["n"]


def test_unknown_kinds_are_skipped_with_a_warning():
    widget = {"kind": "Widget", "apiVersion": "example.com/v1", "metadata": {"name": "x"}}
    result = intake(widget, widget)
    assert result.cluster(NOW).skipped == {"Widget": 2}
    assert result.errors == []
    assert problems(result)[0] == (
        "f.yaml, document 1: kind: kind Widget of example.com/v1 is not known here; skipped"
    )


def test_kinds_that_are_mistakes_may_be_let_pass():
    result = intake({"kind": "pods", "apiVersion": "v1", "metadata": {"name": "x"}}, unknown_is_wrong=False)
    assert result.errors == []
    assert "skipped" in problems(result)[0]


def test_the_second_of_the_same_name_is_ignored():
    result = intake(
        make_node("a"), make_node("a", unschedulable=True), make_pod("a"), make_pod("a", namespace="x")
    )
    cluster = result.cluster(NOW)
    assert [node.unschedulable for node in cluster.nodes] == [False]
    assert [pod.key for pod in cluster.waiting] == ["default/a", "x/a"]
    assert problems(result) == [
        "f.yaml, document 2: metadata.name: there is a Node a already; this one is ignored"
    ]
    assert result.errors == []


@pytest.mark.parametrize(
    ("pod", "problem"),
    [
        ({"metadata": {"name": "a"}, "spec": {"nodeName": "n"}}, "spec.nodeName: is set already"),
        ({"kind": "Node", "metadata": {"name": "a"}}, "kind: must be Pod, not Node"),
        ({"metadata": {}}, "metadata.name: is missing"),
        (5, "must be an object, not a number"),
    ],
)
def test_a_pod_to_place_that_is_none(pod, problem):
    result = Intake()
    result.add_pod(pod, Source(path="pods[0]"))
    assert len(result.errors) == 1
    assert problem in str(result.errors[0])
    assert str(result.errors[0]).startswith("pods[0]")


def test_a_pod_to_place_that_is_listed_twice():
    result = Intake()
    for index in range(2):
        result.add_pod({"metadata": {"name": "a"}}, Source(path=f"pods[{index}]"))
    assert list(map(str, result.errors)) == ["pods[1].metadata.name: pod default/a is listed twice"]


def test_an_engine_knows_the_cluster_and_the_nominations():
    result = intake(
        make_node("a", allocatable={"cpu": "2"}),
        make_pod("bound", node="a", cpu="1"),
        make_pod("promised", cpu="1", priority=5, status={"nominatedNodeName": "a"}),
        make_pod("waiting", cpu="1"),
    )
    cluster = result.cluster(NOW)
    engine = cluster.engine(EngineConfig(), NOW)
    assert engine.stats()["nodes"] == 1
    assert engine.stats()["pods"] == 1


# -- policies and samples ------------------------------------------------------------------------


def test_policies_are_read_before_pods_and_tell_which_expressions_hold():
    one = "pod.spec.containers.size() == 1"
    two = "pod.spec.containers.size() == 2"
    policies = [make_policy(name, selector={"expression": text}) for name, text in (("a", one), ("b", two))]
    result = intake(make_pod("p"), *policies, make_policy("mine", "team"))
    cluster = result.cluster(NOW)
    assert [policy.ref.key for policy in cluster.policies] == ["a", "b", "team/mine"]
    assert cluster.waiting[0].holds == {one}


def test_what_is_odd_about_a_policy_is_a_warning():
    result = intake(make_policy("p", canary={"percent": 0}, pendingDeadline="1h"))
    assert len(result.cluster(NOW).policies) == 1
    assert (result.errors, [problem.field for problem in result.problems]) == ([], ["spec.canary.percent"])


def test_a_policy_may_weigh_scoring_plugins_only():
    result = intake(make_policy("p", scoring={"weights": {"ImageLocality": 0, "NodePorts": 1}}))
    assert result.cluster(NOW).policies == []
    assert [problem.field for problem in result.errors] == ["spec.scoring.weights.NodePorts"]


def test_samples_of_real_use():
    metrics = {
        "apiVersion": "metrics.k8s.io/v1beta1",
        "kind": "NodeMetrics",
        "metadata": {"name": "a"},
        "timestamp": "2030-01-01T00:00:00Z",
        "usage": {"cpu": "1500m", "memory": "1Gi"},
    }
    listed = {"apiVersion": "metrics.k8s.io/v1beta1", "kind": "NodeMetricsList", "items": [metrics]}
    cluster = intake(listed).cluster(NOW)
    assert cluster.samples == {"a": UsageSample(1893456000.0, {"cpu": 1500, "memory": 1 << 30})}
    broken = intake(
        {**metrics, "timestamp": None}, {**metrics, "metadata": {"name": "b"}, "usage": {"cpu": "x"}}
    )
    assert broken.cluster(NOW).samples == {}
    assert [problem.field for problem in broken.errors] == ["timestamp", "usage.cpu"]
