"""What adds up, what only one can set, and who loses."""

import pytest

from moorage.core.model.policy import (
    AvoidedTaint,
    Backoff,
    LimitRule,
    LoadRules,
    NodeRules,
    PolicyRef,
    Pool,
    Pools,
    PreemptionRules,
    Preference,
    Scoring,
    SpreadRule,
    StrategyRule,
)
from moorage.core.model.policy_report import LostField
from moorage.core.model.selector import LabelSelector
from moorage.core.policy.merge import NOTHING, merge
from tests.kit.policy_builders import make_policy, window

MOST = StrategyRule("MostAllocated", (("cpu", 1),))
LEAST = StrategyRule("LeastAllocated", (("cpu", 1),))


def names(merged):
    return [policy.ref.key for policy in merged.policies]


def test_nobody_says_nothing():
    assert merge(()) is NOTHING
    assert NOTHING.shaping == ()


def test_the_order():
    """Cluster before namespace whatever the precedence; the highest first, the older on a tie, then by name."""
    policies = [
        make_policy("tenant-high", namespace="x", precedence=1000),
        make_policy("tenant-low", namespace="x", precedence=1),
        make_policy("young", precedence=5, created=20.0),
        make_policy("old", precedence=5, created=10.0),
        make_policy("b-twin", precedence=5, created=10.0),
        make_policy("last", precedence=-3),
        make_policy("first", precedence=6, created=30.0),
    ]
    expected = ["first", "b-twin", "old", "young", "last", "x/tenant-high", "x/tenant-low"]
    assert names(merge(policies)) == expected
    assert names(merge(reversed(policies))) == expected


def test_what_narrows_adds_up():
    nodes = [NodeRules(avoid_taints=(AvoidedTaint(key),)) for key in ("a", "b")]
    first = make_policy(
        "a", precedence=1, nodes=nodes[0], spread=(SpreadRule("zone"),), limits=(LimitRule("host", 1),),
        windows=(window("", "1:00", "2:00"),),
    )  # fmt: skip
    second = make_policy(
        "b", nodes=nodes[1], spread=(SpreadRule("zone", 2),), limits=(LimitRule("host", 5),),
        windows=(window("", "3:00", "4:00"),),
    )  # fmt: skip
    merged = merge([second, first])
    a, b = first.ref, second.ref
    assert merged.nodes == ((a, nodes[0]), (b, nodes[1]))
    assert merged.spread == ((a, SpreadRule("zone")), (b, SpreadRule("zone", 2)))
    assert merged.limits == ((a, LimitRule("host", 1)), (b, LimitRule("host", 5)))
    assert merged.timed == (first, second)
    assert merged.lost == ()
    assert merged.shaping == (a, b)


def test_a_strategy_is_that_of_the_first_that_sets_one():
    silent = make_policy("a", precedence=3, scoring=Scoring(weights={"ImageLocality": 0}))
    winner = make_policy("b", precedence=2, scoring=Scoring(strategy=MOST))
    loser = make_policy("c", precedence=1, scoring=Scoring(strategy=LEAST))
    merged = merge([loser, winner, silent])
    assert merged.strategy is MOST
    assert merged.lost == ((loser.ref, LostField("scoring.strategy", winner.ref)),)
    assert merged.shaping == (silent.ref, winner.ref)


def test_each_weight_is_for_itself():
    first = make_policy("a", precedence=2, scoring=Scoring(weights={"ImageLocality": 0}))
    second = make_policy("b", scoring=Scoring(weights={"ImageLocality": 9, "InterPodAffinity": 5}))
    merged = merge([first, second])
    assert merged.weights == {"ImageLocality": 0, "InterPodAffinity": 5}
    assert merged.lost == ((second.ref, LostField("scoring.weights.ImageLocality", first.ref)),)
    assert merged.shaping == (first.ref, second.ref)


def test_pools_are_those_of_the_first():
    pools = [Pools((Pool(name, LabelSelector(), 1),)) for name in ("x", "y")]
    first, second = make_policy("a", precedence=1, pools=pools[0]), make_policy("b", pools=pools[1])
    merged = merge([second, first])
    assert merged.pools == (first.ref, pools[0])
    assert merged.lost == ((second.ref, LostField("pools", first.ref)),)


def test_a_cluster_policy_wins_over_one_of_the_namespace():
    admin = make_policy("admin", precedence=0, scoring=Scoring(strategy=MOST))
    tenant = make_policy("own", namespace="x", precedence=999, scoring=Scoring(strategy=LEAST))
    assert merge([tenant, admin]).strategy is MOST


def test_backoff_field_by_field():
    first = make_policy("a", precedence=1, backoff=Backoff(longest=30.0))
    second = make_policy("b", backoff=Backoff(initial=2.0, longest=60.0))
    merged = merge([first, second])
    assert merged.backoff == Backoff(2.0, 30.0)
    assert merged.lost == ((second.ref, LostField("backoff.max", first.ref)),)


def test_the_deadline_is_the_first_that_is_set():
    first, second = (
        make_policy("a", precedence=1, pending_deadline=60.0),
        make_policy("b", pending_deadline=5.0),
    )
    merged = merge([first, second])
    assert merged.pending_deadline == (first.ref, 60.0)
    assert merged.lost == ((second.ref, LostField("pendingDeadline", first.ref)),)


def test_limits_of_use_add_up_and_targets_do_not():
    first = make_policy("a", precedence=1, load=LoadRules(target={"cpu": 60}, limit={"cpu": 85}))
    second = make_policy(
        "b", load=LoadRules(target={"cpu": 10, "memory": 50}, limit={"cpu": 70}, stale_after=9.0)
    )
    third = make_policy("c", precedence=-1, load=LoadRules(target={"memory": 1}))
    merged = merge([first, second, third])
    assert merged.load == (
        (first.ref, first.load),
        (second.ref, LoadRules(target={"memory": 50}, limit={"cpu": 70}, stale_after=9.0)),
    )
    assert merged.lost == (
        (second.ref, LostField("load.target.cpu", first.ref)),
        (third.ref, LostField("load.target.memory", second.ref)),
    )
    assert merged.shaping == (first.ref, second.ref)


def test_a_limit_of_use_needs_no_target():
    policy = make_policy("a", load=LoadRules(limit={"cpu": 85}))
    assert merge([policy]).load == ((policy.ref, policy.load),)


def test_guards_of_preemption_are_the_strictest_of_all():
    first = make_policy("a", preemption=PreemptionRules(min_victim_runtime=60.0, max_victims=3))
    second = make_policy(
        "b", preemption=PreemptionRules(min_victim_runtime=600.0, min_priority_gap=10, max_victims=5)
    )
    assert merge([first, second]).preemption == PreemptionRules(False, 600.0, 10, 3, False)
    third = make_policy(
        "c", preemption=PreemptionRules(never=True, min_priority_gap=100, strict_budgets=True)
    )
    assert merge([first, second, third]).preemption == PreemptionRules(True, 600.0, 100, 3, True)
    assert merge([make_policy("d")]).preemption is None


def test_no_victims_and_no_gap_are_rules_like_others():
    policy = make_policy("a", preemption=PreemptionRules(min_priority_gap=0, max_victims=0))
    assert merge([policy, make_policy("b")]).preemption == policy.preemption


def test_preferences_add_up_and_a_protected_resource_counts_once():
    prefer = Preference(5, LabelSelector())
    first = make_policy("a", precedence=1, scoring=Scoring(prefer=(prefer,), protect=("gpu",)))
    second = make_policy("b", scoring=Scoring(prefer=(prefer,), protect=("gpu", "fpga")))
    merged = merge([first, second])
    assert merged.prefer == ((first.ref, prefer), (second.ref, prefer))
    assert merged.protect == ((first.ref, "gpu"), (second.ref, "fpga"))


def test_who_sets_nothing_shapes_nothing():
    assert merge([make_policy("a"), make_policy("b", nodes=NodeRules())]).shaping == (PolicyRef("", "b"),)


@pytest.mark.parametrize(
    "fields",
    [
        {"windows": (window("", "1:00", "2:00"),)},
        {"nodes": NodeRules()},
        {"pools": Pools((Pool("x", LabelSelector()),))},
        {"spread": (SpreadRule("zone"),)},
        {"limits": (LimitRule("host", 1),)},
        {"scoring": Scoring(strategy=MOST)},
        {"scoring": Scoring(weights={"ImageLocality": 0})},
        {"scoring": Scoring(prefer=(Preference(5, LabelSelector()),))},
        {"scoring": Scoring(protect=("gpu",))},
        {"load": LoadRules(target={"cpu": 60})},
        {"load": LoadRules(limit={"cpu": 85})},
        {"preemption": PreemptionRules(never=True)},
        {"backoff": Backoff(initial=1.0)},
        {"backoff": Backoff(longest=1.0)},
        {"pending_deadline": 60.0},
    ],
    ids=str,
)
def test_every_field_alone_shapes(fields):
    policy = make_policy("a", **fields)
    assert merge([policy]).shaping == (policy.ref,)


def test_who_loses_every_field_shapes_nothing():
    scoring, backoff = Scoring(strategy=MOST, weights={"ImageLocality": 1}), Backoff(1.0, 2.0)
    first = make_policy("a", precedence=1, scoring=scoring, backoff=backoff)
    second = make_policy("b", scoring=scoring, backoff=backoff)
    merged = merge([first, second])
    assert [lost.field for ref, lost in merged.lost if ref == second.ref] == [
        "scoring.strategy",
        "scoring.weights.ImageLocality",
        "backoff.initial",
        "backoff.max",
    ]
    assert merged.shaping == (first.ref,)
