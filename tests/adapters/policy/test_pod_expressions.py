"""Which expressions are true of a pod."""

import pytest

from moorage.adapters.kube.convert import Converter
from moorage.adapters.policy.expressions import compile_pod_expression
from moorage.adapters.policy.pod_expressions import MAX_TEXT, MAX_VALUES, PodExpressions

ONE = "pod.spec.containers.size() == 1"
CHEAP = "quantity(pod.spec.containers[0].resources.requests.cpu) < 1"


def pod(name="a", *, containers=1, **metadata):
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "500m"}}}
    return {
        "metadata": {"name": name, "uid": "u", "labels": {"a": "b"}, **metadata},
        "spec": {"containers": [container] * containers, "priority": 7},
    }


def compiled(*texts):
    return {text: compile_pod_expression(text) for text in texts}


def using(*texts):
    expressions = PodExpressions()
    expressions.only(compiled(*texts))
    return expressions


def test_none_in_use_none_holds():
    assert PodExpressions()(pod()) == frozenset()
    assert PodExpressions()({"metadata": 3}) == frozenset()


def test_those_that_hold():
    expressions = using(ONE, CHEAP, "pod.spec.containers.size() == 2", "pod.spec.priority + 1 == 8")
    assert expressions(pod()) == {ONE, CHEAP, "pod.spec.priority + 1 == 8"}
    assert expressions(pod(containers=2)) == {
        CHEAP,
        "pod.spec.containers.size() == 2",
        "pod.spec.priority + 1 == 8",
    }
    assert expressions.failures == {}


def test_only_those_that_it_was_given_last():
    expressions = using(ONE)
    expressions.only(compiled(ONE, CHEAP))
    assert expressions(pod()) == {ONE, CHEAP}
    expressions.only(compiled(CHEAP))
    assert expressions(pod()) == {CHEAP}
    expressions.only({})
    assert expressions(pod()) == frozenset()


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("pod.metadata.labels['nope'] == 'a'", "there is no 'nope'"),
        ("!has(pod.spec.nodeSelector.gpu)", "there is no 'nodeSelector'"),
        ("pod.metadata.labels['a']", "not a bool"),
    ],
)
def test_what_fails_does_not_hold_and_is_counted(text, error):
    expressions = using(ONE, text)
    assert expressions(pod()) == {ONE}
    count, last = expressions.failures[text]
    assert count == 1
    assert error in last
    expressions.only(compiled(ONE))
    assert expressions.failures == {}


def test_pods_alike_in_what_is_spoken_of_are_evaluated_once():
    expressions = using("pod.metadata.labels['nope'] == 'a'")
    for name in "abc":
        expressions(pod(name))
    assert expressions.failures["pod.metadata.labels['nope'] == 'a'"][0] == 1
    expressions(pod(labels={"other": "x", "nope": "y"}))
    assert expressions(pod(labels={"nope": "a"})) == {"pod.metadata.labels['nope'] == 'a'"}


@pytest.mark.parametrize(
    "labels",
    [{str(i): "x" for i in range(MAX_VALUES)}, {"a": "x" * MAX_TEXT, "b": "x"}],
    ids=["many", "long"],
)
def test_a_pod_that_is_too_large_fails(labels):
    text = "size(pod.metadata.labels) > 0"
    expressions = using(text)
    assert expressions(pod(labels=labels)) == frozenset()
    assert "too large" in expressions.failures[text][1]


@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"metadata": None},
        {"metadata": {"labels": 3}},
        {"metadata": {"labels": {"a": 10**400}}},
        {"metadata": {"labels": {"a": object()}}},
        {"metadata": {"labels": {1: "a"}}},
    ],
)
def test_never_raises(odd):
    assert using("size(pod.metadata.labels) > 3")(odd) == frozenset()


def test_all_of_a_pod_but_its_managed_fields():
    expressions = using("pod == pod && !has(pod.metadata.managedFields)")
    assert expressions(pod(managedFields=[{"a": 1}])) == {"pod == pod && !has(pod.metadata.managedFields)"}


def test_the_converter_asks_for_each_pod():
    expressions = using(ONE)
    converter = Converter(holds=expressions)
    assert converter.pod(pod()).holds == {ONE}
    assert converter.pod(pod(containers=2)).holds == frozenset()
    assert Converter().pod(pod()).holds == frozenset()
