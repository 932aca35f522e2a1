"""Pods that wait: what the stream of unscheduled pods and the lists of them show."""

from __future__ import annotations

from dataclasses import replace

from moorage.core.cache.pod_changes import pending_event
from moorage.core.intake.policies import adopt
from moorage.core.intake.state import Handlers, State
from moorage.core.model.events import PendingListed, PodLeftPending, PodPending
from moorage.core.model.pod import Pod
from moorage.core.queue.scheduling_queue import Place


def _pending(state: State, event: PodPending, now: float) -> None:
    pod = event.pod
    cached = state.cache.state(pod.uid)
    confirmed = cached is not None and not cached.assumed
    if (
        confirmed
        or pod.node_name
        or pod.deleting
        or pod.finished
        or pod.spec.scheduler_name not in state.roster.runners
    ):
        # Bound pods come by the other stream, and a pod that was seen bound never becomes pending again.
        state.leave_queue(pod.uid, now)
        return
    queue = state.queue
    queued = queue.get(pod.uid)
    if queued is not None and not pod.gates:
        ungated = now if queued.pod.gates else queued.pod.ungated
        if ungated is not None:
            pod = replace(pod, ungated=ungated)
    if pod.nominated_node and cached is None:
        state.nominator.nominate(pod, pod.nominated_node)
    elif queued is not None and queued.pod.nominated_node:
        state.nominator.withdraw(pod.uid)  # the API server had it and has it no more
    else:
        state.nominator.update(pod)  # a promise of ours may be on its way
    gated = (
        state.roster.runner_of(pod).pre_enqueue(pod) is not None
        or queue.held(pod.uid)
        or state.turns.hold_of(pod, now) is not None
    )
    if queued is None:
        if cached is None:
            queue.add(pod, now, gated=gated)
            _by_policies(state, pod, now)
        return
    before = queued.pod
    queue.update(pod, now)
    if queued.place is Place.GATED and not gated:
        queue.ungate(pod.uid, now)
    elif queued.place is not Place.GATED and gated:
        queue.gate(pod.uid, now)
    elif (change := pending_event(before, pod)) is not None:
        queue.wake_pod(pod.uid, change, now)
    _by_policies(state, pod, now)


def _by_policies(state: State, pod: Pod, now: float) -> None:
    """Count the pod for the policies that select it, and hold it or let it go as they want."""
    if len(state.book):
        queued = state.queue.get(pod.uid)
        if queued is not None:
            adopt(state, queued, now)
        state.outbox += state.turns.look(pod.uid, now)


def _left(state: State, event: PodLeftPending, now: float) -> None:
    state.leave_queue(event.ref.uid, now)


def _listed(state: State, event: PendingListed, now: float) -> None:
    gone = [
        queued.pod.uid
        for queued in state.queue.entries()
        if queued.pod.uid not in event.uids and queued.seen < event.listed_at
    ]
    for uid in gone:
        state.leave_queue(uid, now)


HANDLERS: Handlers = {PodPending: _pending, PodLeftPending: _left, PendingListed: _listed}
