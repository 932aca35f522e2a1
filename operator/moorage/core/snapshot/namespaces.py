"""The namespaces and their labels, for terms that select pods by namespace labels."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from moorage.core.model.selector import LabelSelector
from moorage.core.model.workload import Namespace

_NONE: Mapping[str, str] = MappingProxyType({})


class Namespaces:
    """Namespace labels by name; ``epoch`` changes with every change that a selector could see."""

    _KEPT = 1024

    def __init__(self) -> None:
        self.epoch = 0
        self._labels: dict[str, Mapping[str, str]] = {}
        self._selected: dict[LabelSelector, frozenset[str]] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._labels

    def labels(self, name: str) -> Mapping[str, str]:
        """The labels of a namespace; one that is not known has none."""
        return self._labels.get(name, _NONE)

    def selected(self, selector: LabelSelector) -> frozenset[str]:
        """The names of the known namespaces that a selector matches."""
        found = self._selected.get(selector)
        if found is None:
            if len(self._selected) >= self._KEPT:
                self._selected.clear()
            found = frozenset(name for name, labels in self._labels.items() if selector.matches(labels))
            self._selected[selector] = found
        return found

    def apply(self, namespace: Namespace) -> Namespace | None:
        """Add or replace a namespace; returns what it was before, the same object if nothing changed."""
        before = self._labels.get(namespace.name)
        if before == namespace.labels:
            return namespace
        self._labels[namespace.name] = namespace.labels
        self._changed()
        return None if before is None else Namespace(namespace.name, before)

    def remove(self, name: str) -> None:
        """The namespace is gone."""
        if self._labels.pop(name, None) is not None:
            self._changed()

    def _changed(self) -> None:
        self.epoch += 1
        self._selected.clear()
