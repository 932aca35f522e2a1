"""What an extender answers: filter, prioritize and preempt by policies, with the default plugins and without."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.core.engine import Engine, EngineConfig
from moorage.core.model.decision import Rejection
from moorage.core.model.events import BindFailed, BindFailure, NodeApplied, PodBound, PolicyApplied
from moorage.core.model.extender import (
    MAX_EXTENDER_PRIORITY,
    MOST_UNSEEN,
    Filtered,
    NoAnswer,
    Preempted,
    Prioritized,
)
from moorage.core.model.instructions import Bind, Placement
from moorage.core.model.policy import (
    LimitRule,
    NodeRules,
    Pool,
    Pools,
    PreemptionRules,
    Preference,
    Scoring,
    StrategyRule,
)
from moorage.core.profile import bare_profile, default_profile
from moorage.core.respondent import Respondent
from tests.core.driving import profile_with
from tests.kit.models import make_node, make_pod, taint
from tests.kit.policy_builders import at, labelled, make_policy, window

NOW = at("2026-12-01 12:00")
HOUR = 3600.0
SSD = NodeRules(selector=labelled({"disk": "ssd"}))
UNKNOWN = "node(s) not known to Moorage yet"


class Asked:
    """Nodes a, b (which has an SSD) and c, an engine and its answers; pods of other schedulers, as a rule."""

    def __init__(self, *policies, full=False, profile=None):
        profile = profile or (default_profile() if full else bare_profile())
        self.engine = Engine(EngineConfig(profiles={profile.scheduler_name: profile}))
        self.respondent = Respondent(self.engine)
        self.tell(*(NodeApplied(make_node(n, labels={"disk": "ssd"} if n == "b" else {})) for n in "abc"))
        self.tell(*map(PolicyApplied, policies))

    def tell(self, *events):
        for event in events:
            self.engine.handle(event, NOW)

    def filter(self, pod, names="abc", **more):
        return self.respondent.filter(pod, list(names), NOW, **more)

    def scores(self, pod, names="abc"):
        answer = self.respondent.prioritize(pod, list(names), NOW)
        assert isinstance(answer, Prioritized)
        return dict(answer.scores)

    def preempt(self, pod, victims, **more):
        answer = self.respondent.preempt(pod, victims, NOW, **more)
        assert isinstance(answer, Preempted)
        return answer.victims

    def claim(self, pod, node):
        return self.respondent.claim(pod, node, NOW)


def web(name="web", **fields):
    return make_pod(name, **{"scheduler_name": "default-scheduler", "cpu": 100, "created": NOW, **fields})


# -- filter ----------------------------------------------------------------------------------------


def test_without_policies_all_nodes_pass_that_are_known():
    assert Asked().filter(web(cpu=99_000), ["c", "a"]) == Filtered(("c", "a"))
    assert Asked().filter(web(cpu=99_000), ["c", "x", "a"]) == Filtered(("c", "a"), {"x": UNKNOWN})
    assert Asked().filter(web(), ["x"], unseen=[make_node("x")]) == Filtered(("x",))


def test_nodes_keep_their_order_and_reasons_are_told():
    asked = Asked(make_policy("p", nodes=SSD))
    text = 'node(s) didn\'t match the node selector of policy "p"'
    assert asked.filter(web(), "cba") == Filtered(("b",), {}, {"c": text, "a": text})
    assert asked.filter(web(), "b") == Filtered(("b",))
    assert asked.filter(web(), []) == Filtered(())


def test_only_what_eviction_may_change_is_resolvable():
    limit = LimitRule("kubernetes.io/hostname", 1)
    asked = Asked(make_policy("p", limits=(limit,)))
    names = [f"n{i}" for i in range(3)]
    asked.tell(*(NodeApplied(make_node(n, labels={"kubernetes.io/hostname": n})) for n in names))
    asked.tell(PodBound(web("one", node="n0")))
    assert asked.filter(web(), [*names, "a"]) == Filtered(
        ("n1", "n2"),
        {"n0": 'node(s) reached the limit of policy "p" by kubernetes.io/hostname'},
        {"a": 'node(s) lacked the label kubernetes.io/hostname that policy "p" limits by'},
    )


def test_pools_choose_among_the_nodes_that_are_asked_about():
    pools = Pools((Pool("ssd", labelled({"disk": "ssd"})), Pool("rest", labelled({}))))
    asked = Asked(make_policy("p", pools=pools))
    assert asked.filter(web(), "abc").passed == ("b",)
    assert asked.filter(web(), "ac").passed == ("a", "c")


def test_a_held_pod_goes_nowhere_and_evicting_would_not_help():
    asked = Asked(make_policy("p", windows=(window("", "22:00", "06:00"),)))
    answer = asked.filter(web(), "ab")
    assert answer.passed == ()
    assert answer.failed == {}
    assert set(answer.unresolvable) == {"a", "b"}
    assert all(
        text.startswith('held by policy "p" until 2026-12-01T22:00:00Z')
        for text in answer.unresolvable.values()
    )
    assert asked.scores(web()) == {"a": 0, "b": 0, "c": 0}
    assert asked.preempt(web(), {"a": (("u",), 0)}) == {}
    assert isinstance(asked.claim(web(), "a"), Rejection)


def test_scheduler_names_of_a_policy_are_honoured():
    asked = Asked(make_policy("p", scheduler_names=["moorage"], nodes=SSD))
    assert asked.filter(web()).passed == ("a", "b", "c")
    assert asked.filter(web(scheduler_name="moorage")).passed == ("b",)


def test_the_default_plugins_judge_only_if_asked_to():
    dirty = make_node("a", taints=[taint("dirty")])
    for full, passed in ((False, ("a", "b", "c")), (True, ("c",))):
        asked = Asked(full=full)
        asked.tell(NodeApplied(dirty), PodBound(make_pod("big", node="b", cpu=4000)))
        assert asked.filter(web()).passed == passed
    answer = asked.filter(web())
    assert answer.failed == {"b": "Insufficient cpu"}
    assert set(answer.unresolvable) == {"a"}


def test_a_pod_that_is_rejected_as_a_whole():
    asked = Asked(full=True)
    answer = asked.filter(web(required_features=("Unheard",), unsupported=("resourceClaims",)))
    assert answer.passed == ()
    assert set(answer.failed | answer.unresolvable) == {"a", "b", "c"}


def test_unknown_nodes_fail_where_policies_ask_something_of_nodes():
    asked = Asked(make_policy("p", nodes=SSD))
    assert asked.filter(web(), ["b", "x"]) == Filtered(("b",), {"x": UNKNOWN})


def test_nodes_that_were_sent_whole_are_judged_before_a_stream_shows_them():
    asked = Asked(make_policy("p", nodes=SSD))
    unseen = [make_node("x", labels={"disk": "ssd"}), make_node("y"), make_node("a", labels={"disk": "ssd"})]
    answer = asked.filter(web(), ["x", "y", "a"], unseen=unseen)
    assert answer.passed == ("x",)  # a is known, and judged as it is known
    assert asked.engine.snapshot.row_of("x") is None
    assert asked.filter(web(), ["x"]).failed == {"x": UNKNOWN}
    many = [make_node(f"m{i}", labels={"disk": "ssd"}) for i in range(MOST_UNSEEN + 5)]
    answer = asked.filter(web(), [node.name for node in many], unseen=many)
    assert len(answer.passed) == MOST_UNSEEN
    assert list(answer.failed.values()) == [UNKNOWN] * 5


class Broken:
    """A filter that raises."""

    from moorage.core.framework.interface import Reads

    name = "Broken"
    reads = Reads.CLUSTER

    def pre_filter(self, pod, snapshot):
        raise RuntimeError("out of order")

    def filter(self, state, nodes):
        raise AssertionError

    def wakes_on(self):
        from moorage.core.model.cluster_event import Action, Resource, WakesOn

        return (WakesOn(Resource.NODE, Action.ADD),)


def test_a_plugin_that_fails_is_no_answer():
    asked = Asked(profile=profile_with(Broken()))
    assert asked.filter(web()) == NoAnswer('running PreFilter plugin "Broken": RuntimeError: out of order')
    assert isinstance(asked.respondent.prioritize(web(), ["a"], NOW), NoAnswer)
    asked.tell(PodBound(make_pod("victim", node="a", uid="u")))
    assert isinstance(asked.respondent.preempt(web(priority=9), {"a": (("u",), 0)}, NOW), NoAnswer)
    assert "out of order" in asked.claim(web(), "a").reasons[0]


# -- prioritize ------------------------------------------------------------------------------------


def prefer(labels, weight):
    return Preference(selector=labelled(labels), expression=None, weight=weight)


def test_scores_are_the_weighted_mean():
    scoring = Scoring(prefer=(prefer({"disk": "ssd"}, 3), prefer({}, 1)))
    asked = Asked(make_policy("p", scoring=scoring))
    assert asked.scores(web()) == {"a": 3, "b": 10, "c": 3}  # 100 of 400, rounded half up
    assert asked.scores(web(), ["b", "x"]) == {"b": 10, "x": 0}
    assert asked.scores(web(labels={"q": "r"}), "") == {}


def test_nothing_scores_a_pod_without_policies():
    asked = Asked(make_policy("p", labels={"tier": "db"}, scoring=Scoring(prefer=(prefer({}, 1),))))
    assert asked.scores(web()) == {"a": 0, "b": 0, "c": 0}
    assert asked.scores(web(labels={"tier": "db"})) == {"a": 10, "b": 10, "c": 10}


def test_a_strategy_scores_by_the_resources_alone():
    strategy = StrategyRule("MostAllocated", (("cpu", 1),))
    asked = Asked(make_policy("p", scoring=Scoring(strategy=strategy)))
    asked.tell(PodBound(make_pod("big", node="b", cpu=3500)))
    assert asked.scores(web()) == {"a": 0, "b": 9, "c": 0}


def test_nodes_that_are_ruled_out_score_nothing():
    asked = Asked(make_policy("p", nodes=SSD, scoring=Scoring(prefer=(prefer({}, 1),))))
    assert asked.scores(web()) == {"a": 0, "b": 10, "c": 0}


def test_all_plugins_score_if_asked_to():
    asked = Asked(full=True)
    asked.tell(PodBound(make_pod("big", node="b", cpu=3800)))
    scores = asked.scores(web())
    assert scores["a"] == scores["c"] > scores["b"]


@given(st.lists(st.sampled_from(["a", "b", "c", "x"]), max_size=8), st.integers(1, 100), st.booleans())
def test_answers_are_of_the_protocol(names, weight, full):
    """Whatever the nodes: a subset of what was asked, in its order; each node told of once; scores of 0..10."""
    asked = Asked(
        make_policy("p", nodes=SSD, scoring=Scoring(prefer=(prefer({"disk": "ssd"}, weight),))), full=full
    )
    answer = asked.filter(web(), names)
    assert [n for n in names if n in answer.passed] == list(answer.passed)
    assert set(answer.passed) | set(answer.failed) | set(answer.unresolvable) == set(names)
    assert not set(answer.passed) & (set(answer.failed) | set(answer.unresolvable))
    assert all(0 <= score <= MAX_EXTENDER_PRIORITY for score in asked.scores(web(), names).values())


# -- preempt ---------------------------------------------------------------------------------------

VICTIMS = {"a": (("uid-young",), 0), "b": (("uid-old", "uid-older"), 1), "c": (("uid-close",), 0)}


def with_victims(rules, **more):
    asked = Asked(*(() if rules is None else (make_policy("p", preemption=rules, **more),)))
    asked.tell(
        PodBound(make_pod("young", node="a", priority=0, started=NOW - 60)),
        PodBound(make_pod("old", node="b", priority=0, started=NOW - 2 * HOUR)),
        PodBound(make_pod("older", node="b", priority=0, started=NOW - 3 * HOUR)),
        PodBound(make_pod("close", node="c", priority=95, started=NOW - 2 * HOUR)),
    )
    return asked


@pytest.mark.parametrize(
    ("rules", "kept"),
    [
        (None, "abc"),
        (PreemptionRules(never=True), ""),
        (PreemptionRules(min_victim_runtime=HOUR), "bc"),
        (PreemptionRules(min_priority_gap=50), "ab"),
        (PreemptionRules(max_victims=1), "ac"),
        (PreemptionRules(strict_budgets=True), "ac"),
        (PreemptionRules(min_victim_runtime=HOUR, max_victims=1, min_priority_gap=50), ""),
    ],
)
def test_victims_that_a_policy_guards_are_left_out(rules, kept):
    answer = with_victims(rules).preempt(web(priority=100), VICTIMS)
    assert answer == {node: VICTIMS[node] for node in kept}


def test_nodes_that_a_policy_rules_out_are_not_emptied_in_vain():
    asked = with_victims(PreemptionRules(max_victims=5), nodes=SSD)
    assert asked.preempt(web(priority=100), VICTIMS) == {"b": VICTIMS["b"]}
    assert asked.preempt(web(priority=100), {"x": (("u",), 0)}) == {}


def test_victims_that_hold_a_limit_may_go():
    """The pod fits where a pod that counts is evicted, and only there."""
    limit = LimitRule("disk", 1)
    asked = Asked(make_policy("p", labels={"app": "web"}, limits=(limit,)))
    asked.tell(
        PodBound(web("counted", node="b", labels={"app": "web"}, priority=0)),
        PodBound(web("other", node="b", priority=0)),
    )
    pod = web(labels={"app": "web"}, priority=100)
    assert asked.preempt(pod, {"b": (("uid-other",), 0)}) == {}
    assert asked.preempt(pod, {"b": (("uid-counted",), 0)}) == {"b": (("uid-counted",), 0)}


def test_victims_that_no_stream_has_shown_are_known_by_what_was_sent():
    asked = with_victims(PreemptionRules(min_victim_runtime=HOUR))
    fresh = make_pod("fresh", node="a", started=NOW - 5 * HOUR)
    asked_about = {"a": (("uid-fresh",), 0)}
    assert asked.preempt(web(priority=100), asked_about) == {}
    assert asked.preempt(web(priority=100), asked_about, sent={"uid-fresh": fresh}) == asked_about


# -- claims ----------------------------------------------------------------------------------------


def test_a_claim_counts_at_once():
    pools = Pools((Pool("all", labelled({}), max_pods=1),))
    asked = Asked(make_policy("p", pools=pools))
    bind = asked.claim(web("one"), "a")
    assert bind == Bind((Placement(web("one").ref, "a"),), (("moorage.dev/policies", "p"),))
    assert asked.claim(web("two"), "b").reasons == ('node(s) in pool "all" of policy "p", which is full',)
    asked.tell(BindFailed(web("one").ref, "a", BindFailure.CONFLICT, "no", 0.0))
    assert isinstance(asked.claim(web("two"), "b"), Bind)
