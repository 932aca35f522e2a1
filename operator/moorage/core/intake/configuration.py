"""Other profiles and queue settings from now on."""

from __future__ import annotations

from moorage.core.intake.state import Handlers, State
from moorage.core.model.events import Reconfigured
from moorage.core.queue.scheduling_queue import Place


def _reconfigured(state: State, event: Reconfigured, now: float) -> None:
    """Pods keep their places in the queue; those whose profile has changed may be helped by that, others not."""
    queue, roster = state.queue, state.roster
    state.attempts.start_over(now)
    changed = roster.replace(event.profiles)
    queue.configure(event.queue)
    for queued in list(queue.entries()):
        pod, uid = queued.pod, queued.pod.uid
        name = pod.spec.scheduler_name
        gated = queued.place is Place.GATED and not queue.held(uid) and not queued.held_by
        if name not in roster.profiles:
            state.leave_queue(uid, now)
        elif gated and name in changed and roster.runners[name].pre_enqueue(pod) is None:
            queue.ungate(uid, now)
            state.outbox += state.turns.look(uid, now)
    if changed:
        queue.wake_all(changed, now)


HANDLERS: Handlers = {Reconfigured: _reconfigured}
