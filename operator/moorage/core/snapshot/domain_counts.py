"""How many pods of some kind are in each domain, kept up to date pod by pod."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from moorage.core.snapshot.topology import Domains, Scope

Ints = npt.NDArray[np.int64]
Counts = npt.NDArray[np.int32]


class DomainCounts:
    """Pods by domain of one topology key, on the nodes of a scope (None: on all).

    ``values`` has the shape (size + 1,); its last element counts pods on nodes without the label.  ``total`` leaves
    these out.  Both are live: a pod that comes or goes shows at once, also to a plugin that holds this object.
    """

    __slots__ = ("_mask", "domains", "total", "values")

    def __init__(self, domains: Domains, scope: Scope | None, values: Ints) -> None:
        self.domains = domains
        self._mask = None if scope is None or scope.everywhere else scope.mask
        self.values = values
        self.total = int(values[:-1].sum())

    @classmethod
    def of_rows(cls, domains: Domains, rows: Mapping[int, int]) -> DomainCounts:
        """Add up sparse counts by row."""
        values = domains.zeros()
        if len(rows) > 32:
            at = np.fromiter(rows.keys(), dtype=np.intp, count=len(rows))
            number = np.fromiter(rows.values(), dtype=np.int64, count=len(rows))
            np.add.at(values, domains.ids[at], number)
        else:
            for row, count in rows.items():
                values[domains.ids.item(row)] += count
        return cls(domains, None, values)

    @classmethod
    def of_column(cls, domains: Domains, scope: Scope, counts: Counts) -> DomainCounts:
        """Add up a column of counts, shape (capacity,)."""
        weights = counts if scope.everywhere else counts * scope.mask
        sums = np.bincount(domains.ids, weights=weights, minlength=domains.size + 1)
        return cls(domains, scope, sums.astype(np.int64))  # exact: far below 2**53

    def add(self, row: int, change: int) -> None:
        """That many pods more on a row; of no effect once the layout has changed, which calls for a new count."""
        domains = self.domains
        if domains.stale or (self._mask is not None and not self._mask[row]):
            return
        at = domains.ids.item(row)
        self.values[at] += change
        if at < domains.size:
            self.total += change
