"""Expressions over nodes as columns: evaluated once a node, and again only for nodes of which something has changed.

An expression is evaluated for a row when somebody asks about the row and what it speaks of has changed since.
One that fails counts as false, or as 0; how often, and with what words, is kept by policy.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from moorage.core.model.policy import ExpressionError, NodeExpression, NodeFacts, PolicyRef, Speaks
from moorage.core.model.resources import CPU, MEMORY, PODS
from moorage.core.model.taint import Taint

if TYPE_CHECKING:
    from moorage.core.snapshot.snapshot import Snapshot

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

#: A node's use is absent from an expression when its sample is older than that, in seconds.
USAGE_STALE_AFTER = 180.0

_NOTHING: Mapping[str, float] = {}


@dataclass(slots=True)
class Failures:
    """Evaluations of a policy's expressions that ended in an error, and the last of them in words."""

    count: int = 0
    last: str = ""


class Facts:
    """What expressions can say about each node, put together when somebody asks."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._fixed: dict[int, tuple[object, tuple[Mapping[str, str], ...], Mapping[str, float]]] = {}
        self._taints: dict[tuple[Taint, ...], tuple[Mapping[str, str], ...]] = {}

    def of(self, row: int, speaks: Speaks) -> NodeFacts:
        """The facts of the node on that row; what the expression does not speak of may be left empty."""
        snapshot = self._snapshot
        node = snapshot.node_at(row)
        fixed = self._fixed.get(row)
        if fixed is None or fixed[0] is not node:
            allocatable = {name: _double(name, amount) for name, amount in node.allocatable.items()}
            fixed = self._fixed[row] = (node, self._taints_of(node.taints), allocatable)
        requested = self._requested(row, node.allocatable) if Speaks.REQUESTED in speaks else _NOTHING
        usage = self._usage(row, node.allocatable) if Speaks.USAGE in speaks else _NOTHING
        return NodeFacts(node.name, node.labels, fixed[1], fixed[2], requested, usage)

    def _taints_of(self, taints: tuple[Taint, ...]) -> tuple[Mapping[str, str], ...]:
        found = self._taints.get(taints)
        if found is None:
            if len(self._taints) >= 1024:
                self._taints.clear()
            found = tuple({"key": t.key, "value": t.value, "effect": t.effect} for t in taints)
            self._taints[taints] = found
        return found

    def _requested(self, row: int, allocatable: Mapping[str, int]) -> Mapping[str, float]:
        """Of each resource that the node has or its pods ask for; cpu, memory and pods always."""
        snapshot = self._snapshot
        found = {PODS: float(snapshot.pod_count.item(row))}
        for name in snapshot.resources:
            amount = snapshot.requested(name).item(row)
            if name != PODS and (amount or name in allocatable):
                found[name] = _double(name, amount)
        found.setdefault(CPU, 0.0)
        found.setdefault(MEMORY, 0.0)
        return found

    def _usage(self, row: int, allocatable: Mapping[str, int]) -> Mapping[str, float]:
        """In percent of allocatable, of what the sample speaks of; nothing when it is stale."""
        snapshot = self._snapshot
        samples = snapshot.usage_samples
        if not snapshot.now - samples.at.item(row) <= USAGE_STALE_AFTER:
            return _NOTHING
        return {
            name: samples.used_at(name, row) * 100 / amount
            for name, amount in allocatable.items()
            if amount and samples.knows(name)[row]
        }


def _double(resource: str, amount: int) -> float:
    """Cores, bytes or pieces."""
    return amount / 1000 if resource == CPU else float(amount)


class _Column:
    """One expression's values by row, and which of them are out of date."""

    __slots__ = ("_dirty", "_fresh", "_samples", "_static", "_usage", "expression", "values")

    def __init__(self, expression: NodeExpression, capacity: int) -> None:
        self.expression = expression
        self.values: Floats = np.zeros(capacity)
        self._dirty: Bools = np.ones(capacity, dtype=np.bool_)
        self._static = self._usage = self._samples = -1
        self._fresh: Bools | None = None

    def outdated(self, snapshot: Snapshot, rows: Ints | None) -> Ints:
        """Those of these rows (None: of all) that hold a node and are to be evaluated; they count as done now."""
        self._notice(snapshot)
        dirty = self._dirty
        if rows is None:
            due = np.flatnonzero(dirty & snapshot.alive)
        else:
            due = rows[dirty[rows]]
            due = due[snapshot.alive[due]] if due.size else due
        dirty[due] = False
        return due

    def _notice(self, snapshot: Snapshot) -> None:
        speaks = self.expression.speaks
        static, usage = snapshot.static.epoch, snapshot.usage.epoch
        if static != self._static:
            self._mark(None if self._static < 0 else snapshot.static.since(self._static))
            self._static = static
        if usage != self._usage:
            if speaks & (Speaks.REQUESTED | Speaks.USAGE):
                self._mark(None if self._usage < 0 else snapshot.usage.since(self._usage))
            self._usage = usage
        if Speaks.USAGE in speaks:
            samples = snapshot.usage_samples
            fresh = samples.fresh(USAGE_STALE_AFTER)
            if samples.epoch != self._samples or self._fresh is None or self._fresh.size != fresh.size:
                self._mark(None)
            else:
                self._dirty |= fresh != self._fresh
            self._samples, self._fresh = samples.epoch, fresh

    def _mark(self, rows: Ints | None) -> None:
        """These rows (None: all) are out of date; what a row without a node holds is 0."""
        if rows is None:
            self._dirty[:] = True
            self.values[:] = 0.0
        else:
            self._dirty[rows] = True
            self.values[rows] = 0.0


class ExpressionColumns:
    """The columns in use, the least recently used first to go, and the failures by policy."""

    #: Columns kept at the most.
    KEPT = 512

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._facts = Facts(snapshot)
        self._columns: OrderedDict[tuple[PolicyRef, str, bool], _Column] = OrderedDict()
        self._failures: dict[PolicyRef, Failures] = {}

    def __len__(self) -> int:
        return len(self._columns)

    def truth(self, ref: PolicyRef, expression: NodeExpression, rows: Ints | None = None) -> Bools:
        """Where a policy's expression is true, shape (capacity,), up to date for these rows (None: for all)."""
        return self._values(ref, expression, rows, scoring=False) > 0.0

    def score(self, ref: PolicyRef, expression: NodeExpression, rows: Ints | None = None) -> Floats:
        """A policy's expression as a score 0..100, shape (capacity,), up to date for these rows; do not write."""
        return self._values(ref, expression, rows, scoring=True)

    def failures(self, ref: PolicyRef) -> Failures:
        """What has failed for a policy since it was last dropped."""
        return self._failures.get(ref, Failures())

    def drop(self, ref: PolicyRef) -> None:
        """The policy has gone, or is another one now."""
        self._failures.pop(ref, None)
        for key in [key for key in self._columns if key[0] == ref]:
            del self._columns[key]

    def _values(
        self, ref: PolicyRef, expression: NodeExpression, rows: Ints | None, *, scoring: bool
    ) -> Floats:
        capacity = self._snapshot.capacity
        key = (ref, expression.text, scoring)
        column = self._columns.get(key)
        if column is None or column.values.size != capacity:
            column = self._columns[key] = _Column(expression, capacity)
            if len(self._columns) > self.KEPT:
                self._columns.popitem(last=False)
        else:
            self._columns.move_to_end(key)
        for row in column.outdated(self._snapshot, rows).tolist():
            column.values[row] = self._evaluate(ref, expression, row, scoring=scoring)
        return column.values

    def _evaluate(self, ref: PolicyRef, expression: NodeExpression, row: int, *, scoring: bool) -> float:
        facts = self._facts.of(row, expression.speaks)
        try:
            value = expression.score(facts) if scoring else float(expression.truth(facts))
        except ExpressionError as error:
            failures = self._failures.setdefault(ref, Failures())
            failures.count += 1
            failures.last = f"{expression.text}: {error}"
            return 0.0
        # Whoever compiled it has brought it to 0..100; a value that is none must not get into the sums.
        return min(max(value, 0.0), 100.0) if math.isfinite(value) else 0.0
