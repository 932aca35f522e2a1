"""What the reports of policies say, by events."""

from dataclasses import replace

from moorage.core.model.events import PolicyApplied, PolicyGone, UsageMeasured, UsageSample
from moorage.core.model.policy import (
    LimitRule,
    LoadRules,
    Mode,
    NodeRules,
    Pool,
    Pools,
    Scoring,
    StrategyRule,
)
from moorage.core.model.policy_report import AuditReport, BlockedPods, LostField, PoolUse
from tests.core.driving import bound_on_a, plain
from tests.kit.models import make_node, make_pod
from tests.kit.policy_builders import at, labelled, make_policy, window

NOON = at("2026-12-01 12:00")


def cluster(*policies):
    driven = plain()
    driven.now = NOON
    driven.tell(make_node("a", labels={"pool": "x"}), *map(PolicyApplied, policies))
    return driven


def report(driven, name="p"):
    return next(r for r in driven.engine.policy_reports() if r.ref.name == name)


def test_no_policies_no_reports():
    assert cluster().engine.policy_reports() == []


def test_reports_come_in_order():
    driven = cluster(make_policy("b"), make_policy("a"), make_policy("a", namespace="x"))
    assert [r.ref.key for r in driven.engine.policy_reports()] == ["a", "b", "x/a"]


def test_pending_and_bound_pods_are_told_apart_and_a_pod_on_its_way_is_bound():
    driven = cluster(make_policy("p", labels={"tier": "batch"}, generation=4))
    labels = {"tier": "batch"}
    driven.tell(make_pod("there", node="a", labels=labels), make_pod("other", node="a"))
    driven.tell(make_pod("big", cpu=90_000, labels=labels))
    driven.run()
    assert (report(driven).pending, report(driven).bound, report(driven).generation) == (1, 1, 4)
    pod = bound_on_a(driven, labels=labels)
    assert (report(driven).pending, report(driven).bound) == (1, 2)
    driven.tell(replace(pod, node_name="a"))
    assert (report(driven).pending, report(driven).bound, report(driven).matched) == (1, 2, 3)


def test_reasons_are_those_of_the_last_try():
    none = NodeRules(selector=labelled({"no": "where"}))
    driven = cluster(make_policy("p", nodes=none), make_policy("q"))
    driven.tell(make_pod("one"), make_pod("two"), make_pod("big", cpu=90_000))
    driven.run()
    text = 'node(s) didn\'t match the node selector of policy "p"'
    assert report(driven).reasons == (
        BlockedPods("PolicyNodes", text, 2),
        BlockedPods("NodeResourcesFit", "Insufficient cpu", 1),
    )
    assert report(driven, "q").reasons == report(driven).reasons
    driven.tell(PolicyGone(make_policy("p").ref))
    driven.later(1.0)
    assert [b.plugin for b in report(driven, "q").reasons] == ["NodeResourcesFit"]


def test_a_hold_is_a_reason():
    driven = cluster(make_policy("p", windows=(window("", "22:00", "23:00"),)))
    driven.tell(make_pod("one"))
    driven.run()
    ((plugin, pods),) = [(b.plugin, b.pods) for b in report(driven).reasons]
    assert (plugin, pods) == ("PolicyWindows", 1)
    driven.now = NOON + 10 * 3600
    driven.run()
    assert report(driven).reasons == ()


def test_pools_show_their_use():
    pools = Pools((Pool("x", labelled({"pool": "x"}), 3), Pool("rest", labelled({}))))
    driven = cluster(make_policy("p", pools=pools))
    driven.tell(make_pod("there", node="a"))
    assert report(driven).pools == (PoolUse("x", 1, 3), PoolUse("rest", 0, None))


def test_fields_that_are_lost_until_the_winner_goes():
    scoring = Scoring(strategy=StrategyRule("MostAllocated", (("cpu", 1),)))
    winner, loser = make_policy("w", precedence=2, scoring=scoring), make_policy("p", scoring=scoring)
    driven = cluster(winner, loser)
    assert report(driven).lost == ()
    driven.tell(make_pod("one"))
    driven.run()
    assert report(driven).lost == (LostField("scoring.strategy", winner.ref),)
    driven.tell(PolicyGone(winner.ref))
    assert report(driven).lost == ()


def test_only_audited_policies_have_an_audit():
    driven = cluster(make_policy("p", limits=(LimitRule("pool", 1),), mode=Mode.AUDIT), make_policy("q"))
    assert report(driven).audit == AuditReport()
    assert report(driven, "q").audit is None


def test_a_disabled_policy_matches_nobody():
    driven = cluster(make_policy("p", mode=Mode.DISABLED, pools=Pools((Pool("x", labelled({})),))))
    driven.tell(make_pod("there", node="a"), make_pod("one"))
    assert (report(driven).matched, report(driven).pools) == (0, ())


def test_stale_nodes_are_counted_for_policies_that_ask():
    driven = cluster(make_policy("p", load=LoadRules(stale_after=60.0)), make_policy("q"))
    assert (report(driven).stale_nodes, report(driven, "q").stale_nodes) == (1, None)
    driven.tell(UsageMeasured({"a": UsageSample(NOON, {"cpu": 1})}))
    assert report(driven).stale_nodes == 0
    driven.now = NOON + 61
    driven.run()
    driven.tell(make_pod("one"))
    assert report(driven).stale_nodes == 1
