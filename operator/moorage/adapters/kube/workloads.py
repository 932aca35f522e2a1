"""Namespaces, Services and controllers, from JSON to as much of them as scheduling reads.

Nothing here raises for a bad field: what cannot be read selects nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from moorage.adapters.kube.fields import Reader
from moorage.adapters.kube.selectors import read_label_selector
from moorage.core.model.selector import LabelSelector
from moorage.core.model.workload import Namespace, Workload, WorkloadKind

#: The kinds by their names.
WORKLOAD_KINDS: Final[Mapping[str, WorkloadKind]] = {kind.value: kind for kind in WorkloadKind}
_BY_LABELS: Final = (WorkloadKind.SERVICE, WorkloadKind.REPLICATION_CONTROLLER)


def read_namespace(obj: Mapping[str, Any]) -> Namespace:
    """A namespace; a label that cannot be read counts as absent."""
    metadata = obj["metadata"]
    return Namespace(metadata["name"], Reader().text_map(metadata.get("labels"), "metadata.labels"))


def read_workload(obj: Mapping[str, Any], kind: WorkloadKind) -> Workload:
    """A Service or a controller of that kind."""
    metadata = obj["metadata"]
    reader = Reader()
    selector = reader.mapping(obj.get("spec"), "spec").get("selector")
    labels: Mapping[str, str] = {}
    requirements: LabelSelector | None = None
    if kind in _BY_LABELS:
        labels = reader.text_map(selector, "spec.selector")
    else:
        requirements = read_label_selector(selector, "spec.selector", reader)
    if reader.problems:
        labels, requirements = {}, None
    return Workload(kind, metadata.get("namespace") or "default", metadata["name"], labels, requirements)
