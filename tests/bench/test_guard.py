"""No decision costs noticeably more than what is recorded in ``recorded.json``."""

import pytest

from moorage.core.engine import Engine
from tests.bench import guard

_HOW = "if this is meant: python -m tests.bench guard --record"
#: So often the reference loop and the decisions are run again before a ratio counts as worse: a busy machine's fault.
_ATTEMPTS = 12


@pytest.fixture(scope="module")
def counted():
    """Lines of code for each workload."""
    return dict(guard.lines())


@pytest.mark.parametrize("workload", guard.read()["lines"])
def test_no_more_lines_run_for_a_pod(counted, workload):
    """Exact on any machine, and nearly the same with every version of Python."""
    recorded, measured = guard.read()["lines"][workload], counted[workload]
    assert not guard.worse(recorded, measured), f"{workload}: {measured} lines a pod, was {recorded}; {_HOW}"


@pytest.mark.parametrize("workload", guard.read()["lines"])
def test_gains_are_recorded(counted, workload):
    """Or else all of a gain could be lost again unnoticed."""
    recorded, measured = guard.read()["lines"][workload], counted[workload]
    assert not guard.worse(measured, recorded), f"{workload}: {measured} lines a pod, was {recorded}; {_HOW}"


def test_every_workload_is_recorded(counted):
    """A new one would go unguarded."""
    assert set(guard.read()["lines"]) == set(counted)


@pytest.mark.parametrize("workload", ["basic", "hard zone spread", "required affinity by zone"])
def test_no_loop_over_nodes_runs_for_a_pod(workload):
    """Ten times the nodes, the same lines: what is done for every node is done on whole arrays."""
    few, many = (guard.lines_at(nodes, workload) for nodes in (100, 1000))
    assert many < few * 1.05


def test_array_work_keeps_its_ratio_to_a_reference_loop():
    """Whatever else the machine does makes both slower; the least of many runs tells."""
    recorded, ratios = guard.read()["ratios"], guard.Ratios()
    for _ in range(_ATTEMPTS):
        measured = ratios.take()
        late = {name: ratio for name, ratio in measured.items() if guard.worse(recorded[name], ratio)}
        if not late:
            break
    assert not late, f"recorded {recorded}; {_HOW}"
    assert set(measured) == set(recorded)


# -- that the guard would notice -------------------------------------------------------------------


def _each_step(monkeypatch, waste):
    """Have every step do something more."""
    step = Engine.step

    def wasteful(engine, now):
        waste(engine.snapshot)
        return step(engine, now)

    monkeypatch.setattr(Engine, "step", wasteful)


def test_a_loop_over_nodes_is_noticed(monkeypatch):
    """Code of ours that looks at each node in Python, once a decision."""
    honest = guard.lines_at(1000, "basic")
    _each_step(monkeypatch, lambda snapshot: [snapshot.row_of(f"node-{row}") for row in range(1000)])
    assert guard.worse(honest, guard.lines_at(1000, "basic"))


def test_more_array_work_is_noticed(monkeypatch):
    """A hundred more operations on the whole cluster, in a line that hardly counts."""
    ratios = guard.Ratios(("all different",))
    honest = ratios.take()["all different"]
    _each_step(monkeypatch, lambda snapshot: [snapshot.requested("cpu") + 1 for _ in range(100)])
    ratios.forget()
    assert guard.worse(honest, ratios.take()["all different"])
