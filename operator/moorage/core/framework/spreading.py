"""A pod's own spread constraints, ready to be counted: worked out once for alike pods."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from moorage.core.model.pod import Pod, PodSpec
from moorage.core.model.pod_query import PodQuery
from moorage.core.model.selector import LabelSelector
from moorage.core.model.spread import SpreadConstraint, SpreadDefaults
from moorage.core.snapshot.topology import NodeRules

#: Counts no pod at all.
_NOTHING = PodQuery(frozenset(), LabelSelector(), terminating=False)


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """One constraint as it is meant on the pod.

    ``query`` asks for the pods to count: none for a selector that is empty, although such a selector matches
    the pod itself, and those that come and go in a dry run.
    """

    constraint: SpreadConstraint
    selector: LabelSelector | None
    query: PodQuery
    rules: NodeRules | None

    @property
    def uncounted(self) -> bool:
        """Whether it matches pods that it does not count."""
        return self.selector is not None and not self.selector.requirements

    def means(self, pod: Pod) -> bool:
        """Whether the selector matches the pod's labels; its namespace is the caller's to compare."""
        return self.selector is not None and self.selector.matches(pod.labels)


@dataclass(frozen=True, slots=True, eq=False)
class Spreads:
    """The hard or the soft constraints of one pod, and the topology keys that all of them name."""

    items: tuple[Spread, ...]
    keys: tuple[str, ...]


def unasked_spreads(pod: Pod, defaults: SpreadDefaults) -> Spreads:
    """The hard constraints of the configuration, for a pod without any of its own, whatever its peers are."""
    return _default_spreads(pod.spec, defaults, _NOTHING, True)


def own_spreads(pod: Pod, *, hard: bool) -> Spreads:
    """The pod's own hard, or soft, constraints."""
    spec = pod.spec
    keys = _label_keys(spec)
    values = tuple(map(pod.labels.get, keys)) if keys else ()
    return _own_spreads(spec, pod.namespace, values, hard)


def default_spreads(pod: Pod, defaults: SpreadDefaults, query: PodQuery, *, hard: bool) -> Spreads:
    """Constraints of the configuration, for a pod without any of its own; ``query`` asks for the pod's peers."""
    return _default_spreads(pod.spec, defaults, query, hard)


@functools.lru_cache(maxsize=4096)
def _label_keys(spec: PodSpec) -> tuple[str, ...]:
    return tuple(dict.fromkeys(key for c in spec.spread for key in c.match_label_keys))


@functools.lru_cache(maxsize=8192)
def _own_spreads(spec: PodSpec, namespace: str, values: tuple[str | None, ...], hard: bool) -> Spreads:
    labels = {k: v for k, v in zip(_label_keys(spec), values, strict=True) if v is not None}
    items = []
    for constraint in spec.spread:
        if constraint.hard is hard:
            selector = constraint.selector_for(labels)
            query = _NOTHING
            if selector is not None and selector.requirements:
                query = PodQuery(frozenset((namespace,)), selector, terminating=False)
            items.append(Spread(constraint, selector, query, _rules(spec, constraint)))
    return Spreads(tuple(items), _keys(items))


@functools.lru_cache(maxsize=8192)
def _default_spreads(
    spec: PodSpec,
    defaults: SpreadDefaults,
    query: PodQuery,
    hard: bool,
) -> Spreads:
    wanted = [constraint for constraint in defaults.constraints if constraint.hard is hard]
    items = [Spread(constraint, query.selector, query, _rules(spec, constraint)) for constraint in wanted]
    return Spreads(tuple(items), _keys(items))


def _keys(items: list[Spread]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(spread.constraint.topology_key for spread in items))


def _rules(spec: PodSpec, constraint: SpreadConstraint) -> NodeRules | None:
    return NodeRules.of(
        spec.node_selector if constraint.honor_affinity else {},
        spec.required if constraint.honor_affinity else None,
        spec.tolerations if constraint.honor_taints else None,
    )
