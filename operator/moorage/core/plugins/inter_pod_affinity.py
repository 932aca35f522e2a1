"""InterPodAffinity: near to some pods, away from others, by the pod's own terms and by those of pods already placed."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from moorage.core.framework.interface import MAX_NODE_SCORE, Bools, Ints, Reads, Reason, Skip, Verdict
from moorage.core.framework.pod_affinity import OwnTerms, own_terms
from moorage.core.framework.pod_affinity_hints import (
    after_assigned_pod,
    after_namespace,
    after_node,
    after_repelling_pod,
    labels_of,
    repels_others,
    terms_of,
)
from moorage.core.framework.trials import Balance, Trial, by_labels
from moorage.core.model.cluster_event import Action, Resource, WakesOn
from moorage.core.model.pod import Pod
from moorage.core.model.pod_query import PodQuery
from moorage.core.snapshot.domain_counts import DomainCounts
from moorage.core.snapshot.namespaces import Namespaces
from moorage.core.snapshot.pod_terms import TermKind
from moorage.core.snapshot.snapshot import Snapshot
from moorage.core.snapshot.topology import Domains
from moorage.core.snapshot.view import Ids, Nodes

_REASONS = (
    Reason("node(s) didn't match pod affinity rules", resolvable=False),
    Reason("node(s) didn't match pod anti-affinity rules"),
    Reason("node(s) didn't satisfy existing pods anti-affinity rules"),
)


@dataclass(frozen=True, slots=True, eq=False)
class Related:
    """Pods that matter to this one, by domain; the counts are live.

    ``required`` counts, for each term's topology key, the pods that satisfy all required terms at once;
    ``shunned`` those that the pod keeps away from, ``repelling`` those that keep it away.
    """

    pod: Pod
    together: PodQuery | None
    required: tuple[DomainCounts, ...]
    shunned: tuple[DomainCounts, ...]
    repelling: tuple[DomainCounts, ...]

    @property
    def first_of_its_kind(self) -> bool:
        """Whether nobody yet satisfies the terms but the pod itself, which may then go anywhere."""
        return (
            self.together is not None
            and not any(counts.total for counts in self.required)
            and self.together.matches(self.pod.namespace, self.pod.labels)
        )


#: Sums of weights by domain, shape (size + 1,), for each topology key.
Weights = tuple[tuple[Domains, Ints], ...]


@dataclass(frozen=True, slots=True)
class InterPodAffinity:
    """``hard_weight`` is what a required affinity of a placed pod adds for the pods that it means."""

    name: ClassVar[str] = "InterPodAffinity"
    reads: ClassVar[Reads] = Reads.CLUSTER

    hard_weight: int = 1
    ignore_preferred_of_existing: bool = False

    # -- Filter ----------------------------------------------------------------------------------

    def pre_filter(self, pod: Pod, snapshot: Snapshot) -> Related | Skip:
        """Find the pods that matter; without any, and without required terms, there is nothing to check."""
        own = own_terms(pod)
        repelling = _repelling(pod, snapshot)
        if not own.required and not own.required_anti and not repelling:
            return Skip.SKIP
        namespaces = snapshot.namespaces
        together = own.ask_together(namespaces) if own.required else None
        return Related(
            pod,
            together,
            ()
            if together is None
            else tuple(_counts(t.topology_key, together, snapshot) for t in own.required),
            tuple(_counts(t.topology_key, t.ask(namespaces), snapshot) for t in own.required_anti),
            repelling,
        )

    def with_pods(
        self, state: Related, row: int, added: Sequence[Pod], removed: Sequence[Pod], snapshot: Snapshot
    ) -> Related:
        """The counts follow the snapshot by themselves; an added pod may bring a term that no other has."""
        if any(pod.spec.pod_affinity is not None for pod in added):
            return replace(state, repelling=_repelling(state.pod, snapshot))
        return state

    def filter(self, state: Related, nodes: Nodes) -> Verdict:
        """A node fails for the first of three reasons: affinity, own anti-affinity, that of other pods."""
        near = _all_domains(state, nodes)
        shunned = _any_domain(state.shunned, nodes)
        repelled = _any_domain(state.repelling, nodes)
        return _verdict(near, shunned, repelled, len(nodes))

    def trial(self, state: Related, trial: Trial) -> Balance:
        """Sums by the node's domains: pods that satisfy all required terms, that a term shuns, that repel this one."""
        tried = _OnTrial(state, trial)
        return Balance.of(tried.sums, tried.judge)

    # -- Score -----------------------------------------------------------------------------------

    def pre_score(self, pod: Pod, snapshot: Snapshot, nodes: Nodes) -> Weights | Literal[Skip.SKIP]:
        """Add up the weights of all terms that have a pod somewhere; none: nothing to say."""
        own = own_terms(pod)
        if self.ignore_preferred_of_existing and not own.preferred:
            return Skip.SKIP
        sums: dict[str, tuple[Domains, Ints]] = {}
        for counts, weight in self._weighted(pod, own, snapshot):
            if counts.total:
                known = sums.get(counts.domains.key)
                if known is None:
                    sums[counts.domains.key] = (counts.domains, counts.values * weight)
                else:
                    known[1][:] += counts.values * weight
        for _, by_domain in sums.values():
            by_domain[-1] = 0  # nodes without the label
        return tuple(sums.values()) or Skip.SKIP

    def _weighted(self, pod: Pod, own: OwnTerms, snapshot: Snapshot) -> Iterator[tuple[DomainCounts, int]]:
        """The pods that weigh in, by domain, and how much each counts."""
        namespaces = snapshot.namespaces
        for preference in own.preferred:
            yield _counts(preference.topology_key, preference.ask(namespaces), snapshot), preference.weight
        terms = snapshot.pod_terms
        if not terms:
            return
        about = (pod.namespace, pod.labels, namespaces)
        if self.hard_weight > 0:
            for term in terms.about(TermKind.REQUIRES, *about):
                yield terms.by_domain(term, snapshot.topology), self.hard_weight
        for term in terms.about(TermKind.PREFERS, *about):
            yield terms.by_domain(term, snapshot.topology), term.weight

    def score(self, state: Weights, nodes: Nodes) -> Ints:
        """The sum over the topology keys that the node has; negative where anti-affinity outweighs."""
        total: Ints | None = None
        for domains, sums in state:
            here = sums.take(nodes.ids(domains))
            total = here if total is None else total + here
        return np.zeros(len(nodes), dtype=np.int64) if total is None else total

    def normalize(self, raw: Ints) -> Ints:
        """Between the least and the greatest sum; all equal: 0."""
        if not raw.size:
            return raw
        least, most = int(raw.min()), int(raw.max())
        if most == least:
            return np.zeros_like(raw)
        scaled = float(MAX_NODE_SCORE) * ((raw - least).astype(np.float64) / float(most - least))
        return scaled.astype(np.int64)

    # -- queueing hints --------------------------------------------------------------------------

    def wakes_on(self) -> Sequence[WakesOn]:
        """Pods come, go or change their labels; nodes come, go or move; namespaces change their labels."""
        pods = Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE
        nodes = Action.ADD | Action.UPDATE_NODE_LABEL | Action.DELETE
        return (
            WakesOn(Resource.ASSIGNED_POD, pods, after_assigned_pod, alike=terms_of),
            WakesOn(
                Resource.ASSIGNED_POD,
                Action.DELETE,
                after_repelling_pod,
                alike=labels_of,
                concerns=repels_others,
            ),
            WakesOn(Resource.PENDING_POD, Action.UPDATE_POD_LABEL),
            WakesOn(Resource.NODE, nodes, after_node),
            WakesOn(
                Resource.NAMESPACE,
                Action.ADD | Action.UPDATE_OTHER,
                after_namespace,
                alike=terms_of,
            ),
        )


class _OnTrial:
    """The nodes on trial, of which each may have more or fewer of the pods that matter in its domains.

    ``sums``: the pods that satisfy all required terms at once; for each term of the pod's own anti-affinity those that
    it means; for each topology key the terms of others that mean this pod.
    """

    def __init__(self, state: Related, trial: Trial) -> None:
        self._state = state
        snapshot, pod = trial.snapshot, state.pod
        counts = snapshot.pod_counts
        none = np.zeros(len(trial.leaving), dtype=np.int64), np.zeros(len(trial.coming), dtype=np.int64)
        self.sums = [none]
        if state.together is not None:
            there = counts.tally(state.together).counts[trial.rows] > 0
            self.sums[0] = trial.weighed(by_labels(_meant_by(state.together)), there)
        self._required = [_Side.of((c,), trial) for c in state.required]
        self._own = state.together is not None and state.together.matches(pod.namespace, pod.labels)
        self._shunned: list[_Side] = []
        for term, by_domain in zip(own_terms(pod).required_anti, state.shunned, strict=True):
            query = term.ask(snapshot.namespaces)
            there = counts.tally(query).counts[trial.rows] > 0
            self.sums.append(trial.weighed(by_labels(_meant_by(query)), there))
            self._shunned.append(_Side.of((by_domain,), trial))
        self._repelling: list[_Side] = []
        for key in dict.fromkeys((*(c.domains.key for c in state.repelling), *self._brought(trial))):
            by_key = [c for c in state.repelling if c.domains.key == key]
            side = _Side.of(by_key, trial, snapshot.topology.domains(key))
            repels = functools.partial(self._repels, key, snapshot.namespaces)
            self.sums.append(trial.weighed(repels, side.there > 0))
            self._repelling.append(side)

    def _brought(self, trial: Trial) -> Iterator[str]:
        """The topology keys of terms against this pod that those who come may be the first to have."""
        for other in trial.coming.pods:
            for term in own_terms(other).required_anti:
                yield term.topology_key

    def _repels(self, key: str, namespaces: Namespaces, other: Pod) -> int:
        """How many terms of that topology key another pod has against this one."""
        if other.spec.pod_affinity is None:
            return 0
        pod = self._state.pod
        return sum(
            term.topology_key == key
            and term.match.matches(pod.namespace, pod.labels, namespaces.labels(pod.namespace))
            for term in own_terms(other).required_anti
        )

    def judge(self, change: Ints, at: Ints) -> Verdict:
        """As ``filter``."""
        sums = iter(change)
        together = next(sums)
        near: Bools | None = None
        if self._required:
            near = np.logical_and.reduce([side.some(together, at) for side in self._required])
            if self._own:
                # Where nobody is left who satisfies the terms, the pod is the first of its kind.
                first = np.logical_and.reduce([side.total(together, at) == 0 for side in self._required])
                if first.any():
                    labelled = np.logical_and.reduce([side.inside[at] for side in self._required])
                    near = np.where(first, labelled, near)
        shunned, repelled = (
            np.logical_or.reduce([side.some(next(sums), at) for side in sides]) if sides else None
            for sides in (self._shunned, self._repelling)
        )
        return _verdict(near, shunned, repelled, at.size)


@dataclass(frozen=True, slots=True, eq=False)
class _Side:
    """Some pods in the domains of the nodes on trial; ``inside`` are the nodes that have the label, (M,)."""

    inside: Bools
    there: Ints
    everywhere: int

    @classmethod
    def of(cls, counts: Sequence[DomainCounts], trial: Trial, domains: Domains | None = None) -> _Side:
        """The pods of all these counts, which are by domains of one topology key."""
        domains = counts[0].domains if domains is None else domains
        ids = domains.ids[trial.rows]
        there = np.zeros(ids.size, dtype=np.int64)
        for by_domain in counts:
            there += by_domain.values[ids]
        return cls(ids < domains.size, there, sum(by_domain.total for by_domain in counts))

    def some(self, change: Ints, at: Ints) -> Bools:
        """Whether one is in the node's domain; a node without the label is in none."""
        found: Bools = self.inside[at] & (self.there[at] + change > 0)
        return found

    def total(self, change: Ints, at: Ints) -> Ints:
        """How many there are in all domains."""
        return self.everywhere + np.where(self.inside[at], change, 0)


def _meant_by(query: PodQuery) -> Callable[[Pod], bool]:
    return lambda pod: query.matches(pod.namespace, pod.labels)


def _verdict(near: Bools | None, shunned: Bools | None, repelled: Bools | None, number: int) -> Verdict:
    """The verdict on so many nodes; None: without such terms there is nothing to check."""
    fits: Bools = np.ones(number, dtype=np.bool_) if near is None else near
    for bad in (shunned, repelled):
        if bad is not None:
            fits = fits & ~bad

    def explain() -> Bools:
        failed = np.zeros((3, number), dtype=np.bool_)
        if near is not None:
            failed[0] = ~near
        if shunned is not None:
            failed[1] = shunned & ~failed[0]
        if repelled is not None:
            failed[2] = repelled & ~failed[0] & ~failed[1]
        return failed

    return Verdict.lazy(_REASONS, fits, explain)


def _repelling(pod: Pod, snapshot: Snapshot) -> tuple[DomainCounts, ...]:
    """Where the pods are whose required anti-affinity means this pod."""
    terms = snapshot.pod_terms
    if not terms:
        return ()
    found = terms.about(TermKind.REPELS, pod.namespace, pod.labels, snapshot.namespaces)
    counts = (terms.by_domain(term, snapshot.topology) for term in found)
    return tuple(c for c in counts if c.total)


def _counts(key: str, query: PodQuery, snapshot: Snapshot) -> DomainCounts:
    domains = snapshot.topology.domains(key)
    return snapshot.pod_counts.by_domain(query, domains, snapshot.topology.scope((), None))


def _all_domains(state: Related, nodes: Nodes) -> Bools | None:
    """The nodes with a satisfying pod in the domain of every required term; None without such terms."""
    near: Bools | None = None
    anywhere = bool(state.required) and state.first_of_its_kind
    for counts in state.required:
        ids = nodes.ids(counts.domains)
        # The node must have the label even for the first pod of a group.
        here = ids < counts.domains.size if anywhere else _with_pods(counts, ids)
        near = here if near is None else near & here
    return near


def _any_domain(all_counts: tuple[DomainCounts, ...], nodes: Nodes) -> Bools | None:
    """The nodes with one of these pods in their domain, None if there are none."""
    found: Bools | None = None
    by_key: dict[str, tuple[Domains, Bools]] = {}
    for counts in all_counts:
        if not counts.total:
            continue
        if len(nodes) < counts.values.size:
            here = _with_pods(counts, nodes.ids(counts.domains))
            found = here if found is None else found | here
        elif (
            counts.domains.key in by_key
        ):  # terms may be many: what can be is done once a domain, not once a node
            by_key[counts.domains.key][1][:] |= counts.values > 0
        else:
            by_key[counts.domains.key] = (counts.domains, counts.values > 0)
    for domains, bad in by_key.values():
        bad[-1] = False  # nodes without the label
        here = bad.take(nodes.ids(domains))
        found = here if found is None else found | here
    return found


def _with_pods(counts: DomainCounts, ids: Ids) -> Bools:
    """Which of these domains have such a pod; no domain has none."""
    found: Bools = counts.values.take(ids) > 0
    found &= ids < counts.domains.size
    return found
