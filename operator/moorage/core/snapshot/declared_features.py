"""Which nodes declare which features (``status.declaredFeatures``), as a column for each feature a pod has needed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from moorage.core.model.node import Node

Bools = npt.NDArray[np.bool_]


class DeclaredFeatures:
    """Columns by feature, each built when it is first asked for; a row without a node declares nothing."""

    #: Features kept as columns; the oldest makes room.  Kubernetes v1.37 has three that a pod may need.
    _COLUMNS = 64

    def __init__(self) -> None:
        self._columns: dict[str, Bools] = {}

    def set(self, row: int, node: Node | None) -> None:
        """Record what the node on that row declares; None: there is no node any more."""
        declared = () if node is None else node.declared_features
        for feature, column in self._columns.items():
            column[row] = feature in declared

    def grow(self, capacity: int) -> None:
        """Make room for that many rows."""
        for feature, column in self._columns.items():
            grown = np.zeros(capacity, dtype=np.bool_)
            grown[: column.size] = column
            self._columns[feature] = grown

    def declaring(self, features: Iterable[str], nodes: Sequence[Node | None], capacity: int) -> Bools:
        """Which rows declare every one of these features, shape (capacity,); a fresh array."""
        mask = np.ones(capacity, dtype=np.bool_)
        for feature in features:
            mask &= self._column(feature, nodes, capacity)
        return mask

    def _column(self, feature: str, nodes: Sequence[Node | None], capacity: int) -> Bools:
        column = self._columns.get(feature)
        if column is None:
            if len(self._columns) >= self._COLUMNS:
                del self._columns[next(iter(self._columns))]
            column = self._columns[feature] = np.zeros(capacity, dtype=np.bool_)
            for row, node in enumerate(nodes):
                column[row] = node is not None and feature in node.declared_features
        return column
