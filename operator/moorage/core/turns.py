"""What time alone does to waiting pods: policies hold them and let them go, rejections lapse, deadlines pass."""

from __future__ import annotations

from collections.abc import Callable

from moorage.core.framework.runner import Runner
from moorage.core.model.instructions import Instruction, Record, RecordType, SetCondition
from moorage.core.model.pod import Pod
from moorage.core.policy.book import PolicyBook
from moorage.core.policy.census import Census
from moorage.core.policy.holds import Hold, deadline_of, hold_of, next_flip
from moorage.core.policy.merge import Merged
from moorage.core.queue.line import Line
from moorage.core.queue.nominator import Nominator
from moorage.core.queue.scheduling_queue import Place, QueuedPod, SchedulingQueue

#: The reason of a PodScheduled condition that no new node would change, and the name under which a hold is reported.
POLICY_HOLD = "PolicyHold"
POLICY_WINDOWS = "PolicyWindows"

#: Our own condition on a pod that has been pending for longer than a policy thinks right.
DEADLINE_CONDITION = "moorage.dev/PendingDeadlineExceeded"
DEADLINE_REASON = "PendingDeadlineExceeded"


class Turns:
    """Looks at a waiting pod when something about it changes, and again when its next turn comes."""

    def __init__(
        self,
        *,
        queue: SchedulingQueue,
        nominator: Nominator,
        book: PolicyBook,
        census: Census,
        runner_of: Callable[[Pod], Runner],
    ) -> None:
        self._queue = queue
        self._nominator = nominator
        self._book = book
        self._census = census
        self._runner_of = runner_of
        self._line: Line[float] = Line(self._current)
        self._tickets = 0

    def hold_of(self, pod: Pod, now: float) -> Hold | None:
        """The policies' hold on a pod without gates, None if it may go."""
        merged = self._book.shaping(pod).merged
        return self._hold_under(merged, pod, now)

    def _hold_under(self, merged: Merged, pod: Pod, now: float) -> Hold | None:
        if not merged.timed:
            return None
        return hold_of(merged, pod.waiting_since, now, self._book.calendar_of)

    def look(self, uid: str, now: float) -> list[Instruction]:
        """Put the pod where its policies want it now, tell what is new, and note when to look again."""
        queued = self._queue.get(uid)
        if queued is None or not (len(self._book) or queued.held_by):
            return []
        pod = queued.pod
        if self._runner_of(pod).pre_enqueue(pod) is not None:
            return []  # its time begins when its gates are gone
        merged = self._book.shaping(pod).merged
        if queued.lapses is not None and queued.lapses <= now:
            queued.lapses = None
            self._queue.nudge(uid, now)
        told = self._place(queued, self._hold_under(merged, pod, now), now)
        turns = [queued.lapses] if queued.lapses is not None else []
        flip = next_flip(merged, pod.waiting_since, now, self._book.calendar_of) if merged.timed else None
        if flip is not None:
            turns.append(flip)
        deadline = deadline_of(merged, pod.waiting_since)
        if deadline is not None and not queued.overdue and not pod.overdue:
            if deadline > now:
                turns.append(deadline)
            elif queued.place is not Place.IN_FLIGHT:  # if it comes back it will be looked at
                queued.overdue = True
                told += _too_late(pod, merged)
        self._tickets += 1
        queued.turn_ticket = self._tickets
        if turns:
            self._line.push(min(turns), self._tickets, uid)
        return told

    def _place(self, queued: QueuedPod, hold: Hold | None, now: float) -> list[Instruction]:
        uid = queued.pod.uid
        if queued.place is Place.IN_FLIGHT or self._queue.held(uid):
            return []  # it is looked at when it is back, or before it is tried
        if hold is not None:
            if queued.place is not Place.GATED:
                self._queue.gate(uid, now)
            return self._held(queued, hold)
        if queued.held_by:
            queued.held_by = ""
            self._census.refuse(uid)
        if queued.place is Place.GATED:
            self._queue.ungate(uid, now, keeps_age=True)
        return []

    def _held(self, queued: QueuedPod, hold: Hold) -> list[Instruction]:
        """The words for a hold, and the end of what the pod was promised: others can use it until then."""
        pod, message = queued.pod, hold.message
        queued.lapses = None
        self._nominator.withdraw(pod.uid)
        self._census.refuse(pod.uid, [(POLICY_WINDOWS, message)])
        told: list[Instruction] = []
        if queued.held_by != message:
            queued.held_by = message
            told.append(_event(pod, RecordType.NORMAL, POLICY_HOLD, message))
        nomination = "" if pod.nominated_node else None
        if pod.scheduled_condition != ("False", POLICY_HOLD, message) or nomination is not None:
            told.append(
                SetCondition(
                    pod.ref,
                    pod.resource_version,
                    POLICY_HOLD,
                    message,
                    nomination,
                    generation=pod.generation,
                    transition=pod.scheduled_condition[0] != "False",
                )
            )
        return told

    def due(self, now: float) -> list[Instruction]:
        """Look at all pods whose turn has come."""
        told: list[Instruction] = []
        while (first := self._line.first_key()) is not None and first <= now:
            uid = self._line.pop()
            if uid is not None:
                told += self.look(uid, now)
        return told

    def next_turn(self) -> float | None:
        """When the first pod's turn comes; None if time alone changes nothing."""
        return self._line.first_key()

    def _current(self, ticket: int, uid: str) -> bool:
        queued = self._queue.get(uid)
        return queued is not None and queued.turn_ticket == ticket


def _too_late(pod: Pod, merged: Merged) -> list[Instruction]:
    assert merged.pending_deadline is not None, "a deadline has passed"
    ref, seconds = merged.pending_deadline
    text = f'pending for longer than the {_span(seconds)} that policy "{ref.key}" allows'
    condition = SetCondition(
        pod.ref,
        pod.resource_version,
        DEADLINE_REASON,
        text,
        generation=pod.generation,
        type=DEADLINE_CONDITION,
        status="True",
    )
    return [_event(pod, RecordType.WARNING, DEADLINE_REASON, text), condition]


def _event(pod: Pod, kind: RecordType, reason: str, message: str) -> Record:
    return Record(pod.ref, kind, reason, message, "Scheduling", pod.spec.scheduler_name)


def _span(seconds: float) -> str:
    """A duration as policies write it: 90s, 5m, 1h30m."""
    whole = int(seconds)
    if whole != seconds:
        return f"{seconds:g}s"
    parts = [(whole // 3600, "h"), (whole // 60 % 60, "m"), (whole % 60, "s")]
    return "".join(f"{number}{unit}" for number, unit in parts if number) or "0s"
