"""The reflectors that feed the engine: nodes, the pods on them, what guards and binds those, and storage."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from moorage.adapters.kube.client import KubeClient
from moorage.adapters.kube.convert import Converter, MalformedObject
from moorage.adapters.kube.device_classes import DEVICE_CLASSES_PATH, read_device_class
from moorage.adapters.kube.errors import KubeError
from moorage.adapters.kube.fields import Reader
from moorage.adapters.kube.raw_objects import RawObjects
from moorage.adapters.kube.storage_convert import STORAGE_RESOURCES, StorageResource
from moorage.adapters.kube.watch import Pace, Reflector, Target, Trouble
from moorage.adapters.kube.workloads import read_namespace, read_workload
from moorage.core.model.events import (
    BudgetApplied,
    BudgetGone,
    DeviceClassApplied,
    DeviceClassGone,
    Event,
    NamespaceApplied,
    NamespaceGone,
    NodeApplied,
    NodeGone,
    PodBound,
    PodGone,
    StorageApplied,
    StorageGone,
    WorkloadApplied,
    WorkloadGone,
)
from moorage.core.model.pod import PodRef
from moorage.core.model.workload import WorkloadKind

logger = logging.getLogger(__name__)

T = TypeVar("T")

#: Finished pods hold nothing, and their end arrives as a DELETED of this selector.
_BOUND = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
#: What default spreading reads, and where it is listed.
_WORKLOADS = {
    WorkloadKind.SERVICE: "/api/v1/services",
    WorkloadKind.REPLICATION_CONTROLLER: "/api/v1/replicationcontrollers",
    WorkloadKind.REPLICA_SET: "/apis/apps/v1/replicasets",
    WorkloadKind.STATEFUL_SET: "/apis/apps/v1/statefulsets",
}
#: Heard of nothing for so long although there is no trouble: the reflector itself is stuck.
_STUCK_SECONDS = 300.0


class StreamMeter(Protocol):
    """Counts what cannot be read."""

    def object_malformed(self, resource: str) -> None:
        """An object of this kind makes no sense."""
        ...


class ClusterState:
    """Keeps the engine told of the cluster.

    Usable for decisions once ``synced``; ``refresh`` makes sure that it is as new as the moment of the call.
    """

    def __init__(
        self,
        client: KubeClient,
        converter: Converter,
        submit: Callable[[Event], None],
        *,
        on_synced: Callable[[], None],
        meter: StreamMeter,
        budgets: bool = True,
        workloads: bool = True,
        device_classes: bool = True,
        storage: bool = True,
        pace: Pace | None = None,
        raw: RawObjects | None = None,
    ) -> None:
        self._converter = converter
        self._submit = submit
        self._on_synced = on_synced
        self._meter = meter
        self._client = client
        self._pace = pace
        self._raw = raw or RawObjects(client)
        #: The reflectors by the resource they watch.
        self.reflectors: dict[str, Reflector[Any]] = {}
        self._follow("nodes", Target("/api/v1/nodes"), self._node_applied, self._node_gone)
        self._follow("pods", Target("/api/v1/pods", _BOUND), self._pod_applied, self._pod_gone)
        if budgets:
            self._follow(
                "poddisruptionbudgets",
                Target("/apis/policy/v1/poddisruptionbudgets"),
                self._budget_applied,
                lambda key: submit(BudgetGone(*key)),
            )
        self._follow(
            "namespaces",
            Target("/api/v1/namespaces"),
            self._namespace_applied,
            lambda name: submit(NamespaceGone(name)),
        )
        if workloads:
            for kind, path in _WORKLOADS.items():
                self._follow_workloads(kind, path)
        if device_classes:
            self._follow(
                "deviceclasses",
                Target(DEVICE_CLASSES_PATH),
                self._device_class_applied,
                lambda name: submit(DeviceClassGone(name)),
            )
        if storage:
            for each in STORAGE_RESOURCES:
                self._follow_storage(each)

    def _follow_storage(self, storage: StorageResource) -> None:
        kind = storage.kind

        def apply(obj: dict[str, Any]) -> str:
            reader = Reader()
            read = storage.read(obj, reader)
            if reader.problems:
                raise MalformedObject(*reader.problems[0])
            self._submit(StorageApplied(read))
            return read.key

        def delete(key: str) -> None:
            self._submit(StorageGone(kind, key))

        self._follow(storage.resource, Target(storage.path), apply, delete)

    def _follow(
        self, resource: str, target: Target, apply: Callable[[dict[str, Any]], T], delete: Callable[[T], None]
    ) -> None:
        self.reflectors[resource] = Reflector(
            self._client,
            target,
            apply=apply,
            delete=delete,
            on_synced=lambda: self._synced(resource),
            on_malformed=lambda key, error: self._malformed(resource, key, error),
            on_trouble=lambda trouble, error: self._trouble(resource, trouble, error),
            pace=self._pace,
        )

    @property
    def synced(self) -> bool:
        """Whether every list has been complete once."""
        return all(reflector.synced for reflector in self.reflectors.values())

    async def refresh(self) -> None:
        """Return when all that was true at this call is submitted.  Raises ``KubeError``.

        All at once: each may wait a second for the server to say where it stands.
        """
        try:
            async with asyncio.TaskGroup() as tasks:
                for reflector in self.reflectors.values():
                    tasks.create_task(reflector.refresh())
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from None

    async def tell_pods_again(self) -> None:
        """Read every bound pod once more, and return when that is done."""
        await self.reflectors["pods"].tell_again()

    def stuck(self) -> str | None:
        """Which reflector has stopped working without knowing it, None if all is well."""
        for resource, reflector in self.reflectors.items():
            if reflector.trouble is Trouble.NONE and reflector.age > _STUCK_SECONDS:
                return f"nothing heard of {resource} for {reflector.age:.0f} s"
        return None

    def _node_applied(self, obj: dict[str, Any]) -> str:
        node = self._converter.node(obj)
        self._raw.node(obj)
        self._submit(NodeApplied(node))
        return node.name

    def _node_gone(self, name: str) -> None:
        self._raw.node_gone(name)
        self._submit(NodeGone(name))

    def _pod_applied(self, obj: dict[str, Any]) -> PodRef:
        pod = self._converter.pod(obj)
        self._raw.bound_pod(obj)
        self._submit(PodBound(pod))
        return pod.ref

    def _pod_gone(self, ref: PodRef) -> None:
        self._raw.pod_gone(ref.uid)
        self._submit(PodGone(ref))

    def _budget_applied(self, obj: dict[str, Any]) -> tuple[str, str]:
        budget = self._converter.budget(obj)
        self._submit(BudgetApplied(budget))
        return budget.namespace, budget.name

    def _namespace_applied(self, obj: dict[str, Any]) -> str:
        namespace = read_namespace(obj)
        self._submit(NamespaceApplied(namespace))
        return namespace.name

    def _device_class_applied(self, obj: dict[str, Any]) -> str:
        reader = Reader()
        found = read_device_class(obj, reader)
        if reader.problems:
            raise MalformedObject(*reader.problems[0])
        self._submit(DeviceClassApplied(found))
        return found.name

    def _follow_workloads(self, kind: WorkloadKind, path: str) -> None:
        def applied(obj: dict[str, Any]) -> tuple[str, str]:
            workload = read_workload(obj, kind)
            self._submit(WorkloadApplied(workload))
            return workload.namespace, workload.name

        def gone(key: tuple[str, str]) -> None:
            self._submit(WorkloadGone(kind, *key))

        self._follow(path.rpartition("/")[2], Target(path), applied, gone)

    def _synced(self, resource: str) -> None:
        logger.info("Synced: %d %s", len(self.reflectors[resource]), resource)
        if self.synced:
            self._on_synced()

    def _malformed(self, resource: str, key: str, error: Exception) -> None:
        self._meter.object_malformed(resource)
        logger.warning("%s %s cannot be read and is left out: %s", resource, key, error)

    def _trouble(self, resource: str, trouble: Trouble, error: KubeError | None) -> None:
        if trouble is Trouble.NONE:
            logger.info("The watch of %s works again", resource)
        else:
            logger.warning("The watch of %s has stopped (%s): %s", resource, trouble.value, error)
