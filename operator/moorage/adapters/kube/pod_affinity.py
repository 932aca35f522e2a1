"""``affinity.podAffinity`` and ``affinity.podAntiAffinity``, from JSON to the model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from moorage.adapters.kube.fields import Reader
from moorage.adapters.kube.selectors import read_label_selector
from moorage.core.model.affinity import PodAffinity, PodAffinityTerm, WeightedTerm
from moorage.core.model.selector import LabelSelector, Operator

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def read_pod_affinity(affinity: Mapping[str, Any], path: str, reader: Reader) -> PodAffinity | None:
    """The inter-pod half of a pod's ``affinity``; None if it has no term."""
    near = reader.mapping(affinity.get("podAffinity"), f"{path}.podAffinity")
    away = reader.mapping(affinity.get("podAntiAffinity"), f"{path}.podAntiAffinity")
    read = PodAffinity(
        required=tuple(_required(near, f"{path}.podAffinity", reader)),
        required_anti=tuple(_required(away, f"{path}.podAntiAffinity", reader)),
        preferred=tuple(_preferred(near, f"{path}.podAffinity", reader)),
        preferred_anti=tuple(_preferred(away, f"{path}.podAntiAffinity", reader)),
    )
    return read if read.required or read.required_anti or read.preferred or read.preferred_anti else None


def _required(kind: Mapping[str, Any], path: str, reader: Reader) -> Iterator[PodAffinityTerm]:
    for at, term in reader.objects(kind.get(_REQUIRED), f"{path}.{_REQUIRED}"):
        yield _term(term, at, reader)


def _preferred(kind: Mapping[str, Any], path: str, reader: Reader) -> Iterator[WeightedTerm]:
    for at, item in reader.objects(kind.get(_PREFERRED), f"{path}.{_PREFERRED}"):
        weight = reader.whole(item.get("weight"), f"{at}.weight")
        term = reader.mapping(item.get("podAffinityTerm"), f"{at}.podAffinityTerm")
        yield WeightedTerm(weight, _term(term, f"{at}.podAffinityTerm", reader))


def _term(term: Mapping[str, Any], path: str, reader: Reader) -> PodAffinityTerm:
    selector = read_label_selector(term.get("labelSelector"), f"{path}.labelSelector", reader)
    match = reader.texts(term.get("matchLabelKeys"), f"{path}.matchLabelKeys")
    mismatch = reader.texts(term.get("mismatchLabelKeys"), f"{path}.mismatchLabelKeys")
    return PodAffinityTerm(
        topology_key=reader.text(term.get("topologyKey"), f"{path}.topologyKey"),
        selector=selector,
        namespaces=frozenset(reader.texts(term.get("namespaces"), f"{path}.namespaces")),
        namespace_selector=read_label_selector(
            term.get("namespaceSelector"), f"{path}.namespaceSelector", reader
        ),
        match_label_keys=_not_merged(match, Operator.IN, selector),
        mismatch_label_keys=_not_merged(mismatch, Operator.NOT_IN, selector),
    )


def _not_merged(keys: tuple[str, ...], operator: Operator, selector: LabelSelector | None) -> tuple[str, ...]:
    """The keys that the selector does not ask for yet, by a requirement of one value.

    The API server writes the pod's values into the selector when the pod is created and never again, and kube-scheduler
    reads the selector only; a pod from a manifest has not been there.
    """
    if selector is None:
        return ()
    merged = {r.key for r in selector.requirements if r.operator is operator and len(r.values) == 1}
    return tuple(key for key in keys if key not in merged)
