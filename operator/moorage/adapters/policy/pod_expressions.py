"""Which expressions of policies are true of a pod, said where pods are read, since the core keeps no raw objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import orjson

from moorage.adapters.kube.sharing import Recent
from moorage.adapters.policy.expressions import PodExpression, pod_context
from moorage.core.model.policy import ExpressionError

#: A pod's part that is spoken of may have so many values and characters; with more the expressions fail for it.
MAX_VALUES: Final = 2000
MAX_TEXT: Final = 65536

_NONE: Final[frozenset[str]] = frozenset()


class PodExpressions:
    """The expressions in use by policies, evaluated together; costs nothing while there are none.

    Pods that are equal in all that is spoken of, as those of one template mostly are, are evaluated once.
    ``failures`` says by text how many evaluations failed, and how the last one did.
    """

    def __init__(self, *, recent: int = 4096) -> None:
        self._expressions: dict[str, PodExpression] = {}
        self._spoken: tuple[tuple[str, ...], ...] = ()
        self._known: Recent[bytes, frozenset[str]] = Recent(recent)
        self._recent = recent
        self.failures: dict[str, tuple[int, str]] = {}

    def only(self, expressions: Mapping[str, PodExpression]) -> None:
        """Evaluate just these, by their texts, from now on; pods that were read already have to be read again."""
        self._expressions = dict(expressions)
        self._spoken = _outermost(path for used in expressions.values() for path in used.spoken)
        self._known = Recent(self._recent)
        self.failures = {text: kept for text, kept in self.failures.items() if text in expressions}

    def __call__(self, pod: Mapping[str, Any]) -> frozenset[str]:
        """The texts of those expressions that are true of a raw pod; never raises."""
        if not self._expressions:
            return _NONE
        try:
            part = _part(pod, self._spoken)
            key = orjson.dumps(part)
        except (ExpressionError, OverflowError, RecursionError, TypeError, ValueError) as error:
            for text in self._expressions:
                self._fail(text, error)
            return _NONE
        known = self._known.get(key)
        if known is None:
            context = pod_context(part)
            known = frozenset(text for text, used in self._expressions.items() if self._holds(used, context))
            self._known.put(key, known)
        return known

    def _holds(self, expression: PodExpression, context: Any) -> bool:
        try:
            return expression.truth(context)
        except ExpressionError as error:
            self._fail(expression.text, error)
            return False

    def _fail(self, text: str, error: Exception) -> None:
        count, _ = self.failures.get(text, (0, ""))
        self.failures[text] = (count + 1, str(error))


def _outermost(paths: Iterable[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    """The paths without those that lie within another one."""
    found: list[tuple[str, ...]] = []
    for path in sorted(set(paths), key=lambda path: (len(path), path)):
        if not any(path[: len(outer)] == outer for outer in found):
            found.append(path)
    return tuple(found)


def _part(pod: Mapping[str, Any], paths: tuple[tuple[str, ...], ...]) -> dict[str, Any]:
    """Just what the paths lead to, numbers as doubles; raises ExpressionError if that is too much."""
    left = [MAX_VALUES, MAX_TEXT]
    result: dict[str, Any] = {}
    for path in paths:
        inner: Any = pod
        into = result
        for depth, step in enumerate(path, 1):
            if not isinstance(inner, Mapping) or step not in inner:
                break
            inner = inner[step]
            if depth == len(path):
                into[step] = _copied(inner, left)
            else:
                into = into.setdefault(step, {})
        if not path:
            result = _copied(pod, left)
    return result


def _copied(value: Any, left: list[int]) -> Any:
    left[0] -= 1
    if isinstance(value, str):
        left[1] -= len(value)
    if left[0] < 0 or left[1] < 0:
        raise ExpressionError(f"the pod is too large: more than {MAX_VALUES} values or {MAX_TEXT} characters")
    if isinstance(value, Mapping):
        return {str(key): _copied(item, left) for key, item in value.items() if key != "managedFields"}
    if isinstance(value, list | tuple):
        return [_copied(item, left) for item in value]
    if isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value
