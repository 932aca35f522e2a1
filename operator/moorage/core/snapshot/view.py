"""What a plugin sees of the nodes it is asked about."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from moorage.core.model.node import Node
from moorage.core.model.pod import HostPort
from moorage.core.model.selector import LabelSelector, NodeSelector, NodeSelectorTerm, Requirement
from moorage.core.snapshot.snapshot import Snapshot
from moorage.core.snapshot.taints import A, Measure
from moorage.core.snapshot.topology import Domains

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Ids = npt.NDArray[np.intp]


class Nodes:
    """M nodes side by side; every column has the shape (M,), in the order of ``rows``.

    Without ``rows`` it is the whole table, free rows included: their answers are ignored.  Columns
    may share memory with the snapshot and must not be written to.
    """

    __slots__ = ("_all", "rows", "snapshot")

    def __init__(self, snapshot: Snapshot, rows: Ints | None = None) -> None:
        self.snapshot = snapshot
        self._all = rows is None
        self.rows: Ints = np.arange(snapshot.capacity, dtype=np.int64) if rows is None else rows

    def __len__(self) -> int:
        return self.snapshot.capacity if self._all else self.rows.size

    def taken(self, column: Ints) -> Ints:
        """These nodes' part of a column of the snapshot."""
        return column if self._all else column[self.rows]

    def taken_mask(self, column: Bools) -> Bools:
        """These nodes' part of a mask of the snapshot."""
        return column if self._all else column[self.rows]

    def node(self, index: int) -> Node:
        """The node at a position of this view, for checks that cannot be vectorised."""
        return self.snapshot.node_at(int(self.rows[index]))

    @property
    def whole(self) -> bool:
        """Whether it is the whole table, free rows included."""
        return self._all

    def ids(self, domains: Domains) -> Ids:
        """The domain of each node; ``domains.size`` where it does not have the label."""
        return domains.ids if self._all else domains.ids.take(self.rows)

    def false(self) -> Bools:
        """A fresh mask of no node."""
        return np.zeros(len(self), dtype=np.bool_)

    def allocatable(self, resource: str) -> Ints:
        """What the nodes have of a resource, base units."""
        return self.taken(self.snapshot.allocatable(resource))

    def requested(self, resource: str) -> Ints:
        """What the pods on the nodes ask of a resource, base units."""
        return self.taken(self.snapshot.requested(resource))

    @property
    def scoring_cpu(self) -> Ints:
        """Milli-CPU asked for, each container counting at least the scoring default."""
        return self.taken(self.snapshot.scoring_cpu.values)

    @property
    def scoring_memory(self) -> Ints:
        """Bytes asked for, each container counting at least the scoring default."""
        return self.taken(self.snapshot.scoring_memory.values)

    @property
    def pod_count(self) -> Ints:
        """Pods on the nodes, dying ones included."""
        return self.taken(self.snapshot.pod_count)

    @property
    def unschedulable(self) -> Bools:
        """Cordoned nodes."""
        return self.taken_mask(self.snapshot.unschedulable)

    def measure_taints(self, measure: Measure[A], asked: A) -> Ints:
        """A figure of each node's taints, computed once a distinct taint set."""
        taints = self.snapshot.taints
        by_set = taints.measure(measure, asked)
        return by_set[taints.ids if self._all else taints.ids[self.rows]]

    def satisfying(self, requirement: Requirement) -> Bools:
        """Nodes whose labels satisfy the requirement."""
        return self.taken_mask(self.snapshot.requirement_mask(requirement))

    def matching_term(self, term: NodeSelectorTerm) -> Bools:
        """Nodes that the term matches."""
        return self.taken_mask(self.snapshot.term_mask(term))

    def matching(self, selector: NodeSelector) -> Bools:
        """Nodes that the selector matches."""
        return self.taken_mask(self.snapshot.selector_mask(selector))

    def labelled(self, selector: LabelSelector) -> Bools:
        """Nodes whose labels the selector matches."""
        return self.taken_mask(self.snapshot.labelled_mask(selector))

    def first_labelled(self, selectors: tuple[LabelSelector, ...]) -> Ints:
        """The index of the first of the selectors that matches a node's labels, -1 if none does."""
        return self.taken(self.snapshot.first_labelled(selectors))

    def in_port_conflict(self, wanted: Iterable[HostPort]) -> Bools:
        """Nodes on which one of these host ports is taken."""
        taken = self.snapshot.host_ports.rows_in_conflict(wanted)
        mask = np.zeros(self.snapshot.capacity, dtype=np.bool_)
        mask[list(taken)] = True
        return self.taken_mask(mask)

    def declaring(self, features: Iterable[str]) -> Bools:
        """Nodes that declare every one of these features."""
        snapshot = self.snapshot
        return self.taken_mask(snapshot.features.declaring(features, snapshot.nodes, snapshot.capacity))

    def image(self, name: str) -> tuple[Bools, int, int]:
        """(which of these nodes have the image, its size in bytes, how many nodes of all have it)."""
        snapshot = self.snapshot
        present, size = snapshot.images.column(name, snapshot.nodes, snapshot.capacity)
        return self.taken_mask(present), size, int(np.count_nonzero(present))
