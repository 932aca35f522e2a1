"""Scope and selection, one criterion at a time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.core.model.policy import Mode, Policy, PolicyRef, Selection
from moorage.core.model.selector import LabelSelector, Operator, Requirement
from moorage.core.policy.matching import Aspects, in_scope, selects
from tests.kit.models import make_pod
from tests.kit.policy_builders import make_policy


def test_an_empty_selector_takes_every_pod_in_scope():
    assert selects(make_policy(), make_pod("a", namespace="x"), {})
    assert selects(make_policy(namespace="x"), make_pod("a", namespace="x"), {})


def test_a_policy_of_a_namespace_cannot_reach_a_pod_elsewhere():
    tenant = make_policy(namespace="x")
    assert not in_scope(tenant, "y")
    assert not selects(tenant, make_pod("a", namespace="y"), {})
    # not even by selecting the labels of the other namespace
    reaching = make_policy(namespace="x", namespace_labels={"team": "data"})
    assert not selects(reaching, make_pod("a", namespace="y"), {"team": "data"})


@pytest.mark.parametrize(
    ("criterion", "fits", "does_not"),
    [
        ({"labels": {"tier": "batch"}}, {"labels": {"tier": "batch"}}, {"labels": {"tier": "web"}}),
        ({"priority_classes": ("low", "lower")}, {"priority_class": "lower"}, {"priority_class": "high"}),
        ({"priority_classes": ("low",)}, {"priority_class": "low"}, {}),
        ({"scheduler_names": ("other",)}, {"scheduler_name": "other"}, {"scheduler_name": "moorage"}),
    ],
)
def test_each_criterion_must_hold(criterion, fits, does_not):
    policy = make_policy(**criterion)
    assert selects(policy, make_pod("a", **fits), {})
    assert not selects(policy, make_pod("a", **does_not), {})


def test_a_namespace_selector_looks_at_the_labels_of_the_namespace():
    policy = make_policy(namespace_labels={"team": "data"})
    pod = make_pod("a", labels={"team": "web"})
    assert selects(policy, pod, {"team": "data"})
    assert not selects(policy, pod, {"team": "web"})
    assert not selects(policy, pod, {})


def test_an_expression_holds_if_the_pod_says_so():
    policy = make_policy(expression="size(pod.spec.containers) == 1")
    assert selects(policy, make_pod("a", holds=frozenset({"size(pod.spec.containers) == 1", "true"})), {})
    assert not selects(policy, make_pod("a", holds=frozenset({"true"})), {})


def test_a_disabled_policy_selects_nobody_and_an_audited_one_does():
    assert not selects(make_policy(mode=Mode.DISABLED), make_pod("a"), {})
    assert selects(make_policy(mode=Mode.AUDIT), make_pod("a"), {})


def test_all_criteria_together():
    policy = make_policy(labels={"tier": "batch"}, priority_classes=("low",))
    assert selects(policy, make_pod("a", labels={"tier": "batch"}, priority_class="low"), {})
    assert not selects(policy, make_pod("a", labels={"tier": "batch"}), {})
    assert not selects(policy, make_pod("a", priority_class="low"), {})


POLICIES = st.builds(
    make_policy,
    labels=st.dictionaries(st.sampled_from(("a", "b")), st.sampled_from(("1", "2")), max_size=2),
    priority_classes=st.sampled_from(((), ("low",), ("low", "high"))),
    scheduler_names=st.sampled_from(((), ("moorage",), ("other",))),
    expression=st.sampled_from(("", "", "x", "y")),
)
PODS = st.builds(
    make_pod,
    st.just("a"),
    labels=st.dictionaries(
        st.sampled_from(("a", "b", "c")), st.sampled_from(("1", "2", "3", "4")), max_size=3
    ),
    priority_class=st.sampled_from(("", "low", "high")),
    scheduler_name=st.sampled_from(("moorage", "other")),
    holds=st.sampled_from((frozenset(), frozenset({"x"}), frozenset({"x", "y", "z"}))),
)


@given(st.lists(POLICIES, max_size=4), PODS, PODS)
def test_pods_of_one_key_are_selected_by_the_same_policies(policies, pod, other):
    aspects = Aspects(policies)
    if aspects.key(pod) == aspects.key(other):
        assert [selects(p, pod, {}) for p in policies] == [selects(p, other, {}) for p in policies]


def test_labels_that_no_selector_names_make_no_difference():
    aspects = Aspects([make_policy(labels={"tier": "batch"})])
    one, other = (make_pod("a", labels={"tier": "web", "ordinal": str(n)}) for n in range(2))
    assert aspects.key(one) == aspects.key(other)
    odd = make_pod("a", labels={"tier": "none of those asked for"})
    assert aspects.key(one) == aspects.key(odd)
    assert aspects.key(one) != aspects.key(make_pod("a", labels={"tier": "batch"}))
    assert aspects.key(one) != aspects.key(make_pod("a"))


def test_what_any_of_the_policies_names_tells_pods_apart():
    policies = [
        make_policy(labels={"a": "1"}, priority_classes=("low",), scheduler_names=("x",), expression="e"),
        make_policy(labels={"a": "2"}, expression="f"),
    ]
    aspects = Aspects(policies)
    pods = [
        make_pod("a", scheduler_name="moorage"),
        make_pod("a", scheduler_name="x"),
        make_pod("a", priority_class="low"),
        *(make_pod("a", labels={"a": value}) for value in "123"),
        *(make_pod("a", holds=frozenset({text})) for text in "ef"),
    ]
    assert len({aspects.key(pod) for pod in pods}) == len(pods)


@pytest.mark.parametrize("operator", [Operator.GT, Operator.LT])
def test_of_a_label_that_is_compared_every_value_counts(operator):
    selection = Selection(LabelSelector((Requirement("n", operator, ("5",)),)))
    aspects = Aspects([Policy(PolicyRef("", "p"), selection=selection)])
    less, more = (make_pod("a", labels={"n": value}) for value in ("4", "6"))
    assert aspects.key(less) != aspects.key(more)
