"""`moorage policy lint`: what is wrong with policies in files."""

import json

import pytest
import yaml
from click.testing import CliRunner

from moorage.cli import main
from tests.kit.builders import make_pod
from tests.kit.raw_policies import FULL, make_policy


@pytest.fixture
def lint(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def call(*documents, options=(), text=None):
        (tmp_path / "p.yaml").write_text(yaml.safe_dump_all(documents) if text is None else text)
        return CliRunner().invoke(main, ["policy", "lint", "p.yaml", *options])

    return call


def test_good_ones(lint):
    result = lint(make_policy("a", **FULL), make_policy("a", "team", **FULL), make_pod("p"))
    assert result.exit_code == 0
    assert (result.stdout, result.stderr) == (
        "2 policies, 0 errors (1 object of other kinds passed over).\n",
        "",
    )


def test_a_bad_one_is_named_with_file_document_and_field(lint):
    result = lint(make_policy("a", **FULL), make_policy("b", mode="On", limits=[{"topologyKey": "z"}]))
    assert result.exit_code == 2
    assert result.stderr.splitlines() == [
        "error: p.yaml, document 2: spec.mode: must be one of Enforce, Audit, Disabled, not 'On'",
        "error: p.yaml, document 2: spec.limits[0].maxPods: is missing",
        "2 policies, 2 errors.",
    ]
    assert result.stdout == ""


def test_what_is_odd_is_a_warning(lint):
    pools = {"whenFull": "wait", "items": [{"name": n, "selector": {"matchLabels": {"p": n}}} for n in "ab"]}
    result = lint(make_policy("a", pools=pools))
    assert result.exit_code == 0
    assert result.stderr == (
        "warning: p.yaml, document 1: spec.pools.items[1]: "
        "is never used: with whenFull wait, pods wait for 'a'\n"
    )
    assert result.stdout == "1 policy, 0 errors, 1 warning.\n"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"apiVersion": "moorage.dev/v1"},
            "apiVersion: must be SchedulingPolicy or ClusterSchedulingPolicy of",
        ),
        ({"kind": "SchedulingPolicies"}, "kind: must be SchedulingPolicy or"),
        ({"apiVersion": None}, "apiVersion: is missing"),
        ({"metadata": {}}, "metadata.name: is missing"),
        ({"metadata": {"name": "No Name"}}, "metadata.name: 'No Name' is not a name"),
        ({"spec": None}, "spec: is missing"),
    ],
)
def test_what_is_hardly_a_policy(lint, change, message):
    result = lint({**make_policy("a"), **change})
    assert result.exit_code == 2
    assert f"error: p.yaml, document 1: {message}" in result.stderr


def test_a_policy_given_twice(lint):
    result = lint(make_policy("a", pendingDeadline="1h"), make_policy("a", pendingDeadline="2h"))
    assert result.exit_code == 2
    assert (
        "document 2: metadata.name: there is a ClusterSchedulingPolicy a already, in p.yaml, document 1"
        in result.stderr
    )


def test_files_without_a_policy_are_no_success(lint):
    result = lint(make_pod("p"))
    assert result.exit_code == 2
    assert "error: p.yaml: there is no policy in it" in result.stderr


def test_what_is_not_yaml(lint):
    result = lint(text="a: [\n---\n" + yaml.safe_dump(make_policy("a", mode="On")))
    assert result.exit_code == 2
    assert "document 1: not YAML" in result.stderr
    assert "document 2: spec.mode" in result.stderr


def test_lists_and_json(lint):
    items = [make_policy("a", pendingDeadline="1h"), make_policy("b", mode="On")]
    result = lint({"apiVersion": "v1", "kind": "List", "items": items}, options=("-o", "json"))
    assert result.exit_code == 2
    document = json.loads(result.stdout)
    assert [policy["policy"] for policy in document["policies"]] == [
        "ClusterSchedulingPolicy a",
        "ClusterSchedulingPolicy b",
    ]
    assert document["errors"][0] | {"message": ""} == {
        "file": "p.yaml",
        "document": 1,
        "field": "items[1].spec.mode",
        "message": "",
    }


def test_help_has_examples():
    for words in (["policy"], ["policy", "lint"], ["policy", "explain"]):
        result = CliRunner().invoke(main, [*words, "--help"])
        assert result.exit_code == 0
        assert "Example" in result.output
