"""Profiles that policies derive: what is added, what is replaced, and what stays."""

from dataclasses import replace

from moorage.core.framework.points import Point
from moorage.core.framework.resource_scoring import ScoringStrategy, StrategyType, Weighted
from moorage.core.model.policy import (
    Backoff,
    LimitRule,
    LoadRules,
    NodeRules,
    Pool,
    Pools,
    PreemptionRules,
    Preference,
    Scoring,
    SpreadRule,
    StrategyRule,
)
from moorage.core.policy.derive import derive
from moorage.core.policy.merge import NOTHING, merge
from moorage.core.profile import default_profile
from tests.kit.models import label_in, make_pod
from tests.kit.policy_builders import labelled, make_policy, window

PROFILE = default_profile()
SSD = NodeRules(selector=labelled({"disk": "ssd"}))


def selects(pod):
    return ()


def derived(profile=PROFILE, **fields):
    return derive(profile, merge([make_policy(**fields)]), selects)


def names(profile):
    return [plugin.name for plugin in profile.plugins]


def plugin(profile, name):
    return next(p for p in profile.plugins if p.name == name)


def test_policies_without_a_word_in_placing_leave_the_profile_as_it_is():
    assert derive(PROFILE, NOTHING, selects) is PROFILE
    quiet = derived(windows=(window("", "1:00", "2:00"),), backoff=Backoff(1.0), pending_deadline=5.0)
    assert quiet is PROFILE
    assert derived(scoring=Scoring(weights={"NoSuchPlugin": 3})) is PROFILE


def test_rules_bring_their_plugins_pools_last():
    everything = derived(
        nodes=SSD,
        limits=(LimitRule("host", 1),),
        spread=(SpreadRule("zone"),),
        load=LoadRules(limit={"cpu": 80}),
        scoring=Scoring(prefer=(Preference(5, labelled({})),), protect=("gpu",)),
        pools=Pools((Pool("all", labelled({})),)),
    )
    added = names(everything)[len(PROFILE.plugins) :]
    assert added == [
        "PolicyNodes", "PolicyLimits", "PolicySpread", "PolicyLoad", "PolicyPreferences", "PolicyPools",
    ]  # fmt: skip
    assert everything.plugins[: len(PROFILE.plugins)] == PROFILE.plugins
    assert everything.weights is PROFILE.weights
    assert plugin(everything, "PolicyPreferences").protect == ("gpu",)


def test_only_what_is_asked_for_is_added():
    assert names(derived(nodes=SSD)) == [*names(PROFILE), "PolicyNodes"]
    assert names(derived(scoring=Scoring(protect=("gpu",)))) == [*names(PROFILE), "PolicyPreferences"]


def test_a_strategy_replaces_that_of_fit_and_nothing_else():
    fit = replace(plugin(PROFILE, "NodeResourcesFit"), ignored=frozenset({"x/y"}))
    profile = replace(PROFILE, plugins=tuple(fit if p.name == fit.name else p for p in PROFILE.plugins))
    rule = StrategyRule("RequestedToCapacityRatio", (("cpu", 3),), ((0, 0), (100, 10)))
    found = plugin(derived(profile, scoring=Scoring(strategy=rule)), "NodeResourcesFit")
    assert found.strategy.type is StrategyType.REQUESTED_TO_CAPACITY_RATIO
    assert found.strategy.resources == (Weighted("cpu", 3),)
    assert found.strategy.shape == ((0, 0), (100, 10))
    assert found.ignored == frozenset({"x/y"})


def test_a_strategy_that_names_no_resources_looks_at_the_usual_ones():
    rule = StrategyRule("MostAllocated", ())
    found = plugin(derived(scoring=Scoring(strategy=rule)), "NodeResourcesFit")
    assert found.strategy == ScoringStrategy(StrategyType.MOST_ALLOCATED)
    assert found.strategy.resources == (Weighted("cpu", 1), Weighted("memory", 1))


def test_weights_replace_those_of_the_profile_one_by_one():
    weighed = derived(scoring=Scoring(weights={"ImageLocality": 0, "InterPodAffinity": 5}))
    assert weighed.weight("ImageLocality") == 0
    assert weighed.weight("InterPodAffinity") == 5
    assert weighed.weight("TaintToleration") == PROFILE.weight("TaintToleration")
    assert weighed.plugins == PROFILE.plugins


def test_guards_go_to_preemption():
    rules = PreemptionRules(max_victims=2)
    assert plugin(derived(preemption=rules), "DefaultPreemption").guards.rules == rules


def test_a_profile_without_the_plugin_gets_nothing_in_its_place():
    bare = PROFILE.without(("NodeResourcesFit", "DefaultPreemption"))
    rule = StrategyRule("MostAllocated", (("cpu", 1),))
    assert derived(bare, scoring=Scoring(strategy=rule), preemption=PreemptionRules(never=True)) is bare


def test_points_that_are_limited_let_the_policies_plugins_in_where_they_have_a_part():
    limited = {Point.FILTER: ("NodeName",), Point.PRE_FILTER: ("NodeName",), Point.SCORE: ("ImageLocality",)}
    found = derived(replace(PROFILE, points=limited), nodes=SSD, load=LoadRules(target={"cpu": 5}))
    assert found.points[Point.FILTER] == ("NodeName", "PolicyNodes", "PolicyLoad")
    assert found.points[Point.PRE_FILTER] == ("NodeName", "PolicyNodes", "PolicyLoad")
    assert found.points[Point.SCORE] == ("ImageLocality", "PolicyLoad")
    assert set(found.points) == set(limited)


def test_a_spread_counts_on_the_nodes_that_the_policies_leave():
    spread = plugin(derived(nodes=SSD, spread=(SpreadRule("zone", hard_for=60.0),)), "PolicySpread")
    assert spread.within == (label_in("disk", "ssd"),)
    assert spread.since(make_pod("a", created=5.0)) == 5.0
    assert spread.since(replace(make_pod("a", created=5.0), ungated=7.0)) == 7.0
