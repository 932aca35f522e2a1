"""Label and node selectors, from JSON to the model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from moorage.adapters.kube.fields import Reader
from moorage.core.model.selector import (
    LabelSelector,
    NodeSelector,
    NodeSelectorTerm,
    Operator,
    PreferredTerm,
    Requirement,
)

_OPERATORS: Final = {operator.value: operator for operator in Operator}


def read_label_selector(value: object, path: str, reader: Reader) -> LabelSelector | None:
    """A ``LabelSelector``; None if it is missing, which matches nothing."""
    if value is None:
        return None
    selector = reader.mapping(value, path)
    labels = reader.text_map(selector.get("matchLabels"), f"{path}.matchLabels")
    return LabelSelector(
        (
            *(Requirement(key, Operator.IN, (labels[key],)) for key in sorted(labels)),
            *read_requirements(selector.get("matchExpressions"), f"{path}.matchExpressions", reader),
        )
    )


def read_node_affinity(
    value: object, path: str, reader: Reader
) -> tuple[NodeSelector | None, tuple[PreferredTerm, ...]]:
    """The required and the preferred half of a ``NodeAffinity``."""
    affinity = reader.mapping(value, path)
    required = None
    key = "requiredDuringSchedulingIgnoredDuringExecution"
    if affinity.get(key) is not None:
        where = f"{path}.{key}.nodeSelectorTerms"
        terms = reader.mapping(affinity[key], f"{path}.{key}").get("nodeSelectorTerms")
        required = NodeSelector(tuple(_term(term, at, reader) for at, term in reader.objects(terms, where)))
    key = "preferredDuringSchedulingIgnoredDuringExecution"
    preferred = []
    for at, item in reader.objects(affinity.get(key), f"{path}.{key}"):
        weight = reader.whole(item.get("weight"), f"{at}.weight")
        term = _term(reader.mapping(item.get("preference"), f"{at}.preference"), f"{at}.preference", reader)
        preferred.append(PreferredTerm(weight, term))
    return required, tuple(preferred)


def read_requirements(value: object, path: str, reader: Reader) -> Iterator[Requirement]:
    """A list of requirements; one with an unknown operator is reported and left out."""
    for at, item in reader.objects(value, path):
        name = reader.text(item.get("operator"), f"{at}.operator")
        operator = _OPERATORS.get(name)
        if operator is None:
            known = ", ".join(_OPERATORS)
            reader.report(f"{at}.operator", f"unknown operator {name!r}, must be one of {known}")
            continue
        key = reader.text(item.get("key"), f"{at}.key")
        yield Requirement(key, operator, reader.texts(item.get("values"), f"{at}.values"))


def _term(term: Mapping[str, Any], path: str, reader: Reader) -> NodeSelectorTerm:
    return NodeSelectorTerm(
        tuple(read_requirements(term.get("matchExpressions"), f"{path}.matchExpressions", reader)),
        tuple(read_requirements(term.get("matchFields"), f"{path}.matchFields", reader)),
    )
