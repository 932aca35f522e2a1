"""Expressions of policies: compiled once, by a library that does so to native code's speed.

An expression may be anybody's who may write a policy in some namespace, so it can take neither time nor memory that
matters: see ``rules`` for what bounds it, ``budget`` for the rest.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

import cel

from moorage.adapters.policy.budget import CPU_CLOCK, LIMIT, Budget, Clock, check_cost, explain
from moorage.adapters.policy.parsing import SyntaxProblem, parse
from moorage.adapters.policy.rewriting import as_doubles, node_variable, quantity_as_double
from moorage.adapters.policy.rules import NODE, NODE_FIELDS, POD, broken_rules, paths, wrong_result
from moorage.adapters.policy.samples import SIZES, sample_node, sample_pod, with_fields
from moorage.adapters.policy.syntax_tree import Call, Expression, Literal, walk
from moorage.core.model.policy import ExpressionError, NodeFacts, Speaks

_SPEAKS: Final = {"requested": Speaks.REQUESTED, "usage": Speaks.USAGE}
#: Compiling a pattern is part of every evaluation.
_PATTERN_LIMIT: Final = LIMIT / 5
_MAX_PATTERN: Final = 200


class ExpressionProblem(ValueError):
    """The expression cannot be used; the message says why."""


class CompiledNodeExpression:
    """A ``NodeExpression``: see there."""

    __slots__ = ("_budget", "_fields", "_functions", "speaks", "text")

    def __init__(self, text: str, tree: Expression, clock: Clock) -> None:
        self.text = text
        spoken = {path[0] for path in paths(tree, NODE) if path}
        self._fields = tuple((field, node_variable(field)) for field in NODE_FIELDS if field in spoken)
        self.speaks = Speaks(0)
        for field in spoken:
            self.speaks |= _SPEAKS.get(field, Speaks.NODE)
        self.speaks = self.speaks or Speaks.NODE
        program = _compile(tree)
        samples = map(sample_node, SIZES)
        flat = ({node_variable(field): value for field, value in sample.items()} for sample in samples)
        _check_cost(tree, program, (sample | _FUNCTIONS for sample in flat), clock)
        self._functions = _FUNCTIONS if _calls_quantity(tree) else {}
        self._budget = Budget(program, clock)

    def truth(self, node: NodeFacts) -> bool:
        """See ``NodeExpression``."""
        value = self._value(node)
        if value is True or value is False:
            return value
        raise ExpressionError(f"gave {_shown(value)}, not a bool")

    def score(self, node: NodeFacts) -> float:
        """See ``NodeExpression``."""
        value = self._value(node)
        if value is True or value is False:
            return 100.0 if value else 0.0
        if not isinstance(value, int | float) or math.isnan(value):
            raise ExpressionError(f"gave {_shown(value)}, not a number or a bool")
        return float(min(100.0, max(0.0, value)))

    def _value(self, node: NodeFacts) -> Any:
        variables: dict[str, Any] = dict(self._functions)
        for field, variable in self._fields:
            variables[variable] = _plain(getattr(node, field))
        return self._budget.evaluate(variables)


class PodExpression:
    """A compiled expression over a pod; ``spoken`` are the paths of the fields that its value depends on."""

    __slots__ = ("_budget", "spoken", "text")

    def __init__(self, text: str, tree: Expression, clock: Clock) -> None:
        self.text = text
        self.spoken = paths(tree, POD)
        program = _compile(tree)
        samples = (with_fields(sample_pod(size), self.spoken) for size in SIZES)
        _check_cost(tree, program, (pod_context(sample) for sample in samples), clock)
        self._budget = Budget(program, clock)

    def truth(self, context: Any) -> bool:
        """Whether it holds in a ``pod_context``; raises ExpressionError."""
        value = self._budget.evaluate(context)
        if value is True or value is False:
            return value
        raise ExpressionError(f"gave {_shown(value)}, not a bool")


def pod_context(pod: Mapping[str, Any]) -> Any:
    """A pod for any number of expressions: it has at least the fields they speak of, and no whole numbers."""
    return cel.Context(variables={POD: dict(pod)}, functions=_FUNCTIONS)


def compile_node_expression(
    text: str, *, scores: bool = False, clock: Clock = CPU_CLOCK
) -> CompiledNodeExpression:
    """An expression over a node that must give a bool or, if it ``scores``, may give a number.

    Raises ExpressionProblem.
    """
    return CompiledNodeExpression(text, _checked(text, NODE, also_numbers=scores), clock)


def compile_pod_expression(text: str, *, clock: Clock = CPU_CLOCK) -> PodExpression:
    """An expression over a pod that must give a bool; raises ExpressionProblem."""
    return PodExpression(text, _checked(text, POD, also_numbers=False), clock)


def _checked(text: str, variable: str, *, also_numbers: bool) -> Expression:
    try:
        tree = parse(text)
    except SyntaxProblem as error:
        raise ExpressionProblem(str(error)) from None
    broken = next(broken_rules(tree, variable), None) or wrong_result(tree, also_numbers=also_numbers)
    if broken is not None:
        raise ExpressionProblem(broken)
    return tree


def _compile(tree: Expression) -> Any:
    try:
        return cel.compile(as_doubles(tree))
    except ValueError as error:
        raise ExpressionProblem(explain(error)) from None


def _check_cost(tree: Expression, program: Any, contexts: Iterable[Any], clock: Clock) -> None:
    for node in walk(tree):
        if isinstance(node, Call) and node.function == "matches":
            (pattern,) = node.arguments
            assert isinstance(pattern, Literal)
            _check_pattern(pattern, clock)
    slow = check_cost(program, contexts, clock)
    if slow is not None:
        raise ExpressionProblem(slow)


def _check_pattern(pattern: Literal, clock: Clock) -> None:
    """Whether the pattern can be read, and how long that takes; matching itself is linear in the text."""
    if len(pattern.text) > _MAX_PATTERN:
        raise ExpressionProblem(f"a pattern must have at most {_MAX_PATTERN} characters")
    try:
        program = cel.compile(f"''.matches({pattern.text})")
        took = math.inf
        for _ in range(3):
            start = clock()
            program.execute({})
            took = min(took, clock() - start)
            if took <= _PATTERN_LIMIT:
                return
    except Exception as error:  # noqa: BLE001 - the library raises whatever fits
        raise ExpressionProblem(f"the pattern {pattern.text:.40}: {explain(error)}") from None
    raise ExpressionProblem(
        f"the pattern {pattern.text:.40} takes {took * 1e3:.1f} ms to read: repeat less in it"
    )


def _calls_quantity(tree: Expression) -> bool:
    return any(isinstance(node, Call) and node.function == "quantity" for node in walk(tree))


def _plain(value: Any) -> Any:
    """What the library takes: mappings of other kinds than dict it does not."""
    if isinstance(value, str):
        return value
    if isinstance(value, tuple):
        return [dict(item) for item in value]
    return value if type(value) is dict else dict(value)


def _shown(value: object) -> str:
    return f"{value!r:.40}"


_FUNCTIONS: Final = {"quantity": quantity_as_double}

# It warns of each exception in a function of ours, such as a label that is no quantity, which we count and report.
logging.getLogger("cel").setLevel(logging.CRITICAL)
