"""Evictions under way."""

import pytest

from moorage.core.framework.post_filter import Candidate
from moorage.core.model.budget import DisruptionBudget
from moorage.core.model.instructions import Evict, SetCondition
from moorage.core.queue.nominator import Nominator
from moorage.core.queue.preemptions import Preemptions
from tests.kit.models import make_pod

PREEMPTOR = make_pod("web", priority=5)
ONE, TWO = make_pod("one", node="a"), make_pod("two", node="a")
DYING = make_pod("dying", node="a", deleting=True)


@pytest.fixture
def nominator():
    """No promises."""
    return Nominator()


@pytest.fixture
def preemptions(nominator):
    """No evictions."""
    return Preemptions(nominator)


def begin(preemptions, *victims, preemptor=PREEMPTOR):
    """Room is to be made on node a."""
    return preemptions.begin(preemptor, Candidate("a", victims))


def test_the_node_is_promised_and_the_victims_are_asked_to_go(preemptions, nominator):
    assert begin(preemptions, ONE, TWO) == [Evict(PREEMPTOR.ref, "moorage", "a", (ONE.ref, TWO.ref))]
    assert nominator.node_of(PREEMPTOR.uid) == "a"
    assert preemptions.awaited(PREEMPTOR.uid) == {ONE.uid, TWO.uid}
    assert preemptions.awaited("unknown") == frozenset()


def test_the_victims_generations_are_passed_on(preemptions):
    victim = make_pod("third", generation=3)
    evict = Evict(PREEMPTOR.ref, "moorage", "a", (victim.ref, ONE.ref), {victim.uid: 3})
    assert begin(preemptions, victim, ONE) == [evict]


def test_victims_that_are_going_anyway_are_not_asked(preemptions, nominator):
    """kube-scheduler: "Graceful pod deletion has already started. Sending another API call is unnecessary.\""""
    assert begin(preemptions, ONE, DYING) == [Evict(PREEMPTOR.ref, "moorage", "a", (ONE.ref,))]
    assert preemptions.awaited(PREEMPTOR.uid) == {ONE.uid}
    other = make_pod("other", priority=5)
    assert begin(preemptions, DYING, preemptor=other) == []
    assert nominator.node_of(other.uid) == "a"


def test_pods_of_lower_priority_lose_the_promise_of_the_node(preemptions, nominator):
    """What their condition says stays as it is; only the nomination is cleared."""
    condition = ("False", "Unschedulable", "no room")
    lower = make_pod("lower", priority=4, resource_version="7", scheduled_condition=condition)
    equal, elsewhere = make_pod("equal", priority=5), make_pod("elsewhere")
    for pod, node in ((lower, "a"), (equal, "a"), (elsewhere, "b")):
        nominator.nominate(pod, node)
    cleared = SetCondition(lower.ref, "7", "Unschedulable", "no room", "", transition=False)
    assert begin(preemptions, ONE) == [cleared, Evict(PREEMPTOR.ref, "moorage", "a", (ONE.ref,))]
    assert [nominator.node_of(pod.uid) for pod in (lower, equal, elsewhere)] == ["", "a", "b"]


def test_nobody_loses_a_promise_to_a_pod_whose_victims_are_all_going_already(preemptions, nominator):
    """Source: ``prepareCandidateAsync`` of kube-scheduler's ``preemption/executor.go``."""
    lower = make_pod("lower", priority=4)
    nominator.nominate(lower, "a")
    assert begin(preemptions, DYING) == []
    assert nominator.promised("a") == [lower, PREEMPTOR]
    assert len(begin(preemptions, DYING, ONE)) == 2
    assert nominator.promised("a") == [PREEMPTOR]


def test_a_victim_seen_going_is_not_awaited_any_more(preemptions):
    other = make_pod("other", priority=5)
    begin(preemptions, ONE, TWO)
    begin(preemptions, ONE, preemptor=other)
    preemptions.seen_going(ONE.uid)
    preemptions.seen_going(ONE.uid)
    preemptions.seen_going("unknown")
    assert preemptions.awaited(PREEMPTOR.uid) == {TWO.uid}
    assert preemptions.awaited(other.uid) == frozenset()
    preemptions.seen_going(TWO.uid)
    assert (preemptions._awaited, preemptions._awaited_by) == ({}, {})


def test_a_preemptor_that_gives_up_waits_for_nobody(preemptions):
    other = make_pod("other", priority=5)
    begin(preemptions, ONE, TWO)
    begin(preemptions, ONE, preemptor=other)
    preemptions.abandon(PREEMPTOR.uid)
    preemptions.abandon(PREEMPTOR.uid)
    assert preemptions.awaited(PREEMPTOR.uid) == frozenset()
    assert preemptions.awaited(other.uid) == {ONE.uid}
    preemptions.abandon(other.uid)
    assert (preemptions._awaited, preemptions._awaited_by) == ({}, {})


def test_another_preemption_takes_the_place_of_the_first(preemptions):
    begin(preemptions, ONE)
    begin(preemptions, TWO)
    assert preemptions.awaited(PREEMPTOR.uid) == {TWO.uid}
    preemptions.seen_going(ONE.uid)
    assert preemptions.awaited(PREEMPTOR.uid) == {TWO.uid}


def test_budgets_in_order_of_namespace_and_name(preemptions):
    """The order decides which budget a pod uses up first, so it must not depend on that of the events."""
    late, early, other = (DisruptionBudget(*key) for key in (("b", "x"), ("a", "y"), ("a", "z")))
    for budget in (late, other, early):
        preemptions.set_budget(budget)
    assert preemptions.budgets == (early, other, late)
    changed = DisruptionBudget("a", "z", allowed=3)
    preemptions.set_budget(changed)
    preemptions.drop_budget("b", "x")
    preemptions.drop_budget("b", "unknown")
    assert preemptions.budgets == (early, changed)
