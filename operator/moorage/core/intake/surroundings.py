"""What pods use and belong to: storage, namespaces, workloads, devices, disruption budgets."""

from __future__ import annotations

from moorage.core.cache.storage_changes import storage_event
from moorage.core.intake import policies
from moorage.core.intake.state import Handlers, State
from moorage.core.model.cluster_event import Action, ClusterEvent, Resource
from moorage.core.model.events import (
    BudgetApplied,
    BudgetGone,
    DeviceClassApplied,
    DeviceClassGone,
    NamespaceApplied,
    NamespaceGone,
    StorageApplied,
    StorageGone,
    WorkloadApplied,
    WorkloadGone,
)
from moorage.core.model.storage import StorageObject


def _storage_applied(state: State, event: StorageApplied, now: float) -> None:
    before = state.cache.apply_storage(event.obj)
    _storage_changed(state, event.obj, storage_event(before, event.obj), now)


def _storage_gone(state: State, event: StorageGone, now: float) -> None:
    before = state.cache.remove_storage(event.kind, event.key)
    if before is not None:
        _storage_changed(state, before, storage_event(before, None), now)


def _storage_changed(state: State, obj: StorageObject, change: ClusterEvent | None, now: float) -> None:
    if change is not None:
        state.wake(change, now)
    concerned = state.snapshot.storage.concerned_pods(obj)
    if concerned:
        state.outbox += state.attempts.preparations.look_again(sorted(concerned), now)


def _namespace_applied(state: State, event: NamespaceApplied, now: float) -> None:
    namespace = event.namespace
    before = state.snapshot.namespaces.apply(namespace)
    if before is not namespace:
        action = Action.ADD if before is None else Action.UPDATE_OTHER
        policies.namespace_changed(
            state, namespace.name, {} if before is None else before.labels, namespace.labels, now
        )
        state.wake(ClusterEvent(Resource.NAMESPACE, action, before, namespace), now)


def _namespace_gone(state: State, event: NamespaceGone, now: float) -> None:
    before = state.snapshot.namespaces.labels(event.name)
    state.snapshot.namespaces.remove(event.name)
    policies.namespace_changed(state, event.name, before, {}, now)


def _workload_applied(state: State, event: WorkloadApplied, now: float) -> None:
    if state.snapshot.workloads.apply(event.workload):
        state.wake(ClusterEvent(Resource.WORKLOAD, Action.UPDATE_OTHER, None, event.workload), now)


def _workload_gone(state: State, event: WorkloadGone, now: float) -> None:
    gone = state.snapshot.workloads.remove(event.kind, event.namespace, event.name)
    if gone is not None:
        state.wake(ClusterEvent(Resource.WORKLOAD, Action.DELETE, gone, None), now)


def _device_class_applied(state: State, event: DeviceClassApplied, now: float) -> None:
    new = event.device_class
    before = state.snapshot.device_classes.apply(new)
    if before != new:
        action = Action.ADD if before is None else Action.UPDATE
        state.wake(ClusterEvent(Resource.DEVICE_CLASS, action, before, new), now)


def _device_class_gone(state: State, event: DeviceClassGone, now: float) -> None:
    before = state.snapshot.device_classes.remove(event.name)
    if before is not None:
        state.wake(ClusterEvent(Resource.DEVICE_CLASS, Action.DELETE, before, None), now)


def _budget_applied(state: State, event: BudgetApplied, now: float) -> None:
    state.preemptions.set_budget(event.budget)


def _budget_gone(state: State, event: BudgetGone, now: float) -> None:
    state.preemptions.drop_budget(event.namespace, event.name)


HANDLERS: Handlers = {
    StorageApplied: _storage_applied,
    StorageGone: _storage_gone,
    NamespaceApplied: _namespace_applied,
    NamespaceGone: _namespace_gone,
    WorkloadApplied: _workload_applied,
    WorkloadGone: _workload_gone,
    DeviceClassApplied: _device_class_applied,
    DeviceClassGone: _device_class_gone,
    BudgetApplied: _budget_applied,
    BudgetGone: _budget_gone,
}
