"""Cases and their answers, in the protocol of the parity oracle."""

import json
import time
from typing import Any

import pytest

from moorage.cli.cases import decide_case, read_case
from tests.kit.builders import make_container, make_node, make_pod
from tests.kit.raw_policies import make_policy


def case(*objects, pods=(), **more):
    return {"id": 7, "objects": list(objects), "pods": list(pods), **more}


def decide(*objects, pods=(), **more):
    answer = decide_case(case(*objects, pods=pods, **more))
    assert "error" not in answer, answer
    assert json.loads(json.dumps(answer)) == answer
    return answer["results"]


def error(raw):
    answer = decide_case(raw)
    assert set(answer) <= {"id", "error", "warnings"}
    return answer["error"]


def small(name="a", cpu="1", **more):
    return make_node(name, allocatable={"cpu": cpu, "memory": "1Gi"}, **more)


# -- results -------------------------------------------------------------------------------------


def test_a_placed_pod():
    (result,) = decide(small("b", "4"), small("a", "4"), pods=[make_pod("p", cpu="1")])
    assert list(result) == [
        "pod", "feasible", "filtered", "prefilter", "scores", "best", "chosen", "message", "preemption",
    ]  # fmt: skip
    assert (result["pod"], result["feasible"], result["best"], result["chosen"]) == (
        "default/p",
        ["a", "b"],
        ["a", "b"],
        "a",
    )
    assert list(result["scores"]) == ["a", "b"]
    total = result["scores"]["a"].pop("total")
    assert total == sum(result["scores"]["a"].values()) > 0
    assert (result["filtered"], result["prefilter"], result["message"], result["preemption"]) == (
        {},
        None,
        "",
        None,
    )


def test_a_pod_that_fits_nowhere():
    tainted = make_node("b", taints=[{"key": "k", "effect": "NoSchedule"}])
    (result,) = decide(small("a"), tainted, pods=[make_pod("p", cpu="2")])
    assert (result["feasible"], result["best"], result["chosen"], result["scores"]) == ([], [], None, {})
    assert result["filtered"]["b"] == {
        "plugin": "TaintToleration",
        "reasons": ["node(s) had untolerated taint(s)"],
        "code": "UnschedulableAndUnresolvable",
    }
    assert result["message"].startswith(
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s)."
    )


def test_a_gated_pod_gets_preenqueue_and_nothing_else():
    (result,) = decide(small(), pods=[make_pod("p", schedulingGates=[{"name": "g"}])])
    assert result["preenqueue"]["plugin"] == "SchedulingGates"
    assert (result["feasible"], result["filtered"], result["chosen"], result["message"]) == ([], {}, None, "")


def test_a_pod_that_asks_for_what_is_not_supported():
    (result,) = decide(small(), pods=[make_pod("p", resourceClaims=[{"name": "c"}])])
    assert result["prefilter"]["plugin"] == "SupportedFeatures"
    assert "resource claims" in result["message"]


def test_pods_of_other_schedulers_are_left_alone_but_count_when_bound():
    foreign = {"schedulerName": "someone-else"}
    results = decide(
        small(),
        make_pod("b", cpu="1", node="a", **foreign),
        pods=[
            make_pod("mine", cpu="1"),
            make_pod("theirs", **foreign),
            make_pod("ours", schedulerName="moorage"),
        ],
    )
    assert [result["chosen"] for result in results] == [None, None, "a"]
    assert (
        results[1]["error"]
        == 'no profile for schedulerName "someone-else": kube-scheduler leaves this pod alone'
    )
    assert results[1]["message"] == ""


def test_a_pod_that_is_being_deleted():
    pod = make_pod("p", metadata={"deletionTimestamp": "2026-01-05T10:00:00Z"})
    (result,) = decide(small(), pods=[pod])
    assert result["error"] == "the pod is being deleted: kube-scheduler skips it"


def test_a_nominated_pod_goes_where_it_was_promised():
    (result,) = decide(small("a"), small("b"), pods=[make_pod("p", status={"nominatedNodeName": "b"})])
    assert (result["chosen"], result["nominatedNodeFits"]) == ("b", True)


def test_no_nodes_at_all():
    (result,) = decide(pods=[make_pod("p")])
    assert result["message"] == "no nodes available to schedule pods"


# -- terse objects -------------------------------------------------------------------------------


def test_terse_objects_are_completed():
    results = decide(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "a"},
            "status": {"capacity": {"cpu": 1, "pods": 9}},
        },
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "b"},
            "spec": {"nodeName": "a", "containers": [{"resources": {"limits": {"cpu": "500m"}}}]},
        },
        pods=[
            {"metadata": {"name": "p"}, "spec": {"containers": [{"resources": {"limits": {"cpu": "501m"}}}]}},
            {"metadata": {"name": "q", "namespace": "n"}, "spec": {}},
        ],
    )
    assert [(result["pod"], result["chosen"]) for result in results] == [("default/p", None), ("n/q", "a")]


# -- what later pods see -------------------------------------------------------------------------


def test_a_placed_pod_takes_room_from_the_next():
    pods = [make_pod("p", cpu="600m"), make_pod("q", cpu="600m")]
    assert [r["chosen"] for r in decide(small(), pods=pods)] == ["a", None]
    assert [r["chosen"] for r in decide(small(), pods=pods, commit=False)] == ["a", "a"]


def full(grace, **more):
    """A node taken by a pod of low priority; an important pod; one that is less so."""
    victim = make_pod("victim", cpu="1", node="a", priority=0, terminationGracePeriodSeconds=grace)
    return case(
        small(),
        victim,
        pods=[make_pod("boss", cpu="1", priority=10), make_pod("clerk", cpu="100m", priority=5)],
        **more,
    )


def test_preemption_is_described():
    boss = decide_case(full(30))["results"][0]
    assert boss["preemption"] == {
        "node": "a",
        "victims": ["default/victim"],
        "pdbViolations": 0,
        "candidates": {"a": ["default/victim"]},
    }
    assert boss["chosen"] is None


def test_nominate_promises_the_node_and_the_victim_lingers():
    clerk = decide_case(full(30))["results"][1]
    assert (clerk["feasible"], clerk["preemption"]) == ([], None)


def test_nominate_with_no_grace_period_frees_the_node_for_the_pod_only():
    raw = full(0)
    raw["pods"].append(make_pod("boss-2", cpu="1", priority=20))
    boss, clerk, other_boss = decide_case(raw)["results"]
    assert boss["preemption"]["victims"] == ["default/victim"]
    assert clerk["chosen"] is None  # the room is promised
    assert other_boss["chosen"] == "a"  # to someone less important


def test_a_lower_nomination_on_the_node_is_withdrawn():
    waiting = make_pod("waiting", cpu="1", priority=5, status={"nominatedNodeName": "a"})
    victim = make_pod("victim", cpu="1", node="a", priority=0, terminationGracePeriodSeconds=0)
    pods = [make_pod("boss", cpu="600m", priority=10), make_pod("clerk", cpu="400m", priority=1)]
    boss, clerk = decide_case(case(small(), victim, waiting, pods=pods))["results"]
    assert boss["preemption"]["node"] == "a"
    assert clerk["chosen"] == "a"  # next to what boss was promised; waiting's promise of all of it is void


def hopeful(**more):
    """A pod that is promised a node it does not fit on, and one that only the promise keeps out."""
    pods = [
        make_pod(
            "hopeful",
            cpu="600m",
            priority=10,
            status={"nominatedNodeName": "a"},
            nodeSelector={"no": "where"},
        ),
        make_pod("clerk", cpu="600m"),
    ]
    return [result["chosen"] for result in decide(small(), pods=pods, **more)]


def test_a_nomination_is_withdrawn_when_the_attempt_fails():
    assert hopeful() == [None, "a"]
    assert hopeful(preempt="evict") == [None, "a"]


@pytest.mark.parametrize("more", [{"preempt": "none"}, {"commit": False}])
def test_without_effect_a_nomination_stays(more):
    assert hopeful(**more) == [None, None]


def test_a_nomination_stays_while_victims_are_leaving():
    leaving = make_pod(
        "leaving", cpu="500m", node="a", metadata={"deletionTimestamp": "2026-01-05T10:00:00Z"},
        status={"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]},
    )  # fmt: skip
    pods = [
        make_pod("holder", cpu="600m", priority=10, status={"nominatedNodeName": "a"}),
        make_pod("clerk", cpu="500m"),
    ]
    assert [result["chosen"] for result in decide(small(), leaving, pods=pods)] == [None, None]


def test_an_image_s_size_is_that_of_the_first_node_by_name():
    def node(name, mebibytes):
        images = [{"names": ["app:1"], "sizeBytes": mebibytes << 20}]
        return make_node(name, status={"images": images})

    pod = make_pod("p", containers=[{"name": "c", "image": "app:1"}])
    small, large = node("a", 24), node("b", 900)
    first, second = (decide(*nodes, pods=[pod])[0]["scores"] for nodes in ((small, large), (large, small)))
    assert first == second
    assert first["a"]["ImageLocality"] == first["b"]["ImageLocality"] == 0


def test_evict_takes_the_victim_away_and_tries_again():
    boss, clerk = decide_case(full(30, preempt="evict"))["results"]
    assert boss["chosen"] is None
    assert (boss["retry"]["chosen"], boss["retry"]["nominatedNodeFits"]) == ("a", True)
    assert clerk["chosen"] is None


@pytest.mark.parametrize("more", [{"preempt": "none"}, {"commit": False}])
def test_without_effect_a_preemption_is_still_described(more):
    boss, clerk = decide_case(full(30, **more))["results"]
    assert boss["preemption"]["victims"] == clerk["preemption"]["victims"] == ["default/victim"]
    assert "retry" not in boss


def test_disruption_budgets_are_counted():
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b"},
        "spec": {"selector": {"matchLabels": {"app": "x"}}},
    }
    victim = make_pod("victim", cpu="1", node="a", priority=0, labels={"app": "x"})
    (boss,) = decide(small(), victim, budget, pods=[make_pod("boss", cpu="1", priority=10)])
    assert boss["preemption"]["pdbViolations"] == 1


# -- what is wrong -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"objects": {}}, "objects: must be a list, not an object"),
        ({"pods": "p"}, "pods: must be a list, not a string"),
        ({"commit": 1}, "commit: must be true or false, not a number (1)"),
        ({"preempt": "maybe"}, "preempt: must be one of nominate, evict, none, not 'maybe'"),
        ({"now": "noon"}, "now: must be an RFC 3339 time, not 'noon'"),
        ({"seed": -1}, "seed: must be between 0 and 9223372036854775807, not -1"),
        ({"pods": [make_pod(node="a")]}, "pods[0].spec.nodeName: is set already"),
        ({"pods": [make_pod("p"), make_pod("p")]}, "pods[1].metadata.name: pod default/p is listed twice"),
        ({"pods": [{"spec": {}}]}, "pods[0].metadata.name: is missing"),
        ({"objects": [{"metadata": {}}]}, "objects[0].apiVersion: is missing; objects[0].kind: is missing"),
        (
            {"pods": [make_pod(cpu="-1")]},
            "pods[0].spec.containers[0].resources.requests.cpu: must not be negative",
        ),
        (
            {"objects": [{"kind": "List", "apiVersion": "v1", "items": [make_node(unschedulable=3)]}]},
            "objects[0].items[0].spec.unschedulable: must be true or false",
        ),
        ({"config": {"extenders": [{}]}}, "config: extenders[0].urlPrefix: must be an http or https URL"),
    ],
)
def test_a_broken_case(more, message):
    assert message in error(case(small()) | more)


@pytest.mark.parametrize("raw", [None, 5, "x", [1]])
def test_a_case_that_is_no_object(raw):
    assert decide_case(raw) == {"id": None, "error": "a case must be a JSON object"}


def test_null_is_as_good_as_absent():
    raw = {
        "id": None,
        "objects": None,
        "pods": None,
        "config": None,
        "commit": None,
        "preempt": None,
        "now": None,
    }
    assert decide_case(raw) == {"id": None, "results": []}


@pytest.mark.parametrize("identity", [1, "x", None, {"a": [1]}, 1.5])
def test_the_id_comes_back_as_it_was(identity):
    assert decide_case({"id": identity})["id"] == identity
    assert decide_case({"id": identity, "pods": 1})["id"] == identity


def test_oddities_are_warnings():
    answer = decide_case(
        case(
            {"kind": "Widget", "apiVersion": "example.com/v1"},
            {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "a"}},
            pods=[],
            colour="red",
        )
    )
    assert answer["warnings"] == [
        "unknown key 'colour' ignored",
        "objects[0].kind: kind Widget of example.com/v1 is not known here; skipped",
        "objects[1].status.allocatable: is missing, so no pod fits there",
    ]
    assert answer["results"] == []


def test_now_is_the_clock_unless_given():
    assert abs(read_case({}).now - time.time()) < 5
    assert read_case({"now": "1970-01-01T01:00:00+01:00"}).now == 0.0
    assert read_case({"now": "1970-01-01T00:01:00"}).now == 60.0


def test_devices_and_declared_features():
    device_class: dict[str, Any] = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "fast"},
        "spec": {"extendedResourceName": "example.com/gpu"},
    }
    able = make_node("b", allocatable={"example.com/gpu": "1"}, status={"declaredFeatures": ["A"]})
    wanting = make_pod("p", containers=[make_container(requests={"example.com/gpu": "1"})])
    rule = {"action": "RestartAllContainers"}
    picky = make_pod("q", containers=[make_container(restartPolicyRules=[rule])])
    first, second = decide(device_class, small("a"), able, pods=[wanting, picky])
    text = (
        "node(s) could offer example.com/gpu only as devices of DeviceClass fast, "
        "which this scheduler does not support yet"
    )
    rejection = {"plugin": "SupportedFeatures", "reasons": [text], "code": "UnschedulableAndUnresolvable"}
    assert (first["chosen"], first["filtered"]) == ("b", {"a": rejection})
    assert {refused["plugin"] for refused in second["filtered"].values()} == {"NodeDeclaredFeatures"}
    assert "2 node(s) didn't match Pod's required features." in second["message"]


# -- policies ------------------------------------------------------------------------------------


def test_policies_among_the_objects_decide():
    policy = make_policy("spot", nodes={"selector": {"matchLabels": {"pool": "spot"}}})
    nodes = make_node("a"), make_node("b", labels={"pool": "spot"})
    (result,) = decide(policy, *nodes, pods=[make_pod("p")])
    assert (result["feasible"], result["chosen"]) == (["b"], "b")
    assert result["filtered"]["a"] == {
        "plugin": "PolicyNodes",
        "reasons": ['node(s) didn\'t match the node selector of policy "spot"'],
        "code": "UnschedulableAndUnresolvable",
    }
    (without,) = decide(*nodes, pods=[make_pod("p")])
    assert without["feasible"] == ["a", "b"]


def test_each_pod_of_a_case_counts_for_the_next():
    policy = make_policy("one", limits=[{"topologyKey": "kubernetes.io/hostname", "maxPods": 1}])
    nodes = [make_node(name, labels={"kubernetes.io/hostname": name}) for name in "ab"]
    results = decide(policy, *nodes, pods=[make_pod(name) for name in "pqr"])
    assert [result["chosen"] for result in results] == ["a", "b", None]
    assert {rejection["plugin"] for rejection in results[2]["filtered"].values()} == {"PolicyLimits"}


@pytest.mark.parametrize(("now", "goes"), [("2030-01-01T21:59:59Z", False), ("2030-01-01T22:00:00Z", True)])
def test_the_time_of_a_case_opens_windows(now, goes):
    policy = make_policy("night", windows=[{"start": "22:00", "end": "06:00"}])
    (result,) = decide(
        policy, make_node("a"), pods=[make_pod("p", metadata={"creationTimestamp": now})], now=now
    )
    assert result["chosen"] == ("a" if goes else None)
    if not goes:
        assert result["preenqueue"]["reasons"][0].startswith(
            'held by policy "night" until 2030-01-01T22:00:00Z'
        )


def test_a_policy_that_is_wrong_is_an_error_that_names_the_field():
    text = error(case(make_policy("p", limits=[{"topologyKey": "z"}]), pods=[]))
    assert text == "objects[0].spec.limits[0].maxPods: is missing"
