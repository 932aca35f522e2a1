"""Pods that a manifest stands for: those it lists, and those that its workloads would make."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from moorage.cli.cluster import Source

#: Kind -> where its spec says how many pods there are to be.
_WORKLOADS: Final = {
    "Deployment": "replicas",
    "ReplicaSet": "replicas",
    "StatefulSet": "replicas",
    "ReplicationController": "replicas",
    "Job": "parallelism",
}
_HASH: Final = "pod-template-hash"


@dataclass(frozen=True, slots=True)
class Template:
    """A pod template with the number of pods it stands for; ``companion`` is an object that comes with them."""

    name: str
    pod: Mapping[str, Any]
    count: int
    source: Source
    numbered: bool = True
    companion: Mapping[str, Any] | None = None

    def pods(self, count: int) -> Iterator[dict[str, Any]]:
        """So many of its pods."""
        for number in range(count):
            pod = copy.copy(dict(self.pod))
            if self.numbered or count > 1:
                metadata = pod["metadata"]
                pod["metadata"] = {**metadata, "name": f"{metadata['name']}-{number}"}
            yield pod


def template_of(obj: object, source: Source) -> Template | None:
    """The template of a pending pod or a workload, None for anything else."""
    if not isinstance(obj, Mapping) or not isinstance(obj.get("metadata"), Mapping):
        return None
    kind, metadata = obj.get("kind"), obj["metadata"]
    spec = obj.get("spec")
    name = metadata.get("name") or metadata.get("generateName")
    if not isinstance(spec, Mapping) or not isinstance(name, str):
        return None
    namespace = metadata.get("namespace") or "default"
    label = f"{kind} {namespace}/{name}"
    if kind == "Pod":
        if spec.get("nodeName"):
            return None
        # Of a pod that was there once, only what its like would be made from.
        kept = {key: value for key, value in metadata.items() if key not in ("uid", "resourceVersion")}
        kept |= {"name": name.rstrip("-"), "namespace": namespace}
        pod = {**{key: value for key, value in obj.items() if key != "status"}, "metadata": kept}
        return Template(label, pod, 1, source, numbered=False)
    if kind not in _WORKLOADS or not isinstance(spec.get("template"), Mapping):
        return None
    count = spec.get(_WORKLOADS[kind])
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        count = 1
    return _workload(kind, name, namespace, label, obj, count, source)


def _workload(
    kind: str, name: str, namespace: str, label: str, obj: Mapping[str, Any], count: int, source: Source
) -> Template:
    template = obj["spec"]["template"]
    given = template.get("metadata")
    metadata = dict(given) if isinstance(given, Mapping) else {}
    owner_kind, owner_version, companion = kind, obj.get("apiVersion"), None
    if kind == "Deployment":  # its pods belong to a ReplicaSet, which spreads them
        metadata["labels"] = {**(metadata.get("labels") or {}), _HASH: "what-if"}
        owner_kind = "ReplicaSet"
        selector = dict(obj["spec"].get("selector") or {})
        selector["matchLabels"] = {**(selector.get("matchLabels") or {}), _HASH: "what-if"}
        companion = {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {"name": f"{name}-what-if", "namespace": namespace},
            "spec": {"selector": selector, "template": template},
        }
        name = f"{name}-what-if"
    owner = {"apiVersion": owner_version, "kind": owner_kind, "name": name, "uid": f"what-if-{kind}-{name}"}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **metadata,
            "name": name,
            "namespace": namespace,
            "ownerReferences": [{**owner, "controller": True}],
        },
        "spec": template.get("spec"),
    }
    return Template(label, pod, count, source, companion=companion)
