"""What became of instructions: binds, evictions, questions to extenders, writes for volumes."""

from __future__ import annotations

from moorage.core.intake.state import Handlers, State
from moorage.core.model.events import (
    BindFailed,
    BindFailure,
    BindSucceeded,
    EvictionFinished,
    ExtenderAnswered,
    VolumesNotPrepared,
    VolumesPrepared,
)
from moorage.core.model.instructions import Record, RecordType
from moorage.core.model.pod import Pod
from moorage.core.queue.scheduling_queue import Place


def _bind_succeeded(state: State, event: BindSucceeded, now: float) -> None:
    uid = event.ref.uid
    state.assumptions.settled(uid, now)
    state.queue.remove(uid)
    state.nominator.withdraw(uid)
    text = f"Successfully assigned {event.ref.key} to {event.node_name}"
    cached = state.cache.state(uid)
    name = "" if cached is None else cached.pod.spec.scheduler_name
    state.outbox.append(Record(event.ref, RecordType.NORMAL, "Scheduled", text, "Binding", name))


def _bind_failed(state: State, event: BindFailed, now: float) -> None:
    uid = event.ref.uid
    assumption = state.assumptions.end(uid)
    if assumption is not None:
        state.attempts.undo(assumption.pod, now)
    queued = state.queue.get(uid)
    if queued is None or queued.place is not Place.IN_FLIGHT:
        return
    if queued.left or event.failure in (BindFailure.GONE, BindFailure.BOUND_ELSEWHERE):
        state.queue.remove(uid)
        state.nominator.withdraw(uid)
    elif event.failure in (BindFailure.STALE, BindFailure.NOT_LEADER):
        _renominate(state, queued.pod)
        state.queue.retry_now(uid, now)
    else:
        _renominate(state, queued.pod)
        by_extender = event.failure is BindFailure.EXTENDER
        text = event.message if by_extender else f'running Bind plugin "DefaultBinder": {event.message}'
        state.outbox += state.attempts.failed_with_error(queued, text, now, event.retry_after)


def _renominate(state: State, pod: Pod) -> None:
    """The pod gave its promised node up when it was placed; it gets the promise back."""
    if pod.nominated_node:
        state.nominator.nominate(pod, pod.nominated_node)


def _eviction_finished(state: State, event: EvictionFinished, now: float) -> None:
    uid = event.preemptor.uid
    state.queue.end_hold(uid, now)
    state.outbox += state.turns.look(uid, now)
    if event.error:
        state.preemptions.abandon(uid)
        state.nominator.withdraw(uid)
        state.queue.activate(uid, now)  # no victim's going will wake it


def _extender_answered(state: State, event: ExtenderAnswered, now: float) -> None:
    state.attempts.answered(event.ticket, event.answer)


def _volumes_prepared(state: State, event: VolumesPrepared, now: float) -> None:
    state.outbox += state.attempts.preparations.prepared(event, now)


def _volumes_not_prepared(state: State, event: VolumesNotPrepared, now: float) -> None:
    state.outbox += state.attempts.preparations.not_prepared(event, now)


HANDLERS: Handlers = {
    BindSucceeded: _bind_succeeded,
    BindFailed: _bind_failed,
    EvictionFinished: _eviction_finished,
    ExtenderAnswered: _extender_answered,
    VolumesPrepared: _volumes_prepared,
    VolumesNotPrepared: _volumes_not_prepared,
}
