"""What policies forbid their pods as preemptors, rule by rule."""

import pytest

from moorage.core.framework.budgets import Budgets
from moorage.core.framework.preemption_guards import NO_GUARDS, PROTECTED, TOO_MANY, Guards
from moorage.core.model.budget import DisruptionBudget
from moorage.core.model.policy import PreemptionRules
from moorage.core.model.selector import LabelSelector
from moorage.core.snapshot.snapshot import Snapshot
from tests.kit.models import label_in, make_node, make_pod

POD = make_pod("web", priority=10)


EVERY_OTHER = LabelSelector((label_in("app", "x"),))
USED_UP = Budgets((DisruptionBudget("default", "keep", EVERY_OTHER, 0),))


def guards(**rules):
    return Guards(PreemptionRules(**rules))


def other(priority=0, started=0.0, name="other"):
    return make_pod(name, priority=priority, started=started, labels={"app": "x"})


def test_without_rules_every_victim_is_allowed():
    assert NO_GUARDS.allow(POD, other(9, started=None), 0.0)
    assert NO_GUARDS.against([other()] * 99, USED_UP) == ()
    assert NO_GUARDS.changes_at(POD, Snapshot()) is None


@pytest.mark.parametrize(
    ("gap", "priority", "allowed"),
    [(0, 9, True), (0, 10, False), (1, 9, True), (1, 10, False), (5, 5, True), (5, 6, False)],
)
def test_the_gap_in_priority_must_be_wide_enough(gap, priority, allowed):
    assert guards(min_priority_gap=gap).allow(POD, other(priority), 0.0) is allowed


@pytest.mark.parametrize(
    ("runtime", "started", "allowed"),
    [(60.0, 40.0, True), (60.0, 40.1, False), (60.0, None, False), (0.0, None, True)],
)
def test_a_pod_may_go_once_it_has_run_so_long(runtime, started, allowed):
    assert guards(min_victim_runtime=runtime).allow(POD, other(started=started), 100.0) is allowed


@pytest.mark.parametrize(("most", "reasons"), [(1, (TOO_MANY,)), (2, ()), (0, (TOO_MANY,)), (None, ())])
def test_no_more_victims_than_allowed(most, reasons):
    assert guards(max_victims=most).against([other(), other()], USED_UP) == reasons


@pytest.mark.parametrize(("budgets", "reasons"), [(USED_UP, (PROTECTED,)), (Budgets(()), ())])
def test_strictly_no_victim_that_a_budget_protects(budgets, reasons):
    assert guards(strict_budgets=True).against([other()], budgets) == reasons


def test_time_alone_makes_pods_old_enough():
    snapshot = Snapshot()
    snapshot.now = 100.0
    snapshot.set_node(make_node("a"))
    for index, (priority, started) in enumerate(
        ((0, 10.0), (0, 70.0), (9, 50.0), (0, None), (0, 90.0), (10, 45.0))
    ):
        snapshot.add_pod(0, other(priority, started, f"p{index}"))
    assert guards(min_victim_runtime=60.0).changes_at(POD, snapshot) == 110.0
    assert guards(min_victim_runtime=60.0, min_priority_gap=2).changes_at(POD, snapshot) == 130.0
    assert guards(min_victim_runtime=5.0).changes_at(POD, snapshot) is None
    assert guards(min_victim_runtime=60.0, never=True).changes_at(POD, snapshot) is None
    assert guards(min_priority_gap=2).changes_at(POD, snapshot) is None
    never = make_pod("web", priority=10, preemption_policy="Never")
    assert guards(min_victim_runtime=60.0).changes_at(never, snapshot) is None
