"""Brings a cluster into the state that a list of objects describes, as a snapshot of a live cluster would
show it.

The API server lets nobody write all of an object at once, so: status goes through the status subresource; an
object that is being deleted is created with a finalizer and then deleted; a pod's bare `priority` gets a
PriorityClass to come from. Namespaces that are named and missing are made.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from typing import Any

from tests.controlplane.client import ApiError, Client, Obj, wait_for

# What others refer to comes first, pods come last; kinds not named here lie between.
_FIRST = ("Namespace", "CustomResourceDefinition", "PriorityClass", "RuntimeClass", "StorageClass", "Node")
_SERVER_FIELDS = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink")
FINALIZER = "moorage.dev/kept-by-a-test"


def apply(client: Client, objects: Any, *, threads: int = 4) -> list[Obj]:
    """Create or update the objects (a list, or a `kind: List`) and give them as the API server then has them."""
    items = objects["items"] if isinstance(objects, dict) and "items" in objects else objects
    items = [items] if isinstance(items, dict) else list(items)
    items = [copy.deepcopy(item) for item in items]
    items = _priority_classes(client, items) + items
    _namespaces(client, items)
    written: list[Obj] = []
    with ThreadPoolExecutor(max_workers=threads) as pool:
        for kind, group in groupby(sorted(items, key=_rank), key=lambda item: item["kind"]):
            done = list(pool.map(lambda item: _write(client, item), group))
            if kind == "PriorityClass":
                _await_priorities(client, done)
            if kind == "CustomResourceDefinition":
                _await_crds(client, done)
            written += done
    return written


def _rank(item: Obj) -> tuple[int, str]:
    kind: str = item["kind"]
    if kind in _FIRST:
        return _FIRST.index(kind), kind
    return len(_FIRST) + (kind == "Pod"), kind


def _write(client: Client, obj: Obj) -> Obj:
    kind, version = obj["kind"], obj.get("apiVersion")
    meta = obj["metadata"]
    status = obj.pop("status", None)
    terminating = meta.pop("deletionTimestamp", None)
    grace = meta.pop("deletionGracePeriodSeconds", None)
    for field in _SERVER_FIELDS:
        meta.pop(field, None)
    if terminating:
        meta.setdefault("finalizers", [FINALIZER])
    where = (kind, meta["name"], meta.get("namespace"))
    try:
        result = client.create(obj)
    except ApiError as error:
        if error.reason != "AlreadyExists":
            raise
        result = client.patch(kind, meta["name"], obj, meta.get("namespace"), api_version=version)
    if status and client.resource(kind, version).has_status:
        status.pop("qosClass", None)
        result = client.patch_status(*where[:2], status, where[2], api_version=version)
    if terminating:
        client.delete(*where, grace=grace, api_version=version)
        result = client.get(*where, api_version=version)
    return result


def _namespaces(client: Client, items: list[Obj]) -> None:
    wanted = {item["metadata"].get("namespace") for item in items} - {None}
    given = {item["metadata"]["name"] for item in items if item["kind"] == "Namespace"}
    missing = wanted - given
    if missing - {"default", "kube-system"}:
        missing -= {namespace["metadata"]["name"] for namespace in client.list("Namespace")}
        items += [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in missing]


def _priority_classes(client: Client, items: list[Obj]) -> list[Obj]:
    """Classes for the pods that state a priority but no class: the API server takes a number only from a class."""
    given = {item["metadata"]["name"] for item in items if item["kind"] == "PriorityClass"}
    made: dict[str, Obj] = {}
    for item in items:
        spec = item.get("spec") or {}
        if item["kind"] != "Pod" or not spec.get("priority"):
            continue
        value = spec.pop("priority")
        if spec.get("priorityClassName"):
            continue
        name = f"value-{value}" if value > 0 else f"value-minus-{-value}"
        spec["priorityClassName"] = name
        policy = spec.get("preemptionPolicy")
        if policy:
            name = spec["priorityClassName"] = f"{name}-{policy.lower()}"
        if name not in given:
            made[name] = {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": name},
                "value": value,
                **({"preemptionPolicy": policy} if policy else {}),
            }
    return list(made.values())


def _await_priorities(client: Client, classes: Iterable[Obj]) -> None:
    """Wait until admission, which reads classes from a cache, gives pods these very values."""
    for entry in classes:
        name, value = entry["metadata"]["name"], entry["value"]
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "probe"},
            "spec": {"priorityClassName": name, "containers": [{"name": "c", "image": "i"}]},
        }

        def known(pod: Obj = pod, value: int = value) -> bool:
            try:
                path = client.path("Pod", None, "default")
                answer = client.request("POST", path, pod, params={"dryRun": "All"})
            except ApiError as error:
                if error.status == 403:
                    return False
                raise
            return bool(answer["spec"]["priority"] == value)

        wait_for(known, 5, f"PriorityClass {name} is in force")


def _await_crds(client: Client, crds: Iterable[Obj]) -> None:
    """Wait until custom resources are really served, which is a moment after their definition is Established."""
    for entry in crds:
        spec = entry["spec"]
        version = next(each["name"] for each in spec["versions"] if each["served"])
        api_version = f"{spec['group']}/{version}"

        def served(kind: str = spec["names"]["kind"], api_version: str = api_version) -> bool:
            try:
                client.list(kind, api_version=api_version)
            except (LookupError, ApiError):
                return False
            return True

        wait_for(served, 10, f"{entry['metadata']['name']} is served")
