"""Many nodes judged at once, each as if some of its pods were gone, or others were there.

What counts for most Filter plugins is a sum over pods: what they ask for, how many of them are in the node's domain.
Such a plugin says what each pod adds to the sums (``Balance``), and how a node fares with sums that are changed
by so much; then any number of nodes are judged together without touching the snapshot.  Each node is on trial for
itself: what happens to the pods of one does not show on the others.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, compress
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from moorage.core.framework.answers import PluginError, guarded, rejection_at, verdict_of
from moorage.core.framework.interface import FilterPlugin, Reads, Verdict
from moorage.core.model.decision import Rejection
from moorage.core.model.pod import Pod
from moorage.core.snapshot.ranking import RankedPods, amounts_of
from moorage.core.snapshot.snapshot import Snapshot
from moorage.core.snapshot.view import Nodes

S = TypeVar("S")
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


class PodsOnNodes:
    """P pods, each of them on one of the M nodes on trial: ``at[p]`` is the node's index, ascending."""

    def __init__(self, pods: Sequence[Pod], at: Ints) -> None:
        self.pods = pods
        self.at = at

    def __len__(self) -> int:
        return len(self.pods)

    def amounts(self, resource: str) -> Ints:
        """What each pod asks of a resource in base units, shape (P,)."""
        asked = [pod.requests.amounts.get(resource, 0) for pod in self.pods]
        return np.fromiter(asked, np.int64, len(asked))

    def weighed(self, weigh: Callable[[Pod], int], where: Bools | None = None) -> Ints:
        """A figure of each pod, shape (P,); 0 without asking on the nodes that are not in ``where``, shape (M,)."""
        if where is None:
            return np.fromiter(map(weigh, self.pods), np.int64, len(self.pods))
        figures = np.zeros(len(self.pods), dtype=np.int64)
        asked = np.flatnonzero(where[self.at])
        figures[asked] = [weigh(self.pods[index]) for index in asked.tolist()]
        return figures


#: No pods on any node.
NOBODY = PodsOnNodes((), np.zeros(0, dtype=np.int64))


class LesserPods(PodsOnNodes):
    """Of the ranked pods of each node those below a priority, the most important of a node first.

    With a finite ``latest`` only those that had started by then.
    """

    def __init__(self, ranked: Sequence[RankedPods], below: int, latest: float = math.inf) -> None:
        self._ranked = ranked
        sizes = np.fromiter([len(each.pods) for each in ranked], np.int64, len(ranked))
        at = np.repeat(np.arange(len(ranked), dtype=np.int64), sizes)
        pods: Iterable[Pod] = chain.from_iterable([each.pods for each in ranked])
        priorities = _joined([each.priorities for each in ranked], np.int64)
        lesser: Bools = priorities < below
        if latest != math.inf:
            lesser &= _joined([each.starts for each in ranked], np.float64) <= latest
        self._lesser = None if lesser.all() else lesser
        if self._lesser is not None:
            pods, at = compress(pods, lesser), at[lesser]
        super().__init__(list(pods), at)
        self.priorities: Ints = self._own(priorities)

    def amounts(self, resource: str) -> Ints:
        """What each pod asks of a resource in base units, shape (P,)."""
        amounts: Ints = self._own(_joined(amounts_of(self._ranked, resource), np.int64))
        return amounts

    @property
    def starts(self) -> Floats:
        """When each pod started, shape (P,); infinity if it has not."""
        starts: Floats = self._own(_joined([each.starts for each in self._ranked], np.float64))
        return starts

    def _own(self, column: Any) -> Any:
        return column if self._lesser is None else column[self._lesser]


def _joined(columns: list[Any], dtype: Any) -> Any:
    return np.concatenate(columns) if columns else np.zeros(0, dtype=dtype)


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """The M nodes on trial, pods of theirs that may go and other pods that come, all of which plugins may weigh."""

    snapshot: Snapshot
    rows: Ints  # (M,)
    leaving: PodsOnNodes
    coming: PodsOnNodes

    @property
    def nodes(self) -> Nodes:
        """The nodes as they are."""
        return Nodes(self.snapshot, self.rows)

    def by_row(self, figures: Mapping[int, int]) -> Ints:
        """Figures of a few rows, 0 elsewhere, as a column of the nodes, shape (M,)."""
        column = np.zeros(self.snapshot.capacity, dtype=np.int64)
        for row, figure in figures.items():
            column[row] = figure
        return column[self.rows]

    def counted(self) -> tuple[Ints, Ints]:
        """1 for each pod that leaves, and for each that comes."""
        return np.ones(len(self.leaving), dtype=np.int64), np.ones(len(self.coming), dtype=np.int64)

    def weighed(self, weigh: Callable[[Pod], int], where: Bools | None = None) -> tuple[Ints, Ints]:
        """A figure of each pod that leaves, and of each that comes; of the former only ``where`` it matters."""
        return self.leaving.weighed(weigh, where), self.coming.weighed(weigh)


@dataclass(frozen=True, slots=True, eq=False)
class Balance:
    """What pods add to a plugin's F sums, and its judgement of nodes whose sums are changed.

    ``leaving`` (F, P) and ``coming`` (F, Q) are what each pod adds.  ``judge`` is given changes (F, m) and the
    indices of m nodes, (m,).  Without sums (F = 0) the verdict on a node is always the same.  Of the nodes in
    ``unsure``, shape (M,), the plugin cannot tell this way.
    """

    leaving: Ints
    coming: Ints
    judge: Callable[[Ints, Ints], Verdict]
    unsure: Bools | None = None

    @classmethod
    def of(
        cls,
        sums: Sequence[tuple[Ints, Ints]],
        judge: Callable[[Ints, Ints], Verdict],
        unsure: Bools | None = None,
    ) -> Balance:
        """For each sum the figures of the pods that leave and of those that come; at least one sum."""
        return cls(np.stack([s[0] for s in sums]), np.stack([s[1] for s in sums]), judge, unsure)

    @classmethod
    def fixed(cls, plugin: FilterPlugin[S], state: S, trial: Trial, unsure: Bools | None = None) -> Balance:
        """For a plugin to which the pods on a node do not matter."""

        def judge(change: Ints, at: Ints) -> Verdict:
            return verdict_of(plugin, state, Nodes(trial.snapshot, trial.rows[at]))

        leaving = np.zeros((0, len(trial.leaving)), dtype=np.int64)
        return cls(leaving, np.zeros((0, len(trial.coming)), dtype=np.int64), judge, unsure)


@runtime_checkable
class TrialPlugin(FilterPlugin[S], Protocol[S]):
    """A Filter plugin that can judge nodes on trial.

    Its verdict must be what ``filter`` says once the snapshot, and the state by ``with_pods``, show the change.
    """

    def trial(self, state: S, trial: Trial) -> Balance:
        """What the pods add to the plugin's sums, and how it judges."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Refusal:
    """Nodes that a plugin was the first to refuse: their indices (m,) and its verdict on those among others."""

    plugin: str
    at: Ints
    verdict: Verdict
    within: Ints  # their positions in the verdict

    def words(self) -> Iterator[tuple[str, int]]:
        """Each reason against them, and against how many."""
        for reason, failed in zip(self.verdict.reasons, self.verdict.failed, strict=True):
            number = int(np.count_nonzero(failed[self.within]))
            if number:
                yield reason.text, number

    def rejections(self) -> Iterator[tuple[int, Rejection]]:
        """The words about each of them, by its index."""
        known: dict[tuple[bool, ...], Rejection | None] = {}  # most nodes are refused in the same words
        columns = map(tuple, self.verdict.failed[:, self.within].T.tolist())
        for index, place, column in zip(self.at.tolist(), self.within.tolist(), columns, strict=True):
            if column not in known:
                known[column] = rejection_at(self.plugin, self.verdict, place)
            rejection = known[column]
            if rejection is not None:
                yield index, rejection


class Bench:
    """The plugins of one cycle, ready to judge the nodes of a trial.

    Nodes about which some plugin is unsure are found out on the way (``unsure``), after those that come before it in
    order have had their say.
    """

    def __init__(self, active: Sequence[tuple[FilterPlugin[Any], Any]], trial: Trial) -> None:
        self.trial = trial
        self._plugins: list[tuple[str, Balance | None, slice]] = []
        leaving: list[Ints] = []
        coming: list[Ints] = []
        start = 0
        for plugin, state in active:
            balance = _balance(plugin, state, trial)
            stop = start
            if balance is not None:
                stop += balance.leaving.shape[0]
                leaving.append(balance.leaving)
                coming.append(balance.coming)
            self._plugins.append((plugin.name, balance, slice(start, stop)))
            start = stop
        number = trial.rows.size
        self.leaving: Ints = _stacked(leaving, len(trial.leaving))  # (F, P)
        #: What those that come add to each node, shape (F, M).
        self.coming: Ints = np.zeros((start, number), dtype=np.int64)
        come = _stacked(coming, len(trial.coming))
        for index in range(start):
            np.add.at(self.coming[index], trial.coming.at, come[index])
        self._visited: Bools = np.zeros(number, dtype=np.bool_)
        self._visited[trial.coming.at] = True

    def refusals(self, change: Ints, at: Ints) -> tuple[list[Refusal], Ints, Ints]:
        """(who refuses which of these nodes first, the nodes that all accept, those about which one is unsure).

        ``at`` (m,) are indices of nodes and ``change`` (F, m) is by how much their sums differ.
        """
        refusals: list[Refusal] = []
        unsure: list[Ints] = []
        here = np.arange(at.size, dtype=np.int64)
        for name, balance, sums in self._plugins:
            if not here.size:
                break
            if balance is None:
                unsure.append(at[here])
                here = here[:0]
                break
            if balance.unsure is not None:
                doubt = balance.unsure[at[here]]
                unsure.append(at[here[doubt]])
                here = here[~doubt]
            verdict = _judged(name, balance, change[sums, here], at[here])
            within = np.flatnonzero(~verdict.fits)
            if within.size:
                refusals.append(Refusal(name, at[here[within]], verdict, within))
                here = here[verdict.fits]
        return refusals, at[here], np.concatenate(unsure) if unsure else at[:0]

    def with_coming(self, change: Ints, at: Ints) -> tuple[Ints, Ints]:
        """Of these nodes those to which pods come: the changes with these pods, and the nodes' indices."""
        visited = np.flatnonzero(self._visited[at])
        return change[:, visited] + self.coming[:, at[visited]], at[visited]

    def fit(self, change: Ints, at: Ints) -> Bools:
        """Whether the pod fits these nodes, shape (m,), with the pods that come and without.

        To be asked only about nodes that fit, without doubt, by another change of sums: what does not depend on
        sums is not judged again.
        """
        fits = self._fit(change, at)
        if self._visited.any():
            visited = np.flatnonzero(self._visited[at] & fits)
            if visited.size:
                there = at[visited]
                fits[visited] = self._fit(change[:, visited] + self.coming[:, there], there)
        return fits

    def _fit(self, change: Ints, at: Ints) -> Bools:
        fits: Bools = np.ones(at.size, dtype=np.bool_)
        for name, balance, sums in self._plugins:
            if balance is not None and sums.stop > sums.start:
                fits &= _judged(name, balance, change[sums], at).fits
        return fits


@functools.lru_cache(maxsize=256)
def _can_try(kind: type) -> bool:
    """Whether plugins of this class are TrialPlugins; asking an instance costs as much as a trial."""
    return callable(getattr(kind, "trial", None))


def _balance(plugin: FilterPlugin[Any], state: Any, trial: Trial) -> Balance | None:
    """None: the plugin cannot judge nodes on trial."""
    if _can_try(type(plugin)):
        made: Balance = guarded(plugin, "Filter", plugin.trial, state, trial)  # type: ignore[attr-defined]
        return made
    return Balance.fixed(plugin, state, trial) if plugin.reads == Reads.NODE else None


def _judged(name: str, balance: Balance, change: Ints, at: Ints) -> Verdict:
    try:
        return balance.judge(change, at)
    except PluginError:
        raise
    except Exception as error:  # foreign code, as in ``guarded``
        raise PluginError(name, "Filter", f"{type(error).__name__}: {error}") from error


def _stacked(columns: list[Ints], width: int) -> Ints:
    return np.concatenate(columns) if columns else np.zeros((0, width), dtype=np.int64)


def pods_on(pods: Mapping[int, Sequence[Pod]], index_of: Mapping[int, int]) -> PodsOnNodes:
    """Pods by row, those of them whose row is on trial; ``index_of`` gives the node's index by row."""
    chosen = sorted((index_of[row], row) for row in pods if row in index_of)
    at = np.repeat(
        np.array([index for index, _ in chosen], dtype=np.int64),
        np.array([len(pods[row]) for _, row in chosen], dtype=np.int64),
    )
    return PodsOnNodes([pod for _, row in chosen for pod in pods[row]], at)


def by_labels(means: Callable[[Pod], bool]) -> Callable[[Pod], int]:
    """1 for pods of which that is true, which must depend on a pod's namespace and labels alone, and 0 for others.

    Pods that share their labels are compared once; the pods must outlive the answer.
    """
    known: dict[tuple[str, int], int] = {}

    def weigh(pod: Pod) -> int:
        key = pod.namespace, id(pod.labels)
        found = known.get(key)
        if found is None:
            found = known[key] = int(means(pod))
        return found

    return weigh
