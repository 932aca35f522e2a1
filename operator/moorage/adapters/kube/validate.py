"""What an API server would refuse, for objects that come from files.

Everything wrong with an object is found, not only the first thing.  What is merely absent is not: manifests for
a simulation may be terse.  Only what scheduling reads is looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from dataclasses import field as default
from typing import Any

from moorage.adapters.kube.convert import Converter
from moorage.adapters.kube.device_classes import read_device_class
from moorage.adapters.kube.fields import Reader, kind_of
from moorage.adapters.kube.node_samples import read_node_sample
from moorage.adapters.kube.resource_lists import is_label_value, is_qualified_name, is_subdomain
from moorage.adapters.kube.selectors import read_label_selector
from moorage.adapters.kube.storage_convert import read_storage
from moorage.adapters.kube.validate_pod import check_pod
from moorage.adapters.kube.workloads import WORKLOAD_KINDS, read_namespace, read_workload
from moorage.core.model.budget import DisruptionBudget
from moorage.core.model.device_class import DeviceClass
from moorage.core.model.events import UsageSample
from moorage.core.model.node import Node
from moorage.core.model.pod import Pod
from moorage.core.model.resources import is_extended
from moorage.core.model.storage import StorageObject
from moorage.core.model.workload import Namespace, Workload

Obj = Mapping[str, Any]

_TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
#: Source of the rule: ``validateNodeDeclaredFeatureName`` of the API server.
_FEATURE = re.compile(r"[A-Z][a-zA-Z0-9]*(/[a-zA-Z][a-zA-Z0-9]*)*")
_HIGHEST_USER_PRIORITY = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong in an input.

    ``document`` counts from 1 (0: the file as a whole); ``field`` is a path in it.  A ``warning`` does not
    make the input unusable.
    """

    file: str
    document: int
    field: str
    message: str
    warning: bool = False

    def __str__(self) -> str:
        place = self.file
        if self.document:
            place = f"{place}, document {self.document}" if place else f"document {self.document}"
        return ": ".join(part for part in (place, self.field, self.message) if part)


@dataclass(frozen=True, slots=True)
class NodeSample:
    """What the node of that name really used."""

    node: str
    sample: UsageSample


Value = Pod | Node | DisruptionBudget | StorageObject | Namespace | Workload | DeviceClass | NodeSample | None


@dataclass(slots=True)
class Checked:
    """What a check found: (field, message) of what is wrong and of what is only odd.

    ``value`` is what the object was read as, None if it is of a kind that is not read, or has no identity.
    """

    wrong: list[tuple[str, str]]
    odd: list[tuple[str, str]] = default(default_factory=list)
    value: Value = None


def check(obj: Obj, kind: str, converter: Converter) -> Checked:
    """Read an object that has a uid, and find everything that is wrong with it."""
    reader = Reader()
    found = Checked(reader.problems)
    reader.problems += check_metadata(obj)
    if reader.problems:
        return found
    if kind == "Pod":
        pod = found.value = converter.pod(obj)
        _report_lines(pod.spec.invalid, reader)
        check_pod(obj, reader)
    elif kind == "Node":
        node = found.value = converter.node(obj)
        _report_lines(node.invalid, reader)
        _check_node(obj, reader)
        found.odd += _oddities(node.allocatable)
    elif kind == "PriorityClass":
        _check_priority_class(obj, reader)
    elif kind == "PodDisruptionBudget":
        _check_budget(obj, reader)
        found.value = converter.budget(obj)
    elif kind == "Namespace":
        found.value = read_namespace(obj)
    elif kind == "DeviceClass":
        device_class = found.value = read_device_class(obj, reader)
        _check_device_class(device_class, reader)
    elif kind == "NodeMetrics":
        found.value = NodeSample(*read_node_sample(obj, reader))
    elif kind in WORKLOAD_KINDS:
        found.value = read_workload(obj, WORKLOAD_KINDS[kind])
    else:
        found.value = read_storage(kind, obj, reader)
    return found


def check_type(obj: object) -> list[tuple[str, str]]:
    """What is wrong with an object's apiVersion and kind, before anything else can be said about it."""
    if not isinstance(obj, Mapping):
        return [("", f"must be an object, not {kind_of(obj)}")]
    reader = Reader()
    for key in ("apiVersion", "kind"):
        value = obj.get(key)
        if value is None or value == "":
            reader.report(key, "is missing")
        else:
            reader.text(value, key)
    return reader.problems


def check_metadata(obj: Obj) -> list[tuple[str, str]]:
    """What is wrong with an object's name, namespace and labels."""
    reader = Reader()
    _check_metadata(obj, reader)
    return reader.problems


def _check_metadata(obj: Obj, reader: Reader) -> None:
    if obj.get("metadata") is None:
        reader.report("metadata.name", "is missing")
        return
    metadata = reader.mapping(obj["metadata"], "metadata")
    name = reader.text(metadata.get("name"), "metadata.name")
    reader.text(metadata.get("uid"), "metadata.uid")
    if reader.problems:
        return
    if not name:
        reader.report("metadata.name", "is missing")
    elif not is_subdomain(name):
        reader.report(
            "metadata.name", f"{name!r} is not a name: lower-case letters, digits, '-' and '.' only"
        )
    namespace = reader.text(metadata.get("namespace"), "metadata.namespace")
    if namespace and (not is_subdomain(namespace) or "." in namespace or len(namespace) > 63):
        reader.report("metadata.namespace", f"{namespace!r} is not a name of a namespace")
    quiet = Reader()  # wrong types are reported by the converter where the labels are read
    for key, value in quiet.text_map(metadata.get("labels"), "metadata.labels").items():
        if not is_qualified_name(key):
            reader.report(f"metadata.labels.{key}", "is not a label key")
        if not is_label_value(value):
            reader.report(f"metadata.labels.{key}", f"{value!r} is not a label value")


def _check_node(obj: Obj, reader: Reader) -> None:
    quiet = Reader()
    seen = set()
    spec = quiet.mapping(obj.get("spec"), "spec")
    for path, taint in quiet.objects(spec.get("taints"), "spec.taints"):
        key, effect = quiet.text(taint.get("key"), path), quiet.text(taint.get("effect"), path)
        value = quiet.text(taint.get("value"), path)
        if not is_qualified_name(key):
            reader.report(f"{path}.key", f"{key!r} is not a taint key" if key else "is missing")
        if not is_label_value(value):
            reader.report(f"{path}.value", f"{value!r} is not a taint value")
        if effect not in _TAINT_EFFECTS:
            reader.report(f"{path}.effect", f"must be one of {', '.join(_TAINT_EFFECTS)}, not {effect!r}")
        if (key, effect) in seen:
            reader.report(path, f"there is a second taint {key!r} with effect {effect!r}")
        seen.add((key, effect))
    status = quiet.mapping(obj.get("status"), "status")
    features = quiet.texts(status.get("declaredFeatures"), "status.declaredFeatures")
    for index, feature in enumerate(features):
        path = f"status.declaredFeatures[{index}]"
        if not _FEATURE.fullmatch(feature) or len(feature) > 253:
            reader.report(
                path, f"{feature!r} is not a name of a feature, like MyFeature or MyFeature/itsPart"
            )
        elif index and features[index - 1] >= feature:
            reader.report(
                path, f"must come after {features[index - 1]!r}: they are in order, and each is there once"
            )


def _oddities(allocatable: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    if not allocatable:
        yield "status.allocatable", "is missing, so no pod fits there"
    elif not allocatable.get("pods"):
        yield "status.allocatable.pods", "is missing or 0, so no pod fits there"


def _check_priority_class(obj: Obj, reader: Reader) -> None:
    value = obj.get("value")
    number = reader.whole(value, "value")
    if value is None:
        reader.report("value", "is missing")
    metadata = obj["metadata"]
    if number > _HIGHEST_USER_PRIORITY and not metadata["name"].startswith("system-"):
        reader.report("value", f"must not be more than {_HIGHEST_USER_PRIORITY}, got {number}")
    reader.flag(obj.get("globalDefault"), "globalDefault")
    policy = reader.text(obj.get("preemptionPolicy"), "preemptionPolicy")
    if policy not in ("", "Never", "PreemptLowerPriority"):
        reader.report("preemptionPolicy", f"must be Never or PreemptLowerPriority, not {policy!r}")


def _check_device_class(device_class: DeviceClass, reader: Reader) -> None:
    resource = device_class.extended_resource
    if resource and not (is_extended(resource) and is_qualified_name(resource)):
        reader.report("spec.extendedResourceName", f"{resource!r} is not a name of an extended resource")


def _check_budget(obj: Obj, reader: Reader) -> None:
    spec = reader.mapping(obj.get("spec"), "spec")
    read_label_selector(spec.get("selector"), "spec.selector", reader)
    status = reader.mapping(obj.get("status"), "status")
    reader.whole(status.get("disruptionsAllowed"), "status.disruptionsAllowed")
    reader.mapping(status.get("disruptedPods"), "status.disruptedPods")


def _report_lines(lines: tuple[str, ...], reader: Reader) -> None:
    for line in lines:
        field, _, message = line.partition(": ")
        reader.report(field, message)
