"""The text of an expression to its tree.

The grammar is that of CEL (github.com/google/cel-spec, langdef.md) without what policies have no use for: bytes,
messages, unsigned numbers and macros over two variables.  We read expressions ourselves, since the rules that
bound their cost (see ``rules``) are about their form, which the library does not show.
"""

from __future__ import annotations

import math
import re
from typing import Final

import cel

from moorage.adapters.policy.syntax_tree import (
    Binary,
    Call,
    Choice,
    Expression,
    Has,
    Index,
    ListOf,
    Literal,
    Macro,
    MapOf,
    Name,
    Select,
    Unary,
    parts,
)

MAX_LENGTH: Final = 1024
#: Parentheses, brackets and the like within one another.  The library's own parser ends at about 90.
MAX_NESTING: Final = 24
#: Operators and steps in a row: the tree is this deep.
MAX_DEPTH: Final = 150

MACROS: Final = {"all": 1, "exists": 1, "exists_one": 1, "existsOne": 1, "filter": 1, "map": 2}

_TOKEN: Final = re.compile(
    r"""(?P<space>(?:\s|//[^\n]*)+)
      | (?P<bad>[bB][rR]?["']|[rR][bB]["'])
      | (?P<text>[rR](?:\"{3}.*?\"{3}|'{3}.*?'{3}|"[^"\n]*"|'[^'\n]*')
          |\"{3}(?:\\.|[^\\])*?\"{3}|'{3}(?:\\.|[^\\])*?'{3}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
      | (?P<number>0[xX][0-9a-fA-F]+|(?:[0-9]+\.[0-9]+|\.[0-9]+|[0-9]+)(?:[eE][+-]?[0-9]+)?)(?P<odd>[A-Za-z_0-9]*)
      | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<sign>&&|\|\||[<>=!]=|[-+*/%<>!?:.,(){}\[\]])""",
    re.VERBOSE | re.DOTALL,
)
_RELATIONS: Final = frozenset({"<", "<=", ">", ">=", "==", "!=", "in"})
_LITERALS: Final = {"true": True, "false": False, "null": None}
_RESERVED: Final = frozenset(
    {
        *("as", "break", "const", "continue", "else", "for", "function", "if", "import", "in", "let"),
        *("loop", "namespace", "package", "return", "var", "void", "while"),
    }
)


class SyntaxProblem(ValueError):
    """The text is no expression; the message says where and why."""


def parse(text: str) -> Expression:
    """Read an expression; raises SyntaxProblem."""
    if not text.strip():
        raise SyntaxProblem("is empty")
    if len(text) > MAX_LENGTH:
        raise SyntaxProblem(f"must have at most {MAX_LENGTH} characters, not {len(text)}")
    return _Parser(text).whole()


class _Parser:
    """Recursive descent, a method for each level of binding."""

    def __init__(self, text: str) -> None:
        self._tokens = list(_tokens(text))
        self._at = 0
        self._nesting = 0

    def whole(self) -> Expression:
        result = self._expression()
        if self._kind != "end":
            raise self._unexpected()
        if _depth(result) > MAX_DEPTH:
            raise SyntaxProblem(f"has more than {MAX_DEPTH} operators in a row")
        return result

    # -- tokens ------------------------------------------------------------------------------------

    @property
    def _kind(self) -> str:
        return self._tokens[self._at][0]

    @property
    def _text(self) -> str:
        return self._tokens[self._at][1]

    def _next(self) -> str:
        text = self._text
        self._at += 1
        return text

    def _takes(self, sign: str) -> bool:
        """Whether the next token is this sign or word, which is then passed."""
        if self._kind in ("sign", "word") and self._text == sign:
            self._at += 1
            return True
        return False

    def _needs(self, sign: str) -> None:
        if not self._takes(sign):
            raise self._unexpected(f", {sign!r} is needed")

    def _unexpected(self, more: str = "") -> SyntaxProblem:
        kind, text, column = self._tokens[self._at]
        what = "the end" if kind == "end" else repr(text)
        return SyntaxProblem(f"column {column}: {what} does not belong there{more}")

    # -- levels of binding -------------------------------------------------------------------------

    def _expression(self) -> Expression:
        self._nesting += 1
        if self._nesting > MAX_NESTING:
            raise SyntaxProblem(
                f"column {self._tokens[self._at][2]}: more than {MAX_NESTING} levels within one another"
            )
        result = self._any()
        if self._takes("?"):
            yes = self._any()
            self._needs(":")
            result = Choice(result, yes, self._expression())
        self._nesting -= 1
        return result

    def _any(self) -> Expression:
        result = self._all()
        while self._takes("||"):
            result = Binary("||", result, self._all())
        return result

    def _all(self) -> Expression:
        result = self._relation()
        while self._takes("&&"):
            result = Binary("&&", result, self._relation())
        return result

    def _relation(self) -> Expression:
        result = self._sum()
        while self._kind in ("sign", "word") and self._text in _RELATIONS:
            result = Binary(self._next(), result, self._sum())
        return result

    def _sum(self) -> Expression:
        result = self._product()
        while self._kind == "sign" and self._text in "+-":
            result = Binary(self._next(), result, self._product())
        return result

    def _product(self) -> Expression:
        result = self._unary()
        while self._kind == "sign" and self._text in "*/%":
            result = Binary(self._next(), result, self._unary())
        return result

    def _unary(self) -> Expression:
        operators = []
        while self._kind == "sign" and self._text in "!-":
            operators.append(self._next())
        if len(set(operators)) > 1 or len(operators) > 2:
            raise SyntaxProblem(f"column {self._tokens[self._at][2]}: too many signs before this")
        result = self._member()
        for operator in reversed(operators):
            result = Unary(operator, result)
        return result

    def _member(self) -> Expression:
        result = self._primary()
        while True:
            if self._takes("."):
                if self._kind != "word":
                    raise self._unexpected(", a name is needed")
                name = self._next()
                if not self._takes("("):
                    result = Select(result, name)
                elif name in MACROS:
                    result = self._macro(name, result)
                else:
                    result = Call(name, result, self._list(")"))
            elif self._takes("["):
                key = self._expression()
                self._needs("]")
                result = Index(result, key)
            else:
                return result

    def _primary(self) -> Expression:
        kind, text, _ = self._tokens[self._at]
        if kind == "number":
            self._at += 1
            return Literal(text, _number(text))
        if kind == "text":
            self._at += 1
            return Literal(text, _meaning(text))
        if kind == "word" and text not in _RESERVED:
            self._at += 1
            if text in _LITERALS:
                return Literal(text, _LITERALS[text])
            if not self._takes("("):
                return Name(text)
            return self._has() if text == "has" else Call(text, None, self._list(")"))
        if self._takes("("):
            result = self._expression()
            self._needs(")")
            return result
        if self._takes("["):
            return ListOf(self._list("]"))
        if self._takes("{"):
            return MapOf(self._entries())
        raise self._unexpected()

    def _list(self, end: str) -> tuple[Expression, ...]:
        items: list[Expression] = []
        while not self._takes(end):
            if items:
                self._needs(",")
                if end != ")" and self._takes(end):  # a comma may end a list
                    break
            items.append(self._expression())
        return tuple(items)

    def _entries(self) -> tuple[Expression, ...]:
        items: list[Expression] = []
        while not self._takes("}"):
            if items:
                self._needs(",")
                if self._takes("}"):
                    break
            items.append(self._expression())
            self._needs(":")
            items.append(self._expression())
        return tuple(items)

    def _has(self) -> Expression:
        column = self._tokens[self._at][2]
        arguments = self._list(")")
        if len(arguments) != 1 or not isinstance(arguments[0], Select):
            raise SyntaxProblem(f"column {column}: has() asks for a field, as in has(pod.spec.nodeSelector)")
        return Has(arguments[0])

    def _macro(self, name: str, range_: Expression) -> Expression:
        column = self._tokens[self._at][2]
        arguments = self._list(")")
        bodies = arguments[1:]
        if not 1 <= len(bodies) <= MACROS[name] or not isinstance(arguments[0], Name):
            raise SyntaxProblem(
                f"column {column}: {name}() asks for a variable and a condition, as in {name}(x, x == 1)"
            )
        return Macro(name, range_, arguments[0].name, bodies)


def _tokens(text: str) -> list[tuple[str, str, int]]:
    """Kind, text and column of each token, and the end."""
    found = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or match["bad"] or match["odd"]:
            why = "text in bytes is not supported" if match is not None and match["bad"] else ""
            raise SyntaxProblem(f"column {at + 1}: {why or f'cannot read {text[at : at + 12]!r}'}")
        kind = match.lastgroup or ""
        kind = "number" if kind == "odd" else kind
        if kind != "space":
            found.append((kind, match[0], at + 1))
        at = match.end()
    return [*found, ("end", "", len(text) + 1)]


def _number(text: str) -> float:
    number = float(int(text[2:66], 16)) if text[:2] in ("0x", "0X") else float(text)
    if math.isinf(number):
        raise SyntaxProblem(f"{text:.40} is too large a number")
    return number


def _meaning(text: str) -> str:
    """What a text literal stands for: the library knows its escapes."""
    try:
        meaning = cel.evaluate(text)
    except ValueError as error:
        raise SyntaxProblem(f"cannot read {text:.40}") from error
    assert isinstance(meaning, str)
    return meaning


def _depth(node: Expression) -> int:
    deepest, waiting = 0, [(node, 1)]
    while waiting:
        node, depth = waiting.pop()
        deepest = max(deepest, depth)
        waiting += [(part, depth + 1) for part in parts(node)]
    return deepest
