"""Makes a failing case smaller: whatever can be left out without curing the failure is left out.

Hypothesis shrinks what it has made itself; this works on any case, from a file or from `random_case`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

from tests.parity.oracle import Case

Path = tuple[str | int, ...]

#: Left out, these would make the case one that kube-scheduler does not decide the same way twice.
_KEPT = frozenset({"startTime", "name", "kind", "apiVersion", "metadata", "containers"})


def shrink(case: Case, fails: Callable[[Case], bool]) -> Case:
    """The smallest case found that still fails in the same way."""
    smaller = True
    while smaller:
        smaller = False
        for path in _paths(case):
            if not _exists(case, path):
                continue  # it went with something larger
            candidate = _without(case, path)
            if fails(candidate):
                case, smaller = candidate, True
    return case


def _paths(value: Any, prefix: Path = ()) -> Iterator[Path]:
    """Everything that may be left out, larger parts before their contents, last items of a list first."""
    if isinstance(value, dict):
        items: list[tuple[str | int, Any]] = list(value.items())
    elif isinstance(value, list):
        items = list(reversed(list(enumerate(value))))
    else:
        return
    yield from ((*prefix, key) for key, _ in items if key not in _KEPT)
    for key, item in items:
        yield from _paths(item, (*prefix, key))


def _exists(value: Any, path: Path) -> bool:
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError):
            return False
    return True


def _without(case: Case, path: Path) -> Case:
    smaller = copy.deepcopy(case)
    parent: Any = smaller
    for step in path[:-1]:
        parent = parent[step]
    del parent[path[-1]]
    return smaller
