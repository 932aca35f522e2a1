"""What alike pods share: the answers that depend on the pod's spec and one node only.

An entry is kept for each kind of pod seen lately.  The next pod of that kind asks the plugins only
about the rows that changed since.
"""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt

from moorage.core.framework.answers import PreFiltered, scores_of, verdict_of
from moorage.core.framework.interface import FilterPlugin, Reads, ScorePlugin
from moorage.core.model.pod import PodSpec
from moorage.core.snapshot.snapshot import Snapshot
from moorage.core.snapshot.view import Nodes

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

#: Bytes of an entry that are not in its columns: in a small cluster these are most of it.
_AROUND = 8192


class Alike:
    """PreFilter's answers, Filter results and raw scores of one kind of pod, the latter for every row."""

    __slots__ = (
        "_filters",
        "_open",
        "_roomy",
        "_scores",
        "_static_epoch",
        "_usage_epoch",
        "answers",
        "fits",
        "pre",
        "raw",
    )

    def __init__(
        self,
        pre: PreFiltered,
        filters: Sequence[tuple[FilterPlugin[Any], Any]],
        scores: Sequence[tuple[ScorePlugin[Any], Any]],
        snapshot: Snapshot,
    ) -> None:
        self.pre = pre
        self.answers = pre.answers  # of PreFilter, of the plugins that answer alike for alike pods
        self._filters = tuple((plugin, state, Reads.USAGE in plugin.reads) for plugin, state in filters)
        self._scores = tuple((plugin, state, Reads.USAGE in plugin.reads) for plugin, state in scores)
        self.raw: dict[str, Ints] = {}
        self._static_epoch = self._usage_epoch = 0
        self.fits: Bools
        self._open: Bools  # passes the filters that read the node only
        self._roomy: Bools  # passes the filters that read usage
        self._compute(snapshot)

    @property
    def nbytes(self) -> int:
        """Memory held by the columns, and about what the objects around them take."""
        return _AROUND + self.fits.nbytes * 3 + sum(raw.nbytes for raw in self.raw.values())

    def refresh(self, snapshot: Snapshot) -> None:
        """Bring every column up to date with the snapshot."""
        if self.fits.size != snapshot.capacity:
            self._compute(snapshot)
            return
        static, usage = snapshot.static.epoch, snapshot.usage.epoch
        if static == self._static_epoch and usage == self._usage_epoch:
            return
        reshaped = snapshot.static.since(self._static_epoch)
        refilled = snapshot.usage.since(self._usage_epoch)
        if reshaped is None or refilled is None or (reshaped.size + refilled.size) * 4 > snapshot.capacity:
            self._compute(snapshot)
            return
        self._static_epoch, self._usage_epoch = static, usage
        if reshaped.size:
            self._ask(snapshot, reshaped, only_usage=False)
        if refilled.size:
            self._ask(snapshot, refilled, only_usage=True)

    def _compute(self, snapshot: Snapshot) -> None:
        self._static_epoch, self._usage_epoch = snapshot.static.epoch, snapshot.usage.epoch
        self._open = np.zeros(snapshot.capacity, dtype=np.bool_)
        self._roomy = np.zeros(snapshot.capacity, dtype=np.bool_)
        self.fits = np.zeros(snapshot.capacity, dtype=np.bool_)
        self.raw = {p.name: np.zeros(snapshot.capacity, dtype=np.int64) for p, _, _ in self._scores}
        self._ask(snapshot, None, only_usage=False)

    def _ask(self, snapshot: Snapshot, rows: Ints | None, *, only_usage: bool) -> None:
        """Ask the plugins that read what changed about these rows (None: all)."""
        nodes = Nodes(snapshot, rows)
        target: Ints | slice = slice(None) if rows is None else rows
        opened = snapshot.alive[target].copy()
        roomy = np.ones(opened.size, dtype=np.bool_)
        for plugin, state, reads_usage in self._filters:
            if reads_usage:
                roomy &= verdict_of(plugin, state, nodes).fits
            elif not only_usage:
                opened &= verdict_of(plugin, state, nodes).fits
        if not only_usage:
            self._open[target] = opened
        self._roomy[target] = roomy
        self.fits[target] = self._open[target] & roomy
        for scorer, state, reads_usage in self._scores:
            if reads_usage or not only_usage:
                self.raw[scorer.name][target] = scores_of(scorer, state, nodes)


class Likeness:
    """What pods must have in common to be alike: their spec, but for what it says about other pods.

    So the pods of many templates, each spread by a selector of its own, are alike as far as nodes are concerned.
    """

    __slots__ = ("_hash", "_parts")

    def __init__(self, spec: PodSpec) -> None:
        parts = [getattr(spec, name) for name in _PLAIN]
        asked = spec.requests
        self._parts = (
            *parts,
            tuple(asked.amounts.items()),
            asked.scoring_cpu,
            asked.scoring_memory,
            tuple(sorted(spec.node_selector.items())),
        )
        self._hash = hash(self._parts)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Likeness) and self._parts == other._parts)


_PLAIN = tuple(
    field.name
    for field in fields(PodSpec)
    if field.name not in {"requests", "node_selector", "pod_affinity", "spread"}
)


@functools.lru_cache(maxsize=8192)
def _likeness(spec: PodSpec) -> Likeness:
    return Likeness(spec)


class AlikeCache:
    """The entries of the kinds of pods seen last, bounded in memory; ``whose`` tells apart those of several runners."""

    #: Bytes kept at the most.
    LIMIT = 32 * 1024 * 1024

    def __init__(self) -> None:
        self._entries: OrderedDict[tuple[int, Likeness], tuple[Alike, int]] = OrderedDict()
        self._bytes = 0

    def get(self, spec: PodSpec, snapshot: Snapshot, whose: int = 0) -> Alike | None:
        """The entry of pods like those of a spec, up to date with the snapshot; None if there is none."""
        key = whose, _likeness(spec)
        known = self._entries.get(key)
        if known is None:
            return None
        self._entries.move_to_end(key)
        entry, size = known
        entry.refresh(snapshot)
        if entry.nbytes != size:  # the snapshot has grown
            self._entries[key] = (entry, entry.nbytes)
            self._bytes += entry.nbytes - size
            self._make_room()
        return entry

    def put(self, spec: PodSpec, entry: Alike, whose: int = 0) -> None:
        """Keep an entry; the longest unused ones make room."""
        size = entry.nbytes
        self._entries[whose, _likeness(spec)] = (entry, size)
        self._bytes += size
        self._make_room()

    def _make_room(self) -> None:
        while self._bytes > self.LIMIT and len(self._entries) > 1:
            _, (_, dropped) = self._entries.popitem(last=False)
            self._bytes -= dropped
