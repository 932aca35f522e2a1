"""What changed about a node, in the terms of the queue; and the guard for nodes that are not ready."""

from __future__ import annotations

from dataclasses import replace

from moorage.core.model.cluster_event import Action, ClusterEvent, Resource
from moorage.core.model.node import Node
from moorage.core.model.taint import NO_SCHEDULE, NOT_READY_KEY, UNREACHABLE_KEY, Taint


def node_event(before: Node | None, after: Node) -> ClusterEvent | None:
    """The change from ``before`` (None: new) to ``after``; None if nothing that scheduling reads changed.

    Heartbeats change no property compared here, so they wake nobody.
    """
    if before is None:
        return ClusterEvent(Resource.NODE, Action.ADD, None, after)
    action = Action(0)
    if before.allocatable != after.allocatable:
        action |= Action.UPDATE_NODE_ALLOCATABLE
    if before.labels != after.labels:
        action |= Action.UPDATE_NODE_LABEL
    if before.taints != after.taints or before.unschedulable != after.unschedulable:
        action |= Action.UPDATE_NODE_TAINT
    if before.condition_statuses != after.condition_statuses:
        action |= Action.UPDATE_NODE_CONDITION
    if before.annotations != after.annotations:
        action |= Action.UPDATE_NODE_ANNOTATION
    if before.declared_features != after.declared_features:
        action |= Action.UPDATE_NODE_DECLARED_FEATURE
    return ClusterEvent(Resource.NODE, action, before, after) if action else None


def guard_ready(node: Node) -> Node:
    """The node with the NoSchedule taint that its Ready condition calls for, if the taint is missing.

    The node lifecycle controller sets these taints with a delay, or not at all where it does not run.
    A node without a Ready condition counts as ready.
    """
    key = {"False": NOT_READY_KEY, "Unknown": UNREACHABLE_KEY}.get(node.ready)
    if key is None or any(t.key == key and t.effect == NO_SCHEDULE for t in node.taints):
        return node
    return replace(node, taints=(*node.taints, Taint(key, "", NO_SCHEDULE)))
