"""Calls the plugins of one profile and puts their answers together."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from moorage.core.framework.alike import Alike, AlikeCache
from moorage.core.framework.answers import PluginError, PreFiltered, guarded, rejection_at, verdict_of
from moorage.core.framework.diagnosis import Diagnosis
from moorage.core.framework.interface import (
    BindPlugin,
    FilterPlugin,
    LastFilterPlugin,
    LateFilterPlugin,
    Narrowed,
    OwnScalePlugin,
    PermitPlugin,
    Plugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    QueueSortPlugin,
    Reads,
    Rejected,
    ReservePlugin,
    ScorePlugin,
    Skip,
    StatefulFilterPlugin,
    TimedPlugin,
    Verdict,
)
from moorage.core.framework.points import Point, Points, at_point
from moorage.core.framework.trials import NOBODY, Bench, Trial, pods_on
from moorage.core.model.cluster_event import Action, Resource, WakesOn
from moorage.core.model.decision import Code, Rejection
from moorage.core.model.extender import Extender
from moorage.core.model.pod import Pod
from moorage.core.snapshot.snapshot import Snapshot
from moorage.core.snapshot.view import Nodes

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


#: So few nodes with nominated pods are judged one by one.
_FEW = 4

#: Every change of every kind.
_ANYTHING = tuple(WakesOn(resource, ~Action(0)) for resource in Resource)


@dataclass(frozen=True, slots=True)
class Screened:
    """The nodes that can take the pod, shape (capacity,), and what scoring can use of the work done."""

    feasible: Bools
    pre: PreFiltered
    alike: Alike | None


class Runner:
    """One profile's plugins, sorted by extension point, working on one snapshot.

    ``points`` says which plugins run at a point, and in which order, where it is not all of them in theirs.
    ``cache`` may be shared by runners, so that together they keep no more than one; it is their own otherwise.
    """

    _made = itertools.count()

    def __init__(
        self,
        plugins: Sequence[Plugin],
        weights: Mapping[str, int],
        snapshot: Snapshot,
        points: Points | None = None,
        extenders: Sequence[Extender] = (),
        cache: AlikeCache | None = None,
    ) -> None:
        self.plugins = tuple(plugins)
        self.points: Points = points or {}
        self.snapshot = snapshot
        self.extenders = tuple(extenders)
        at = self.at
        self.pre_enqueue_plugins = [p for p in at(Point.PRE_ENQUEUE) if isinstance(p, PreEnqueuePlugin)]
        self.queue_sort: QueueSortPlugin = next(
            p for p in at(Point.QUEUE_SORT) if isinstance(p, QueueSortPlugin)
        )
        self.filters: list[FilterPlugin[Any]] = [
            p for p in at(Point.PRE_FILTER) if isinstance(p, FilterPlugin)
        ]
        filtering = [p.name for p in at(Point.FILTER) if isinstance(p, FilterPlugin)]
        #: Each plugin's place in Filter, where that is another one than in PreFilter, or none.
        self._rank = None
        if filtering != [p.name for p in self.filters]:
            self._rank = {name: rank for rank, name in enumerate(filtering)}
        self.scorers: list[tuple[ScorePlugin[Any], int]] = [
            (p, weights.get(p.name, 1))
            for p in plugins
            if isinstance(p, ScorePlugin) and weights.get(p.name, 1)
        ]
        #: The highest score of those plugins that have a scale of their own.
        self.most = {p.name: p.most for p, _ in self.scorers if isinstance(p, OwnScalePlugin)}
        self.reservers = [p for p in at(Point.RESERVE) if isinstance(p, ReservePlugin)]
        self.permitters = [p for p in at(Point.PERMIT) if isinstance(p, PermitPlugin)]
        self.pre_binders = [p for p in at(Point.PRE_BIND) if isinstance(p, PreBindPlugin)]
        self.binders = [p for p in at(Point.BIND) if isinstance(p, BindPlugin)]
        self.wakes: Mapping[str, Sequence[WakesOn]] = {
            **{p.name: tuple(p.wakes_on()) for p in plugins},
            # What an extender's answer depends on nobody knows.
            **dict.fromkeys((e.name for e in self.extenders), _ANYTHING),
        }
        self._cluster_filters = {p.name for p in self.filters if p.reads & Reads.CLUSTER}
        self._late = {p.name for p in self.filters if isinstance(p, LateFilterPlugin) and p.late}
        self._timed = [p for p in plugins if isinstance(p, TimedPlugin)]
        self._last = {p.name for p in self.filters if isinstance(p, LastFilterPlugin) and p.last}
        self._stateful = {p.name for p in self.filters if isinstance(p, StatefulFilterPlugin)}
        self._cache = AlikeCache() if cache is None else cache
        self._number = next(Runner._made)  # tells its entries in the cache from others'

    def at(self, point: Point) -> list[Plugin]:
        """The plugins that may run at a point, in order; some may have no part in it."""
        return at_point(self.plugins, self.points, point)

    def concerned(self, pod: Pod) -> Sequence[Extender]:
        """The extenders that are asked about the pod, in their order."""
        if not self.extenders:
            return ()
        return [extender for extender in self.extenders if extender.concerns(pod)]

    def changes_at(self, pod: Pod) -> float | None:
        """The next instant at which a plugin may think better of the pod though nothing happens; raises PluginError."""
        times = [
            guarded(plugin, "ChangesAt", plugin.changes_at, pod, self.snapshot) for plugin in self._timed
        ]
        return min((time for time in times if time is not None), default=None)

    # -- before the cycle ------------------------------------------------------------------------

    def pre_enqueue(self, pod: Pod) -> Rejection | None:
        """Why the pod may not enter the queue, None if it may; a plugin that raises keeps it out."""
        for plugin in self.pre_enqueue_plugins:
            try:
                rejected = guarded(plugin, "PreEnqueue", plugin.pre_enqueue, pod)
            except PluginError as error:
                return Rejection(plugin.name, (str(error),), Code.UNRESOLVABLE)
            if rejected is not None:
                return Rejection(plugin.name, rejected.reasons, rejected.code)
        return None

    # -- PreFilter and Filter --------------------------------------------------------------------

    def pre_filter(self, pod: Pod, known: Mapping[str, Any] | None = None) -> PreFiltered:
        """Run PreFilter of all plugins but those whose answer is known; raises PluginError."""
        answers: dict[str, Any] = {}
        active: list[tuple[FilterPlugin[Any], Any]] = []
        names: frozenset[str] | None = None
        narrowed_by: list[str] = []
        rejection: Rejection | None = None
        rejectors: frozenset[str] = frozenset()
        for plugin in self.filters:
            if known is not None and plugin.name in known:
                answer = known[plugin.name]
            else:
                answer = guarded(plugin, "PreFilter", plugin.pre_filter, pod, self.snapshot)
            if plugin.name not in self._cluster_filters:
                answers[plugin.name] = answer
            if answer is Skip.SKIP:
                continue
            if isinstance(answer, Rejected):
                rejection = Rejection(plugin.name, answer.reasons, answer.code)
                rejectors = frozenset((plugin.name,))
                if answer.code is Code.UNRESOLVABLE:
                    break
                if answer.state is not None:  # preemption may resolve it: all states are needed for that
                    active.append((plugin, answer.state))
                continue
            if isinstance(answer, Narrowed):
                narrowed_by.append(plugin.name)
                names = answer.names if names is None else names & answer.names
                if not names:
                    # Each of them alone left some node: whichever changes its mind may help.
                    rejectors = frozenset(narrowed_by)
                    text = _nothing_left(sorted(narrowed_by))
                    rejection = Rejection(", ".join(sorted(narrowed_by)), (text,), Code.UNRESOLVABLE)
                    break
                answer = answer.state
            active.append((plugin, answer))
        rank = self._rank
        if rank is not None:
            active = sorted((each for each in active if each[0].name in rank), key=lambda e: rank[e[0].name])
        return PreFiltered(tuple(active), names, tuple(sorted(narrowed_by)), rejection, rejectors, answers)

    def screen(
        self, pod: Pod, nominated: Mapping[int, Sequence[Pod]], within: Collection[str] | None = None
    ) -> Screened:
        """Find the feasible nodes, judging nodes with nominated pods both with and without those.

        ``nominated`` maps rows to the nominated pods there that this pod must give way to.  ``within`` names the
        only nodes that are asked about (None: all are).  Raises PluginError.
        """
        snapshot = self.snapshot
        alike = self._cache.get(pod.spec, snapshot, self._number)
        if alike is not None and not self._cluster_filters:
            pre, feasible = alike.pre, alike.fits.copy()
        else:
            pre = self.pre_filter(pod, None if alike is None else alike.answers)
            if pre.rejection is not None:
                return Screened(np.zeros(snapshot.capacity, dtype=np.bool_), pre, None)
            if alike is None:
                alike = self._remember(pod, pre)
            feasible = alike.fits.copy()
            nodes = Nodes(snapshot)
            for plugin, state in pre.active:
                if plugin.name in self._cluster_filters and plugin.name not in self._late:
                    feasible &= self._filter(plugin, state, nodes).fits
        if pre.names is not None:
            feasible &= self._named(pre.names)
        if within is not None:
            feasible &= self._named(within)
        self._screen_late(pre, feasible, last=False)
        for row in self.judge_nominated(pre, nominated, feasible):
            feasible[row] = False
        if self._last:
            self._screen_late(pre, feasible, last=True)
        return Screened(feasible, pre, alike)

    def _screen_late(self, pre: PreFiltered, feasible: Bools, *, last: bool) -> None:
        """Ask the late plugins, the last ones or the others, about the nodes that are left; writes to ``feasible``."""
        for plugin, state in pre.active:
            if plugin.name in self._late and (plugin.name in self._last) is last:
                rows = np.flatnonzero(feasible)
                feasible[rows] = self._filter(plugin, state, Nodes(self.snapshot, rows)).fits

    def _remember(self, pod: Pod, pre: PreFiltered) -> Alike:
        filters = [(p, s) for p, s in pre.active if not p.reads & Reads.CLUSTER]
        scores = []
        nodes = Nodes(self.snapshot)
        for plugin, _ in self.scorers:
            if not plugin.reads & Reads.CLUSTER:
                state = guarded(plugin, "PreScore", plugin.pre_score, pod, self.snapshot, nodes)
                if state is not Skip.SKIP:
                    scores.append((plugin, state))
        alike = Alike(pre, filters, scores, self.snapshot)
        self._cache.put(pod.spec, alike, self._number)
        return alike

    def _named(self, names: Collection[str]) -> Bools:
        mask = np.zeros(self.snapshot.capacity, dtype=np.bool_)
        rows = [self.snapshot.row_of(name) for name in names]
        mask[[row for row in rows if row is not None]] = True
        return mask

    def _filter(self, plugin: FilterPlugin[Any], state: Any, nodes: Nodes) -> Verdict:
        return verdict_of(plugin, state, nodes)

    def _filter_late(self, plugin: FilterPlugin[Any], state: Any, undecided: Bools) -> Verdict:
        """The verdict on these nodes alone, as one on all nodes."""
        rows = np.flatnonzero(undecided)
        verdict = self._filter(plugin, state, Nodes(self.snapshot, rows))
        failed = np.zeros((len(verdict.reasons), undecided.size), dtype=np.bool_)
        failed[:, rows] = verdict.failed
        return Verdict(verdict.reasons, failed)

    def judge(self, pre: PreFiltered, row: int) -> Rejection | None:
        """The first rejection of one node as it is now, None if the pod fits there."""
        nodes = Nodes(self.snapshot, np.array([row], dtype=np.int64))
        for plugin, state in pre.active:
            verdict = self._filter(plugin, state, nodes)
            rejection = rejection_at(plugin.name, verdict, 0)
            if rejection is not None:
                return rejection
        return None

    def judge_with(
        self, pre: PreFiltered, row: int, added: Sequence[Pod], removed: Sequence[Pod] = ()
    ) -> Rejection | None:
        """As ``judge``, were these pods on the node and those gone from it; afterwards the snapshot is as before."""
        snapshot = self.snapshot
        arrival = tuple(snapshot.pods[row]) if removed else ()
        for pod in removed:
            snapshot.remove_pod(row, pod)
        for pod in added:
            snapshot.add_pod(row, pod)
        try:
            return self.judge(self.adjusted(pre, row, added, removed), row)
        finally:
            for pod in added:
                snapshot.remove_pod(row, pod)
            if removed:
                for pod in removed:
                    snapshot.add_pod(row, pod)
                snapshot.arrange_pods(row, arrival)

    def judge_nominated(
        self, pre: PreFiltered, nominated: Mapping[int, Sequence[Pod]], among: Bools
    ) -> dict[int, Rejection]:
        """The first rejection of each node with the nominated pods on it, of the rows in ``among`` (capacity,)."""
        pods = {row: there for row, there in nominated.items() if there and among[row]}
        if len(pods) < _FEW:
            judged = {row: self.judge_with(pre, row, there) for row, there in pods.items()}
            return {row: rejection for row, rejection in judged.items() if rejection is not None}
        rows = np.array(sorted(pods), dtype=np.int64)
        coming = pods_on(pods, {row: index for index, row in enumerate(rows.tolist())})
        bench = Bench(pre.active, Trial(self.snapshot, rows, NOBODY, coming))
        refusals, _, unsure = bench.refusals(bench.coming, np.arange(rows.size))
        found = {int(rows[i]): rejection for refusal in refusals for i, rejection in refusal.rejections()}
        for row in rows[unsure].tolist():
            rejection = self.judge_with(pre, row, pods[row])
            if rejection is not None:
                found[row] = rejection
        return {row: found[row] for row in pods if row in found}

    def adjusted(
        self, pre: PreFiltered, row: int, added: Sequence[Pod], removed: Sequence[Pod]
    ) -> PreFiltered:
        """The states as if these pods had been on, or off, the node; the snapshot must show it already."""
        if not self._stateful:
            return pre
        active = tuple(
            (plugin, self._with_pods(plugin, state, row, added, removed)) for plugin, state in pre.active
        )
        return PreFiltered(active, pre.names, pre.narrowed_by)

    def _with_pods(
        self, plugin: FilterPlugin[Any], state: Any, row: int, added: Sequence[Pod], removed: Sequence[Pod]
    ) -> Any:
        if plugin.name not in self._stateful:
            return state
        stateful: StatefulFilterPlugin[Any] = plugin  # type: ignore[assignment]  # checked when the runner was made
        return guarded(
            plugin, "PreFilterExtension", stateful.with_pods, state, row, added, removed, self.snapshot
        )

    def diagnose(
        self,
        pod: Pod,
        pre: PreFiltered,
        nominated: Mapping[int, Sequence[Pod]],
        within: Collection[str] | None = None,
    ) -> Diagnosis:
        """The reasons against every node, in the order of the plugins; ``within`` as in ``screen``."""
        snapshot = self.snapshot
        diagnosis = Diagnosis(
            snapshot, prefilter=pre.rejection, rejectors=pre.rejectors, narrowed_by=pre.narrowed_by
        )
        diagnosis.owners = np.full(snapshot.capacity, -1, dtype=np.int16)
        diagnosis.excluded = np.zeros(snapshot.capacity, dtype=np.bool_)
        if pre.rejection is not None:
            return diagnosis
        undecided = snapshot.alive.copy() if within is None else self._named(within)
        if pre.names is not None:
            diagnosis.excluded = undecided & ~self._named(pre.names)
            undecided &= ~diagnosis.excluded
        nodes = Nodes(snapshot)
        looked_at = undecided.copy()
        active = list(pre.active)
        if self._last:
            diagnosis.overrides.update(self.judge_nominated(pre, nominated, looked_at))
            active.sort(key=lambda each: each[0].name in self._last)
        for index, (plugin, state) in enumerate(active):
            if plugin.name in self._last:
                undecided[list(diagnosis.overrides)] = False
            if plugin.name in self._late:
                verdict = self._filter_late(plugin, state, undecided)
            else:
                verdict = self._filter(plugin, state, nodes)
            diagnosis.verdicts.append((plugin.name, verdict))
            failed = ~verdict.fits & undecided
            diagnosis.owners[failed] = index
            undecided &= ~failed
        if not self._last:
            diagnosis.overrides.update(self.judge_nominated(pre, nominated, looked_at))
        return diagnosis


def _nothing_left(plugins: Sequence[str]) -> str:
    if len(plugins) == 1:
        return f"node(s) didn't satisfy plugin {plugins[0]}"
    return f"node(s) didn't satisfy plugin(s) [{' '.join(plugins)}] simultaneously"
