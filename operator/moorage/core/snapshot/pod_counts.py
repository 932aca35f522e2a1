"""Counts of bound pods: the answer to a PodQuery, kept up to date for as long as somebody asks.

Nothing is counted in a namespace that no query in use is about.  A query that asks for a new label key costs one walk
over the pods, and some more work with each of the next questions (``Regrouping``); after that a pod that comes or goes
costs a look-up and one addition for every query that means it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from moorage.core.model.pod import Pod
from moorage.core.model.pod_query import PodQuery
from moorage.core.snapshot.domain_counts import DomainCounts
from moorage.core.snapshot.pod_groups import NamespacePods
from moorage.core.snapshot.regrouping import Regrouping, rows_meant
from moorage.core.snapshot.tallies import Tally, TallyBook
from moorage.core.snapshot.topology import Domains, Scope

if TYPE_CHECKING:
    from moorage.core.snapshot.snapshot import Snapshot


class PodCounts:
    """The tallies in use, the least recently used first to go."""

    #: Bytes of vectors kept at the most.
    LIMIT = 64 * 1024 * 1024
    #: A tally that was not asked for in so many questions is dropped.
    FORGET_AFTER = 1 << 16
    #: Questions between two looks at what could be dropped.
    SWEEP_EVERY = 1 << 10
    #: Tallies that are never dropped: those of the pod at hand are among them.
    KEEP = 64

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._tallies: OrderedDict[PodQuery, Tally] = OrderedDict()
        self._spaces: dict[str, NamespacePods] = {}
        self._common = TallyBook()
        self._common_keys: set[str] = set()
        self._everywhere = False
        self._regroupings: list[Regrouping] = []  # under way, the oldest first
        self._asked = 0
        self._created = 0

    def __len__(self) -> int:
        return len(self._tallies)

    # -- pods ------------------------------------------------------------------------------------

    def add(self, row: int, pod: Pod) -> None:
        """A pod is on that row now."""
        space = self._spaces.get(pod.namespace)
        if space is not None:
            space.count(row, pod)
        elif self._everywhere:
            self._open(pod.namespace).count(row, pod)

    def remove(self, row: int, pod: Pod) -> None:
        """The pod, with the labels it had when it was added, is gone from that row."""
        space = self._spaces.get(pod.namespace)
        if space is not None:
            space.discount(row, pod)

    def grow(self, capacity: int) -> None:
        """Make room for that many rows."""
        for tally in self._tallies.values():
            tally.grow(capacity)

    # -- questions -------------------------------------------------------------------------------

    def tally(self, query: PodQuery) -> Tally:
        """The pods that a query means, live."""
        self._asked += 1
        if self._regroupings and self._regroupings[0].advance(self._snapshot.pods):
            del self._regroupings[0]
        if not self._asked % self.SWEEP_EVERY:
            self._sweep()
        known = self._tallies.get(query)
        if known is not None:
            self._tallies.move_to_end(query)
            known.used = self._asked
            return known
        self._created += 1
        if not self._created % self.KEEP:
            self._sweep()
        self._follow(query)
        tally = Tally(query, self._snapshot.capacity)
        if query.namespaces is None:
            self._common.add(tally)
            spaces = list(self._spaces.values())
        else:
            spaces = [self._spaces[namespace] for namespace in query.namespaces]
            for space in spaces:
                space.book.add(tally)
        for space in spaces:
            space.join(tally)
        self._count_pods(tally, spaces)
        tally.used = self._asked
        self._tallies[query] = tally
        return tally

    def by_domain(self, query: PodQuery, domains: Domains, scope: Scope) -> DomainCounts:
        """The pods that a query means in each domain, of those on the nodes in scope, live."""
        return self.tally(query).by_domain(self._snapshot.topology, domains, scope)

    def _follow(self, query: PodQuery) -> None:
        """See to it that pods are grouped by the keys that the query asks for."""
        keys = {requirement.key for requirement in query.selector.requirements}
        changed: list[NamespacePods] = []
        if query.namespaces is None:
            if self._everywhere and keys <= self._common_keys:
                return
            self._everywhere = True
            self._common_keys |= keys
            for namespace in {pod.namespace for pods in self._snapshot.pods for pod in pods.values()}:
                self._open(namespace)
            changed += self._spaces.values()
        else:
            for namespace in query.namespaces:
                if namespace not in self._spaces:
                    changed.append(self._open(namespace))
                elif not keys <= self._spaces[namespace].keys:
                    changed.append(self._spaces[namespace])
        if changed:
            self._regroup(changed, keys)

    def _regroup(self, changed: Sequence[NamespacePods], keys: set[str]) -> None:
        for space in changed:
            space.tell_apart(keys | self._common_keys)
        regrouping = Regrouping(changed)
        if not regrouping.advance(self._snapshot.pods):
            self._regroupings.append(regrouping)

    def _count_pods(self, tally: Tally, spaces: Iterable[NamespacePods]) -> None:
        """Count the pods of namespaces whose groups are not complete, one by one."""
        names = frozenset(space.name for space in spaces if space.regrouping is not None)
        if names:
            rows = rows_meant(self._snapshot.pods, names, tally.query)
            tally.count_rows(rows)

    def _open(self, namespace: str) -> NamespacePods:
        space = self._spaces.get(namespace)
        if space is None:
            space = self._spaces[namespace] = NamespacePods(namespace, self._common)
            space.tell_apart(self._common_keys)
        return space

    # -- what is no longer asked for -------------------------------------------------------------

    def _sweep(self) -> None:
        """Drop what was not asked for lately, and the oldest of the rest while they are too large."""
        size = sum(tally.nbytes for tally in self._tallies.values())
        droppable = max(0, len(self._tallies) - self.KEEP)
        for tally in list(islice(self._tallies.values(), droppable)):
            if size <= self.LIMIT and tally.used > self._asked - self.FORGET_AFTER:
                break
            size -= tally.nbytes
            self._drop(tally)

    def _drop(self, tally: Tally) -> None:
        del self._tallies[tally.query]
        for group in tally.groups:
            group.tallies.remove(tally)
        if tally.query.namespaces is None:
            self._common.discard(tally)
            if not self._common:
                self._everywhere = False
                self._common_keys.clear()
                spaces = set(self._spaces)
            else:
                spaces = set()
        else:
            spaces = set(tally.query.namespaces)
            for namespace in spaces:
                self._spaces[namespace].book.discard(tally)
        if not self._everywhere:
            for namespace in spaces:
                space = self._spaces[namespace]
                if not space.book:
                    del self._spaces[namespace]
                    if space.regrouping is not None:
                        space.regrouping.leave(space)
