"""What a user's plugin sees of the nodes: all candidates side by side, as columns."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from moorage.core.model.node import Node
from moorage.core.model.resources import PODS
from moorage.core.model.taint import Taint
from moorage.core.snapshot.snapshot import Snapshot
from moorage.plugins.labels import Labels

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
D = TypeVar("D", bound=np.generic)


class NodeValues:
    """A number for each of some nodes, by name, as a refresh brings it; made once, it does not change any more.

    ``nodes.values(these, default=…)`` is cheap for as long as the same object is asked for.  Raises ValueError for
    what is not a finite number.
    """

    __slots__ = ("__weakref__", "_by_name")

    def __init__(self, by_name: Mapping[str, float] | None = None) -> None:
        self._by_name = {name: float(value) for name, value in (by_name or {}).items()}
        for name, value in self._by_name.items():
            if not np.isfinite(value):
                raise ValueError(f"the value of node {name!r} must be a finite number, not {value!r}")

    def __len__(self) -> int:
        return len(self._by_name)

    def get(self, name: str) -> float | None:
        """The value of one node."""
        return self._by_name.get(name)


class Nodes:
    """M candidate nodes; every column has the shape (M,), always in the same order, and must not be written to.

    Amounts are in base units: thousandths of a CPU, bytes, devices, pods.
    """

    __slots__ = ("_rows", "_snapshot")

    def __init__(self, snapshot: Snapshot, rows: Ints | None = None) -> None:
        """``rows`` None: those at the beginning of the table, as many as there are nodes."""
        self._snapshot = snapshot
        self._rows = rows

    def __len__(self) -> int:
        return self._snapshot.node_count if self._rows is None else self._rows.size

    def __repr__(self) -> str:
        return f"<Nodes: {len(self)}>"

    def _part(self, column: npt.NDArray[D]) -> npt.NDArray[D]:
        if self._rows is not None:
            return column.take(self._rows)
        part = column[: self._snapshot.node_count]
        part.flags.writeable = False
        return part

    # -- who they are ----------------------------------------------------------------------------

    @property
    def names(self) -> npt.NDArray[np.object_]:
        """The names, as an array of strings."""
        snapshot = self._snapshot
        return self._part(_kept(snapshot, "names", lambda: _names(snapshot)))

    def __getitem__(self, index: int) -> Node:
        """The node at a position: ``name``, ``labels``, ``annotations``, ``taints``, ``allocatable``, ``images``."""
        if not -len(self) <= index < len(self):
            raise IndexError(f"there are {len(self)} nodes, no number {index}")
        index %= len(self)
        return self._snapshot.node_at(index if self._rows is None else int(self._rows[index]))

    def __iter__(self) -> Iterator[Node]:
        """One after the other: simple and, with thousands of nodes, slow; columns are for that."""
        return (self[index] for index in range(len(self)))

    # -- labels and taints -----------------------------------------------------------------------

    def label(self, key: str) -> Labels:
        """The values of a label, to be compared with texts: ``nodes.label("example.com/gen") == "3"``."""
        column = self._snapshot.label(key)
        return Labels(self._part(column.ids), column)

    def label_number(self, key: str, *, default: float) -> Floats:
        """The values of a label as numbers, ``default`` where it is missing or not a (finite) number."""
        column = self._snapshot.label(key)
        numbers = column.numbers()[self._part(column.ids)]
        missing = np.isnan(numbers)
        if missing.any():
            numbers[missing] = default
        return numbers

    def has_label(self, key: str) -> Bools:
        """Where the label is there, whatever its value."""
        return self._part(self._snapshot.label(key).ids) >= 0

    def has_taint(self, key: str, value: str | None = None, effect: str | None = None) -> Bools:
        """Where there is such a taint; None stands for any value, or any effect."""
        taints = self._snapshot.taints
        return taints.measure(_tainted, (key, value, effect))[self._part(taints.ids)] > 0

    @property
    def taints(self) -> list[tuple[Taint, ...]]:
        """The taints of each node (``key``, ``value``, ``effect``)."""
        return [node.taints for node in self]

    @property
    def unschedulable(self) -> Bools:
        """Cordoned nodes."""
        return self._part(self._snapshot.unschedulable)

    # -- amounts ---------------------------------------------------------------------------------

    def allocatable(self, resource: str) -> Ints:
        """What the nodes have of a resource; 0 where they do not have it."""
        return self._part(self._snapshot.allocatable(resource))

    def requested(self, resource: str) -> Ints:
        """What the pods on the nodes ask of a resource."""
        return self.pod_count if resource == PODS else self._part(self._snapshot.requested(resource))

    def free(self, resource: str) -> Ints:
        """What is allocatable and not requested; below 0 on a node that is overcommitted."""
        return self.allocatable(resource) - self.requested(resource)

    @property
    def pod_count(self) -> Ints:
        """Pods on the nodes, those that are being deleted included."""
        return self._part(self._snapshot.pod_count)

    # -- anything else ---------------------------------------------------------------------------

    def values(self, by_name: NodeValues | Mapping[str, float], *, default: float) -> Floats:
        """The numbers of these nodes, ``default`` for those that are not named.

        For a plain mapping every node is looked up on every call.
        """
        snapshot = self._snapshot
        if isinstance(by_name, NodeValues):
            column = _kept(snapshot, (weakref.ref(by_name),), lambda: _looked_up(snapshot, by_name))
            numbers = self._part(column)
            return np.where(np.isnan(numbers), default, numbers)
        return np.array([by_name.get(name, default) for name in self.names], dtype=np.float64)

    def each(self, function: Callable[[Node], float]) -> Floats:
        """``function(node)`` of each node as a vector: simple and, with thousands of nodes, slow."""
        return np.array([function(node) for node in self], dtype=np.float64)


def _tainted(taints: tuple[Taint, ...], asked: tuple[str, str | None, str | None]) -> int:
    key, value, effect = asked
    return int(any(t.key == key and value in (None, t.value) and effect in (None, t.effect) for t in taints))


def _names(snapshot: Snapshot) -> npt.NDArray[np.object_]:
    names = np.full(snapshot.capacity, "", dtype=np.object_)
    names[: len(snapshot.nodes)] = ["" if node is None else node.name for node in snapshot.nodes]
    return names


def _looked_up(snapshot: Snapshot, values: NodeValues) -> Floats:
    column = np.full(snapshot.capacity, np.nan)
    for row, node in enumerate(snapshot.nodes):
        if node is not None and (value := values.get(node.name)) is not None:
            column[row] = value
    return column


#: Columns that follow from names, kept until a node changes, comes or goes; the oldest makes room.
_KEPT = 16
_columns: weakref.WeakKeyDictionary[Snapshot, OrderedDict[Hashable, tuple[int, npt.NDArray[np.generic]]]]
_columns = weakref.WeakKeyDictionary()


def _kept(snapshot: Snapshot, key: Hashable, compute: Callable[[], npt.NDArray[D]]) -> npt.NDArray[D]:
    columns = _columns.setdefault(snapshot, OrderedDict())
    epoch = snapshot.static.epoch
    known = columns.get(key)
    if known is not None and known[0] == epoch:
        return known[1]  # type: ignore[return-value]  # one key, one type
    column = compute()
    column.flags.writeable = False
    columns.pop(key, None)
    columns[key] = (epoch, column)
    if len(columns) > _KEPT:
        columns.popitem(last=False)
    return column
