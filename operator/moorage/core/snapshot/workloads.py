"""Services and controllers: which pods they take for one set, for default spreading.

Source of the rules: ``helper.DefaultSelector`` of kube-scheduler v1.37.
"""

from __future__ import annotations

from collections.abc import Mapping

from moorage.core.model.pod import OwnerRef, Pod
from moorage.core.model.pod_query import PodQuery
from moorage.core.model.selector import LabelSelector, Operator, Requirement
from moorage.core.model.workload import Workload, WorkloadKind
from moorage.core.snapshot.selector_index import SelectorIndex

#: The API version in which an owner must name its kind; several groups have a StatefulSet of their own.
_API_VERSIONS = {
    WorkloadKind.REPLICATION_CONTROLLER: "v1",
    WorkloadKind.REPLICA_SET: "apps/v1",
    WorkloadKind.STATEFUL_SET: "apps/v1",
}


class Workloads:
    """Selectors by namespace; ``peers`` combines those that concern a pod."""

    _KEPT = 4096

    def __init__(self) -> None:
        self._controllers: dict[tuple[str, str, str], Workload] = {}
        self._services: dict[str, dict[str, LabelSelector]] = {}
        self._by_label: dict[str, SelectorIndex[str]] = {}
        self._answers: dict[tuple[str, int, OwnerRef | None], tuple[Mapping[str, str], PodQuery | None]] = {}

    def __len__(self) -> int:
        return len(self._controllers) + sum(map(len, self._services.values()))

    def apply(self, workload: Workload) -> bool:
        """Add or replace one; returns whether anything changed."""
        if workload.kind is WorkloadKind.SERVICE:
            return self._apply_service(workload)
        key = (workload.kind, workload.namespace, workload.name)
        if self._controllers.get(key) == workload:
            return False
        self._controllers[key] = workload
        self._answers.clear()
        return True

    def remove(self, kind: WorkloadKind, namespace: str, name: str) -> Workload | None:
        """It is gone; returns what it was, None if there was no such thing."""
        if kind is WorkloadKind.SERVICE:
            selector = self._services.get(namespace, {}).pop(name, None)
            if selector is None:
                return None
            self._by_label[namespace].discard(name)
            if not self._services[namespace]:
                del self._services[namespace], self._by_label[namespace]
            gone = Workload(kind, namespace, name, {r.key: r.values[0] for r in selector.requirements})
        else:
            controller = self._controllers.pop((kind, namespace, name), None)
            if controller is None:
                return None
            gone = controller
        self._answers.clear()
        return gone

    def peers(self, pod: Pod) -> PodQuery | None:
        """The pods that belong together with this one, dying ones left out; None if nothing says which."""
        key = (pod.namespace, id(pod.labels), pod.owner)
        known = self._answers.get(key)
        if known is not None and known[0] is pod.labels:
            return known[1]
        if len(self._answers) >= self._KEPT:
            self._answers.clear()
        requirements = self._requirements(pod)
        query = None
        if requirements:
            query = PodQuery(frozenset((pod.namespace,)), LabelSelector(requirements), terminating=False)
        self._answers[key] = (pod.labels, query)
        return query

    def _requirements(self, pod: Pod) -> tuple[Requirement, ...]:
        labels: dict[str, str] = {}
        services = self._services.get(pod.namespace)
        if services:
            for name in self._by_label[pod.namespace].candidates(pod.labels):
                selector = services[name]
                if selector.matches(pod.labels):
                    labels.update((r.key, r.values[0]) for r in selector.requirements)
        added: tuple[Requirement, ...] = ()
        owner = self._owner(pod)
        if owner is not None:
            labels.update(owner.labels)
            if owner.selector is not None:
                added = owner.selector.requirements
        return _equalities(labels) + added

    def _owner(self, pod: Pod) -> Workload | None:
        owner = pod.owner
        if owner is None or not self._controllers:
            return None
        found = self._controllers.get((owner.kind, pod.namespace, owner.name))
        if found is None or owner.api_version not in ("", _API_VERSIONS[found.kind]):
            return None
        return found

    def _apply_service(self, service: Workload) -> bool:
        selector = LabelSelector(_equalities(service.labels))
        services = self._services.setdefault(service.namespace, {})
        index = self._by_label.setdefault(service.namespace, SelectorIndex())
        if services.get(service.name) == selector:
            return False
        index.discard(service.name)
        services[service.name] = selector
        if selector.requirements:  # a Service without a selector has its endpoints written by hand
            index.add(service.name, selector)
        self._answers.clear()
        return True


def _equalities(labels: Mapping[str, str]) -> tuple[Requirement, ...]:
    return tuple(Requirement(key, Operator.IN, (labels[key],)) for key in sorted(labels))
