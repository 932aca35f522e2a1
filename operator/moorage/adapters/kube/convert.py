"""API objects, as raw JSON, to the core's pods and nodes.

This is on the path of every event of every pod, so what pods have in common is read once: pods of one template
share a ``PodSpec``, labels, owner and so on.  Nothing here raises for a bad field (see ``Converter``).
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final
from weakref import WeakValueDictionary

import orjson

from moorage.adapters.kube.fields import INT64, Reader, kind_of
from moorage.adapters.kube.pod_requests import requests_on_node
from moorage.adapters.kube.pod_spec import read_pod_spec, relevant_parts
from moorage.adapters.kube.pod_volumes import read_pod_volumes
from moorage.adapters.kube.resource_lists import base_units, read_list
from moorage.adapters.kube.selectors import read_label_selector
from moorage.adapters.kube.sharing import Recent, Sharing
from moorage.core.model.budget import DisruptionBudget
from moorage.core.model.node import Node
from moorage.core.model.pod import OwnerRef, Pod, PodSpec
from moorage.core.model.pod_volumes import PodVolumes
from moorage.core.model.resources import Requests
from moorage.core.model.taint import Taint

_FINISHED: Final = ("Succeeded", "Failed")
_NO_CONDITION: Final = ("", "", "")
_NO_HOLDS: Final[frozenset[str]] = frozenset()
_SCHEDULED, _DISRUPTED = "PodScheduled", "DisruptionTarget"
#: Ours, as ``core/turns.py`` has it set.
_OVERDUE = "moorage.dev/PendingDeadlineExceeded"


class MalformedObject(ValueError):
    """Not even the identity of the object can be read; ``field`` is the path of what is wrong."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field


class Converter:
    """Reads pods and nodes; one instance for all of them, so that they share what is equal.

    A pod with a field that cannot be read gets the reason into ``spec.invalid`` and is refused later, with
    these words.  A node's unreadable field counts as absent and is named in ``Node.invalid``.  Only an object
    without an identity raises ``MalformedObject``.

    ``PodSpec`` objects live as long as a pod that uses them, and the most recent ones a bit longer: a template
    whose pods come one at a time is still read once, and templates that are gone do not fill the memory.

    ``holds`` says which expressions of policies are true of a raw pod (``Pod.holds``); it must not raise.
    """

    def __init__(
        self,
        *,
        recent_templates: int = 1024,
        shared_values: int = 8192,
        holds: Callable[[Mapping[str, Any]], frozenset[str]] | None = None,
    ) -> None:
        self._specs: WeakValueDictionary[bytes, PodSpec] = WeakValueDictionary()
        self._recent: Recent[bytes, PodSpec] = Recent(recent_templates)
        self._resized: Recent[tuple[bytes, bytes], Requests] = Recent(recent_templates)
        self._sharing = Sharing(shared_values)
        self._holds = holds

    def pod(self, obj: Mapping[str, Any]) -> Pod:
        """Read a pod."""
        metadata, name, uid = _identity(obj)
        reader = Reader()
        raw_spec = reader.mapping(obj.get("spec"), "spec")
        status = reader.mapping(obj.get("status"), "status")
        digest, spec = self._spec(raw_spec)
        node_name = sys.intern(reader.text(raw_spec.get("nodeName"), "spec.nodeName"))
        requests = self._requests(digest, spec, raw_spec, status, reader) if node_name else spec.requests
        started = status.get("startTime")
        deleting = metadata.get("deletionTimestamp") is not None
        conditions = status.get("conditions")
        pod = Pod(
            namespace=sys.intern(reader.text(metadata.get("namespace"), "metadata.namespace") or "default"),
            name=name,
            uid=uid,
            spec=spec,
            requests=requests,
            resource_version=reader.text(metadata.get("resourceVersion"), "metadata.resourceVersion"),
            generation=reader.whole(metadata.get("generation"), "metadata.generation", INT64),
            labels=self._text_map(metadata.get("labels"), "metadata.labels", reader),
            node_name=node_name,
            volumes=self._volumes(raw_spec.get("volumes"), name, reader),
            created=reader.time(metadata.get("creationTimestamp"), "metadata.creationTimestamp"),
            started=None if started is None else reader.time(started, "status.startTime"),
            deleting=deleting,
            preempted=deleting and _preempted(conditions, reader),
            finished=status.get("phase") in _FINISHED,
            nominated_node=reader.text(status.get("nominatedNodeName"), "status.nominatedNodeName"),
            gates=_gates(raw_spec.get("schedulingGates"), reader),
            owner=self._owner(metadata.get("ownerReferences"), reader),
            overdue=_has(conditions, _OVERDUE, reader),
            holds=_NO_HOLDS if self._holds is None else self._holds(obj),
            scheduled_condition=self._scheduled(conditions, reader),
        )
        if reader.problems:
            invalid = dict.fromkeys((*spec.invalid, *_lines(reader)))
            pod = replace(pod, spec=replace(spec, invalid=tuple(invalid)))
        return pod

    def node(self, obj: Mapping[str, Any]) -> Node:
        """Read a node."""
        metadata, name, uid = _identity(obj, need_uid=False)
        reader = Reader()
        spec = reader.mapping(obj.get("spec"), "spec")
        status = reader.mapping(obj.get("status"), "status")
        conditions = tuple(
            (reader.text(item.get("type"), f"{path}.type"), reader.text(item.get("status"), f"{path}.status"))
            for path, item in reader.objects(status.get("conditions"), "status.conditions")
        )
        node = Node(
            name=sys.intern(name),
            uid=uid,
            labels=reader.text_map(metadata.get("labels"), "metadata.labels"),
            annotations=reader.text_map(metadata.get("annotations"), "metadata.annotations"),
            taints=self._sharing.value(_taints(spec.get("taints"), reader)),
            unschedulable=reader.flag(spec.get("unschedulable"), "spec.unschedulable"),
            allocatable=base_units(
                read_list(reader, status.get("allocatable"), "status.allocatable"), also_pods=True
            ),
            images=_images(status.get("images"), reader),
            ready=dict(conditions).get("Ready", ""),
            condition_statuses=self._sharing.value(conditions),
            declared_features=self._sharing.value(
                reader.texts(status.get("declaredFeatures"), "status.declaredFeatures")
            ),
        )
        return replace(node, invalid=_lines(reader)) if reader.problems else node

    def budget(self, obj: Mapping[str, Any]) -> DisruptionBudget:
        """Read a PodDisruptionBudget; a selector that cannot be read guards nothing."""
        metadata, name, _ = _identity(obj, need_uid=False)
        reader = Reader()
        spec = reader.mapping(obj.get("spec"), "spec")
        status = reader.mapping(obj.get("status"), "status")
        selector = read_label_selector(spec.get("selector"), "spec.selector", reader)
        return DisruptionBudget(
            namespace=reader.text(metadata.get("namespace"), "metadata.namespace") or "default",
            name=name,
            selector=None if reader.problems else selector,
            allowed=reader.whole(status.get("disruptionsAllowed"), "status.disruptionsAllowed"),
            disrupted=frozenset(reader.mapping(status.get("disruptedPods"), "status.disruptedPods")),
        )

    def _spec(self, raw: Mapping[str, Any]) -> tuple[bytes, PodSpec]:
        try:
            parts = orjson.dumps(relevant_parts(raw))
        except (TypeError, AttributeError, KeyError, ValueError, RecursionError):
            parts = repr(raw).encode(errors="replace")  # not well-formed: shared only with its equals
        digest = hashlib.blake2b(parts, digest_size=16).digest()
        spec = self._specs.get(digest)
        if spec is None:
            spec = read_pod_spec(raw, Reader(), self._sharing)
            self._specs[digest] = spec
        if self._recent.get(digest) is None:
            self._recent.put(digest, spec)
        return digest, spec

    def _requests(
        self,
        digest: bytes,
        spec: PodSpec,
        raw_spec: Mapping[str, Any],
        status: Mapping[str, Any],
        reader: Reader,
    ) -> Requests:
        """What a pod on a node counts as: by its spec, unless its status tells of other amounts."""
        try:
            parts = _resize_parts(status)
            if parts is None:
                return spec.requests
            key = (digest, orjson.dumps(parts))
        except (TypeError, AttributeError, ValueError):  # not well-formed: let the reader say so
            return requests_on_node(raw_spec, status, reader)
        known = self._resized.get(key)
        if known is None:
            mine = Reader()  # the spec's own problems are in spec.invalid already
            known = requests_on_node(raw_spec, status, mine)
            reader.problems += [problem for problem in mine.problems if problem[0].startswith("status.")]
            if known == spec.requests:
                known = spec.requests
            if not mine.problems:
                self._resized.put(key, known)
        return known

    def _text_map(self, value: object, path: str, reader: Reader) -> Mapping[str, str]:
        if isinstance(value, dict):
            try:
                return self._sharing.under(("text", *value.items()), lambda: _checked(value, path))
            except TypeError:  # an unhashable value, or one that is not a string
                pass
        return reader.text_map(value, path)

    def _volumes(self, value: object, pod_name: str, reader: Reader) -> PodVolumes:
        volumes = read_pod_volumes(value, pod_name, reader)
        return self._sharing.value(volumes) if volumes else volumes

    def _owner(self, value: object, reader: Reader) -> OwnerRef | None:
        if value is None:
            return None
        for path, item in reader.objects(value, "metadata.ownerReferences"):
            if item.get("controller") is True:
                kind = reader.text(item.get("kind"), f"{path}.kind")
                name = reader.text(item.get("name"), f"{path}.name")
                uid = reader.text(item.get("uid"), f"{path}.uid")
                version = reader.text(item.get("apiVersion"), f"{path}.apiVersion")
                return self._sharing.value(OwnerRef(kind, name, uid, sys.intern(version)))
        return None

    def _scheduled(self, value: object, reader: Reader) -> tuple[str, str, str]:
        if value is None:
            return _NO_CONDITION
        for path, item in reader.objects(value, "status.conditions"):
            if item.get("type") == _SCHEDULED:
                status = reader.text(item.get("status"), f"{path}.status")
                reason = reader.text(item.get("reason"), f"{path}.reason")
                message = reader.text(item.get("message"), f"{path}.message")
                return self._sharing.value((status, reason, message))
        return _NO_CONDITION


def _identity(obj: Mapping[str, Any], *, need_uid: bool = True) -> tuple[Mapping[str, Any], str, str]:
    if not isinstance(obj, Mapping):
        raise MalformedObject("", f"must be an object, not {kind_of(obj)}")
    metadata = obj.get("metadata")
    if not isinstance(metadata, Mapping):
        raise MalformedObject("metadata", f"must be an object, not {kind_of(metadata)}")
    name, uid = metadata.get("name"), metadata.get("uid")
    if not isinstance(name, str) or not name:
        raise MalformedObject("metadata.name", "must be a string" if name else "is missing")
    if not isinstance(uid, str) or not uid:
        if need_uid or uid:
            raise MalformedObject("metadata.uid", "must be a string" if uid else "is missing")
        uid = ""
    return metadata, name, uid


def _resize_parts(status: Mapping[str, Any]) -> list[Any] | None:
    """The parts of a pod's status that can change what it counts as; None if there are none."""
    parts = [
        [container.get("name"), container.get("allocatedResources"), container.get("resources")]
        for key in ("containerStatuses", "initContainerStatuses")
        for container in status.get(key) or ()
        if "allocatedResources" in container or "resources" in container
    ]
    whole = status.get("resources"), status.get("allocatedResources")
    pending = [c.get("reason") for c in status.get("conditions") or () if c.get("type") == "PodResizePending"]
    return [parts, whole, pending] if parts or pending or whole != (None, None) else None


def _has(conditions: object, kind: str, reader: Reader) -> bool:
    return conditions is not None and any(
        item.get("type") == kind and item.get("status") == "True"
        for _, item in reader.objects(conditions, "status.conditions")
    )


def _preempted(conditions: object, reader: Reader) -> bool:
    """Whether the pod is going because a scheduler wanted its place."""
    return any(
        item.get("type") == _DISRUPTED
        and item.get("status") == "True"
        and item.get("reason") == "PreemptionByScheduler"
        for _, item in reader.objects(conditions, "status.conditions")
    )


def _gates(value: object, reader: Reader) -> tuple[str, ...]:
    if value is None:
        return ()
    path = "spec.schedulingGates"
    return tuple(
        reader.text(gate.get("name"), f"{where}.name") for where, gate in reader.objects(value, path)
    )


def _taints(value: object, reader: Reader) -> tuple[Taint, ...]:
    return tuple(
        Taint(
            reader.text(item.get("key"), f"{path}.key"),
            reader.text(item.get("value"), f"{path}.value"),
            reader.text(item.get("effect"), f"{path}.effect"),
        )
        for path, item in reader.objects(value, "spec.taints")
    )


def _images(value: object, reader: Reader) -> dict[str, int]:
    images: dict[str, int] = {}
    for path, item in reader.objects(value, "status.images"):
        size = reader.whole(item.get("sizeBytes"), f"{path}.sizeBytes", INT64)
        for name in reader.texts(item.get("names"), f"{path}.names"):
            images.setdefault(sys.intern(name), size)
    return images


def _checked(value: dict[str, str], path: str) -> dict[str, str]:
    strict = Reader()
    checked = strict.text_map(value, path)
    if strict.problems:
        raise TypeError(path)
    return checked


def _lines(reader: Reader) -> tuple[str, ...]:
    return tuple(f"{path}: {message}" for path, message in reader.problems)
