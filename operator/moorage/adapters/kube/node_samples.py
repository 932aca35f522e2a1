"""NodeMetrics of metrics.k8s.io: what nodes really used at some time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moorage.adapters.kube.fields import Reader
from moorage.adapters.kube.resource_lists import base_units, read_list
from moorage.core.model.events import UsageSample


def read_node_sample(obj: Mapping[str, Any], reader: Reader) -> tuple[str, UsageSample]:
    """The name of the node and its sample."""
    name = reader.text(reader.mapping(obj.get("metadata"), "metadata").get("name"), "metadata.name")
    if obj.get("timestamp") is None:
        reader.report("timestamp", "is missing")
    at = reader.time(obj.get("timestamp"), "timestamp")
    return name, UsageSample(at, base_units(read_list(reader, obj.get("usage"), "usage")))
