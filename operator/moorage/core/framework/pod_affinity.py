"""A pod's own affinity terms, ready to be counted: worked out once for alike pods."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from moorage.core.model.affinity import PodAffinity, PodAffinityTerm, PodMatch
from moorage.core.model.pod import Pod
from moorage.core.model.pod_query import PodQuery
from moorage.core.model.selector import LabelSelector, Requirement
from moorage.core.snapshot.namespaces import Namespaces

#: Labels of a namespace by its name; None where nobody knows them.
NamespaceLabels = Callable[[str], Mapping[str, str]]

_NOTHING = PodQuery(frozenset(), LabelSelector())


@dataclass(frozen=True, slots=True, eq=False)
class OwnTerm:
    """One term as it is meant on the pod.

    ``query`` asks for the pods that it means, short of those in the namespaces that ``selected`` finds by their labels.
    """

    topology_key: str
    match: PodMatch
    weight: int
    query: PodQuery
    selected: LabelSelector | None

    def ask(self, namespaces: Namespaces) -> PodQuery:
        """The pods that the term means; of namespaces selected by labels, those that exist."""
        if self.selected is None:
            return self.query
        names = (self.query.namespaces or frozenset()) | namespaces.selected(self.selected)
        return PodQuery(names, self.query.selector)

    def means(self, pod: Pod, namespace_labels: NamespaceLabels | None) -> bool:
        """Whether the term means that pod; true if that depends on namespace labels that nobody knows."""
        labels: Mapping[str, str] = {}
        selector = self.match.namespace_selector
        if selector is not None and selector.requirements and pod.namespace not in self.match.namespaces:
            if namespace_labels is None:
                return self.match.selector is not None and self.match.selector.matches(pod.labels)
            labels = namespace_labels(pod.namespace)
        return self.match.matches(pod.namespace, pod.labels, labels)


@dataclass(frozen=True, slots=True, eq=False)
class OwnTerms:
    """The terms of one pod; ``preferred`` have negative weights where they are anti-affinity.

    ``together`` asks for the pods that all required terms mean at once, None if that depends on namespaces.
    """

    required: tuple[OwnTerm, ...] = ()
    required_anti: tuple[OwnTerm, ...] = ()
    preferred: tuple[OwnTerm, ...] = ()
    together: PodQuery | None = None

    def ask_together(self, namespaces: Namespaces) -> PodQuery:
        """The pods that all required terms mean at once: it takes one pod that satisfies every term."""
        if self.together is not None:
            return self.together
        return conjunction(term.ask(namespaces) for term in self.required)


NO_TERMS = OwnTerms()


def own_terms(pod: Pod) -> OwnTerms:
    """The pod's own terms."""
    affinity = pod.spec.pod_affinity
    if affinity is None:
        return NO_TERMS
    keys = affinity.label_keys
    values = tuple(map(pod.labels.get, keys)) if keys else ()
    return _own_terms(_ByIdentity(affinity), pod.namespace, values)


def conjunction(queries: Iterable[PodQuery]) -> PodQuery:
    """The pods that all of these queries mean."""
    namespaces: frozenset[str] | None = None
    requirements: list[Requirement] = []
    for query in queries:
        if query.namespaces is not None:
            namespaces = query.namespaces if namespaces is None else namespaces & query.namespaces
        requirements += query.selector.requirements
    return PodQuery(namespaces, LabelSelector(tuple(dict.fromkeys(requirements))))


class _ByIdentity:
    """An affinity as a cache key: comparing by value would cost more than what is cached."""

    __slots__ = ("affinity",)

    def __init__(self, affinity: PodAffinity) -> None:
        self.affinity = affinity

    def __hash__(self) -> int:
        return id(self.affinity)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ByIdentity) and other.affinity is self.affinity


@functools.lru_cache(maxsize=8192)
def _own_terms(key: _ByIdentity, namespace: str, values: tuple[str | None, ...]) -> OwnTerms:
    affinity = key.affinity
    labels = {k: v for k, v in zip(affinity.label_keys, values, strict=True) if v is not None}

    def own(term: PodAffinityTerm, weight: int) -> OwnTerm:
        match = term.meant(namespace, labels)
        query, selected = _question(match)
        return OwnTerm(term.topology_key, match, weight, query, selected)

    required = tuple(own(term, 1) for term in affinity.required)
    fixed = bool(required) and all(term.selected is None for term in required)
    return OwnTerms(
        required,
        tuple(own(term, 1) for term in affinity.required_anti),
        (
            *(own(weighted.term, weighted.weight) for weighted in affinity.preferred),
            *(own(weighted.term, -weighted.weight) for weighted in affinity.preferred_anti),
        ),
        conjunction(term.query for term in required) if fixed else None,
    )


def _question(match: PodMatch) -> tuple[PodQuery, LabelSelector | None]:
    """What to ask for, and the selector of further namespaces whose names are not known beforehand."""
    if match.selector is None:
        return _NOTHING, None
    namespaces, selected = match.namespaces, match.namespace_selector
    if selected is None or selected.requirements:
        return PodQuery(namespaces, match.selector), selected
    return PodQuery(None, match.selector), None
