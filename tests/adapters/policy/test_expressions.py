"""Expressions compiled and evaluated."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.adapters.policy.expressions import (
    ExpressionProblem,
    compile_node_expression,
    compile_pod_expression,
    pod_context,
)
from moorage.core.model.policy import ExpressionError, NodeFacts, Speaks

NODE = NodeFacts(
    name="a",
    labels={"pool": "spot", "gen": "7", "memory": "8Gi"},
    taints=({"key": "maintenance", "value": "", "effect": "NoSchedule"},),
    allocatable={"cpu": 8.0, "memory": 32.0 * 2**30},
    requested={"cpu": 3.5},
    usage={"cpu": 30.0},
)


def truth(text, node=NODE):
    return compile_node_expression(text).truth(node)


def score(text, node=NODE):
    return compile_node_expression(text, scores=True).score(node)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("node.name == 'a'", True),
        ("node.labels['pool'] in ['spot', 'batch']", True),
        ("node.allocatable['cpu'] >= quantity('8') && !('legacy' in node.labels)", True),
        ("node.allocatable['cpu'] - node.requested['cpu'] > 4", True),
        ("node.allocatable.cpu - 1 == 7", True),
        ("node.allocatable['memory'] > quantity(node.labels['memory']) * 5", False),
        ("node.taints.exists(t, t.key == 'maintenance' && t.effect == 'NoSchedule')", True),
        ("node.taints.size() == 2", False),
        ("int(node.labels['gen']) >= 7", True),
        ("node.labels['pool'].matches('^s[a-z]+t$')", True),
        ("has(node.usage.memory) && node.usage.memory > 1", False),
    ],
)
def test_truth(text, value):
    assert truth(text) is value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("100 - node.usage['cpu']", 70.0),
        ("100.0 - node.usage['cpu']", 70.0),
        ("node.labels['pool'] == 'spot'", 100.0),
        ("node.labels['pool'] == 'x'", 0.0),
        ("node.allocatable['memory']", 100.0),
        ("-5", 0.0),
        ("1 / 0", 100.0),
        ("node.taints.size()", 1.0),
    ],
)
def test_score(text, value):
    assert score(text) == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("node.usage['memory']", "there is no 'memory'"),
        ("node.labels['nope']", "there is no 'nope'"),
        ("node.labels['pool']", "gave 'spot', not a number or a bool"),
        ("0 / 0", "gave nan"),
        ("int(node.labels['pool'])", "int"),
        ("quantity(node.labels['pool'])", "not a quantity: 'spot'"),
        ("node.name + 1", "Unsupported operation"),
        ("1 % 0", "modulo by zero"),
    ],
)
def test_what_fails_says_why(text, message):
    with pytest.raises(ExpressionError) as caught:
        score(text)
    assert message in str(caught.value)


def test_a_hard_rule_needs_a_bool():
    with pytest.raises(ExpressionError, match=r"gave 8\.0, not a bool"):
        truth("node.allocatable.cpu")


def test_a_bad_label_is_not_logged(caplog):
    with pytest.raises(ExpressionError):
        score("quantity(node.labels['pool'])")
    assert caplog.records == []


@pytest.mark.parametrize(
    ("text", "speaks"),
    [
        ("node.name == 'a' || 'x' in node.labels", Speaks.NODE),
        ("node.taints.size() == 0", Speaks.NODE),
        ("node.requested['cpu'] > 1", Speaks.REQUESTED),
        ("node.allocatable['cpu'] > node.requested['cpu']", Speaks.NODE | Speaks.REQUESTED),
        ("has(node.usage.cpu) ? 1 : 2", Speaks.USAGE),
        ("node['usage']['cpu']", Speaks.USAGE),
        (
            "false && node.usage['cpu'] > 1 || node.requested.cpu > 1 || node.name == ''",
            Speaks.NODE | Speaks.REQUESTED | Speaks.USAGE,
        ),
        ("true", Speaks.NODE),
    ],
)
def test_what_it_depends_on(text, speaks):
    assert compile_node_expression(text, scores=True).speaks == speaks


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("node.name ==", "the end does not belong there"),
        ("node.name", None),
        ("1 + 1", "must give a bool, not a number"),
        ("node.x == 1", "no field 'x'"),
        ("'a'.matches('(')", "the pattern '('"),
        ("'a'.matches('" + "a" * 201 + "')", "at most 200 characters"),
        ("node.labels.all(a, node.labels.all(b, true))", "must not be within"),
    ],
)
def test_what_cannot_be_used_says_why(text, message):
    if message is None:
        compile_node_expression(text)
        return
    with pytest.raises(ExpressionProblem) as caught:
        compile_node_expression(text)
    assert message in str(caught.value)


HOSTILE = {
    "three macros within one another": "{0}.exists(a, {0}.exists(b, {0}.exists(c, a + b == c)))".format(
        "[" + ",".join("1" * 1 for _ in range(150)) + "]"
    ),
    "quadratic": "pod.spec.containers.exists(c, c in pod.spec.containers && false)",
    "doubling": "['xxxxxxxx']" + "".join(".map(x, x + x)" for _ in range(50)) + ".size() == 1",
    "doubling lists": "[1]" + "".join(".map(x, [x, x])" for _ in range(50)) + ".size() == 1",
    "a pattern that backtracks": "('a' + 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa').matches('^(a+)+$')",
    "a pattern that is large": "pod.metadata.name.matches('((a|b){50}){200}')",
    "a pattern beyond all": "pod.metadata.name.matches('(((a{99}){99}){99}){99}')",
    "many patterns": " || ".join(["'a'.matches('[a-z]{60}$')"] * 36),
    "comparing all with all": " && ".join(["pod == pod"] * 70),
    "texts in a row": "pod.spec.containers.exists(c, (" + "+".join(["c.image"] * 90) + ").contains('y'))",
    "deep": "(" * 500 + "1" + ")" * 500,
    "deep lists": "[" * 500 + "]" * 500,
    "deep choices": "true?1:" * 140 + "1",
    "negations": "!" * 1000 + "true",
    "a number beyond all": "1" * 1000 + " == 1",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_expression_takes_no_time(text):
    """Refused or cheap; in processor time, and far above what it takes."""
    start = time.thread_time()
    try:
        expression = compile_pod_expression(text)
        expression.truth(pod_context({"metadata": {"name": "a" * 253}, "spec": {"containers": []}}))
    except (ExpressionProblem, ExpressionError):
        pass
    assert time.thread_time() - start < 0.1


_ATOMS = [
    "1",
    "0",
    "2.5",
    "'a'",
    "true",
    "null",
    "node.name",
    "node.labels",
    "node.labels['gen']",
    "node.taints",
    "node.allocatable.cpu",
    "[]",
    "[1, 'a']",
    "{'a': 1}",
]
_TEXTS = st.recursive(
    st.sampled_from(_ATOMS),
    lambda inner: st.one_of(
        st.builds(
            "({} {} {})".format,
            inner,
            st.sampled_from(["+", "-", "*", "/", "%", "==", "<", "in", "&&", "||"]),
            inner,
        ),
        st.builds(
            "{}({})".format, st.sampled_from(["size", "int", "double", "string", "quantity", "!", "-"]), inner
        ),
        st.builds("{}[{}]".format, inner, inner),
        st.builds(
            "{}.{}(x, x == {})".format,
            inner,
            st.sampled_from(["exists", "all", "filter", "map"]),
            st.sampled_from(_ATOMS[:6]),
        ),
        st.builds("({} ? {} : {})".format, inner, inner, inner),
    ),
    max_leaves=8,
)


@given(_TEXTS)
@settings(max_examples=300, deadline=None)
def test_nothing_but_the_two_errors_comes_out(text):
    try:
        value = score(text)
    except (ExpressionProblem, ExpressionError):
        return
    assert 0.0 <= value <= 100.0


def test_a_pod_has_no_whole_numbers():
    expression = compile_pod_expression("pod.spec.priority + 1 == 8")
    assert expression.spoken == {("spec", "priority")}
    assert expression.truth(pod_context({"spec": {"priority": 7.0}}))
    with pytest.raises(ExpressionError):
        expression.truth(pod_context({"spec": {}}))
    with pytest.raises(ExpressionError, match="not a bool"):
        compile_pod_expression("pod.spec.a").truth(pod_context({"spec": {"a": "x"}}))
