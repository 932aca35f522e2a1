"""Tallies: for each question about bound pods that is in use, the number of pods on every row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from moorage.core.model.pod_query import PodQuery
from moorage.core.snapshot.domain_counts import DomainCounts
from moorage.core.snapshot.selector_index import SelectorIndex
from moorage.core.snapshot.topology import Domains, Scope, Topology

if TYPE_CHECKING:
    from moorage.core.snapshot.pod_groups import PodGroup

Counts = npt.NDArray[np.int32]


class CountColumn:
    """Pods of some kind, by row (``counts``, shape (capacity,)) and by domain, up to date pod by pod."""

    __slots__ = ("_by_domain", "_layout", "counts")

    def __init__(self, capacity: int) -> None:
        self.counts: Counts = np.zeros(capacity, dtype=np.int32)
        self._by_domain: dict[tuple[str, Scope], DomainCounts] = {}
        self._layout = -1

    @property
    def nbytes(self) -> int:
        """Memory held by the vectors."""
        return self.counts.nbytes + sum(counts.values.nbytes for counts in self._by_domain.values())

    def add(self, row: int, change: int) -> None:
        """That many pods more on a row."""
        self.counts[row] += change
        if self._by_domain:
            for counts in self._by_domain.values():
                counts.add(row, change)

    def grow(self, capacity: int) -> None:
        """Make room for that many rows."""
        grown = np.zeros(capacity, dtype=np.int32)
        grown[: self.counts.size] = self.counts
        self.counts = grown

    def by_domain(self, topology: Topology, domains: Domains, scope: Scope) -> DomainCounts:
        """The pods in each domain, of those on the nodes in scope."""
        if self._layout != topology.layout:
            self._layout = topology.layout
            self._by_domain.clear()
        found = self._by_domain.get((domains.key, scope))
        if found is None:
            for key in [key for key in self._by_domain if key[1].dropped]:
                del self._by_domain[key]
            found = DomainCounts.of_column(domains, scope, self.counts)
            self._by_domain[domains.key, scope] = found
        return found


class Tally(CountColumn):
    """The pods that one query means.

    ``groups`` are the pod groups that the query means: kept so that they can be told when the tally goes.
    """

    __slots__ = ("groups", "query", "used")

    def __init__(self, query: PodQuery, capacity: int) -> None:
        super().__init__(capacity)
        self.query = query
        self.groups: dict[PodGroup, None] = {}
        self.used = 0  # when it was asked for last, in the keeper's count

    def add_rows(self, rows: Mapping[int, int]) -> None:
        """Take in a group's counts; only before anybody has looked."""
        counts = self.counts
        if len(rows) > 32:
            at = np.fromiter(rows.keys(), dtype=np.intp, count=len(rows))
            counts[at] += np.fromiter(rows.values(), dtype=np.int32, count=len(rows))
        else:
            for row, count in rows.items():
                counts[row] += count

    def count_rows(self, rows: Sequence[int]) -> None:
        """Take in a pod on each of these rows; only before anybody has looked."""
        if rows:
            self.counts += np.bincount(np.array(rows, dtype=np.intp), minlength=self.counts.size).astype(
                np.int32
            )


class TallyBook:
    """The tallies that concern some namespaces: looked up by query, and by the labels of a group of pods."""

    __slots__ = ("_index",)

    def __init__(self) -> None:
        self._index: SelectorIndex[Tally] = SelectorIndex()

    def __len__(self) -> int:
        return len(self._index)

    def add(self, tally: Tally) -> None:
        """A tally is in use from now on."""
        self._index.add(tally, tally.query.selector)

    def discard(self, tally: Tally) -> None:
        """A tally is no longer in use."""
        self._index.discard(tally)

    def meaning(self, namespace: str, labels: Mapping[str, str], *, terminating: bool) -> list[Tally]:
        """The tallies whose query means pods of that namespace, those labels, dying or not."""
        return [
            tally
            for tally in self._index.candidates(labels)
            if (tally.query.terminating or not terminating) and tally.query.matches(namespace, labels)
        ]
