"""PodTopologySpread: keep the pods of a set evenly spread over zones, hosts or whatever a node label tells apart.

Source of the rules: Kubernetes documentation, "Pod Topology Spread Constraints", and kube-scheduler v1.37.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from moorage.core.framework.interface import Bools, Ints, Reads, Reason, Skip, Verdict
from moorage.core.framework.spread_hints import SpreadHints
from moorage.core.framework.spread_scoring import SoftState, Weighed, admitted, normalize, scored_rows
from moorage.core.framework.spreading import Spread, Spreads, default_spreads, own_spreads
from moorage.core.framework.trials import Balance, Trial, by_labels
from moorage.core.model.cluster_event import WakesOn
from moorage.core.model.pod import Pod
from moorage.core.model.spread import HOSTNAME, SYSTEM_DEFAULTS, SpreadDefaults
from moorage.core.snapshot.domain_counts import DomainCounts
from moorage.core.snapshot.snapshot import Snapshot
from moorage.core.snapshot.topology import Scope
from moorage.core.snapshot.view import Nodes

_TEXT = "node(s) didn't match pod topology spread constraints"
_REASONS = (Reason(_TEXT), Reason(f"{_TEXT} (missing required label)", resolvable=False))
_NONE = Spreads((), ())


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """A hard constraint and where its pods are; the counts are live.

    ``own`` is 1 if the pod counts itself.  ``shift`` is added to the domain ``at``: see ``with_pods``.
    """

    spread: Spread
    counts: DomainCounts
    scope: Scope
    own: int
    at: int = 0
    shift: int = 0

    def admitted(self) -> Bools:
        """The domains that can take the pod without too great a skew, shape (size + 1,)."""
        values = self.counts.values
        if self.shift:
            values = values.copy()
            values[self.at] += self.shift
        constraint = self.spread.constraint
        return admitted(
            values,
            self.scope.present(self.counts.domains),
            max_skew=constraint.max_skew,
            min_domains=constraint.min_domains,
            own=self.own,
        )


@dataclass(frozen=True, slots=True, eq=False)
class HardState:
    """What Filter needs."""

    pod: Pod
    constraints: tuple[Counted, ...]


@dataclass(frozen=True, slots=True)
class PodTopologySpread:
    """``defaults`` hold for pods without constraints that belong to a Service or a workload."""

    name: ClassVar[str] = "PodTopologySpread"
    reads: ClassVar[Reads] = Reads.CLUSTER

    defaults: SpreadDefaults = SYSTEM_DEFAULTS

    def _spreads(self, pod: Pod, snapshot: Snapshot, *, hard: bool) -> Spreads:
        if pod.spec.spread:
            return own_spreads(pod, hard=hard)
        if not any(constraint.hard is hard for constraint in self.defaults.constraints):
            return _NONE
        peers = snapshot.workloads.peers(pod)
        return _NONE if peers is None else default_spreads(pod, self.defaults, peers, hard=hard)

    # -- Filter ----------------------------------------------------------------------------------

    def pre_filter(self, pod: Pod, snapshot: Snapshot) -> HardState | Skip:
        """Count the pods of each hard constraint by domain."""
        spreads = self._spreads(pod, snapshot, hard=True)
        if not spreads.items:
            return Skip.SKIP
        topology = snapshot.topology
        counted = []
        for spread in spreads.items:
            domains = topology.domains(spread.constraint.topology_key)
            scope = topology.scope(spreads.keys, spread.rules)
            counts = snapshot.pod_counts.by_domain(spread.query, domains, scope)
            counted.append(Counted(spread, counts, scope, int(spread.means(pod))))
        return HardState(pod, tuple(counted))

    def with_pods(
        self, state: HardState, row: int, added: Sequence[Pod], removed: Sequence[Pod], snapshot: Snapshot
    ) -> HardState:
        """The counts follow the snapshot; what is left is where kube-scheduler's do not.

        It adds and takes away every pod that the selector matches, also those that it has not counted in the first
        place: dying ones, and all pods where the selector is empty.
        """
        constraints = tuple(_shifted(c, state.pod.namespace, row, added, removed) for c in state.constraints)
        return replace(state, constraints=constraints) if constraints != state.constraints else state

    def filter(self, state: HardState, nodes: Nodes) -> Verdict:
        """The first constraint that speaks against a node says why: a label that is missing, or too great a skew."""
        admitted = [(c.counts.domains, c.admitted()) for c in state.constraints]
        fits: Bools | None = None
        for domains, good in admitted:
            here = good.take(nodes.ids(domains))
            fits = here if fits is None else fits & here
        assert fits is not None, "without constraints the plugin skips"

        def explain() -> Bools:
            failed = np.zeros((2, len(nodes)), dtype=np.bool_)
            undecided = np.ones(len(nodes), dtype=np.bool_)
            for domains, good in admitted:
                ids = nodes.ids(domains)
                lacking = ids == domains.size
                failed[1] |= undecided & lacking
                failed[0] |= undecided & ~lacking & ~good.take(ids)
                undecided &= good.take(ids)
            return failed

        return Verdict.lazy(_REASONS, fits, explain)

    def trial(self, state: HardState, trial: Trial) -> Balance:
        """One sum a constraint: the pods in the node's domain."""
        tried = [_OnTrial(counted, trial) for counted in state.constraints]
        sums = [one.weighed(state.pod.namespace, trial) for one in tried]

        def judge(change: Ints, at: Ints) -> Verdict:
            good = [one.admitted(more, at) for one, more in zip(tried, change, strict=True)]
            lacking = [one.lacking[at] for one in tried]

            def explain() -> Bools:
                failed = np.zeros((2, at.size), dtype=np.bool_)
                undecided = np.ones(at.size, dtype=np.bool_)
                for fits, without in zip(good, lacking, strict=True):
                    failed[1] |= undecided & without
                    failed[0] |= undecided & ~without & ~fits
                    undecided &= fits
                return failed

            return Verdict.lazy(_REASONS, np.logical_and.reduce(good), explain)

        return Balance.of(sums, judge)

    # -- Score -----------------------------------------------------------------------------------

    def pre_score(self, pod: Pod, snapshot: Snapshot, nodes: Nodes) -> SoftState | Literal[Skip.SKIP]:
        """Weigh each soft constraint by the number of domains among the nodes asked about."""
        spreads = self._spreads(pod, snapshot, hard=False)
        if not spreads.items:
            return Skip.SKIP
        topology = snapshot.topology
        need = spreads.keys if pod.spec.spread or not self.defaults.system else ()
        scored = topology.scope(need, None)
        rows = scored_rows(scored, nodes)
        weighed = []
        for spread in spreads.items:
            constraint = spread.constraint
            domains = topology.domains(constraint.topology_key)
            if constraint.topology_key == HOSTNAME:
                pods = snapshot.pod_counts.tally(spread.query).counts
                weighed.append(Weighed.of_rows(domains, constraint.max_skew, rows, pods))
            else:
                scope = topology.scope(need, spread.rules)
                values = snapshot.pod_counts.by_domain(spread.query, domains, scope).values
                weighed.append(Weighed.of_domains(domains, constraint.max_skew, rows, values))
        return SoftState(tuple(weighed), scored)

    def score(self, state: SoftState, nodes: Nodes) -> Ints:
        """Matching pods nearby, weighed; fewer is better."""
        return state.score(nodes)

    def normalize(self, raw: Ints) -> Ints:
        """The fewer pods, the more points; ignored nodes get none."""
        return normalize(raw)

    def wakes_on(self) -> Sequence[WakesOn]:
        """What may even out the spread."""
        return SpreadHints(self.defaults).wakes_on()


class _OnTrial:
    """A hard constraint and the nodes on trial, of which each may have more or fewer pods than there are."""

    def __init__(self, counted: Counted, trial: Trial) -> None:
        domains, scope = counted.counts.domains, counted.scope
        self._counted = counted
        self._counting: Bools = scope.mask[trial.rows]
        ids = domains.ids[trial.rows]
        self.lacking: Bools = ids == domains.size
        self._values: Ints = counted.counts.values[ids]
        present = scope.present(domains)
        #: The fewest pods in any domain, and in any other than the node's own; 0 if there are too few domains.
        self._least = 0
        self._elsewhere: Ints | None = None
        if present.size >= max(counted.spread.constraint.min_domains, 1):
            values = counted.counts.values[present]
            lowest = int(values.argmin())
            self._least = int(values[lowest])
            values[lowest] = np.iinfo(np.int64).max
            self._elsewhere = np.where(ids == present[lowest], values.min(), self._least)

    def weighed(self, namespace: str, trial: Trial) -> tuple[Ints, Ints]:
        """The pods that count, by kube-scheduler's rule for those that come and go: see ``with_pods``."""
        means = self._counted.spread.means
        leaving, coming = trial.weighed(
            by_labels(lambda pod: pod.namespace == namespace and means(pod)), self._counting
        )
        return leaving, coming * self._counting[trial.coming.at]

    def admitted(self, change: Ints, at: Ints) -> Bools:
        """Which of these nodes, shape (m,), can take the pod without too great a skew."""
        values = self._values[at] + change
        least: Ints | int = self._least
        if self._elsewhere is not None:
            least = np.where(self._counting[at], np.minimum(self._elsewhere[at], values), self._least)
        counted = self._counted
        skew = counted.spread.constraint.max_skew - counted.own
        good: Bools = (values <= skew + least) & ~self.lacking[at]
        return good


def _shifted(
    counted: Counted, namespace: str, row: int, added: Sequence[Pod], removed: Sequence[Pod]
) -> Counted:
    """The constraint with the difference between kube-scheduler's count and ours on the row's domain."""
    uncounted = counted.spread.uncounted
    if not uncounted and not any(pod.deleting for pods in (added, removed) for pod in pods):
        return counted
    if not counted.scope.mask[row]:
        return counted
    shift = 0
    for pods, change in ((added, 1), (removed, -1)):
        for pod in pods:
            if (uncounted or pod.deleting) and pod.namespace == namespace and counted.spread.means(pod):
                shift += change
    if not shift:
        return counted
    return replace(counted, at=counted.counts.domains.ids.item(row), shift=shift)
