"""What changed about a pod, in the terms of the queue."""

from __future__ import annotations

from moorage.core.model.cluster_event import Action, ClusterEvent, Resource
from moorage.core.model.pod import Pod


def pending_event(before: Pod, after: Pod) -> ClusterEvent | None:
    """The change of a pending pod; None if nothing that scheduling reads changed (its status, say)."""
    action = _common(before, after)
    old, new = before.spec, after.spec
    if old is not new:
        if old.tolerations != new.tolerations:
            action |= Action.UPDATE_POD_TOLERATIONS
        action |= Action.UPDATE_POD_OTHER
    if before.gates and not after.gates:
        action |= Action.UPDATE_POD_GATES_ELIMINATED
    return ClusterEvent(Resource.PENDING_POD, action, before, after) if action else None


def assigned_event(before: Pod, after: Pod) -> ClusterEvent | None:
    """The change of a bound pod; None if it concerns nobody else."""
    action = _common(before, after)
    if after.deleting and not before.deleting:
        action |= Action.UPDATE_POD_DELETING
    return ClusterEvent(Resource.ASSIGNED_POD, action, before, after) if action else None


def _common(before: Pod, after: Pod) -> Action:
    action = Action(0)
    if before.labels != after.labels:
        action |= Action.UPDATE_POD_LABEL
    if before.requests is not after.requests and any(
        after.requests.of(resource) < amount for resource, amount in before.requests.amounts.items()
    ):
        action |= Action.UPDATE_POD_SCALE_DOWN
    return action
