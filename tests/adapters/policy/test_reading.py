"""Policies as users write them, read."""

from typing import Any
from zoneinfo import ZoneInfo

import pytest

from moorage.adapters.policy.reading import read_policy, ref_of
from moorage.core.model.policy import (
    AvoidedTaint,
    Backoff,
    LimitRule,
    LoadRules,
    Mode,
    OnStale,
    Policy,
    PolicyRef,
    Pool,
    Pools,
    PreemptionRules,
    Selection,
    SpreadRule,
    StrategyRule,
    Window,
)
from moorage.core.model.selector import LabelSelector, Operator, Requirement
from tests.kit.raw_policies import BAD, FULL, GOOD, make_policy


def labels(**wanted):
    return LabelSelector(tuple(Requirement(key, Operator.IN, (value,)) for key, value in wanted.items()))


def read(namespace=None, plugins=None, **spec) -> Any:
    return read_policy(make_policy(namespace=namespace, **spec), plugins)


@pytest.mark.parametrize("namespace", [None, "default"], ids=["cluster", "namespaced"])
@pytest.mark.parametrize("spec", GOOD.values(), ids=GOOD)
def test_takes_what_the_api_server_takes(spec, namespace):
    found = read(namespace, **spec)
    assert found.wrong == ()
    assert isinstance(found.policy, Policy)


@pytest.mark.parametrize(("spec", "field"), BAD.values(), ids=BAD)
def test_refuses_what_the_api_server_refuses_and_names_the_field(spec, field):
    found = read("default", **spec)
    assert found.policy is None
    assert [path for path, _ in found.wrong] == [field]


@pytest.mark.parametrize(
    ("spec", "field", "message"),
    [
        (
            {"windows": [{"start": "01:00", "end": "02:00", "timeZone": "Europe/Atlantis"}]},
            "spec.windows[0].timeZone",
            "there is no time zone 'Europe/Atlantis'",
        ),
        (
            {"selector": {"expression": "pod.spec.containers.size() =="}},
            "spec.selector.expression",
            "the end does not belong there",
        ),
        ({"selector": {"expression": "node.name == 'a'"}}, "spec.selector.expression", "no variable 'node'"),
        ({"nodes": {"expression": "1 + 1"}}, "spec.nodes.expression", "must give a bool"),
        ({"nodes": {"expression": "'a'.matches('((a|b){50}){200}')"}}, "spec.nodes.expression", "to read"),
        (
            {"scoring": {"prefer": [{"expression": "'a'", "weight": 1}]}},
            "spec.scoring.prefer[0].expression",
            "a number or a bool",
        ),
        (
            {"scoring": {"weights": {"NodeResourceFit": 1}}},
            "spec.scoring.weights.NodeResourceFit",
            "there are ImageLocality, NodeResourcesFit",
        ),
        ({"nodes": {"keepFree": {"c p u": 1}}}, "spec.nodes.keepFree.c p u", "not a valid key"),
        (
            {"nodes": {"selector": {"matchLabels": {"a": "b c"}}}},
            "spec.nodes.selector.matchLabels.a",
            "not a label value",
        ),
        ({"gang": {}}, "spec.gang", "is not a field"),
        (
            {"pools": {"items": [{"name": "a", "selector": {}, "maximum": 3}]}},
            "spec.pools.items[0].maximum",
            "is not a field",
        ),
        ({"load": {"limit": {"gpu": 3}}}, "spec.load.limit.gpu", "is not a field; there are cpu, memory"),
        ({"selector": {"namespaceSelector": {}}}, "spec.selector.namespaceSelector", "is not a field"),
    ],
)
def test_refuses_what_only_we_can_check(spec, field, message):
    found = read("default", ("ImageLocality", "NodeResourcesFit"), **spec)
    assert [path for path, _ in found.wrong] == [field]
    assert message in found.wrong[0][1]


def test_finds_everything_that_is_wrong():
    found = read(mode="On", precedence="x", windows=[{"start": "25:00"}], nodes={"expression": "("})
    assert [path for path, _ in found.wrong] == [
        "spec.windows[0].start",
        "spec.windows[0].end",
        "spec.precedence",
        "spec.mode",
        "spec.nodes.expression",
    ]


def test_an_object_without_spec():
    obj = make_policy()
    del obj["spec"]
    assert ("spec", "is missing") in read_policy(obj).wrong
    assert read_policy({**obj, "spec": []}).wrong[0] == ("spec", "must be an object, not a list")


def test_every_field_arrives():
    obj = make_policy("batch", "team", **FULL)
    obj["metadata"] |= {"uid": "u", "generation": 7, "creationTimestamp": "2030-01-01T00:00:00Z"}
    found: Any = read_policy(obj)
    policy = found.policy
    assert found.ref == policy.ref == PolicyRef("team", "batch")
    assert (policy.uid, policy.generation, policy.created) == ("u", 7, 1893456000.0)
    assert (policy.precedence, policy.mode, policy.canary_percent) == (100, Mode.ENFORCE, 25)
    assert found.pod_expression.text == "pod.spec.containers.size() == 1"
    assert policy.selection == Selection(
        pods=labels(tier="batch"),
        priority_classes=frozenset({"low"}),
        scheduler_names=frozenset({"moorage"}),
        expression="pod.spec.containers.size() == 1",
    )
    assert policy.windows == (Window(frozenset({0, 1}), 22 * 60, 6 * 60, ZoneInfo("Europe/Berlin")),)
    assert policy.max_delay == 8 * 3600.0
    assert policy.nodes.selector == LabelSelector((Requirement("pool", Operator.IN, ("spot", "batch")),))
    assert policy.nodes.expression.text == FULL["nodes"]["expression"]
    assert policy.nodes.avoid_taints == (AvoidedTaint("maintenance"), AvoidedTaint("x/y", "z", "NoSchedule"))
    assert policy.nodes.keep_free == {"cpu": 10, "memory": 5}
    assert policy.pools == Pools(
        (
            Pool("on-demand", labels(pool="od"), max_pods=3),
            Pool("half", LabelSelector((Requirement("gen", Operator.GT, ("3",)),)), max_percent=40),
            Pool("spot", labels(pool="spot")),
        )
    )
    zone = "topology.kubernetes.io/zone"
    assert policy.spread == (SpreadRule(zone, 2, 3, hard=True, hard_for=600.0), SpreadRule(zone, hard=False))
    assert policy.limits == (LimitRule("kubernetes.io/hostname", 2),)
    assert policy.scoring.strategy == StrategyRule(
        "RequestedToCapacityRatio", (("cpu", 1), ("nvidia.com/gpu", 5)), ((0, 0), (100, 10))
    )
    assert policy.scoring.weights == {"ImageLocality": 0, "InterPodAffinity": 5}
    first, second = policy.scoring.prefer
    assert (first.weight, first.selector, first.expression) == (5, labels(disk="ssd"), None)
    assert (second.weight, second.selector, second.expression.text) == (2, None, "100.0 - node.usage['cpu']")
    assert policy.scoring.protect == ("nvidia.com/gpu",)
    assert policy.load == LoadRules({"cpu": 60}, {"cpu": 85, "memory": 90}, 90.0, OnStale.EXCLUDE)
    assert policy.preemption == PreemptionRules(False, 600.0, 100, 3, strict_budgets=True)
    assert policy.backoff == Backoff(0.5, 30.0)
    assert policy.pending_deadline == 3600.0
    assert found.odd == ()


def test_what_is_absent_is_the_default_of_the_model():
    policy = read().policy
    plain = Policy(PolicyRef("", "p"))
    for field in Policy.__dataclass_fields__:
        assert getattr(policy, field) == getattr(plain, field), field


def test_absent_parts_have_the_defaults_of_the_crd():
    policy = read(
        windows=[{"start": "01:00", "end": "02:30"}, {"start": "01:00", "end": "02:00", "action": "Hold"}],
        spread=[{"topologyKey": "z"}],
        pools={"items": [{"name": "a", "selector": {}}], "whenFull": "wait"},
        scoring={"strategy": {"type": "MostAllocated"}},
        load={"limit": {"cpu": 80}},
        preemption={"policy": "Never"},
    ).policy
    every_day = frozenset(range(7))
    assert policy.windows[0] == Window(every_day, 60, 150, ZoneInfo("UTC"))
    assert policy.windows[1].hold
    assert policy.spread == (SpreadRule("z"),)
    assert policy.pools == Pools((Pool("a", LabelSelector()),), wait=True)
    assert policy.scoring.strategy == StrategyRule("MostAllocated", (("cpu", 1), ("memory", 1)))
    assert policy.load == LoadRules({}, {"cpu": 80})
    assert policy.preemption == PreemptionRules(never=True)


def test_namespaces_are_selected_by_policies_of_the_cluster():
    selection = read(selector={"namespaceSelector": {"matchLabels": {"team": "data"}}}).policy.selection
    assert selection.namespaces == labels(team="data")
    assert read().policy.selection.namespaces is None


@pytest.mark.parametrize(
    ("obj", "ref"),
    [
        (make_policy("a"), PolicyRef("", "a")),
        (make_policy("a", "b"), PolicyRef("b", "a")),
        ({"kind": "SchedulingPolicy", "metadata": {"name": "a"}}, PolicyRef("default", "a")),
        (
            {"kind": "ClusterSchedulingPolicy", "metadata": {"name": "a", "namespace": "x"}},
            PolicyRef("", "a"),
        ),
        ({"metadata": None}, PolicyRef("", "")),
    ],
)
def test_which_policy_it_is(obj, ref):
    assert ref_of(obj) == ref
