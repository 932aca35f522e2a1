"""Users' plugins on the command line: simulate, decide and run take FILE.py."""

import json
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from moorage.cli import main
from moorage.cli import run as run_module
from moorage.core.profile import Additions
from moorage.plugins.declare import collecting
from tests.kit.builders import make_node, make_pod
from tests.kit.raw_policies import make_policy

PRICE = "example.com/price"
CHEAPER = f"""
import moorage

@moorage.score(weight=10)
def cheaper_first(pod, nodes):
    if pod.name == "odd":
        raise ValueError("boom")
    return -nodes.label_number({PRICE!r}, default=0)
"""
NODES = [make_node("dear", labels={PRICE: "9"}), make_node("cheap", labels={PRICE: "2"})]


@pytest.fixture(autouse=True)
def _apart(monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    with collecting():
        yield


@pytest.fixture
def rules(tmp_path):
    path = tmp_path / "rules.py"
    path.write_text(CHEAPER)
    return str(path)


@pytest.fixture
def cluster(tmp_path):
    path = tmp_path / "cluster.yaml"
    path.write_text(yaml.safe_dump_all([*NODES, make_pod("web", cpu="2"), make_pod("odd")]))
    return str(path)


def case(*pods, **more):
    return json.dumps({"id": 1, "objects": NODES, "pods": [make_pod(name) for name in pods], **more})


def test_simulate_goes_by_them_and_names_one_that_raises(rules, cluster):
    result = CliRunner().invoke(main, ["simulate", "-o", "json", rules, cluster])
    found = {each["pod"]: each for each in json.loads(result.stdout)["results"]}
    assert result.exit_code == 3
    assert found["default/web"]["chosen"] == "cheap"
    assert found["default/web"]["scores"]["cheap"]["cheaper_first"] == 1000
    assert found["default/odd"]["chosen"] is None
    assert (
        'Score plugin "cheaper_first": cheaper_first() raised ValueError: boom'
        in found["default/odd"]["error"]
    )


def test_simulate_wants_manifests_too(rules):
    result = CliRunner().invoke(main, ["simulate", rules])
    assert (result.exit_code, "no manifest" in result.stderr) == (2, True)


def test_decide_goes_by_them_and_a_case_s_configuration_may_name_them(rules):
    def answers(*cases):
        result = CliRunner().invoke(main, ["decide", rules], input="\n".join(cases))
        assert result.exit_code == 0, result.output
        return [json.loads(line) for line in result.stdout.splitlines()]

    off = {"profiles": [{"plugins": {"score": {"disabled": [{"name": "cheaper_first"}]}}}]}
    one, two, three = answers(case("web"), case("web", config=off), case("odd", "even"))
    assert one["results"][0]["chosen"] == "cheap"
    assert one["results"][0]["scores"]["dear"]["cheaper_first"] == 0
    assert "cheaper_first" not in two["results"][0]["scores"]["cheap"]
    odd, even = three["results"]
    assert "raised ValueError: boom" in odd["error"]
    assert even["chosen"] == "cheap"


def test_decide_reads_cases_from_one_file(rules, tmp_path):
    path = tmp_path / "cases.json"
    path.write_text(case("web"))
    result = CliRunner().invoke(main, ["decide", str(path), rules])
    assert json.loads(result.stdout)["results"][0]["chosen"] == "cheap"
    assert CliRunner().invoke(main, ["decide", str(path), str(path)]).exit_code == 2
    missing = CliRunner().invoke(main, ["decide", str(tmp_path / "missing.json")])
    assert (missing.exit_code, "missing.json" in missing.stderr) == (2, True)


@pytest.fixture
def operate(monkeypatch):
    """``moorage run`` without an operator; the plugins it would run with."""
    seen: list[Additions] = []
    monkeypatch.setattr(run_module, "_operate", lambda settings, additions: seen.append(additions))
    monkeypatch.setattr(run_module, "configure", lambda *_: None)
    return seen


def test_run_takes_them(operate, rules):
    result = CliRunner().invoke(main, ["run", rules])
    assert result.exit_code == 0, result.output
    ((plugin,),) = [additions.plugins for additions in operate]
    assert plugin.name == "cheaper_first"


def test_run_takes_nothing_else(operate):
    result = CliRunner().invoke(main, ["run", "cluster.yaml"])
    assert (result.exit_code, operate) == (2, [])
    assert "cluster.yaml: must be a Python file" in result.output


@pytest.mark.parametrize("command", [["run"], ["simulate", "CLUSTER"], ["decide"]], ids=lambda c: c[0])
@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("def (", 1, "SyntaxError"),
        ("import no_such_module_at_all", 1, "ModuleNotFoundError: No module named 'no_such_module_at_all'"),
        (CHEAPER + CHEAPER, 4, "there is a plugin 'cheaper_first' already"),
        (CHEAPER.replace("weight=10", "name='NodeName'"), 4, "'NodeName' is the name of a built-in plugin"),
    ],
    ids=["syntax", "import", "twice", "built-in"],
)
def test_a_file_that_cannot_be_used_ends_with_2_and_its_place(
    operate, tmp_path, cluster, command, text, line, reason
):
    path = tmp_path / "broken.py"
    path.write_text(text)
    args = [cluster if arg == "CLUSTER" else arg for arg in command]
    result = CliRunner().invoke(main, [*args, str(path)])
    assert (result.exit_code, operate) == (2, [])
    told = result.stderr.splitlines()[0]
    assert told.startswith(f"{path}:")
    assert reason in told
    assert line == int(told.removeprefix(f"{path}:").partition(":")[0]) or "already" in reason


def test_a_refresh_is_awaited_before_anything_is_decided(tmp_path, cluster):
    path = tmp_path / "fresh.py"
    path.write_text(
        "import moorage\n"
        "@moorage.plugin(name='fresh', refresh_every=60)\n"
        "class Fresh:\n"
        "    known = moorage.NodeValues()\n"
        "    async def refresh(self):\n"
        "        self.known = moorage.NodeValues({'dear': 1})\n"
        "    def score(self, pod, nodes):\n"
        "        return nodes.values(self.known, default=0)\n"
    )
    result = CliRunner().invoke(main, ["simulate", "-o", "json", str(path), cluster])
    for each in json.loads(result.stdout)["results"]:
        assert {node: scores["fresh"] for node, scores in each["scores"].items()} == {"cheap": 0, "dear": 100}


@pytest.fixture
def policy(tmp_path):
    """A policy that weighs the user's plugin."""
    path = tmp_path / "policy.yaml"
    path.write_text(yaml.safe_dump(make_policy("thrifty", scoring={"weights": {"cheaper_first": 3}})))
    return str(path)


def test_a_policy_may_weigh_them(rules, cluster, policy):
    result = CliRunner().invoke(main, ["simulate", "-o", "json", rules, cluster, "--policy", policy])
    web = next(each for each in json.loads(result.stdout)["results"] if each["pod"] == "default/web")
    assert web["scores"]["cheap"]["cheaper_first"] == 300
    without = CliRunner().invoke(main, ["simulate", cluster, "--policy", policy])
    assert (without.exit_code, "cheaper_first" in without.stderr) == (2, True)


def test_so_say_lint_and_explain(rules, cluster, policy):
    assert CliRunner().invoke(main, ["policy", "lint", rules, policy]).exit_code == 0
    assert CliRunner().invoke(main, ["policy", "lint", policy]).exit_code == 2
    explain = ["policy", "explain", "web", "--file", cluster, "--file", policy]
    assert CliRunner().invoke(main, [*explain, "--file", rules]).exit_code == 0
    assert CliRunner().invoke(main, explain).exit_code == 2


def test_the_help_tells_of_them():
    for command in (["run"], ["simulate"], ["decide"], ["policy", "lint"], ["policy", "explain"]):
        text = " ".join(CliRunner().invoke(main, [*command, "--help"]).output.split())
        assert "docs/plugins.md" in text
    assert (Path(__file__).resolve().parents[2] / "docs" / "plugins.md").exists()
