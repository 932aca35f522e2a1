"""The eviction of lower-priority pods, tried on all nodes at once.

The pods of a node are spared one after the other, as in ``dry_run``, but the first of all nodes together, then the
second, and so on; nothing is taken off the snapshot.  Nodes about which a plugin cannot tell this way are left over.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import compress
from typing import overload

import numpy as np
import numpy.typing as npt

from moorage.core.framework.budgets import NO_BUDGET, SEVERAL, Budgets
from moorage.core.framework.dry_run import NO_VICTIMS, nobody_goes
from moorage.core.framework.post_filter import PRIORITY_OFFSET, Candidate, FailedAttempt
from moorage.core.framework.preemption_guards import NO_GUARDS, Guards
from moorage.core.framework.trials import Bench, LesserPods, Refusal, Trial, pods_on
from moorage.core.model.pod import Pod
from moorage.core.snapshot.snapshot import Snapshot

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


class DryRuns:
    """What evictions on these nodes come to; ``left_over`` are the rows about which this way cannot tell.

    Raises PluginError.
    """

    def __init__(
        self, pod: Pod, attempt: FailedAttempt, rows: Ints, budgets: Budgets, guards: Guards = NO_GUARDS
    ) -> None:
        snapshot = attempt.runner.snapshot
        among = rows.tolist()
        below = guards.below(pod)
        ranked = list(zip(among, snapshot.ranking.at(among), strict=True))
        ranked = [each for each in ranked if each[1].pods and each[1].pods[-1].spec.priority < below]
        latest = guards.latest_start(snapshot.now)
        self._lesser = LesserPods([pods for _, pods in ranked], below, latest)  # P of them
        some = np.bincount(self._lesser.at, minlength=len(ranked)) > 0
        if not some.all():
            ranked = [each for each, has_some in zip(ranked, some.tolist(), strict=True) if has_some]
            self._lesser = LesserPods([pods for _, pods in ranked], below, latest)
        self._without = rows.size - len(ranked)
        self._rows: Ints = np.array([row for row, _ in ranked], dtype=np.int64)  # (M,)
        self._counts: Ints = np.bincount(self._lesser.at, minlength=len(ranked))  # (M,)
        self._starts: Ints = np.cumsum(self._counts) - self._counts  # (M,)
        self._snapshot = snapshot
        self._budgets = budgets
        self._guards = guards
        self._refusals: list[Refusal] = []
        self._forbidden: Counter[str] = Counter()
        self._victims: Bools = np.zeros(len(self._lesser), dtype=np.bool_)  # (P,)
        self._broken: Bools | None = None  # (P,)
        self._open: Ints = np.zeros(0, dtype=np.int64)
        self.left_over: Ints = self._rows[:0]
        if ranked:
            index_of = {row: i for i, row in enumerate(self._rows.tolist())} if attempt.nominated else {}
            trial = Trial(snapshot, self._rows, self._lesser, pods_on(attempt.nominated, index_of))
            self._run(Bench(attempt.pre.active, trial))

    # -- the dry runs ----------------------------------------------------------------------------

    def _run(self, bench: Bench) -> None:
        relief = np.add.reduceat(bench.leaving, self._starts, axis=1)  # (F, M): what is gone, at first all
        open_: Ints = np.arange(self._rows.size, dtype=np.int64)
        change, visited = bench.with_coming(-relief, open_)
        refusals, accepted, unsure = bench.refusals(change, visited)
        out = np.zeros(open_.size, dtype=np.bool_)
        out[visited] = True
        out[accepted] = False
        open_ = np.flatnonzero(~out)
        more, open_, unsure_too = bench.refusals(-relief[:, open_], open_)
        self._refusals += refusals + more
        self.left_over = self._rows[np.sort(np.concatenate((unsure, unsure_too)))]
        self._open = open_
        if open_.size:
            self._spare(bench, relief)
            if self._guards.limiting:
                self._forbid()

    def _spare(self, bench: Bench, relief: Ints) -> None:
        order = self._order()
        counts, starts, leaving = self._counts, self._starts, bench.leaving
        at = self._open
        for number in range(int(counts[at].max())):
            at = at[counts[at] > number]
            pods = starts[at] + number
            if order is not None:
                pods = order[pods]
            less = relief[:, at] - leaving[:, pods]
            fits = bench.fit(-less, at)
            relief[:, at[fits]] = less[:, fits]
            self._victims[pods[~fits]] = True

    def _forbid(self) -> None:
        """Drop the nodes whose victims the guards do not allow."""
        allowed = np.ones(self._rows.size, dtype=np.bool_)
        for index in np.unique(self._lesser.at[self._victims]).tolist():
            start, stop = int(self._starts[index]), int(self._starts[index] + self._counts[index])
            victims = list(compress(self._lesser.pods[start:stop], self._victims[start:stop]))
            reasons = self._guards.against(victims, self._budgets)
            if reasons:
                self._forbidden.update(reasons)
                allowed[index] = False
        self._victims &= allowed[self._lesser.at]
        self._open = self._open[allowed[self._open]]

    def _order(self) -> Ints | None:
        """The pods in the order in which they are spared: those first whose eviction breaks a budget."""
        guarding = self._budgets.guarding(self._lesser.pods)
        if (guarding == NO_BUDGET).all():
            return None
        at = self._lesser.at
        guarded = np.flatnonzero(guarding >= 0)
        # Of the pods of a node that one budget guards, all but the first so many break it.
        group = at[guarded] * (guarding.max() + 1) + guarding[guarded]
        by_group = np.argsort(group, kind="stable")
        grouped = group[by_group]
        first = np.searchsorted(grouped, grouped)
        broken = np.zeros(len(self._lesser), dtype=np.bool_)
        rank = np.arange(grouped.size) - first
        broken[guarded[by_group]] = rank >= self._budgets.allowed()[guarding[guarded[by_group]]]
        # Where a pod has several, they depend on each other.
        for index in np.unique(at[guarding == SEVERAL]).tolist():
            start = int(self._starts[index])
            stop = start + int(self._counts[index])
            broken[start:stop] = self._budgets.broken(self._lesser.pods[start:stop])
        self._broken = broken
        return np.lexsort((~broken, at)) if broken.any() else None

    # -- the outcome -----------------------------------------------------------------------------

    @property
    def against(self) -> Counter[str]:
        """Why the nodes that are no candidates are none, those left over excepted: how many for each reason."""
        counts: Counter[str] = Counter()
        if self._without:
            counts[NO_VICTIMS] = self._without
        for refusal in self._refusals:
            for text, number in refusal.words():
                counts[text] += number
        counts.update(self._forbidden)
        spared = np.ones(self._rows.size, dtype=np.bool_)
        spared[self._lesser.at[self._victims]] = False
        for row in self._rows[self._open[spared[self._open]]].tolist():
            counts[nobody_goes(self._snapshot.name_at(row))] += 1
        return counts

    def found(self) -> FoundCandidates | None:
        """The candidates among the nodes, None if there are none."""
        if not self._victims.any():
            return None
        return FoundCandidates(self._snapshot, self._rows, self._lesser, self._victims, self._broken)


class FoundCandidates(Sequence[Candidate]):
    """C candidates in order of their rows, each made when somebody looks at it."""

    def __init__(
        self, snapshot: Snapshot, rows: Ints, lesser: LesserPods, victims: Bools, broken: Bools | None
    ) -> None:
        chosen = np.flatnonzero(victims)
        at = lesser.at[chosen]
        first = np.flatnonzero(np.concatenate(([True], at[1:] != at[:-1])))
        self.rows: Ints = rows[at[first]]  # (C,)
        self._names = snapshot.name_at
        self._pods, self._chosen = lesser.pods, chosen
        self._bounds = [*first.tolist(), chosen.size]
        if broken is None:
            self._violations: Ints = np.zeros(first.size, dtype=np.int64)
        else:
            self._violations = np.add.reduceat(broken[chosen].astype(np.int64), first)
        priorities = lesser.priorities[chosen]
        numbers = np.diff(self._bounds)
        top = priorities[first]  # the most important comes first
        starts = np.where(priorities == np.repeat(top, numbers), lesser.starts[chosen], math.inf)
        self._harm: tuple[Ints | Floats, ...] = (
            self._violations,
            top,
            np.add.reduceat(priorities + PRIORITY_OFFSET, first),
            numbers,
            -np.minimum.reduceat(starts, first),
        )

    def __len__(self) -> int:
        return self.rows.size

    @overload
    def __getitem__(self, index: int) -> Candidate: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Candidate]: ...

    def __getitem__(self, index: int | slice) -> Candidate | Sequence[Candidate]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        place = range(len(self))[index]
        chosen = self._chosen[self._bounds[place] : self._bounds[place + 1]].tolist()
        victims = tuple(self._pods[number] for number in chosen)
        return Candidate(self._names(int(self.rows[place])), victims, int(self._violations[place]))

    def best(self) -> Sequence[int]:
        """The indices of the candidates that the rules prefer to all others and cannot tell apart."""
        best = np.arange(len(self))
        for harm in self._harm:
            figures = harm[best]
            best = best[figures == figures.min()]
        return best.tolist()
