"""Nodes come, change and go."""

from __future__ import annotations

from moorage.core.cache.node_changes import guard_ready, node_event
from moorage.core.intake.state import Handlers, State
from moorage.core.model.cluster_event import Action, ClusterEvent, Resource
from moorage.core.model.events import NodeApplied, NodeGone


def _applied(state: State, event: NodeApplied, now: float) -> None:
    node = guard_ready(event.node) if state.node_ready_guard else event.node
    before = state.cache.apply_node(node)
    if before is not None and before.uid != node.uid:  # deleted and made again under the same name
        state.wake(ClusterEvent(Resource.NODE, Action.DELETE, before, None), now)
        before = None
    change = node_event(before, node)
    if change is not None:
        state.wake(change, now)
        state.outbox += state.attempts.preparations.node_changed(node.name, now)


def _gone(state: State, event: NodeGone, now: float) -> None:
    before = state.cache.remove_node(event.name)
    if before is not None:
        state.wake(ClusterEvent(Resource.NODE, Action.DELETE, before, None), now)
        state.outbox += state.attempts.preparations.node_changed(event.name, now)


HANDLERS: Handlers = {NodeApplied: _applied, NodeGone: _gone}
