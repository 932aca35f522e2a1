"""The tools of this folder: comparing, making cases small, talking to the oracle."""

import copy
import json
import sys
from pathlib import Path

import pytest

from tests.kit.mixing import mixed, settle
from tests.parity.compare import compare
from tests.parity.exercise import DEMANDED, ENOUGH, exercised, missing, table
from tests.parity.oracle import Case, Oracle, OracleFailed
from tests.parity.shrink import shrink
from tests.parity.sides import ABSENT, for_oracle

REJECTED = {"plugin": "NodePorts", "reasons": ["x", "y"], "code": "Unschedulable"}
PLACED: Case = {
    "pod": "default/p",
    "feasible": ["a", "b"],
    "filtered": {"c": REJECTED},
    "prefilter": None,
    "scores": {"a": {"X": 1, "Y": 5, "total": 6}, "b": {"X": 2, "Y": 5, "total": 7}},
    "best": ["b"],
    "chosen": "b",
    "message": "",
    "preemption": None,
}


def changed(**more):
    return {"results": [copy.deepcopy(PLACED) | more, copy.deepcopy(PLACED)]}


def kinds(theirs):
    return [difference.kind for difference in compare(changed(), theirs)]


def test_equal_answers():
    assert kinds(changed()) == []
    other_order = {"c": REJECTED | {"reasons": ["y", "x"]}}
    assert kinds(changed(filtered=other_order)) == []


@pytest.mark.parametrize(
    ("more", "kind"),
    [
        ({"feasible": ["a"]}, "feasible"),
        ({"filtered": {}}, "filtered NodePorts / none"),
        ({"filtered": {"c": REJECTED | {"code": "Other"}}}, "filtered NodePorts / NodePorts"),
        ({"prefilter": REJECTED}, "prefilter none / NodePorts"),
        ({"best": ["a", "b"]}, "best"),
        ({"chosen": "a"}, "chosen"),
        ({"message": "no"}, "message"),
        ({"error": "no"}, "error"),
        ({"nominatedNodeFits": True}, "nominatedNodeFits"),
        ({"retry": PLACED}, "retry"),
        ({"preemption": {"node": "a", "victims": [], "candidates": {}, "pdbViolations": 0}}, "preemption"),
        ({"scores": PLACED["scores"] | {"b": {"X": 3, "Y": 5, "total": 7}}}, "score X"),
        ({"scores": PLACED["scores"] | {"b": {"X": 2, "Y": 5, "total": 8}}}, "total"),
    ],
)
def test_each_field_is_compared(more, kind):
    assert kinds(changed(**more)) == [kind]


def test_a_total_without_scores_says_nothing():
    ours, theirs = changed(scores={"a": {"total": 0}}), changed(scores={"a": {"total": 1}})
    assert compare(ours, theirs) == []


def test_only_the_first_pod_that_differs_is_shown():
    theirs = changed(chosen="a")
    theirs["results"][1]["message"] = "no"
    (difference,) = compare(changed(), theirs)
    assert str(difference) == "default/p chosen: Moorage 'b', kube-scheduler 'a'"


def test_what_a_case_exercises():
    reasons = {"NodePorts filter: x", "NodePorts filter: y"}
    assert exercised(changed()) == {"NodePorts filter", "X score", *reasons}
    again = changed(retry=PLACED | {"message": "preemption: not eligible due to preemptionPolicy=Never."})
    more = exercised(again) - exercised(changed())
    assert more == {"the pod again after an eviction", "DefaultPreemption may not (preemptionPolicy)"}


def test_reasons_are_told_apart_by_what_they_say():
    texts = {
        "Insufficient example.com/gpu": "Insufficient extended resource",
        "Insufficient hugepages-2Mi": "Insufficient hugepages",
        "Insufficient cpu": "Insufficient cpu",
        "disk.test CSI driver is not installed on the node": "… CSI driver is not installed on the node",
        'persistentvolumeclaim "c0" not found': 'persistentvolumeclaim "…" not found',
    }
    answer = changed(filtered={"c": REJECTED | {"reasons": list(texts)}})
    assert exercised(answer) >= {f"NodePorts filter: {text}" for text in texts.values()}


def test_what_a_configuration_exercises():
    fit = {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}
    answer = changed(scores={"a": {"NodeResourcesFit": 1}, "b": {"NodeResourcesFit": 2}})
    plugins = {"multiPoint": {"disabled": [{"name": "X"}]}, "filter": {"enabled": [{"name": "Y"}]}}
    found = exercised(answer, {"config": {"profiles": [{"pluginConfig": [fit], "plugins": plugins}]}})
    assert found >= {
        "NodeResourcesFit score by MostAllocated",
        "configuration: a plugin off everywhere",
        "configuration: another order",
        "configuration: arguments",
    }


def test_what_is_exercised_too_rarely_is_named():
    counts = dict.fromkeys(DEMANDED, 500)
    assert missing(counts, 50_000) == []
    counts["NodePorts filter"] = 499
    assert missing(counts, 50_000) == [("NodePorts filter", 499, 500)]
    assert missing(counts, 49_900) == []
    assert missing({}, ENOUGH - 1) == [], "few cases miss some by chance"
    assert len(missing({}, ENOUGH)) == len(DEMANDED)
    line = next(
        text for text in table(counts, {}, 50_000).splitlines() if text.startswith("NodePorts filter ")
    )
    assert line.split() == ["NodePorts", "filter", "499", "500", "0"]


def test_a_case_shrinks_to_what_makes_it_fail():
    case = {
        "objects": [{"kind": "Node", "spec": {"a": 1, "b": [1, 2]}}, {"kind": "Pod"}],
        "pods": [{}],
        "commit": False,
    }

    def fails(smaller):
        return any(2 in each.get("spec", {}).get("b", ()) for each in smaller.get("objects", ()))

    assert shrink(case, fails) == {"objects": [{"kind": "Node", "spec": {"b": [2]}}]}


def test_plugins_that_only_kube_scheduler_has_are_off():
    for text in ("{}", '{"profiles": []}', '{"profiles": [{"schedulerName": "x"}]}'):
        case: Case = {"config": json.loads(text), "pods": []}
        (profile,) = for_oracle(case)["config"]["profiles"]
        off = [each["name"] for each in profile["plugins"]["multiPoint"]["disabled"]]
        assert off == list(ABSENT)
        assert case["config"] == json.loads(text), "the case itself is left as it is"


def bound(name, **status):
    return {"kind": "Pod", "metadata": {"name": name}, "spec": {"nodeName": "n"}, "status": status}


def test_mixed_cases_have_the_traits_of_both():
    node = {
        "kind": "Node",
        "metadata": {"name": "n", "labels": {"a": "1"}},
        "status": {"capacity": {"cpu": 1}},
    }
    other = {
        "kind": "Node",
        "metadata": {"name": "n", "labels": {"b": "2"}},
        "status": {"capacity": {"cpu": 9}},
    }
    pod = {"metadata": {"name": "p"}, "spec": {"priority": 5, "tolerations": [1], "volumes": [2]}}
    more = {"metadata": {"name": "p", "namespace": "x"}, "spec": {"priority": 7, "tolerations": [1, 3]}}
    case = mixed({"objects": [node], "pods": [pod]}, {"objects": [other], "pods": [more], "preempt": "evict"})
    (found,) = case["objects"]
    assert found["metadata"]["labels"] == {"a": "1", "b": "2"}
    assert found["status"]["capacity"] == {"cpu": 1}, "amounts rest on each other"
    assert case["pods"] == [
        {
            "metadata": {"name": "p", "namespace": "x"},
            "spec": {"priority": 5, "tolerations": [1, 3], "volumes": [2]},
        }
    ]
    assert case["preempt"] == "evict"


def test_what_kube_scheduler_leaves_to_chance_is_settled():
    start = "2026-01-01T00:00:00Z"
    pods = [bound("a", startTime=start), bound("b", startTime=start), bound("c"), bound("d")]
    for pod in pods:
        pod["metadata"]["labels"] = {"app": "x"}
    budgets = [
        {
            "kind": "PodDisruptionBudget",
            "metadata": {"name": n, "namespace": "default"},
            "spec": {"selector": s},
        }
        for n, s in (
            ("all", {"matchExpressions": [{"key": "app", "operator": "Exists"}]}),
            ("also", {"matchLabels": {"app": "x"}}),
            ("none", {"matchLabels": {"app": "y"}}),
        )
    ]
    case = settle({"objects": [*pods, *budgets], "pods": []})
    starts = [pod["status"].get("startTime") for pod in pods]
    assert starts[0] == start
    assert starts[2] is None
    assert len(set(starts)) == 4
    left = [obj["metadata"]["name"] for obj in case["objects"] if obj["kind"] == "PodDisruptionBudget"]
    assert left == ["all", "none"]


def program(tmp_path: Path, body: str) -> Path:
    path = tmp_path / "oracle"
    path.write_text(f"#!{sys.executable}\n{body}\n")
    path.chmod(0o755)
    return path


def test_answers_come_in_the_order_of_the_cases(tmp_path):
    echo = program(tmp_path, "import sys\nfor line in sys.stdin: print(line, end='', flush=True)")
    with Oracle(echo) as oracle:
        cases = [{"id": number} for number in range(50)]
        assert list(oracle.ask_all(cases)) == [(case, case) for case in cases]
        assert oracle.ask({"id": "x"}) == {"id": "x"}


def test_an_oracle_that_ends_is_noticed(tmp_path):
    with (
        Oracle(program(tmp_path, "import sys\nsys.stdin.readline()\nsys.exit(3)")) as oracle,
        pytest.raises(OracleFailed, match="ended with status"),
    ):
        oracle.ask({})
