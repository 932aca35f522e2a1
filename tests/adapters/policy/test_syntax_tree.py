"""What can be told from the tree of an expression."""

import pytest

from moorage.adapters.policy.parsing import parse
from moorage.adapters.policy.syntax_tree import Name, Select, Type, path_of, type_of, walk


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("a", ("a",)),
        ("a.b['c/d'].e", ("a", "b", "c/d", "e")),
        ("a[1]", None),
        ("a[b]", None),
        ("a.b()", None),
        ("1", None),
    ],
)
def test_path(text, path):
    assert path_of(parse(text)) == path


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("a == b", Type.BOOL),
        ("!a", Type.BOOL),
        ("has(a.b)", Type.BOOL),
        ("a.exists(x, x)", Type.BOOL),
        ("a.matches('b')", Type.BOOL),
        ("a.map(x, x)", Type.LIST),
        ("[1]", Type.LIST),
        ("{}", Type.MAP),
        ("a - b", Type.NUMBER),
        ("-a", Type.NUMBER),
        ("a.size()", Type.NUMBER),
        ("a + 1", Type.NUMBER),
        ("a + 'b'", Type.TEXT),
        ("1 + 'b'", Type.ANY),
        ("a + b", Type.ANY),
        ("a ? 1 : 2", Type.NUMBER),
        ("a ? 1 : true", Type.ANY),
        ("null", Type.NULL),
        ("a.b", Type.ANY),
    ],
)
def test_type(text, kind):
    assert type_of(parse(text)) is kind


def test_walk_goes_everywhere():
    tree = parse("a ? [b, {c: -d}] : e.exists(x, has(f.g)) || h(i.j(k))[l] == m")
    names = {node.name for node in walk(tree) if isinstance(node, Name)}
    assert names == set("abcdefiklm")
    assert any(isinstance(node, Select) and node.field == "g" for node in walk(tree))
