"""`moorage policy explain`: which field comes from where."""

import json

import pytest
import yaml
from click.testing import CliRunner

from moorage.cli import main
from tests.kit.builders import make_node, make_pod
from tests.kit.raw_policies import make_policy

FIRST = make_policy(
    "first",
    precedence=10,
    selector={"expression": "pod.metadata.labels['tier'] == 'batch'"},
    scoring={"strategy": {"type": "MostAllocated"}, "weights": {"ImageLocality": 0}},
    nodes={"selector": {"matchLabels": {"pool": "spot"}}},
)
SECOND = make_policy(
    "second", scoring={"strategy": {"type": "LeastAllocated"}, "weights": {"ImageLocality": 5}}
)
MINE = make_policy("mine", "default", backoff={"max": "30s"}, nodes={"keepFree": {"cpu": 10}})
TRIED = make_policy("tried", mode="Audit", pendingDeadline="1h")
OFF = make_policy("off", mode="Disabled", pendingDeadline="1h")
BATCH = {"tier": "batch"}


@pytest.fixture
def explain(tmp_path):
    def call(pod, *documents, options=("-o", "json")):
        path = tmp_path / "all.yaml"
        path.write_text(yaml.safe_dump_all(documents))
        return CliRunner().invoke(main, ["policy", "explain", pod, "--file", str(path), *options])

    return call


def lines(result):
    assert result.exit_code == 0, result.output
    return {(line["policy"], line["field"]): line for line in json.loads(result.stdout)["lines"]}


def test_who_won_and_who_lost(explain):
    result = explain("p", make_pod("p", labels=BATCH), FIRST, SECOND, MINE, TRIED, OFF)
    assert json.loads(result.stdout)["selected_by"] == ["first", "second", "default/mine", "tried"]
    found = lines(result)
    assert {key: line["why_not"] for key, line in found.items() if not line["in_force"]} == {
        ("second", "scoring.strategy"): "first sets it",
        ("second", "scoring.weights.ImageLocality"): "first sets it",
        ("tried", "pendingDeadline"): "audited only",
    }
    assert found["default/mine", "nodes.keepFree"]["value"] == "cpu 10%"
    assert {key for key, line in found.items() if line["in_force"]} == {
        ("first", "scoring.strategy"),
        ("first", "scoring.weights.ImageLocality"),
        ("first", "nodes.selector"),
        ("default/mine", "nodes.keepFree"),
        ("default/mine", "backoff.max"),
    }


def test_only_policies_that_select_the_pod(explain):
    documents = [make_pod("p"), make_pod("q", namespace="team", labels=BATCH), FIRST, SECOND, MINE]
    assert {policy for policy, _ in lines(explain("p", *documents))} == {"second", "default/mine"}
    assert {policy for policy, _ in lines(explain("team/q", *documents))} == {"first", "second"}
    assert {
        policy for policy, _ in lines(explain("q", *documents, options=("-n", "team", "-o", "json")))
    } == {
        "first",
        "second",
    }


def test_a_bound_pod(explain):
    assert lines(explain("p", make_pod("p", node="a"), make_node("a"), SECOND))


def test_what_it_waits_for(explain):
    closed = make_policy("closed", windows=[{"start": "00:00", "end": "00:00", "action": "Hold"}])
    result = explain("p", make_pod("p"), closed, options=())
    assert 'It waits: held by policy "closed"' in result.stdout


def test_as_a_table(explain):
    result = explain("p", make_pod("p", labels=BATCH), FIRST, SECOND, options=())
    assert result.exit_code == 0
    rows = result.stdout.splitlines()
    assert rows[0] == "Pod default/p is selected by first, second."
    assert rows[2].split() == ["FIELD", "POLICY", "IN", "FORCE", "VALUE"]
    assert (
        "scoring.strategy               second  no, first sets it  LeastAllocated of cpu 1, memory 1" in rows
    )


def test_no_policy_is_about_it(explain):
    result = explain("p", make_pod("p"), make_policy("other", "team"), options=())
    assert (result.exit_code, result.stdout) == (0, "No policy is about pod default/p.\n")


def test_no_such_pod(explain):
    result = explain("nobody", make_pod("p"), SECOND)
    assert result.exit_code == 2
    assert "there is no pod default/nobody" in result.stderr


def test_a_policy_that_is_wrong(explain):
    result = explain("p", make_pod("p"), make_policy("p", mode="On"))
    assert result.exit_code == 2
    assert "spec.mode" in result.stderr
