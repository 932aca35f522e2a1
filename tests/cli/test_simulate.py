"""`moorage simulate`: manifests in, placements and reasons out."""

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from moorage.cli import main
from moorage.cli.cluster import Intake, Source
from moorage.cli.simulate import run
from tests.kit.builders import make_node, make_pod
from tests.kit.raw_policies import make_policy

DEMO = Path(__file__).resolve().parents[2] / "examples" / "demo"


@pytest.fixture
def simulate(tmp_path):
    def call(*documents, options=(), text=None):
        path = tmp_path / "cluster.yaml"
        path.write_text(yaml.safe_dump_all(documents) if text is None else text)
        return CliRunner().invoke(main, ["simulate", str(path), *options])

    return call


def placements(result):
    return {r["pod"].removeprefix("default/"): r["chosen"] for r in json.loads(result.stdout)["results"]}


JSON = ("-o", "json")


# -- what is placed, and in which order ----------------------------------------------------------


def test_pods_are_placed_by_priority_then_age_then_as_listed(simulate):
    result = simulate(
        make_pod("late", metadata={"creationTimestamp": "2026-01-05T10:00:01Z"}),
        make_pod("first", metadata={"creationTimestamp": "2026-01-05T10:00:00Z"}),
        make_pod("second", metadata={"creationTimestamp": "2026-01-05T10:00:00Z"}),
        make_pod("important", priority=1, metadata={"creationTimestamp": "2026-01-05T10:00:02Z"}),
        make_node("a"),
        options=JSON,
    )
    assert list(placements(result)) == ["important", "first", "second", "late"]


def test_each_pod_sees_those_placed_before_it(simulate):
    result = simulate(
        make_pod("small", cpu="1"),
        make_pod("large", cpu="3500m", priority=1),
        make_pod("bound", cpu="500m", node="a"),
        make_node("a"),
        options=JSON,
    )
    assert (placements(result), result.exit_code) == ({"large": "a", "small": None}, 3)


def test_pods_of_every_scheduler_name_unless_some_are_asked_for(simulate):
    documents = [
        make_node("a"),
        make_pod("x", schedulerName="x"),
        make_pod("y", schedulerName="y"),
        make_pod("z"),
    ]
    assert set(placements(simulate(*documents, options=JSON))) == {"x", "y", "z"}
    only = ("--scheduler-name", "x", "--scheduler-name", "y")
    assert set(placements(simulate(*documents, options=(*JSON, *only)))) == {"x", "y"}
    assert "1 pending pod of other scheduler names left alone." in simulate(*documents, options=only).stdout


def test_gated_finished_and_dying_pods(simulate):
    result = simulate(
        make_node("a"),
        make_pod("gated", schedulingGates=[{"name": "g"}]),
        make_pod("done", status={"phase": "Failed"}),
        make_pod("dying", metadata={"deletionTimestamp": "2026-01-05T10:00:00Z"}),
        options=JSON,
    )
    assert placements(result) == {"gated": None}
    assert result.exit_code == 3


def test_a_nominated_pod_keeps_its_room(simulate):
    result = simulate(
        make_node("a", allocatable={"cpu": "1"}),
        make_pod("promised", cpu="1", priority=5, schedulerName="x", status={"nominatedNodeName": "a"}),
        make_pod("other", cpu="1", priority=5, metadata={"creationTimestamp": "1970-01-01T00:00:00Z"}),
        options=JSON,
    )
    assert placements(result) == {"promised": "a", "other": None}


def test_a_nominated_pod_whose_attempt_fails_loses_its_room(simulate):
    result = simulate(
        make_node("a", allocatable={"cpu": "1"}),
        make_pod("hopeful", cpu="1", priority=5, nodeSelector={"x": "y"}, status={"nominatedNodeName": "a"}),
        make_pod("other", cpu="1"),
        options=JSON,
    )
    assert placements(result) == {"hopeful": None, "other": "a"}


@pytest.mark.parametrize(("option", "chosen"), [((), "a"), (("--node-ready-guard",), None)])
def test_nodes_that_are_not_ready(simulate, option, chosen):
    node = make_node("a", status={"conditions": [{"type": "Ready", "status": "False"}]})
    assert placements(simulate(node, make_pod("p"), options=(*JSON, *option))) == {"p": chosen}


# -- what is shown -------------------------------------------------------------------------------


def test_exit_status_0_and_a_summary_when_all_are_placed(simulate):
    result = simulate(make_node("a"), make_pod("p", cpu="1"))
    assert result.exit_code == 0
    assert "default/p" in result.stdout
    assert "the only node that fits" in result.stdout
    assert "1 pending pod: all placed." in result.stdout


def test_exit_status_3_and_the_reason_when_one_is_not(simulate):
    result = simulate(make_node("a"), make_pod("p", cpu="10"), make_pod("q"))
    assert result.exit_code == 3
    assert "0/1 nodes are available: 1 Insufficient cpu." in result.stdout
    assert "2 pending pods: 1 placed, 1 not." in result.stdout


def test_nothing_to_place(simulate):
    result = simulate(make_node("a"))
    assert (result.exit_code, result.stderr) == (0, "")
    assert "There is no pending pod to place." in result.stdout


def test_json_has_the_records_and_the_nodes_afterwards(simulate):
    result = simulate(
        make_node("a"),
        make_pod("b", cpu="1", node="a"),
        make_pod("p", cpu="500m"),
        make_pod("q", cpu="9"),
        options=JSON,
    )
    document = json.loads(result.stdout)
    assert document["results"][0]["scores"]["a"]["total"] > 0
    assert document["results"][1]["message"].startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert document["nodes"]["a"]["pods"] == ["default/b", "default/p"]
    assert document["nodes"]["a"]["requested"] == {"cpu": 1500, "pods": 2}
    assert (document["placed"], document["pending"], document["warnings"]) == (1, 1, [])


def test_kubectl_lists_work_as_they_are(simulate):
    items = [
        make_node("a"),
        make_pod("p"),
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}},
    ]
    result = simulate(
        {"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": items}
    )
    assert result.exit_code == 0
    assert "Objects without influence here: 1 Secret." in result.stdout


def test_several_files_folders_and_standard_input(tmp_path):
    (tmp_path / "nodes").mkdir()
    (tmp_path / "nodes" / "a.yaml").write_text(yaml.safe_dump(make_node("a")))
    pods = tmp_path / "pods.json"
    pods.write_text(json.dumps(make_pod("p")))
    arguments = ["simulate", str(tmp_path / "nodes"), str(pods), "-", *JSON]
    result = CliRunner().invoke(main, arguments, input=yaml.safe_dump(make_pod("q")))
    assert placements(result) == {"p": "a", "q": "a"}


def test_unknown_kinds_are_skipped_with_one_warning_each(simulate):
    widgets = [
        {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": str(i)}} for i in range(3)
    ]
    result = simulate(make_node("a"), *widgets)
    assert result.exit_code == 0
    assert result.stderr.count("warning:") == 1
    assert "kind Widget of example.com/v1 is not known here; skipped (and 2 more)" in result.stderr
    assert "Objects without influence here: 3 Widget." in result.stdout


def test_services_and_namespaces_count(simulate):
    """The pods of a Service are spread, and an affinity may select namespaces by their labels."""
    nodes = [make_node(name, labels={"kubernetes.io/hostname": name}) for name in "ab"]
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web"},
        "spec": {"selector": {"app": "web"}},
    }
    namespace = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "default", "labels": {"team": "a"}},
    }
    pods = [make_pod(f"web-{i}", labels={"app": "web"}) for i in range(4)]
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"app": "web"}},
        "namespaceSelector": {"matchLabels": {"team": "a"}},
    }
    shy = make_pod(
        "shy", affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    )
    result = simulate(*nodes, service, namespace, *pods, shy, options=JSON)
    placed = placements(result)
    assert sorted(placed[f"web-{i}"] for i in range(4)) == ["a", "a", "b", "b"]
    assert placed["shy"] is None


# -- broken input --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "field"),
    [
        (make_pod(cpu="-1"), "spec.containers[0].resources.requests.cpu: must not be negative"),
        (make_pod(cpu="many"), "spec.containers[0].resources.requests.cpu: not a quantity"),
        (make_pod(priority=3_000_000_000), "spec.priority: must be between"),
        (
            make_pod(tolerations=[{"key": "a", "operator": "Like"}]),
            "spec.tolerations[0].operator: must be one of",
        ),
        (make_pod() | {"kind": "Pods"}, "kind: v1 has no kind 'Pods'; is Pod meant?"),
        (make_pod() | {"kind": ["Pod"]}, "kind: must be a string, not a list"),
        (make_pod() | {"apiVersion": "apps/v1"}, "kind: Pod is a kind of v1, not of apps/v1"),
        (make_pod() | {"metadata": {}}, "metadata.name: is missing"),
        (make_node(taints=[{"key": "a", "effect": "NoRun"}]), "spec.taints[0].effect: must be one of"),
        (make_node(allocatable={"cpu": "-1"}), "status.allocatable.cpu: must not be negative"),
    ],
)
def test_broken_objects(simulate, document, field):
    result = simulate(make_node("fine"), document, make_pod("fine"))
    assert result.exit_code == 2
    assert f"cluster.yaml, document 2: {field}" in result.stderr
    assert "1 error; nothing was placed." in result.stderr
    assert result.stdout == ""


def test_the_errors_of_all_documents_are_shown(simulate):
    good = yaml.safe_dump(make_node("a"))
    bad = yaml.safe_dump(make_pod("p", cpu="-1", memory="x"))
    result = simulate(text=f"{good}---\nkind: [\n---\n{bad}---\n- 5\n---\na: 1\na: 2\n")
    assert result.exit_code == 2
    for place in (
        "document 2: not YAML: line ",
        "document 3: spec.containers[0].resources.requests.cpu: ",
        "document 3: spec.containers[0].resources.requests.memory: ",
        "document 4: must be an object, not a list",
        "document 5: not YAML: line ",
    ):
        assert place in result.stderr
    assert "5 errors; nothing was placed." in result.stderr


def test_errors_as_json(simulate):
    result = simulate(make_pod("p", cpu="-1"), options=JSON)
    assert result.exit_code == 2
    (error,) = json.loads(result.stdout)["errors"]
    assert (error["document"], error["field"]) == (1, "spec.containers[0].resources.requests.cpu")
    assert error["file"].endswith("cluster.yaml")


@pytest.mark.parametrize("arguments", [[], ["/nowhere.yaml"], ["-o", "xml", "-"], ["--colour", "-"]])
def test_broken_command_lines(arguments):
    assert CliRunner().invoke(main, ["simulate", *arguments]).exit_code == 2


# -- the demonstration ---------------------------------------------------------------------------


def test_the_demonstration():
    result = CliRunner().invoke(main, ["simulate", str(DEMO), *JSON])
    assert result.exit_code == 3
    chosen = {r["pod"]: r["chosen"] for r in json.loads(result.stdout)["results"]}
    assert chosen.pop("research/training-2") is None
    assert chosen.pop("shop/orders-db") == "database-a1"
    assert chosen.pop("research/training-1") == "gpu-b1"
    assert chosen["shop/cache-1"] != "worker-a2"
    assert None not in chosen.values()
    assert len(chosen) == 4


def test_it_fits_into_100_columns():
    result = CliRunner().invoke(main, ["simulate", str(DEMO)])
    assert max(map(len, result.stdout.splitlines())) <= 100
    assert "\x1b" not in result.stdout


def test_progress_is_told():
    intake = Intake()
    for obj in (make_node("a"), make_pod("p"), make_pod("q")):
        intake.add(obj, Source())
    told = []
    run(intake.cluster(0.0), 0.0, advance=lambda done, total: told.append((done, total)))
    assert told == [(0, 2), (1, 2)]


def test_brief_records_keep_what_a_table_shows():
    intake = Intake()
    for obj in (*(make_node(name) for name in "abcd"), make_pod("p", cpu="1")):
        intake.add(obj, Source())
    cluster = intake.cluster(0.0)
    ((_, full),) = run(cluster, 0.0).tried
    ((_, brief),) = run(cluster, 0.0, brief=True).tried
    assert (brief.chosen, brief.best, brief.message) == (full.chosen, full.best, full.message)
    assert brief.scores == {node: full.scores[node] for node in ("a", "b")}


# -- policies ------------------------------------------------------------------------------------


def test_policies_of_other_files_are_in_force(simulate, tmp_path):
    documents = make_node("a"), make_node("b", labels={"pool": "spot"}), make_pod("p")
    folder = tmp_path / "policies"
    folder.mkdir()
    policy = make_policy("spot", nodes={"selector": {"matchLabels": {"pool": "spot"}}})
    (folder / "spot.yaml").write_text(yaml.safe_dump(policy))
    assert placements(simulate(*documents, options=JSON)) == {"p": "a"}
    assert placements(simulate(*documents, options=(*JSON, "--policy", str(folder)))) == {"p": "b"}
    assert placements(simulate(*documents, policy, options=JSON)) == {"p": "b"}


def test_the_time_may_be_given(simulate):
    night = make_policy("night", windows=[{"start": "22:00", "end": "06:00", "timeZone": "Europe/Berlin"}])
    documents = make_node("a"), make_pod("p"), night
    at = [
        simulate(*documents, options=(*JSON, "--now", f"2030-01-01T{time}:00Z"))
        for time in ("20:59", "21:00")
    ]
    assert [placements(result) for result in at] == [{"p": None}, {"p": "a"}]
    table = simulate(*documents, options=("--now", "2030-01-01T12:00:00Z"))
    assert 'held by policy "night" until' in table.stdout
    wrong = simulate(*documents, options=("--now", "noon"))
    assert wrong.exit_code == 2
    assert "RFC 3339" in wrong.stderr


def test_a_policy_that_is_wrong(simulate):
    result = simulate(make_node("a"), make_pod("p"), make_policy("p", mode="On"))
    assert result.exit_code == 2
    assert "document 3: spec.mode: must be one of" in result.stderr
