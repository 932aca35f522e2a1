"""Container images on nodes, as columns of sizes.

Like label columns these are built when a pod first names an image, and bounded in number.
Source of the scoring rule: the ImageLocality plugin of kube-scheduler v1.37.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from moorage.core.model.node import Node

if TYPE_CHECKING:
    Ints = npt.NDArray[np.int64]
    Bools = npt.NDArray[np.bool_]


class ImageColumns:
    """Presence of the images that pods name.

    An image's size is the one that the first node (lowest row) reports; nodes may disagree.
    """

    _KEPT = 1024

    def __init__(self) -> None:
        self._present: dict[str, tuple[Bools, dict[int, int]]] = {}

    def set(self, row: int, node: Node | None) -> None:
        """Bring the columns up to date with the node on that row (None: the row is free)."""
        for name, (present, sizes) in self._present.items():
            size = None if node is None else node.images.get(name)
            if size is None:
                present[row] = False
                sizes.pop(row, None)
            else:
                present[row] = True
                sizes[row] = size

    def grow(self) -> None:
        """The number of rows changed: columns are built again when asked for."""
        self._present.clear()

    def column(self, name: str, nodes: Sequence[Node | None], capacity: int) -> tuple[Bools, int]:
        """Rows that have the image, shape (capacity,), and the image's size in bytes (0 if no row has it)."""
        known = self._present.get(name)
        if known is None:
            present: Bools = np.zeros(capacity, dtype=np.bool_)
            sizes: dict[int, int] = {}
            for row, node in enumerate(nodes):
                if node is not None and name in node.images:
                    present[row] = True
                    sizes[row] = node.images[name]
            if len(self._present) >= self._KEPT:
                self._present.pop(next(iter(self._present)))
            known = self._present[name] = (present, sizes)
        present, sizes = known
        return present, sizes[min(sizes)] if sizes else 0
