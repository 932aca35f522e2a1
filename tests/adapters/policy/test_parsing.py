"""Expressions as text to their tree."""

import pytest

from moorage.adapters.policy.parsing import MAX_NESTING, SyntaxProblem, parse
from moorage.adapters.policy.syntax_tree import (
    Binary,
    Call,
    Choice,
    Has,
    Index,
    ListOf,
    Literal,
    Macro,
    MapOf,
    Name,
    Select,
    Unary,
)

A, B, C = Name("a"), Name("b"), Name("c")


def number(text):
    return Literal(text, float(text))


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a || b && c", Binary("||", A, Binary("&&", B, C))),
        ("a + b * c", Binary("+", A, Binary("*", B, C))),
        ("(a + b) * c", Binary("*", Binary("+", A, B), C)),
        ("a - b - c", Binary("-", Binary("-", A, B), C)),
        ("a < b == c", Binary("==", Binary("<", A, B), C)),
        ("a in [b, c,]", Binary("in", A, ListOf((B, C)))),
        ("a ? b : c ? a : b", Choice(A, B, Choice(C, A, B))),
        ("!a.b", Unary("!", Select(A, "b"))),
        ("- -2", Unary("-", Unary("-", number("2")))),
        ("a.b['c'][1]", Index(Index(Select(A, "b"), Literal("'c'", "c")), number("1"))),
        ("has(a.b)", Has(Select(A, "b"))),
        ("a.size() + size(a)", Binary("+", Call("size", A, ()), Call("size", None, (A,)))),
        ("a.map(x, x > 1, x)", Macro("map", A, "x", (Binary(">", Name("x"), number("1")), Name("x")))),
        ("{'k': a, 'l': b}", MapOf((Literal("'k'", "k"), A, Literal("'l'", "l"), B))),
        ("a // all of it\n", A),
        (
            "[true, false, null]",
            ListOf((Literal("true", True), Literal("false", False), Literal("null", None))),
        ),
    ],
)
def test_binds_as_cel_does(text, tree):
    assert parse(text) == tree


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0x1F", 31.0),
        ("1.5e3", 1500.0),
        (".5", 0.5),
        (r"'a\'b'", "a'b"),
        (r'"\u00e4\n"', "ä\n"),
        (r"r'\d'", r"\d"),
        ("'''two\nlines'''", "two\nlines"),
        ('""', ""),
    ],
)
def test_literals_mean_what_they_say(text, value):
    assert parse(text) == Literal(text, value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        (" \n", "is empty"),
        ("a +", "column 4: the end does not belong there"),
        ("a b", "column 3: 'b' does not belong there"),
        ("a.b(", "column 5: the end"),
        ("[a b]", "',' is needed"),
        ("a ? b", "':' is needed"),
        ("a.", "a name is needed"),
        ("a == 1u", "column 6: cannot read"),
        ("b'x'", "bytes"),
        ("'a", "column 1: cannot read"),
        ("a = b", "column 3: cannot read"),
        ("a @ b", "column 3: cannot read"),
        ("for", "'for' does not belong there"),
        ("!!!a", "too many signs"),
        ("!-a", "too many signs"),
        ("1e999", "too large"),
        (r"'\ud800'", "cannot read"),
        ("has(a)", "has() asks for a field"),
        ("has(a['b'])", "has() asks for a field"),
        ("a.exists(x)", "exists() asks for a variable"),
        ("a.all(1, true)", "all() asks for a variable"),
        ("a.exists(x, y, true)", "exists() asks for a variable"),
        ("a" + " " * 1024, "at most 1024 characters, not 1025"),
        ("+".join(["a"] * 200), "operators in a row"),
    ],
)
def test_says_where_and_why_it_is_no_expression(text, message):
    with pytest.raises(SyntaxProblem) as caught:
        parse(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("opening", "closing"), [("(", ")"), ("[", "]"), ("size(", ")"), ("{1:", "}"), ("a[", "]")]
)
def test_bounds_what_is_within_one_another(opening, closing):
    """The library's parser is recursive, and so are we."""
    depth = MAX_NESTING - 1
    parse(opening * depth + "a" + closing * depth)
    with pytest.raises(SyntaxProblem, match="within one another"):
        parse(opening * MAX_NESTING + "a" + closing * MAX_NESTING)


def test_bounds_choices_in_a_row():
    with pytest.raises(SyntaxProblem, match="within one another"):
        parse("a?b:" * 200 + "c")
