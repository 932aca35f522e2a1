"""What the nodes really use: the latest samples, and what was placed on the nodes since.

A pod that has just been placed uses nothing yet, so its requests are added to the use of its node until a sample is
younger than the pod.  A pod is as old as its start or, as long as it has not started, as our knowledge of it.
Nothing is kept before the first samples come.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from moorage.core.model.events import UsageSample
from moorage.core.model.pod import Pod
from moorage.core.model.resources import Requests
from moorage.core.snapshot.amounts import SATURATED, AmountColumn

if TYPE_CHECKING:
    from moorage.core.snapshot.snapshot import Snapshot

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

_NEVER = -math.inf
_NOTHING: Mapping[str, int] = {}


class UsageChange:
    """What new samples have changed: nodes' use at its highest since the samples before, and their age by then.

    For hints, which ask whether some node has come below a limit.
    """

    __slots__ = ("_at", "_knew", "_now", "_peaks", "samples")

    def __init__(
        self,
        samples: UsageSamples,
        now: float,
        at: Floats,
        peaks: Mapping[str, Ints],
        knew: Mapping[str, Bools],
    ) -> None:
        self.samples = samples  # as they are now
        self._now = now
        self._knew = knew
        self._at = at
        self._peaks = peaks

    def was_fresh(self, stale_after: float) -> Bools:
        """The nodes whose sample was not stale right before, shape (capacity,)."""
        return self._now - self._at <= stale_after

    def peak(self, resource: str) -> Ints:
        """The highest use since the samples before, shape (capacity,)."""
        return self._peaks.get(resource, self.samples.nothing)

    def knew(self, resource: str) -> Bools:
        """The nodes whose sample spoke of the resource before, shape (capacity,)."""
        known = self._knew.get(resource)
        return np.zeros(self._at.size, dtype=np.bool_) if known is None else known


class UsageSamples:
    """Samples by row; ``epoch`` counts those taken in.

    ``at`` tells when each row's sample was measured, -inf without one; shape (capacity,).
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.epoch = 0
        self.at: Floats = np.full(snapshot.capacity, _NEVER)
        self.nothing: Ints = np.zeros(snapshot.capacity, dtype=np.int64)
        self._by_name: Mapping[str, UsageSample] = {}
        self._measured: dict[str, Ints] = {}
        self._known: dict[str, Bools] = {}  # which rows' samples speak of the resource
        self._recent: dict[str, AmountColumn] = {}  # requests of pods younger than the sample
        self._young: dict[int, dict[str, tuple[float, Requests]]] = {}  # those pods, by row and uid
        #: Since when the pods were there that have left at ``_left_at``; None: the sample shows them.
        self._left: dict[str, float | None] = {}
        self._left_at = _NEVER
        self._peaks: dict[str, Ints] = {}

    @property
    def kept(self) -> bool:
        """Whether samples have come, so that pods that come and go matter."""
        return self.epoch > 0

    # -- samples ---------------------------------------------------------------------------------

    def apply(self, samples: Mapping[str, UsageSample]) -> UsageChange:
        """Take in the latest samples of all nodes; one that is absent has none any more."""
        snapshot = self.snapshot
        change = UsageChange(
            self,
            snapshot.now,
            self.at,
            self._peaks,
            self._known,
        )
        first = not self.kept
        self.epoch += 1
        self._by_name = samples
        self._set_all([None if node is None else samples.get(node.name) for node in snapshot.nodes])
        if first:
            for row, pods in enumerate(snapshot.pods):
                at = self.at.item(row)
                for pod in pods.values():
                    if pod.started is None or pod.started >= at:
                        self.add(row, pod)
        else:
            for row in self._young:
                self._forget_older(row)
        self._peaks = {resource: self.used(resource).copy() for resource in self._measured}
        return change

    def _set_all(self, samples: Sequence[UsageSample | None]) -> None:
        """The samples of all rows that ever held a node."""
        rows, capacity = len(samples), self.snapshot.capacity
        self.at = np.full(capacity, _NEVER)
        self.at[:rows] = [_NEVER if sample is None else sample.at for sample in samples]
        amounts = [_NOTHING if sample is None else sample.amounts for sample in samples]
        self._measured, self._known = {}, {}
        for resource in dict.fromkeys(resource for each in amounts for resource in each):
            measured = self._measured[resource] = np.zeros(capacity, dtype=np.int64)
            measured[:rows] = [min(each.get(resource, 0), SATURATED - 1) for each in amounts]
            known = self._known[resource] = np.zeros(capacity, dtype=np.bool_)
            known[:rows] = [resource in each for each in amounts]

    def _set(self, row: int, sample: UsageSample | None) -> None:
        amounts = {} if sample is None else sample.amounts
        self.at[row] = _NEVER if sample is None else sample.at
        for resource in amounts.keys() - self._measured.keys():
            self._measured[resource] = np.zeros(self.snapshot.capacity, dtype=np.int64)
            self._known[resource] = np.zeros(self.snapshot.capacity, dtype=np.bool_)
        for resource, column in self._measured.items():
            column[row] = min(amounts.get(resource, 0), SATURATED - 1)
            self._known[resource][row] = resource in amounts

    def _forget_older(self, row: int) -> None:
        """The row's sample shows the use of the pods that are older than it."""
        young = self._young.get(row)
        if not young:
            return
        at = self.at.item(row)
        for uid, (since, requests) in list(young.items()):
            if since < at:
                del young[uid]
                self._count(row, requests, -1)

    def forget(self) -> None:
        """Nobody measures any more: as before the first samples."""
        self.__init__(self.snapshot)  # type: ignore[misc]  # nothing of it is kept

    # -- nodes and pods --------------------------------------------------------------------------

    def node_added(self, row: int, name: str) -> None:
        """A node is on that row now, without pods."""
        self._set(row, self._by_name.get(name))

    def node_dropped(self, row: int) -> None:
        """The row, without pods already, is free."""
        self._set(row, None)
        self._young.pop(row, None)
        for peaks in self._peaks.values():
            peaks[row] = 0

    def add(self, row: int, pod: Pod) -> None:
        """A pod is on that row now."""
        now = self.snapshot.now
        if self._left_at == now and pod.uid in self._left:
            since = self._left.pop(pod.uid)
        else:
            since = now if pod.started is None else min(pod.started, now)
        if since is None or since < self.at.item(row):
            return
        self._young.setdefault(row, {})[pod.uid] = (since, pod.requests)
        self._count(row, pod.requests, 1)

    def remove(self, row: int, pod: Pod) -> None:
        """The pod is gone from that row; if it comes back at once, as after a dry run, it is as old as it was."""
        now = self.snapshot.now
        if self._left_at != now:
            self._left.clear()
            self._left_at = now
        young = self._young.get(row)
        known = young.pop(pod.uid, None) if young else None
        self._left[pod.uid] = None if known is None else known[0]
        if known is not None:
            self._count(row, known[1], -1)

    def _count(self, row: int, requests: Requests, sign: int) -> None:
        for resource, amount in requests.amounts.items():
            if not amount:
                continue
            column = self._recent.get(resource)
            if column is None:
                column = self._recent[resource] = AmountColumn(self.snapshot.capacity)
            column.add(row, sign * amount)
            peaks = self._peaks.get(resource)
            if peaks is not None and sign > 0:
                peaks[row] = max(peaks.item(row), self.used_at(resource, row))

    def grow(self, capacity: int) -> None:
        """Make room for that many rows."""
        old = self.at.size
        self.at = np.concatenate((self.at, np.full(capacity - old, _NEVER)))
        self.nothing = np.zeros(capacity, dtype=np.int64)
        for column in self._recent.values():
            column.grow(capacity)
        more = capacity - old
        self._known = {r: np.concatenate((k, np.zeros(more, np.bool_))) for r, k in self._known.items()}
        self._measured = {r: _longer(column, more) for r, column in self._measured.items()}
        self._peaks = {r: _longer(column, more) for r, column in self._peaks.items()}

    # -- questions -------------------------------------------------------------------------------

    def fresh(self, stale_after: float) -> Bools:
        """The nodes whose sample is at most so many seconds old, shape (capacity,)."""
        return self.snapshot.now - self.at <= stale_after

    def knows(self, resource: str) -> Bools:
        """The nodes whose sample speaks of the resource, however old it is, shape (capacity,)."""
        known = self._known.get(resource)
        return np.zeros(self.at.size, dtype=np.bool_) if known is None else known

    def measured(self, resource: str) -> Ints:
        """The use by the samples alone in base units, shape (capacity,)."""
        column = self._measured.get(resource)
        return self.nothing if column is None else column

    def used(self, resource: str) -> Ints:
        """The use with the requests of pods that the samples do not show yet, in base units, shape (capacity,)."""
        recent = self._recent.get(resource)
        return self.measured(resource) if recent is None else self.measured(resource) + recent.values

    def used_at(self, resource: str, row: int) -> int:
        """The same of one row."""
        recent = self._recent.get(resource)
        return self.measured(resource).item(row) + (0 if recent is None else recent.values.item(row))

    def peak(self, resource: str) -> int:
        """An amount that ``used`` is nowhere larger than."""
        recent = self._recent.get(resource)
        return int(self.measured(resource).max(initial=0)) + (0 if recent is None else recent.peak)

    @property
    def resources(self) -> tuple[str, ...]:
        """The resources that some sample has spoken of."""
        return tuple(self._measured)

    def goes_stale(self, stale_after: float, among: Bools | None = None) -> float | None:
        """The next instant by which a fresh sample, of these nodes, shape (capacity,), is stale; None if all are."""
        fresh = self.fresh(stale_after)
        if among is not None:
            fresh &= among
        if not fresh.any():
            return None
        # Right after the last instant at which it is fresh.
        return float(np.nextafter(self.at[fresh].min() + stale_after, math.inf))

    def stale_count(self, stale_after: float) -> int:
        """How many nodes have no sample that is at most so old."""
        return int(np.count_nonzero(self.snapshot.alive & ~self.fresh(stale_after)))


def _longer(column: Ints, more: int) -> Ints:
    return np.concatenate((column, np.zeros(more, dtype=np.int64)))
