"""The tools of this folder: comparing, making cases small, talking to the oracle."""

import copy
import json
import sys
from pathlib import Path

import pytest

from tests.parity.compare import compare
from tests.parity.exercise import exercised
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
    assert exercised(changed()) == {"NodePorts filter", "X score"}


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
