"""What an API server does to objects when they are created, for clusters that exist in files only.

Objects in a manifest are terse: a namespace, a uid, requests, a priority may be missing.  They are completed
here as the API server's defaulting, its Priority admission plugin and the pod strategy would.  Nothing given is
changed in place.  What ``convert`` takes for granted anyway (protocol TCP, the host ports of a pod on the host's
network, the scheduler's name, a toleration's operator) is not written down a second time.

Not done: other admission plugins (default tolerations, LimitRanger), what the kubelet adds to nodes
(a hostname label; a pod capacity, without which no pod fits), and merging ``matchLabelKeys``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from moorage.adapters.kube.fields import Reader
from moorage.adapters.kube.kinds import Kind, list_of
from moorage.adapters.kube.pod_requests import container_total, is_pod_level

Obj = Mapping[str, Any]

#: Classes that every cluster has.
_SYSTEM_CLASSES: Final[Mapping[str, int]] = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}


def expand(obj: object, path: str = "") -> Iterator[tuple[str, object]]:
    """The objects in a List (or PodList, NodeList …), however deep, each with its path; others as they are."""
    kind = obj.get("kind") if isinstance(obj, Mapping) else None
    of = list_of(kind) if isinstance(kind, str) else None
    if of is None or not isinstance(obj, Mapping) or not isinstance(obj.get("items"), Sequence):
        yield path, obj
        return
    for index, item in enumerate(obj["items"]):
        if of and isinstance(item, Mapping) and "kind" not in item:
            item = {"apiVersion": obj.get("apiVersion"), "kind": of, **item}  # as the API server lists them
        yield from expand(item, f"{path}.items[{index}]" if path else f"items[{index}]")


def with_identity(obj: Obj, kind: Kind, serial: int) -> dict[str, Any]:
    """The object with namespace, uid and resource version; ``serial`` makes up the latter."""
    metadata = dict(_object(obj, "metadata"))
    if kind.namespaced:
        metadata["namespace"] = metadata.get("namespace") or "default"
    else:
        metadata.pop("namespace", None)
    key = metadata.get("name")
    if kind.namespaced:
        key = f"{metadata['namespace']}/{key}"
    metadata["uid"] = metadata.get("uid") or f"{kind.name.lower()}:{key}"
    metadata["resourceVersion"] = metadata.get("resourceVersion") or str(serial)
    metadata.pop("managedFields", None)
    return {**obj, "metadata": metadata}


def complete_node(node: Obj) -> dict[str, Any]:
    """A node without allocatable can give away its whole capacity."""
    status = _object(node, "status")
    if status.get("allocatable") is None and status.get("capacity") is not None:
        return {**node, "status": {**status, "allocatable": status["capacity"]}}
    return dict(node)


def complete_pod(pod: Obj) -> dict[str, Any]:
    """A pod with the requests that its limits and its containers imply."""
    spec = dict(_object(pod, "spec"))
    for key in ("containers", "initContainers"):
        if isinstance(spec.get(key), list):
            spec[key] = [_complete_container(container) for container in spec[key]]
    if isinstance(spec.get("resources"), Mapping):
        spec["resources"] = _complete_pod_level(spec)
    return {**pod, "spec": spec}


class PriorityClasses:
    """The classes of one cluster, and the priority they give to a pod that has none."""

    def __init__(self) -> None:
        self._classes: dict[str, Obj] = {}
        self._fallback: Obj | None = None

    def add(self, priority_class: Obj) -> None:
        """Take in a class; of several global defaults the lowest counts."""
        self._classes[_object(priority_class, "metadata").get("name", "")] = priority_class
        is_lower = self._fallback is None or _value(priority_class) < _value(self._fallback)
        if priority_class.get("globalDefault") is True and is_lower:
            self._fallback = priority_class

    def apply(self, pod: Obj) -> tuple[dict[str, Any], str]:
        """The pod with its priority, and what is wrong with the class it names ("" if nothing is)."""
        spec = _object(pod, "spec")
        if spec.get("priority") is not None:
            return dict(pod), ""
        name = spec.get("priorityClassName") or ""
        found = self._classes.get(name) if name else self._fallback
        warning = ""
        if found is not None:
            policy = found.get("preemptionPolicy") or "PreemptLowerPriority"
            added = {"priority": _value(found), "preemptionPolicy": policy}
        else:
            added = {"priority": _SYSTEM_CLASSES.get(name, 0)}
            if name and name not in _SYSTEM_CLASSES:
                warning = f"there is no PriorityClass {name!r}; priority 0 is taken"
        return {**pod, "spec": {**spec, **added}}, warning


def _value(priority_class: Obj) -> int:
    return Reader().whole(priority_class.get("value"), "value")


def _complete_container(container: object) -> object:
    """What a container limits without requesting it, it requests up to the limit."""
    if not isinstance(container, Mapping):
        return container
    resources = container.get("resources")
    if not isinstance(resources, Mapping) or not isinstance(resources.get("limits"), Mapping):
        return container
    requests = resources.get("requests")
    if requests is not None and not isinstance(requests, Mapping):
        return container
    return {**container, "resources": {**resources, "requests": {**resources["limits"], **(requests or {})}}}


def _complete_pod_level(spec: Obj) -> dict[str, Any]:
    """Requests of the pod as a whole, where only a part of them is given (KEP-2837).

    Huge pages take the containers' limits as the pod's limit.  Cpu and memory take what the containers request
    together, if they do; for whatever is then still missing, the pod's limit is requested.
    """
    resources = dict(spec["resources"])
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    if not isinstance(limits, Mapping) or not isinstance(requests, Mapping) or not (limits or requests):
        return resources
    limits, requests = dict(limits), dict(requests)
    containers = {key: spec.get(key) for key in ("containers", "initContainers")}
    for name, millis in container_total(containers, Reader(), "limits").items():
        if name.startswith("hugepages-") and name not in requests:
            limits.setdefault(name, f"{millis}m")
    for name, millis in container_total(containers, Reader()).items():
        if is_pod_level(name) and not name.startswith("hugepages-"):
            requests.setdefault(name, f"{millis}m")
    for name, limit in limits.items():
        if is_pod_level(name):
            requests.setdefault(name, limit)
    return {**resources, "limits": limits, "requests": requests}


def _object(obj: Obj, key: str) -> Mapping[str, Any]:
    value = obj.get(key)
    return value if isinstance(value, Mapping) else {}
