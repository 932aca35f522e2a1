"""A tree to the text that the library compiles: the same expression, all of whose numbers are doubles.

CEL knows several kinds of numbers and adds none of them up with another, which is no help to somebody who writes
``node.allocatable['cpu'] - 1``.  So number literals, ``size()`` and ``int()`` become doubles here, as those in the
data do; where a whole number is needed, for an item of a list and for ``%``, the fraction is dropped.
"""

from __future__ import annotations

from typing import Final

from moorage.adapters.policy.rules import NODE
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
    Type,
    Unary,
    parts,
    type_of,
)
from moorage.core.model.quantity import parse as parse_quantity

_LEVELS: Final = {
    "||": 1,
    "&&": 2,
    **dict.fromkeys(("<", "<=", ">", ">=", "==", "!=", "in"), 3),
    **dict.fromkeys("+-", 4),
    **dict.fromkeys("*/%", 5),
}
_UNARY, _MEMBER = 6, 7
_NANO: Final = 10**9


def as_doubles(tree: Expression) -> str:
    """The text for the library; the fields of ``node`` become variables of their own (see ``node_variable``)."""
    return _written(tree, 0)


def node_variable(field: str) -> str:
    """The variable that stands for this field of the node: handing over only what is spoken of is faster."""
    return f"{NODE}__{field}"


def quantity_as_double(value: object) -> float:
    """The amount of a quantity; raises QuantityError."""
    return parse_quantity(value).nanos / _NANO


def _written(node: Expression, level: int) -> str:
    """The text, in parentheses if it binds less than ``level``."""
    text, own = _text(node)
    return f"({text})" if own < level else text


def _text(node: Expression) -> tuple[str, int]:
    """The text, and how strongly it binds."""
    match node:
        case Unary(operator, operand):
            return f"{operator}{_written(operand, _MEMBER)}", _UNARY
        case Binary("%", left, right):
            return f"double(int({_written(left, 0)}) % int({_written(right, 0)}))", _MEMBER
        case Binary(operator, left, right):
            own = _LEVELS[operator]
            return f"{_written(left, own)} {operator} {_written(right, own + 1)}", own
        case Choice(condition, yes, no):
            return f"{_written(condition, 1)} ? {_written(yes, 1)} : {_written(no, 0)}", 0
        case _:
            return _member(node), _MEMBER


def _member(node: Expression) -> str:
    match node:
        case Literal(text, value):
            return repr(value) if isinstance(value, float) else text
        case Name(name):
            return _variable(name)
        case Select(Name("node"), field) | Index(Name("node"), Literal(_, str() as field)):
            return node_variable(field)
        case Select(operand, field):
            return f"{_written(operand, _MEMBER)}.{field}"
        case Has(select):
            return _has(select)
        case Index(operand, key):
            return f"{_written(operand, _MEMBER)}[{_key(key)}]"
        case Call():
            return _call(node)
        case Macro(name, range, variable, bodies):
            inner = ", ".join((_variable(variable), *(_written(body, 0) for body in bodies)))
            return f"{_written(range, _MEMBER)}.{name}({inner})"
        case MapOf(items):
            pairs = zip(items[::2], items[1::2], strict=True)
            return f"{{{', '.join(f'{_key(key)}: {_written(value, 0)}' for key, value in pairs)}}}"
        case ListOf(items):
            return f"[{', '.join(_written(item, 0) for item in items)}]"
        case Unary() | Binary() | Choice():
            raise AssertionError(node)


def _has(select: Select) -> str:
    if select.operand == Name(NODE):
        return "true"  # every field of the node is there, if only empty
    return f"has({_written(select, 0)})"


def _call(node: Call) -> str:
    arguments = parts(node)
    if node.function == "quantity" and isinstance(arguments[0], Literal):
        return repr(quantity_as_double(arguments[0].value))
    if node.function in ("size", "int"):
        return f"double({node.function}({_written(arguments[0], 0)}))"
    inner = ", ".join(_written(argument, 0) for argument in node.arguments)
    if node.target is None:
        return f"{node.function}({inner})"
    return f"{_written(node.target, _MEMBER)}.{node.function}({inner})"


def _key(node: Expression) -> str:
    """What stands in brackets: a whole number where it is a number."""
    if isinstance(node, Literal) and isinstance(node.value, float):
        return str(int(node.value))
    text = _written(node, 0)
    return f"int({text})" if type_of(node) is Type.NUMBER else text


def _variable(name: str) -> str:
    """Variables of macros get names that nothing else has."""
    return name if name == "pod" else f"v_{name}"
