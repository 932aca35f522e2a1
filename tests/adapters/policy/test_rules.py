"""What an expression may say."""

import pytest

from moorage.adapters.policy.parsing import parse
from moorage.adapters.policy.rules import broken_rules, paths, wrong_result


def broken(text, variable="node"):
    return list(broken_rules(parse(text), variable))


@pytest.mark.parametrize(
    "text",
    [
        "node.name == 'a' && node.labels['x'] in ['a', 'b']",
        "node.taints.exists(t, t.key == 'a' && t.effect in ['NoExecute'])",
        "node.labels.filter(k, k.startsWith('a')).size() > 1",
        "node.taints.exists(a, a.key == 'x') && node.taints.exists(a, a.key == 'y')",
        "quantity(node.labels['memory']) < node.allocatable.memory",
        "node['labels']['a'] == 'b'",
        "size('abc') == 3 && 'abc'.size() == 3",
    ],
)
def test_takes(text):
    assert broken(text) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pod.spec == 1", "there is no variable 'pod' here, only 'node'"),
        ("node.taints.all(t, t.key == u)", "there is no variable 'u'"),
        ("node.taints.all(t, true) && t", "there is no variable 't'"),
        ("node", "must be followed by a field"),
        ("[node].size() == 1", "must be followed by a field"),
        ("node[0]", "must be followed by a field"),
        ("node.usages", "'node' has no field 'usages'"),
        ("node['x']", "'node' has no field 'x'"),
        ("has(node.x)", "'node' has no field 'x'"),
        ("node.taints.all(node, true)", "must not be called 'node'"),
        ("min(1, 2)", "there is no function 'min'"),
        ("node.name.lowerAscii() == 'a'", "there is no function 'lowerAscii'"),
        ("size()", "size() must be called as size(value)"),
        ("matches('a', 'b')", "must be called as text.matches(other)"),
        ("node.name.string() == 'a'", "must be called as string(value)"),
        ("quantity('8Hi') > 1", "quantity(): not a quantity: '8Hi'"),
        ("quantity(true) > 1", "quantity(): not a quantity"),
        ("'a'.matches(node.name)", "must be written out as text"),
        ("'a'.matches('a' + 'b')", "must be written out as text"),
    ],
)
def test_refuses(text, message):
    assert any(message in line for line in broken(text)), broken(text)


@pytest.mark.parametrize(
    "text",
    [
        "[1].exists(x, [2].exists(y, true))",
        "[1].map(x, x).map(y, y)",
        "([1].filter(x, true) + [2]).all(y, true)",
        "[[1].map(x, x)].all(y, true)",
        "[1].map(x, [2].filter(y, true), x)",
    ],
)
def test_no_macro_works_on_another(text):
    """Each doubles or multiplies what it is given: a chain of 30 would make a thousand million of one."""
    assert any("must not be within" in line for line in broken(text))


@pytest.mark.parametrize(
    "text", ["node.labels.exists(k, k in node.labels)", "[1].all(x, x > 1 || size(node.name) == 1)"]
)
def test_what_is_done_for_each_item_speaks_of_the_item_only(text):
    assert any("may speak of" in line for line in broken(text))


def test_pods():
    assert broken("pod.metadata.labels['a'] == 'b'", "pod") == []
    assert broken("pod == pod", "pod") == []
    assert "no variable 'node'" in broken("node.name == 'a'", "pod")[0]
    assert "'pod' has no field 'labels'" in broken("pod.labels['a'] == 'b'", "pod")[0]


@pytest.mark.parametrize(
    ("text", "hard", "soft"),
    [
        ("true", None, None),
        ("node.labels['a']", None, None),
        ("1 + 1", "must give a bool, not a number", None),
        ("'a'", "must give a bool, not text", "must give a number or a bool, not text"),
        ("[1]", "must give a bool, not a list", "must give a number or a bool, not a list"),
    ],
)
def test_the_kind_of_result(text, hard, soft):
    assert wrong_result(parse(text), also_numbers=False) == hard
    assert wrong_result(parse(text), also_numbers=True) == soft


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("pod.spec.containers.size() == 1", {("spec", "containers")}),
        ("pod.metadata.labels['a'] == 'b'", {("metadata", "labels", "a")}),
        ("'a' in pod.metadata.labels", {("metadata", "labels")}),
        ("pod.spec.containers[0].image == pod.metadata.name", {("spec", "containers"), ("metadata", "name")}),
        (
            "has(pod.spec.a.b) ? pod.spec.c : {'x': pod.spec.d}['x']",
            {("spec", "a", "b"), ("spec", "c"), ("spec", "d")},
        ),
        ("pod.spec.volumes.exists(v, v.name == 'a')", {("spec", "volumes")}),
        ("pod.spec[pod.metadata.name] == 1", {("spec",), ("metadata", "name")}),
        ("[pod].size() == 1", {()}),
        ("1 == 1", set()),
    ],
)
def test_what_is_spoken_of(text, found):
    assert paths(parse(text), "pod") == found
