"""The affinity terms of bound pods, for the pods that they speak about.

Pods of one template share their terms; each term is kept once, with the rows of all pods that carry it, and is found
by the labels of the pod it speaks about.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto

from moorage.core.model.affinity import PodAffinity, PodAffinityTerm, PodMatch
from moorage.core.model.pod import Pod
from moorage.core.snapshot.domain_counts import DomainCounts
from moorage.core.snapshot.namespaces import Namespaces
from moorage.core.snapshot.selector_index import SelectorIndex
from moorage.core.snapshot.topology import Topology


class TermKind(Enum):
    """What a term of a bound pod means for the pod that it speaks about."""

    REPELS = auto()  # required anti-affinity
    REQUIRES = auto()  # required affinity: a hint that the two belong together
    PREFERS = auto()  # preferred affinity and anti-affinity, by the sign of the weight


@dataclass(frozen=True, slots=True)
class _Key:
    kind: TermKind
    topology_key: str
    match: PodMatch
    weight: int


class TermGroup:
    """One term and the rows of the bound pods that carry it."""

    __slots__ = ("_counts", "_layout", "key", "rows", "users")

    def __init__(self, key: _Key) -> None:
        self.key = key
        self.rows: dict[int, int] = {}
        self.users = 0  # carriers that name it
        self._counts: DomainCounts | None = None
        self._layout = -1

    @property
    def weight(self) -> int:
        """The weight of a preference, negative for anti-affinity."""
        return self.key.weight

    def add(self, row: int, change: int) -> None:
        """A pod that carries the term came to that row or left it."""
        rows = self.rows
        left = rows.get(row, 0) + change
        if left:
            rows[row] = left
        else:
            del rows[row]
        if self._counts is not None:
            self._counts.add(row, change)

    def by_domain(self, topology: Topology) -> DomainCounts:
        """The carriers in each domain of the term's topology key."""
        if self._counts is None or self._layout != topology.layout:
            self._layout = topology.layout
            self._counts = DomainCounts.of_rows(topology.domains(self.key.topology_key), self.rows)
        return self._counts

    @property
    def nbytes(self) -> int:
        """Memory held by the vector."""
        return 0 if self._counts is None else self._counts.values.nbytes

    def release(self) -> None:
        """Give the vector up; it is made again when it is asked for."""
        self._counts = None


@dataclass(slots=True, eq=False)
class _Carrier:
    """The terms of the pods of one template in one namespace (and with the same labels, if they depend on these)."""

    terms: tuple[TermGroup, ...]
    pods: int = 0


#: What makes two bound pods carry the same terms: the affinity object, the namespace, the labels it depends on.
_CarrierKey = tuple[int, str, tuple[str | None, ...]]


class PodTerms:
    """The terms of all bound pods."""

    #: Carriers without pods that are kept, since in a dry run the pods come back at once.
    IDLE = 256
    #: Bytes of vectors by domain kept at the most.
    LIMIT = 32 * 1024 * 1024
    #: Terms whose vectors are never given up: those that matter to the pod at hand are among them.
    KEEP = 64

    def __init__(self) -> None:
        self._carriers: dict[_CarrierKey, tuple[PodAffinity, _Carrier]] = {}
        self._idle: dict[_CarrierKey, None] = {}
        self._terms: dict[_Key, TermGroup] = {}
        self._index: dict[TermKind, SelectorIndex[TermGroup]] = {kind: SelectorIndex() for kind in TermKind}
        self._vectors: OrderedDict[TermGroup, int] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._terms)

    def add(self, row: int, pod: Pod) -> None:
        """A pod is on that row now."""
        affinity = pod.spec.pod_affinity
        if affinity is not None:
            key = _carrier_key(affinity, pod)
            known = self._carriers.get(key)
            carrier = self._new(key, affinity, pod) if known is None else known[1]
            if not carrier.pods:
                self._idle.pop(key, None)
            carrier.pods += 1
            for term in carrier.terms:
                term.add(row, 1)

    def remove(self, row: int, pod: Pod) -> None:
        """The pod is gone from that row."""
        affinity = pod.spec.pod_affinity
        if affinity is not None:
            key = _carrier_key(affinity, pod)
            carrier = self._carriers[key][1]
            carrier.pods -= 1
            for term in carrier.terms:
                term.add(row, -1)
            if not carrier.pods:
                self._rest(key)

    def about(
        self, kind: TermKind, namespace: str, labels: Mapping[str, str], namespaces: Namespaces
    ) -> list[TermGroup]:
        """The terms of that kind that mean a pod of that namespace with those labels."""
        index = self._index[kind]
        if not index:
            return []
        namespace_labels = namespaces.labels(namespace)
        return [
            term
            for term in index.candidates(labels)
            if term.rows and term.key.match.matches(namespace, labels, namespace_labels)
        ]

    def of_kind(self, kind: TermKind) -> list[TermGroup]:
        """All terms of a kind, those that no pod carries at the moment included."""
        return [term for term in self._terms.values() if term.key.kind is kind]

    def by_domain(self, term: TermGroup, topology: Topology) -> DomainCounts:
        """The carriers of a term by domain, live."""
        counts = term.by_domain(topology)
        held = self._vectors.pop(term, 0)
        self._vectors[term] = term.nbytes
        self._bytes += term.nbytes - held
        while self._bytes > self.LIMIT and len(self._vectors) > self.KEEP:
            oldest, size = self._vectors.popitem(last=False)
            self._bytes -= size
            oldest.release()
        return counts

    def _new(self, key: _CarrierKey, affinity: PodAffinity, pod: Pod) -> _Carrier:
        carrier = _Carrier(tuple(map(self._term, _keys(affinity, pod))))
        self._carriers[key] = (affinity, carrier)
        return carrier

    def _term(self, key: _Key) -> TermGroup:
        term = self._terms.get(key)
        if term is None:
            term = self._terms[key] = TermGroup(key)
            if key.match.selector is not None:
                self._index[key.kind].add(term, key.match.selector)
        term.users += 1
        return term

    def _rest(self, key: _CarrierKey) -> None:
        """A carrier has no pods; of such carriers the one that rests longest goes when they are too many."""
        self._idle[key] = None
        if len(self._idle) > self.IDLE:
            oldest = next(iter(self._idle))
            del self._idle[oldest]
            for term in self._carriers.pop(oldest)[1].terms:
                term.users -= 1
                if not term.users:
                    del self._terms[term.key]
                    self._index[term.key.kind].discard(term)
                    self._bytes -= self._vectors.pop(term, 0)


def _carrier_key(affinity: PodAffinity, pod: Pod) -> _CarrierKey:
    # Affinities are shared among the pods of a template; an equal one that is another object only costs an entry.
    values = tuple(map(pod.labels.get, affinity.label_keys)) if affinity.label_keys else ()
    return id(affinity), pod.namespace, values


def _keys(affinity: PodAffinity, pod: Pod) -> Iterator[_Key]:
    def key(kind: TermKind, term: PodAffinityTerm, weight: int) -> _Key:
        return _Key(kind, term.topology_key, term.meant(pod.namespace, pod.labels), weight)

    for term in affinity.required_anti:
        yield key(TermKind.REPELS, term, 0)
    for term in affinity.required:
        yield key(TermKind.REQUIRES, term, 1)
    for weighted in affinity.preferred:
        yield key(TermKind.PREFERS, weighted.term, weighted.weight)
    for weighted in affinity.preferred_anti:
        yield key(TermKind.PREFERS, weighted.term, -weighted.weight)
