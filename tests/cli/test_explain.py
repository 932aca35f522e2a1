"""`moorage explain` on manifests."""

import json

import pytest
import yaml
from click.testing import CliRunner

from moorage.cli import main
from tests.kit.builders import make_node, make_pod
from tests.kit.raw_policies import make_policy


@pytest.fixture
def explain(tmp_path):
    def call(pod, *documents, options=("-o", "json")):
        path = tmp_path / "all.yaml"
        path.write_text(yaml.safe_dump_all(documents))
        return CliRunner().invoke(main, ["explain", pod, "--cluster", str(path), *options])

    return call


def record(result):
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_a_pending_pod_and_what_would_help(explain):
    found = record(explain("p", make_node("a"), make_pod("p", cpu="5")))
    assert found["node"] is None
    assert found["waits"] == [{"for": "room", "text": "NodeResourcesFit: 1 Insufficient cpu"}]
    assert found["wouldHelp"] == [
        {
            "steps": [{"action": "addResource", "node": "a", "resource": "cpu", "amount": 1000}],
            "placesOn": "a",
            "alike": 0,
        }
    ]


def test_a_bound_pod_in_another_namespace(explain):
    found = record(explain("team/p", make_node("a"), make_pod("p", namespace="team", node="a")))
    assert (found["node"], found["decision"]["chosen"], found["waits"]) == ("a", "a", [])


def test_as_a_running_scheduler_guards_nodes_that_are_not_ready(explain):
    node = make_node("a", status={"conditions": [{"type": "Ready", "status": "Unknown"}]})
    found = record(explain("p", node, make_pod("p")))
    assert found["wouldHelp"][0]["steps"] == [{"action": "makeReady", "node": "a"}]
    options = ("-o", "json", "--no-node-ready-guard")
    assert record(explain("p", node, make_pod("p"), options=options))["decision"]["chosen"] == "a"


def test_policies_that_shape_it(explain):
    policies = [
        make_policy("spot", nodes={"selector": {"matchLabels": {"pool": "spot"}}}),
        make_policy("tried", mode="Audit", pendingDeadline="1h"),
    ]
    found = record(explain("p", make_node("a"), make_pod("p"), *policies))
    assert (found["policies"], found["auditedPolicies"]) == (["spot"], ["tried"])
    assert found["waits"][0]["for"] == "policy"


def test_a_window_says_until_when_and_that_waiting_helps(explain):
    closed = make_policy("closed", windows=[{"start": "00:00", "end": "00:00", "action": "Hold"}])
    found = record(explain("p", make_node("a"), make_pod("p"), closed))
    assert found["waits"][0]["for"] == "window"
    assert "until" not in found["waits"][0]
    assert found["wouldHelp"] == []


def test_the_table_fits_and_says_it_in_words(explain):
    result = explain(
        "p", make_node("a", unschedulable=True), make_node("b"), make_pod("p", cpu="5"), options=()
    )
    assert result.exit_code == 0
    assert "Pod default/p (scheduler default-scheduler, priority 0) is pending." in result.stdout
    assert "NodeUnschedulable" in result.stdout
    assert "- 1 more cpu on node b: it goes to b" in result.stdout
    assert all(len(line) <= 100 for line in result.stdout.splitlines() if not line.startswith("- "))


def test_many_nodes_are_not_all_listed(explain):
    nodes = [make_node(f"n{i:03}") for i in range(60)]
    result = explain("p", *nodes, make_pod("p"), options=())
    assert "… and 50 more" in result.stdout


def test_no_such_pod(explain):
    result = explain("nobody", make_node("a"))
    assert (result.exit_code, result.stderr) == (
        2,
        "error: there is no pod default/nobody, or it has ended\n",
    )


def test_a_broken_manifest_names_the_field(explain):
    result = explain("p", make_node("a", allocatable={"cpu": "lots"}), make_pod("p"))
    assert result.exit_code == 2
    assert "allocatable" in result.stderr


def test_plugins_of_your_own_have_their_say(explain, tmp_path):
    rule = tmp_path / "rule.py"
    rule.write_text(
        "from moorage import filter\n\n"
        "@filter(reason='node is called a')\n"
        "def not_a(pod, nodes):\n"
        "    return len(nodes) > 5\n"
    )
    found = record(explain("p", make_node("a"), make_pod("p"), options=("-o", "json", "--plugin", str(rule))))
    assert found["decision"]["filtered"]["a"]["reasons"] == ["node is called a"]
