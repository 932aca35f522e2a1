"""Audits get their share of the time, and no more."""

import pytest

from moorage.runtime.audit_budget import MOST, SHARE, AuditBudget


class Rig:
    def __init__(self) -> None:
        self.time = 100.0
        self.budget = AuditBudget(lambda: self.time)

    def decide(self, seconds: float) -> None:
        self.budget.decision_begins()
        self.time += seconds
        self.budget.decision_ends()

    def audit(self, seconds: float) -> bool:
        if not self.budget.audit_begins():
            return False
        self.time += seconds
        self.budget.audit_ends()
        return True


@pytest.fixture
def rig() -> Rig:
    return Rig()


def test_at_first_there_is_some_time(rig):
    assert rig.audit(MOST / 2)
    assert rig.audit(MOST)
    assert not rig.audit(0.001)


@pytest.mark.parametrize("cost", [0.0005, 0.002, 0.01])
def test_in_the_long_run_it_is_a_share_of_the_decisions(rig, cost):
    audited = sum(rig.audit(cost) for _ in range(20_000) if rig.decide(0.001) is None) * cost
    assert audited <= SHARE * 20.0 + MOST + cost
    assert audited >= SHARE * 20.0 * 0.95, "and it is used"


def test_what_is_saved_up_is_bounded(rig):
    rig.decide(1000.0)
    assert sum(rig.audit(0.01) for _ in range(1000)) <= MOST / 0.01 + 1


def test_audits_within_a_decision_earn_nothing(rig):
    while rig.audit(0.1):
        pass
    rig.budget.decision_begins()
    rig.time += 1.0
    assert not rig.audit(1.0)
    rig.budget.decision_ends()
    assert rig.audit(5.0)
    rig.budget.decision_begins()
    rig.time += 1.0
    rig.budget.decision_ends()
    assert not rig.audit(0.1), "in debt"
