"""Pods on nodes, and what was found when one was looked up."""

from __future__ import annotations

from moorage.core.cache.pod_changes import assigned_event
from moorage.core.intake.state import Handlers, State
from moorage.core.model.cluster_event import Action, ClusterEvent, Resource
from moorage.core.model.events import PodBound, PodFetched, PodGone


def _bound(state: State, event: PodBound, now: float) -> None:
    pod = event.pod
    if pod.finished:
        state.release_room(pod.uid, now)
        return
    cached = state.cache.state(pod.uid)
    if cached is not None and cached.node_name == pod.node_name:
        state.assumptions.end(pod.uid)  # what was reserved there is in use now
    state.attempts.release(pod.uid, now)
    state.queue.remove(pod.uid)
    state.nominator.withdraw(pod.uid, pod)
    state.preemptions.abandon(pod.uid)
    if pod.deleting:
        state.preemptions.seen_going(pod.uid)
    before = state.cache.add(pod)
    if before is None or before.assumed or before.node_name != pod.node_name:
        state.overcommits.arrived(pod)
    if before is None or before.assumed:
        state.wake(ClusterEvent(Resource.ASSIGNED_POD, Action.ADD, None, pod), now)
    if before is None:
        return
    if before.node_name != pod.node_name:  # assumed here, bound elsewhere by someone else
        state.wake(ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE, before.pod, None), now)
    change = assigned_event(before.pod, pod)
    if change is not None:
        state.wake(change, now)


def _gone(state: State, event: PodGone, now: float) -> None:
    state.release_room(event.ref.uid, now)


def _fetched(state: State, event: PodFetched, now: float) -> None:
    assumption = state.assumptions.get(event.ref.uid)
    if assumption is None:
        return
    live = event.pod
    if live is None or live.uid != event.ref.uid or live.finished:
        state.release_room(event.ref.uid, now)
    elif live.node_name and live.node_name != assumption.pod.node_name:
        _bound(state, PodBound(live), now)
    # Bound to this node, or not bound yet: the streams and the binder have the last word.


HANDLERS: Handlers = {PodBound: _bound, PodGone: _gone, PodFetched: _fetched}
