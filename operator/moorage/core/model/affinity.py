"""Inter-pod affinity: terms that draw a pod towards other pods, or away from them.

Source of the rules: the Kubernetes API documentation of ``PodAffinityTerm``.  A term is written relative to
the pod that carries it (its namespace, its labels); ``meant`` makes it absolute.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from moorage.core.model.selector import LabelSelector, Operator, Requirement


@dataclass(frozen=True, slots=True)
class PodMatch:
    """Which pods a term means: those whose labels the selector matches, in these namespaces or selected ones.

    A ``selector`` or ``namespace_selector`` of None matches nothing, one without requirements everything.
    """

    namespaces: frozenset[str]
    namespace_selector: LabelSelector | None
    selector: LabelSelector | None

    def matches(self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]) -> bool:
        """Whether the term means a pod of that namespace and those labels."""
        if self.selector is None:
            return False
        if namespace not in self.namespaces and (
            self.namespace_selector is None or not self.namespace_selector.matches(namespace_labels)
        ):
            return False
        return self.selector.matches(labels)


@dataclass(frozen=True, slots=True)
class PodAffinityTerm:
    """Pods to be near to, or away from, and what counts as near: the same value of the node label ``topology_key``.

    ``namespaces`` are those listed; ``namespace_selector`` None is absent.  Without either, the pod's own
    namespace is meant.  ``match_label_keys`` and ``mismatch_label_keys`` are those that the API server has
    not merged into the selector already.
    """

    topology_key: str
    selector: LabelSelector | None = None
    namespaces: frozenset[str] = frozenset()
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()

    def meant(self, namespace: str, labels: Mapping[str, str]) -> PodMatch:
        """The pods that the term means on a pod of that namespace with those labels.

        A key that the pod does not carry is left out of account.
        """
        selector = self.selector
        if selector is not None and (self.match_label_keys or self.mismatch_label_keys):
            merged = [
                Requirement(key, operator, (labels[key],))
                for operator, keys in (
                    (Operator.IN, self.match_label_keys),
                    (Operator.NOT_IN, self.mismatch_label_keys),
                )
                for key in keys
                if key in labels
            ]
            selector = LabelSelector((*selector.requirements, *merged))
        if not self.namespaces and self.namespace_selector is None:
            return PodMatch(frozenset((namespace,)), None, selector)
        return PodMatch(self.namespaces, self.namespace_selector, selector)


@dataclass(frozen=True, slots=True)
class WeightedTerm:
    """A term that adds ``weight`` (1..100) to the score of nodes near each pod that it means."""

    weight: int
    term: PodAffinityTerm


@dataclass(frozen=True, slots=True)
class PodAffinity:
    """``affinity.podAffinity`` and ``affinity.podAntiAffinity`` of one pod template.

    ``label_keys`` are the keys of the pod's own labels that its terms depend on.
    """

    required: tuple[PodAffinityTerm, ...] = ()
    required_anti: tuple[PodAffinityTerm, ...] = ()
    preferred: tuple[WeightedTerm, ...] = ()
    preferred_anti: tuple[WeightedTerm, ...] = ()
    label_keys: tuple[str, ...] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        terms = (*self.required, *self.required_anti)
        terms += tuple(weighted.term for weighted in (*self.preferred, *self.preferred_anti))
        keys = {key for term in terms for key in (*term.match_label_keys, *term.mismatch_label_keys)}
        object.__setattr__(self, "label_keys", tuple(sorted(keys)))
