"""The pods that each policy selects, counted by row: what pools, limits and spread of policies ask for.

Who selects what is the policies' own affair: a function says for a pod which policies select it.  Its answer is
written down with the pod, so that the pod is taken off the counts to which it was added.  Pods that are being deleted
count until they have gone; how many these are is counted apart, for questions that leave them out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from moorage.core.model.pod import Pod
from moorage.core.model.policy import PolicyRef
from moorage.core.snapshot.tallies import CountColumn
from moorage.core.snapshot.topology import Domains, Scope

if TYPE_CHECKING:
    from moorage.core.snapshot.snapshot import Snapshot

Ints = npt.NDArray[np.int64]

#: The policies that select a pod.  Its answer for a pod may change only together with a call of ``track``.
Selects = Callable[[Pod], tuple[PolicyRef, ...]]


def _nobody(pod: Pod) -> tuple[PolicyRef, ...]:
    return ()


class SelectedCounts:
    """One policy's pods on the nodes: ``pods`` are all, ``dying`` those of them that are being deleted."""

    __slots__ = ("dying", "pods", "total")

    def __init__(self, capacity: int) -> None:
        self.pods = CountColumn(capacity)
        self.dying = CountColumn(capacity)
        self.total = 0  # of ``pods``

    def add(self, row: int, pod: Pod, change: int) -> None:
        """The pod came to that row (1) or left it (-1)."""
        self.total += change
        self.pods.add(row, change)
        if pod.deleting:
            self.dying.add(row, change)


class SelectedPods:
    """The counts of the policies that are tracked; while none is, nothing is done for a pod that comes or goes."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._selects: Selects = _nobody
        self._counts: dict[PolicyRef, SelectedCounts] = {}
        self._selected_by: dict[str, tuple[PolicyRef, ...]] = {}  # by uid, of pods on a row

    # -- which policies --------------------------------------------------------------------------

    @property
    def tracked(self) -> bool:
        """Whether any policy is."""
        return bool(self._counts)

    def follow(self, selects: Selects) -> None:
        """Ask this function from now on; what is tracked is counted anew."""
        self._selects = selects
        if self._counts:
            self.track(*self._counts)

    def track(self, *refs: PolicyRef) -> None:
        """Count the pods that these policies select, anew if they are tracked already.

        To be called with all policies whose selections have changed, before a pod comes or goes.  One walk over
        the pods on nodes, however many policies there are.
        """
        if not refs:
            return
        capacity = self._snapshot.capacity
        fresh = {ref: SelectedCounts(capacity) for ref in refs}
        self._counts.update(fresh)
        selects, selected_by = self._selects, self._selected_by
        for row, pods in enumerate(self._snapshot.pods):
            for uid, pod in pods.items():
                found = selects(pod)
                if not found:
                    selected_by.pop(uid, None)
                    continue
                selected_by[uid] = found
                for ref in found:
                    counts = fresh.get(ref)
                    if counts is not None:
                        counts.add(row, pod, 1)

    def drop(self, ref: PolicyRef) -> None:
        """The policy's pods are no longer counted; nothing happens if they are not."""
        self._counts.pop(ref, None)
        if not self._counts:
            self._selected_by.clear()

    # -- pods ------------------------------------------------------------------------------------

    def add(self, row: int, pod: Pod) -> None:
        """A pod is on that row now."""
        refs = self._selects(pod)
        if refs:
            self._selected_by[pod.uid] = refs
            self._count(refs, row, pod, 1)

    def remove(self, row: int, pod: Pod) -> None:
        """The pod, as it was last shown, is gone from that row."""
        refs = self._selected_by.pop(pod.uid, None)
        if refs:
            self._count(refs, row, pod, -1)

    def refresh(self, row: int, before: Pod, pod: Pod) -> None:
        """The pod on that row has another description."""
        refs = self._selects(pod)
        if refs != self._selected_by.get(pod.uid, ()) or before.deleting != pod.deleting:
            self.remove(row, before)
            self.add(row, pod)

    def _count(self, refs: tuple[PolicyRef, ...], row: int, pod: Pod, change: int) -> None:
        for ref in refs:
            counts = self._counts.get(ref)
            if counts is not None:
                counts.add(row, pod, change)

    def grow(self, capacity: int) -> None:
        """Make room for that many rows."""
        for counts in self._counts.values():
            counts.pods.grow(capacity)
            counts.dying.grow(capacity)

    # -- questions -------------------------------------------------------------------------------

    def of(self, ref: PolicyRef) -> SelectedCounts:
        """One policy's pods, live; raises LookupError if they are not counted."""
        counts = self._counts.get(ref)
        if counts is None:
            raise LookupError(f"the pods of policy {ref.key} are not counted")
        return counts

    def total(self, ref: PolicyRef) -> int:
        """How many pods on nodes the policy selects; raises LookupError as ``of``."""
        return self.of(ref).total

    def by_domain(self, ref: PolicyRef, domains: Domains, scope: Scope, *, dying: bool) -> Ints:
        """One policy's pods by domain, of those on the nodes in scope, shape (size + 1,); do not write.

        ``dying``: also those that are being deleted.  Raises LookupError as ``of``.
        """
        counts, topology = self.of(ref), self._snapshot.topology
        values = counts.pods.by_domain(topology, domains, scope).values
        return values if dying else values - counts.dying.by_domain(topology, domains, scope).values
