"""How decisions and amounts are written for people."""

import pytest

from moorage.adapters.kube.validate import Problem
from moorage.cli.render import amount_text, progress, show, show_warnings, why, why_not
from moorage.cli.simulate import Simulation, next_best
from moorage.core.model.decision import Decision, Preemption, Rejection
from tests.kit.builders import make_container, read_node, read_pod


def decision(chosen, scores, **more):
    rows = {node: {**row, "total": sum(row.values())} for node, row in scores.items()}
    top = max((row["total"] for row in rows.values()), default=0)
    best = tuple(sorted(node for node, row in rows.items() if row["total"] == top))
    return Decision(read_pod().ref, tuple(sorted(rows)), scores=rows, best=best, chosen=chosen, **more)


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [
        ("cpu", 0, "0"),
        ("cpu", 1500, "1.5"),
        ("cpu", 1, "0.001"),
        ("cpu", 16000, "16"),
        ("memory", 0, "0"),
        ("memory", 1000, "1000"),
        ("memory", 1536 << 20, "1.5Gi"),
        ("memory", 8 << 30, "8Gi"),
        ("ephemeral-storage", (1 << 63) - 1, "8Ei"),
        ("hugepages-2Mi", 4 << 20, "4Mi"),
        ("nvidia.com/gpu", 2048, "2048"),
    ],
)
def test_amounts(resource, amount, text):
    assert amount_text(resource, amount) == text


def test_why_names_the_plugins_that_made_the_difference():
    made = decision(
        "a",
        {"a": {"Fit": 60, "Balance": 70, "Image": 5}, "b": {"Fit": 50, "Balance": 75, "Image": 5}, "c": {}},
    )
    assert next_best(made) == "b"
    assert why(made, read_pod()) == "Fit 60 vs. 50\nBalance 70 vs. 75"


def test_why_with_equals_alone_and_promised():
    equal = decision("a", {"a": {"Fit": 1}, "b": {"Fit": 1}, "c": {"Fit": 1}})
    assert why(equal, read_pod()) == "as good as 2 other nodes; the first by name"
    assert why(decision("a", {"a": {"Fit": 1}}), read_pod()) == "the only node that fits"
    nominated = read_pod(status={"nominatedNodeName": "a"})
    assert why(equal, nominated) == "it was nominated to this node, and fits"


def test_why_not():
    assert why_not(decision(None, {}, message="0/3 nodes …")) == "0/3 nodes …"
    assert why_not(decision(None, {}, error="oops")) == "oops"
    gate = Rejection("SchedulingGates", ("waiting for scheduling gates: [g]",))
    assert why_not(decision(None, {}, preenqueue=gate)) == "waiting for scheduling gates: [g]"
    remedy = decision(None, {}, message="No room.", preemption=Preemption("b", ("x/p", "x/q")))
    assert why_not(remedy) == "No room. It would fit on b without x/p, x/q."


def test_nodes_afterwards(capsys):
    node = read_node(
        "a",
        unschedulable=True,
        taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}, {"key": "l", "effect": "NoExecute"}],
        allocatable={"nvidia.com/gpu": "2", "ephemeral-storage": "1Gi"},
    )
    requests = {"cpu": "1", "memory": "2Gi", "nvidia.com/gpu": "1", "ephemeral-storage": "512Mi"}
    pod = read_pod(node="a", containers=[make_container(requests=requests)])
    show(Simulation([], [node], [pod]), {})
    lines = " ".join(capsys.readouterr().out.split())
    for text in (
        "1/110",
        "1/4 25%",
        "2Gi/8Gi 25%",
        "nvidia.com/gpu 1/2",
        "512Mi/1Gi",
        "cordoned",
        "k=v:NoSchedule",
        "l:NoExecute",
    ):
        assert text in lines


def test_a_node_without_capacity_is_no_division_by_zero(capsys):
    node = read_node(allocatable={"cpu": "0", "memory": "0", "pods": "0"})
    show(Simulation([], [node], [read_pod(node="a", cpu="1")]), {})
    assert "1/0" in capsys.readouterr().out


def test_markup_in_names_is_text(capsys):
    show(Simulation([(read_pod(), decision(None, {}, message="[bold]x[/bold]"))], [], []), {})
    assert "[bold]x[/bold]" in capsys.readouterr().out


def test_the_same_warning_is_given_once(capsys):
    warnings = [Problem("f", n, f"items[{n}].kind", "is odd", warning=True) for n in range(1, 4)]
    show_warnings([*warnings, Problem("g", 1, "x", "is strange", warning=True)])
    assert capsys.readouterr().err.splitlines() == [
        "warning: f, document 1: items[1].kind: is odd (and 2 more)",
        "warning: g, document 1: x: is strange",
    ]


def test_progress_is_silent_when_nobody_watches(capsys):
    with progress("placing") as advance:
        advance(1, 2)
    assert capsys.readouterr() == ("", "")


def test_progress_on_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with progress("placing") as advance:
        advance(1, 2)
    assert "placing" in capsys.readouterr().err
