"""An expression of a policy as a tree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum


class Type(Enum):
    """What can be said of a value before it is calculated."""

    BOOL = "a bool"
    NUMBER = "a number"
    TEXT = "text"
    NULL = "null"
    LIST = "a list"
    MAP = "a map"
    ANY = "anything"


@dataclass(frozen=True, slots=True)
class Literal:
    """A literal as it is written; ``value`` is what it means: a float, a str, a bool or None."""

    text: str
    value: float | str | bool | None


@dataclass(frozen=True, slots=True)
class Name:
    """A variable."""

    name: str


@dataclass(frozen=True, slots=True)
class Select:
    """``operand.field``."""

    operand: Expression
    field: str


@dataclass(frozen=True, slots=True)
class Has:
    """``has(operand.field)``."""

    select: Select


@dataclass(frozen=True, slots=True)
class Index:
    """``operand[key]``."""

    operand: Expression
    key: Expression


@dataclass(frozen=True, slots=True)
class Call:
    """``function(arguments)``, or ``target.function(arguments)``."""

    function: str
    target: Expression | None
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Macro:
    """``range.name(variable, bodies)``: all, exists, exists_one, filter and map."""

    name: str
    range: Expression
    variable: str
    bodies: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Unary:
    """``!operand`` or ``-operand``."""

    operator: str
    operand: Expression


@dataclass(frozen=True, slots=True)
class Binary:
    """``left operator right``."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Choice:
    """``condition ? yes : no``."""

    condition: Expression
    yes: Expression
    no: Expression


@dataclass(frozen=True, slots=True)
class ListOf:
    """``[items]``."""

    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class MapOf:
    """``{key: value, …}``, as key, value, key, value."""

    items: tuple[Expression, ...]


Expression = Literal | Name | Select | Has | Index | Call | Macro | Unary | Binary | Choice | ListOf | MapOf


def parts(node: Expression) -> tuple[Expression, ...]:
    """What the expression is made of, in the order in which it is written."""
    match node:
        case Literal() | Name():
            return ()
        case Select(operand):
            return (operand,)
        case Has(select):
            return (select,)
        case Index(operand, key):
            return (operand, key)
        case Call(_, target, arguments):
            return arguments if target is None else (target, *arguments)
        case Macro(_, range, _, bodies):
            return (range, *bodies)
        case Unary(_, operand):
            return (operand,)
        case Binary(_, left, right):
            return (left, right)
        case Choice(condition, yes, no):
            return (condition, yes, no)
        case ListOf(items) | MapOf(items):
            return items


def walk(node: Expression) -> Iterator[Expression]:
    """The expression and all that is in it."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += reversed(parts(node))


def path_of(node: Expression) -> tuple[str, ...] | None:
    """``pod.a["b"].c`` as its words; None for anything that is not a variable and literal steps into it."""
    steps: list[str] = []
    while True:
        match node:
            case Name(name):
                return (name, *reversed(steps))
            case Select(operand, field):
                steps.append(field)
                node = operand
            case Index(operand, Literal(_, str() as key)):
                steps.append(key)
                node = operand
            case _:
                return None


def type_of(node: Expression) -> Type:
    """What kind of value the expression gives, as far as it can be told without calculating it."""
    match node:
        case Literal(_, value):
            return _TYPES[type(value)]
        case Has() | Unary("!"):
            return Type.BOOL
        case Unary("-"):
            return Type.NUMBER
        case Macro(name):
            return Type.LIST if name in ("map", "filter") else Type.BOOL
        case Call(function):
            return _RESULTS.get(function, Type.ANY)
        case ListOf():
            return Type.LIST
        case MapOf():
            return Type.MAP
        case Choice(_, yes, no):
            first, second = type_of(yes), type_of(no)
            return first if first is second else Type.ANY
        case Binary("+", left, right):
            known = {type_of(left), type_of(right)} - {Type.ANY}
            return known.pop() if len(known) == 1 else Type.ANY
        case Binary(operator):
            return Type.NUMBER if operator in ("-", "*", "/", "%") else Type.BOOL
        case _:
            return Type.ANY


_TYPES = {float: Type.NUMBER, str: Type.TEXT, bool: Type.BOOL, type(None): Type.NULL}
_RESULTS = {
    "size": Type.NUMBER,
    "double": Type.NUMBER,
    "int": Type.NUMBER,
    "quantity": Type.NUMBER,
    "string": Type.TEXT,
    "contains": Type.BOOL,
    "startsWith": Type.BOOL,
    "endsWith": Type.BOOL,
    "matches": Type.BOOL,
}
