"""Dry runs on many nodes: the candidates as a sequence, the best of them, and why others are none.

That they are the same as one by one is a law: tests/laws/test_dry_runs.py.
"""

import numpy as np
import pytest

from moorage.core.framework.budgets import Budgets
from moorage.core.framework.diagnosis import Diagnosis
from moorage.core.framework.dry_runs import DryRuns
from moorage.core.framework.post_filter import FailedAttempt
from moorage.core.framework.runner import Runner
from moorage.core.model.budget import DisruptionBudget
from moorage.core.model.selector import LabelSelector
from moorage.core.profile import default_profile
from moorage.core.snapshot.snapshot import Snapshot
from tests.core.driving import profile_with
from tests.core.plugins.test_default_preemption import Fragile
from tests.kit.models import label_in, make_node, make_pod

GUARDED = {"guard": "yes"}


def run(nodes, *, cpu=1000, budgets=(), plugins=(), priority=10):
    """Nodes of 1,000 milli-CPU by name, each with its pods."""
    snapshot = Snapshot()
    for name, pods in nodes.items():
        row = snapshot.set_node(make_node(name, cpu=1000))
        for pod in pods:
            snapshot.add_pod(row, pod)
    asking = make_pod("web", cpu=cpu, priority=priority)
    profile = profile_with(*plugins) if plugins else default_profile()
    runner = Runner(profile.plugins, {}, snapshot)
    attempt = FailedAttempt(runner, runner.pre_filter(asking), Diagnosis(snapshot), {}, budgets)
    return DryRuns(asking, attempt, np.flatnonzero(snapshot.alive), Budgets(budgets))


def low(name, cpu=1000, **fields):
    """A pod to be evicted."""
    return make_pod(name, cpu=cpu, **{"started": 0.0, **fields})


def test_candidates_in_order_of_rows():
    a, b, c = low("a-1", 500, priority=1), low("a-2", 500), low("c-1")
    found = run({"a": [b, a], "b": [low("b-1", priority=10)], "c": [c]}).found()
    assert [(each.node_name, each.victims) for each in found] == [("a", (a, b)), ("c", (c,))]
    assert len(found) == 2
    assert [each.node_name for each in found[1:]] == ["c"]
    assert found[-1].node_name == "c"
    with pytest.raises(IndexError):
        found[2]


def test_no_candidates_and_why():
    runs = run(
        {
            "a": [low("a-1", 10)],
            "b": [],
            "c": [low("c-1", 10), low("c-2", 990, priority=10)],
            "d": [low("d-1", 0)],
        },
        cpu=500,
    )
    assert runs.found() is None
    assert runs.against == {
        'expected at least one victim pod on node "a"': 1,
        "No preemption victims found for incoming pod": 1,
        "Insufficient cpu": 1,
        'expected at least one victim pod on node "d"': 1,
    }
    assert run({}).found() is None


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ([low("x", priority=1)], [low("y", priority=2)]),
        (
            [low("x", 500, priority=2), low("x-2", 500)],
            [low("y", 500, priority=2), low("y-2", 500, priority=1)],
        ),
        ([low("x", priority=1)], [low("y", 500, priority=1), low("y-2", 500, priority=-5)]),
        ([low("x", started=5.0)], [low("y", started=4.0)]),
        ([low("x", started=None)], [low("y", started=4.0)]),
        ([low("x", priority=8)], [low("y", labels=GUARDED)]),
    ],
)
def test_the_best_by_each_rule(better, worse):
    budgets = [DisruptionBudget("default", "keep", LabelSelector((label_in("guard", "yes"),)))]
    for nodes, best in (({"a": better, "b": worse}, [0]), ({"a": worse, "b": better}, [1])):
        found = run(nodes, budgets=budgets).found()
        assert list(found.best()) == best
        assert found[1 - best[0]].violations == ("guard" in worse[0].labels)


def test_ties():
    found = run({"a": [low("x")], "b": [low("y", priority=1)], "c": [low("z")]}).found()
    assert list(found.best()) == [0, 2]


def test_budgets_are_used_up_node_by_node():
    """Each dry run begins with what is allowed; the more important use it up."""
    budgets = [DisruptionBudget("default", "keep", LabelSelector((label_in("guard", "yes"),)), 1)]
    pods = {
        name: [low(f"{name}-{n}", 250, priority=n, labels=GUARDED) for n in range(4)] for name in ("a", "b")
    }
    found = run(pods, cpu=500, budgets=budgets).found()
    # The three lesser ones would break the budget: they are spared first, as long as the pod fits.
    assert [[pod.name for pod in each.victims] for each in found] == [["a-3", "a-0"], ["b-3", "b-0"]]
    assert [each.violations for each in found] == [1, 1]


def test_nodes_for_which_a_plugin_cannot_judge_are_left_over():
    runs = run({"a": [low("x")], "b": [low("y", 500), low("z", 500, priority=10)]}, plugins=[Fragile(0)])
    assert runs.left_over.tolist() == [0]
    assert runs.found() is None
    assert runs.against == {"Insufficient cpu": 1}
