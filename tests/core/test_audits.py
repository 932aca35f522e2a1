"""Audits: what a policy would change, told and counted, and never done."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.core.audits import SAMPLES, Answer
from moorage.core.cycle.consultation import Circumstances
from moorage.core.engine import Engine, EngineConfig
from moorage.core.model.events import NodeApplied, PodBound, PodPending, PolicyApplied, PolicyGone
from moorage.core.model.extender import Extender
from moorage.core.model.instructions import Attempted, Audited, Bind
from moorage.core.model.policy import (
    Backoff,
    LimitRule,
    Mode,
    NodeRules,
    Pool,
    Pools,
    Preference,
    Scoring,
    StrategyRule,
)
from moorage.core.model.policy_report import AuditReport
from moorage.core.profile import DEFAULT_SCHEDULER_NAME, default_profile
from tests.core.driving import Filtering, explode, of_type, placements, plain
from tests.kit.models import make_node, make_pod
from tests.kit.policy_builders import at, labelled, make_policy, window

NOON = at("2026-12-01 12:00")
SSD = NodeRules(selector=labelled({"disk": "ssd"}))
NOWHERE = NodeRules(selector=labelled({"no": "where"}))


def audit(name="audited", **fields):
    return make_policy(name, mode=Mode.AUDIT, **fields)


def cluster(*policies, plugins=(), **config):
    driven = plain(*plugins, **config)
    driven.now = NOON
    driven.tell(make_node("a"), make_node("b", labels={"disk": "ssd"}))
    driven.tell(*map(PolicyApplied, policies))
    return driven


def report(driven, name="audited"):
    return next(r for r in driven.engine.policy_reports() if r.ref.name == name).audit


def audited(told):
    return [(i.ref.name, i.policy.name, i.differs) for i in of_type(told, Audited)]


def test_the_same_choice_is_no_difference():
    driven = cluster(audit(nodes=SSD))
    driven.tell(make_pod("there", node="a", cpu=3000), make_pod("web", cpu=100))
    told = driven.run()
    assert placements(told) == {"web": "b"}
    assert audited(told) == [("web", "audited", False)]
    assert report(driven) == AuditReport(evaluated=1, different=0, skipped=0, samples=())


def test_another_node():
    driven = cluster(audit(nodes=SSD))
    driven.tell(make_pod("there", node="b", cpu=3000), make_pod("web", cpu=100))
    told = driven.run()
    assert placements(told) == {"web": "a"}
    assert audited(told) == [("web", "audited", True)]
    (sample,) = report(driven).samples
    assert (sample.pod, sample.chosen, sample.would_choose) == ("default/web", "a", "b")
    assert sample.why == 'PolicyNodes: node(s) didn\'t match the node selector of policy "audited"'


def test_a_node_that_is_as_good_as_the_one_chosen_is_no_difference():
    """Which of several best nodes is drawn says nothing."""
    driven = cluster(audit(scoring=Scoring(weights={"ImageLocality": 5})), seed=1)
    driven.tell(make_node("b"), *[make_pod(f"w{n}", cpu=100) for n in range(6)])
    told = driven.run()
    assert set(placements(told).values()) == {"a", "b"}
    assert [differs for _, _, differs in audited(told)] == [False] * 6


def test_a_score_that_decides_is_named():
    prefer = Preference(10, labelled({"disk": "ssd"}))
    driven = cluster(audit(scoring=Scoring(prefer=(prefer,))))
    driven.tell(make_pod("there", node="b", cpu=2000), make_pod("web", cpu=100))
    driven.run()
    (sample,) = report(driven).samples
    assert (sample.chosen, sample.would_choose, sample.why) == (
        "a",
        "b",
        "PolicyPreferences: 1000 points more",
    )


def test_a_pod_that_would_not_be_placed():
    driven = cluster(audit(nodes=NOWHERE))
    driven.tell(make_pod("web", cpu=100))
    told = driven.run()
    assert set(placements(told)) == {"web"}
    (sample,) = report(driven).samples
    assert sample.would_choose == ""
    assert sample.why == (
        '0/2 nodes are available: 2 node(s) didn\'t match the node selector of policy "audited".'
    )


def test_a_pod_that_would_be_held_by_windows():
    driven = cluster(audit(windows=(window("", "22:00", "06:00"),)))
    driven.tell(make_pod("web", cpu=100))
    driven.run()
    (sample,) = report(driven).samples
    assert sample.would_choose == ""
    assert sample.why.startswith('held by policy "audited" until 2026-12-01T22:00:00Z')


def test_a_refused_pod_that_would_be_held_differs_too():
    driven = cluster(audit(windows=(window("", "22:00", "06:00"),)))
    driven.tell(make_pod("web", cpu=90_000))
    assert audited(driven.run()) == [("web", "audited", True)]
    assert report(driven).samples[0].chosen == ""


def test_full_pools_would_hold():
    driven = cluster(audit(pools=Pools((Pool("all", labelled({}), 1),))))
    driven.tell(make_pod("there", node="a", cpu=100), make_pod("web", cpu=100))
    driven.run()
    (sample,) = report(driven).samples
    assert (sample.chosen, sample.why) == ("b", 'pool "all" of policy "audited" is full')


def test_an_earlier_pool_would_go_first():
    pools = Pools((Pool("ssd", labelled({"disk": "ssd"})), Pool("rest", labelled({}))))
    driven = cluster(audit(pools=pools))
    driven.tell(make_pod("there", node="b", cpu=3000), make_pod("web", cpu=100))
    driven.run()
    (sample,) = report(driven).samples
    assert (sample.chosen, sample.would_choose) == ("a", "b")
    assert sample.why.startswith("PolicyPools: ")


def test_a_refused_pod_that_would_be_refused_is_no_difference():
    driven = cluster(audit(nodes=SSD))
    driven.tell(make_pod("web", cpu=90_000))
    assert audited(driven.run()) == [("web", "audited", False)]


def test_a_policy_of_more_precedence_could_open_a_pool():
    enforced = make_policy("closed", pools=Pools((Pool("none", labelled({"no": "where"})),)))
    open_pool = Pools((Pool("all", labelled({})),))
    driven = cluster(enforced, audit(precedence=9, pools=open_pool))
    driven.tell(make_pod("web", cpu=100))
    told = driven.run()
    assert placements(told) == {}
    (sample,) = report(driven).samples
    assert (sample.chosen, sample.would_choose, sample.why) == ("", "a", "a takes the pod")


def test_each_policy_is_tried_alone():
    driven = cluster(
        audit("one", nodes=SSD), audit("two", nodes=NOWHERE), make_policy("on", nodes=NodeRules())
    )
    driven.tell(make_pod("there", node="b", cpu=3000), make_pod("web", cpu=100))
    assert sorted(audited(driven.run())) == [("web", "one", True), ("web", "two", True)]
    assert report(driven, "one").samples[0].would_choose == "b"
    assert report(driven, "two").samples[0].would_choose == ""
    assert report(driven, "on") is None


def test_the_enforced_policies_apply_in_the_audit_too():
    """Without them the pod would go to the node that is free."""
    driven = cluster(make_policy("on", nodes=SSD), audit(nodes=NodeRules()))
    driven.tell(make_pod("there", node="b", cpu=3000), make_pod("web", cpu=100))
    told = driven.run()
    assert placements(told) == {"web": "b"}
    assert audited(told) == [("web", "audited", False)]


def test_pods_that_it_does_not_select_are_not_audited():
    driven = cluster(audit(labels={"tier": "batch"}, nodes=NOWHERE))
    driven.tell(make_pod("web", cpu=100))
    assert audited(driven.run()) == []
    assert report(driven).evaluated == 0


def test_figures_begin_anew_when_the_policy_changes():
    driven = cluster(audit(nodes=NOWHERE))
    driven.tell(make_pod("web", cpu=100))
    driven.run()
    assert (report(driven).evaluated, report(driven).different) == (1, 1)
    driven.tell(PolicyApplied(audit(nodes=SSD)))
    assert (report(driven).evaluated, report(driven).samples) == (0, ())


def test_samples_are_bounded_and_the_latest():
    assert SAMPLES <= 16, "the status of a policy takes no more"
    driven = cluster(audit(nodes=NOWHERE))
    driven.tell(*[make_pod(f"w{n:02}", cpu=10) for n in range(SAMPLES + 5)])
    driven.run()
    found = report(driven)
    assert found.different == SAMPLES + 5
    assert [sample.pod for sample in found.samples] == [f"default/w{n:02}" for n in range(5, SAMPLES + 5)]


class Budget:
    """Lets every other audit pass, and writes down what it is told."""

    def __init__(self):
        self.log = []
        self.asked = 0

    def decision_begins(self):
        self.log.append("(")

    def decision_ends(self):
        self.log.append(")")

    def audit_begins(self):
        self.asked += 1
        self.log.append("[" if self.asked % 2 else "-")
        return bool(self.asked % 2)

    def audit_ends(self):
        self.log.append("]")


def test_the_budget_is_asked_and_told():
    budget = Budget()
    driven = cluster(audit(nodes=SSD), audit_budget=budget)
    driven.tell(*[make_pod(f"w{n}", cpu=10) for n in range(3)])
    assert len(audited(driven.run())) == 2
    assert "".join(budget.log) == "()[]()-()[]"
    assert (report(driven).evaluated, report(driven).skipped) == (2, 1)


def test_without_policies_the_budget_hears_nothing():
    budget = Budget()
    driven = cluster(audit_budget=budget)
    driven.tell(make_pod("web", cpu=10))
    driven.run()
    assert budget.log == []


def test_pods_that_extenders_concern_are_skipped():
    profile = replace(default_profile(), extenders=(Extender("http://extender.test", 1),))
    engine = Engine(EngineConfig(profiles={DEFAULT_SCHEDULER_NAME: profile}))
    engine.handle(PolicyApplied(audit(nodes=NOWHERE)), NOON)
    assert engine._audits.audit(make_pod("web", cpu=10), Answer(), Circumstances(), NOON) == []
    (found,) = engine.policy_reports()
    assert found.audit == AuditReport(skipped=1)


def test_a_plugin_that_breaks_only_in_the_audit_harms_nobody(monkeypatch):
    driven = cluster(audit(nodes=SSD))
    monkeypatch.setattr("moorage.core.plugins.policy_nodes.PolicyNodes.filter", explode)
    driven.tell(make_pod("web", cpu=10))
    told = driven.run()
    assert set(placements(told)) == {"web"}
    assert of_type(told, Attempted)[0].message == ""
    assert (report(driven).evaluated, report(driven).skipped) == (0, 1)


def test_a_real_failure_is_not_audited():
    driven = cluster(audit(nodes=SSD), plugins=(Filtering(explode),))
    driven.tell(make_pod("odd", cpu=10))
    assert audited(driven.run()) == []


# -- never an effect ------------------------------------------------------------------------------

POLICIES = st.sampled_from(
    (
        {"nodes": SSD},
        {"nodes": NOWHERE},
        {"windows": (window("", "22:00", "06:00"),)},
        {"windows": (window("", "11:00", "12:05"),), "max_delay": 400.0},
        {"limits": (LimitRule("zone", 1),)},
        {"pools": Pools((Pool("one", labelled({"disk": "ssd"}), 1),))},
        {"scoring": Scoring(strategy=StrategyRule("MostAllocated", (("cpu", 1),)))},
        {
            "scoring": Scoring(prefer=(Preference(9, labelled({"disk": "ssd"})),)),
            "backoff": Backoff(20.0, 90.0),
        },
        {"pending_deadline": 60.0},
    )
)


def pending(number, cpu):
    return PodPending(make_pod(f"w{number}", cpu=cpu, created=NOON))


def bound(number, node):
    return PodBound(make_pod(f"w{number}", node=node, cpu=100))


def third_node(cpu):
    return NodeApplied(make_node("c", cpu=cpu, labels={"zone": "c"}))


NUMBERS, TIMES = st.integers(0, 9), st.integers(0, 8)
STEPS = st.lists(
    st.one_of(
        st.builds(pending, NUMBERS, st.sampled_from((100, 900, 5000))),
        st.builds(bound, NUMBERS, st.sampled_from("ab")),
        st.builds(third_node, st.sampled_from((500, 4000))),
        st.sampled_from((0.0, 1.0, 30.0, 600.0)),
    ),
    max_size=12,
)
ENFORCED = st.lists(st.tuples(TIMES, POLICIES), max_size=2)
TRIED = st.lists(st.tuples(TIMES, POLICIES), min_size=1, max_size=3)


def run(steps, policies):
    """What an engine does with these steps, but for audits; a policy comes before the step of its number."""
    driven = plain(seed=3)
    driven.now = NOON
    driven.tell(make_node("a", labels={"zone": "a"}), make_node("b", labels={"zone": "b", "disk": "ssd"}))
    told = []
    for number, step in enumerate(steps):
        for when, policy in policies:
            if when == number:
                driven.tell(PolicyApplied(policy))
            elif when + 5 == number:
                driven.tell(PolicyGone(policy.ref))
        if isinstance(step, float):
            told += driven.later(step)
        else:
            driven.tell(step)
            told += driven.run()
    told += driven.later(700.0)
    return [i for i in told if not isinstance(i, Audited)]


@given(STEPS, ENFORCED, TRIED)
def test_an_audit_never_has_an_effect(steps, enforced, audits):
    on = [(when, make_policy(f"e{n}", **fields)) for n, (when, fields) in enumerate(enforced)]
    tried = [(when, audit(f"a{n}", precedence=n, **fields)) for n, (when, fields) in enumerate(audits)]
    assert run(steps, on) == run(steps, [*on, *tried])


def test_the_property_above_has_teeth():
    """Enforced, the same policy makes a difference."""
    steps = [PodPending(make_pod("w1", cpu=100, created=NOON))]
    assert any(isinstance(i, Bind) for i in run(steps, [(0, audit(nodes=NOWHERE))]))
    assert not any(isinstance(i, Bind) for i in run(steps, [(0, make_policy("e", nodes=NOWHERE))]))


@pytest.mark.parametrize("verdict", [True, False])
def test_audited_instructions_name_pod_and_policy(verdict):
    driven = cluster(audit(nodes=NOWHERE if verdict else NodeRules()))
    pod = make_pod("web", cpu=100)
    driven.tell(pod)
    (told,) = of_type(driven.run(), Audited)
    assert told == Audited(pod.ref, audit().ref, verdict)
