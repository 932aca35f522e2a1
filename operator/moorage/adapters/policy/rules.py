"""What an expression may say, so that it means something and its cost is bounded by its length and its data.

Calculating is linear in the data for each macro and each operator, and an expression has at most 1,024 characters, as
long as no macro works on what another one does or yields, and what is calculated for each item speaks of that item
only: looking through a list once an item would be quadratic, and doubling a text in each of a chain of macros
exponential.  Patterns are literals, so that what they cost is known before any pod or node is seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from moorage.adapters.policy.syntax_tree import (
    Call,
    Expression,
    Literal,
    Macro,
    Name,
    Type,
    parts,
    path_of,
    type_of,
    walk,
)
from moorage.core.model.quantity import QuantityError
from moorage.core.model.quantity import parse as parse_quantity

#: Function -> how many arguments it has, the one it is called on included.
FUNCTIONS: Final = {
    "size": 1,
    "double": 1,
    "int": 1,
    "string": 1,
    "quantity": 1,
    "contains": 2,
    "startsWith": 2,
    "endsWith": 2,
    "matches": 2,
}
_METHODS_ONLY: Final = frozenset({"contains", "startsWith", "endsWith", "matches"})
_CALLS_ONLY: Final = frozenset({"double", "int", "string", "quantity"})

NODE: Final = "node"
POD: Final = "pod"
NODE_FIELDS: Final = ("name", "labels", "taints", "allocatable", "requested", "usage")
_POD_FIELDS: Final = ("apiVersion", "kind", "metadata", "spec", "status")


def broken_rules(tree: Expression, variable: str) -> Iterator[str]:
    """What is wrong with an expression over this variable, "pod" or "node"."""
    yield from _names(tree, variable, frozenset())
    yield from _macros(tree)
    for node in walk(tree):
        if isinstance(node, Call):
            yield from _call(node)


def wrong_result(tree: Expression, *, also_numbers: bool) -> str | None:
    """Why the expression cannot give what is needed; None if it may."""
    wanted = {Type.BOOL, Type.ANY, *([Type.NUMBER] if also_numbers else [])}
    kind = type_of(tree)
    if kind in wanted:
        return None
    return f"must give {'a number or ' if also_numbers else ''}a bool, not {kind.value}"


def _names(node: Expression, variable: str, bound: frozenset[str]) -> Iterator[str]:
    """Variables that do not exist, and fields that the variable does not have."""
    path = path_of(node)
    if path is not None and path[0] not in bound:
        yield from _known(path, variable)
        return
    if isinstance(node, Macro):
        yield from _names(node.range, variable, bound)
        if node.variable in (POD, NODE):
            yield f"the variable of {node.name}() must not be called {node.variable!r}"
        for body in node.bodies:
            yield from _names(body, variable, bound | {node.variable})
        return
    for part in parts(node):
        yield from _names(part, variable, bound)


def _known(path: tuple[str, ...], variable: str) -> Iterator[str]:
    name, *fields = path
    if name != variable:
        yield f"there is no variable {name!r} here, only {variable!r}"
    elif variable == NODE:
        if not fields:
            yield f"'node' must be followed by a field: {', '.join(NODE_FIELDS)}"
        elif fields[0] not in NODE_FIELDS:
            yield f"'node' has no field {fields[0]!r}, only {', '.join(NODE_FIELDS)}"
    elif fields and fields[0] not in _POD_FIELDS:
        yield f"'pod' has no field {fields[0]!r}, only {', '.join(_POD_FIELDS)}"


def _macros(tree: Expression) -> Iterator[str]:
    for node in walk(tree):
        if not isinstance(node, Macro):
            continue
        inner = [part for side in (node.range, *node.bodies) for part in walk(side)]
        nested = next((part for part in inner if isinstance(part, Macro)), None)
        if nested is not None:
            yield f"{nested.name}() must not be within {node.name}(), nor be what it goes over"
        outside = next(
            (
                part.name
                for body in node.bodies
                for part in walk(body)
                if isinstance(part, Name) and part.name != node.variable
            ),
            None,
        )
        if outside is not None:
            yield (
                f"what {node.name}() calculates for each item may speak of {node.variable!r} only, "
                f"not of {outside!r}"
            )


def _call(node: Call) -> Iterator[str]:
    name, given = node.function, len(node.arguments) + (node.target is not None)
    if name not in FUNCTIONS:
        yield f"there is no function {name!r}, only {', '.join((*FUNCTIONS, 'has'))} and the macros"
        return
    if given != FUNCTIONS[name] or (node.target is None and name in _METHODS_ONLY):
        example = "text.{}(other)" if name in _METHODS_ONLY else "{}(value)"
        yield f"{name}() must be called as {example.format(name)}"
        return
    if node.target is not None and name in _CALLS_ONLY:
        yield f"{name}() must be called as {name}(value)"
        return
    if name == "matches" and not _is_text(node.arguments[0]):
        yield "the pattern of matches() must be written out as text"
    if name == "quantity":
        (argument,) = node.arguments
        if isinstance(argument, Literal):
            try:
                parse_quantity(argument.value)
            except QuantityError as error:
                yield f"quantity(): {error}"


def _is_text(node: Expression) -> bool:
    return isinstance(node, Literal) and isinstance(node.value, str)


def paths(tree: Expression, variable: str) -> frozenset[tuple[str, ...]]:
    """Which parts of the variable are spoken of, as paths of field names below it; () is all of it.

    A path ends where it goes on with something that is not written out, so that is spoken of as a whole.
    """
    found: set[tuple[str, ...]] = set()

    def visit(node: Expression) -> None:
        path = path_of(node)
        if path is not None:
            if path[0] == variable:
                found.add(path[1:])
            return
        for part in parts(node):
            visit(part)

    visit(tree)
    return frozenset(found)
