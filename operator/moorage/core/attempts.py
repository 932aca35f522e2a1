"""Scheduling attempts: what is done with a pod that the queue gave out, up to the instruction to bind it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from moorage.core.audits import Answer
from moorage.core.cache.assumptions import Assumptions
from moorage.core.cache.cache import Cache
from moorage.core.cache.storage_changes import released
from moorage.core.cache.transaction import Transaction
from moorage.core.cycle.consultation import Asking, ExtenderError
from moorage.core.cycle.reservation import Waiting, permit, refusal_text, reserve, timed_out, unreserve
from moorage.core.cycle.scheduling_cycle import Circumstances, Outcome, schedule, schedule_pod
from moorage.core.framework.answers import PluginError
from moorage.core.framework.runner import Runner
from moorage.core.framework.watching import Phase, enter
from moorage.core.model.cluster_event import Action, ClusterEvent, Resource
from moorage.core.model.decision import Rejection
from moorage.core.model.events import BindFailure, VolumesNotPrepared
from moorage.core.model.extender import Answer as Said
from moorage.core.model.instructions import (
    Attempted,
    AttemptResult,
    Bind,
    Evict,
    Fault,
    Instruction,
    Placement,
    Record,
    RecordType,
    SetCondition,
)
from moorage.core.model.pod import Pod
from moorage.core.policy_effects import POLICIES_ANNOTATION, PolicyEffects
from moorage.core.preparations import Preparations, failure_text
from moorage.core.queue.nominator import Nominator
from moorage.core.queue.preemptions import Preemptions
from moorage.core.queue.scheduling_queue import QueuedPod, SchedulingQueue
from moorage.core.suspension import Suspended
from moorage.core.turns import POLICY_HOLD


class Attempts:
    """Runs cycles, keeps the pods that wait on Permit or PreBind, and writes down what each attempt came to."""

    def __init__(
        self,
        *,
        cache: Cache,
        queue: SchedulingQueue,
        nominator: Nominator,
        assumptions: Assumptions,
        preemptions: Preemptions,
        runner_of: Callable[[Pod], Runner],
        policies: PolicyEffects,
        seed: int,
    ) -> None:
        self._cache = cache
        self._queue = queue
        self._nominator = nominator
        self._assumptions = assumptions
        self._preemptions = preemptions
        self._runner_of = runner_of
        self._policies = policies
        self._rng = np.random.default_rng(seed)
        self._waiting: dict[str, Waiting] = {}
        self._faults: list[Fault] = []
        self._ask_again: set[str] = set()  # waiting pods, since another was placed
        self._suspended: Suspended | None = None
        self._ticket = 0
        self.preparations = Preparations(cache, runner_of, self)

    # -- an attempt ------------------------------------------------------------------------------

    def attempt(self, queued: QueuedPod, now: float) -> list[Instruction]:
        """One scheduling cycle for one pod in flight."""
        pod = self._as_promised(queued.pod)
        if self._cache.state(pod.uid) is not None:
            self._queue.remove(pod.uid)
            return []
        if self._policies.hold_back(pod, now):
            self._queue.hold_back(pod.uid, now)
            return self._policies.look(pod.uid, now)
        runner = self._runner_of(pod)
        if runner.extenders:
            steps = schedule(runner, pod, lambda: self.circumstances(pod), self._rng)
            return self._proceed(queued, steps, None, now)
        try:
            self._policies.decision_begins()
            try:
                outcome = schedule_pod(runner, pod, self.circumstances(pod), self._rng)
            finally:
                self._policies.decision_ends()
            return self._ended(runner, queued, outcome, now)
        except PluginError as error:
            return self.failed_with_error(queued, str(error), now)

    def _proceed(
        self, queued: QueuedPod, steps: Asking[Outcome], answers: tuple[Said, ...] | None, now: float
    ) -> list[Instruction]:
        """Run a cycle from its beginning, or on with the answers it waits for, to its end or its next questions."""
        try:
            try:
                questions = steps.send(answers)  # type: ignore[arg-type]  # None begins it
            except StopIteration as end:
                outcome: Outcome = end.value
            else:
                self._suspended = suspended = Suspended(queued, steps, questions, self._ticket)
                self._ticket += len(questions)
                return list(suspended.calls())
            return self._ended(self._runner_of(queued.pod), queued, outcome, now)
        except (PluginError, ExtenderError) as error:
            return self.failed_with_error(queued, str(error), now)

    def _ended(self, runner: Runner, queued: QueuedPod, outcome: Outcome, now: float) -> list[Instruction]:
        """Place the pod where the cycle says, or tell why nowhere; raises PluginError."""
        enter(Phase.POLICIES)
        pod = self._as_promised(queued.pod)
        if outcome.row is None:
            held = self._policies.held_by(runner, pod)
            real = Answer(held=held)
        else:
            real = Answer(np.array([outcome.row], dtype=np.int64))
        audited = self._policies.audit(pod, real, self.circumstances(pod), now)
        if outcome.row is None:
            enter(Phase.TELL)
            return [*self._unschedulable(runner, queued, outcome, real.held, now), *audited]
        enter(Phase.PLACE)
        return [*self._place(runner, queued, outcome.row, outcome.feasible, now), *audited]

    # -- waiting for extenders -------------------------------------------------------------------

    @property
    def suspended(self) -> bool:
        """Whether a cycle waits for extenders; no other begins meanwhile, as all profiles have the same ones."""
        return self._suspended is not None

    @property
    def resumable(self) -> bool:
        """Whether the cycle that waits can go on: all answers are there, or nobody needs them any more."""
        suspended = self._suspended
        return suspended is not None and (suspended.complete() is not None or self._is_over(suspended))

    def answered(self, ticket: int, answer: Said) -> None:
        """An extender has answered."""
        if self._suspended is not None:
            self._suspended.take(ticket, answer)

    def resume(self, now: float) -> list[Instruction]:
        """Go on with the cycle that waits, if it can."""
        suspended = self._suspended
        if suspended is None or not self.resumable:
            return []
        self._suspended = None
        answers = suspended.complete()
        if answers is None or self._is_over(suspended):
            suspended.steps.close()
            return []
        return self._proceed(suspended.queued, suspended.steps, answers, now)

    def start_over(self, now: float, uid: str = "") -> None:
        """What the cycle that waits began with no longer holds: its pod is tried again from the beginning.

        With a UID, only if it is that pod's.
        """
        if uid and (self._suspended is None or self._suspended.queued.pod.uid != uid):
            return
        suspended, self._suspended = self._suspended, None
        if suspended is not None:
            suspended.steps.close()
            if not self._is_over(suspended):
                self._queue.retry_now(suspended.queued.pod.uid, now)

    def _is_over(self, suspended: Suspended) -> bool:
        """Whether the pod has gone while its cycle waited."""
        return self._queue.get(suspended.queued.pod.uid) is not suspended.queued

    # -- the end of a cycle ----------------------------------------------------------------------

    def _as_promised(self, pod: Pod) -> Pod:
        """The pod with the node it was promised, which the API server may not show yet."""
        node_name = self._nominator.node_of(pod.uid)
        return pod if node_name == pod.nominated_node else replace(pod, nominated_node=node_name)

    def circumstances(self, pod: Pod) -> Circumstances:
        """What a cycle for this pod needs to know beyond the snapshot."""
        nominated: dict[int, Sequence[Pod]] = {}
        if len(self._nominator):
            rows = ((self._cache.snapshot.row_of(name), pods) for name, pods in self._nominator.ahead_of(pod))
            nominated = {row: pods for row, pods in rows if row is not None}
        return Circumstances(nominated, self._preemptions.budgets, self._preemptions.awaited(pod.uid))

    def _place(
        self, runner: Runner, queued: QueuedPod, row: int, feasible: int, now: float
    ) -> list[Instruction]:
        node_name = self._cache.snapshot.name_at(row)
        with Transaction(self._cache) as transaction:
            pod = transaction.place(queued.pod, node_name)
            try:
                leave = reserve(runner, pod) or permit(runner, pod, now)
            except PluginError:
                self._unreserve(pod, now)
                raise
            if isinstance(leave, Rejection):
                self._unreserve(pod, now)
                transaction.rollback()
                return self._rejected(queued, leave, now)
            transaction.commit()
        self._ask_again.update(self._waiting)
        queued.shaped_by = self._policies.placed(pod)
        self._nominator.withdraw(pod.uid, pod)
        self._preemptions.abandon(pod.uid)
        attempted = self._attempted(
            queued, AttemptResult.SCHEDULED, node_name=node_name, feasible_nodes=feasible
        )
        if leave is not None:
            self._waiting[pod.uid] = leave
            return [attempted]
        return [*self.preparations.begin(pod, now), attempted]

    def _bind(self, pods: Sequence[Pod], now: float) -> Bind:
        for pod in pods:
            self._assumptions.begin(pod, self._cache.stamp(pod.node_name), now)
        placements = tuple(Placement(pod.ref, pod.node_name, self._bound_by(pod)) for pod in pods)
        shaped = [q.shaped_by for q in map(self._queue.get, (pod.uid for pod in pods)) if q and q.shaped_by]
        return Bind(placements, tuple((POLICIES_ANNOTATION, names) for names in shaped))

    def _bound_by(self, pod: Pod) -> str:
        return next((e.name for e in self._runner_of(pod).concerned(pod) if e.binds), "")

    # -- waiting on Permit -----------------------------------------------------------------------

    def revisit_waiting(self, now: float) -> list[Instruction]:
        """Ask Permit again for waiting pods when another pod was placed, and let go of those that waited too long."""
        if not self._waiting:
            return []
        instructions: list[Instruction] = []
        again, self._ask_again = self._ask_again, set()
        for uid, waiting in list(self._waiting.items()):
            if uid not in again and now < waiting.deadline:
                continue
            pod = waiting.pod
            queued = self._queue.get(uid)
            error = ""
            try:
                answer = permit(self._runner_of(pod), pod, now)
            except PluginError as raised:
                answer, error = None, str(raised)
            if isinstance(answer, Waiting) and now >= waiting.deadline:
                answer = timed_out(waiting)
            if isinstance(answer, Waiting):
                continue
            del self._waiting[uid]
            if answer is None and not error:
                instructions += self.preparations.begin(pod, now)
                continue
            # Back into the queue first: the room it gives up is no news to the pod itself.
            if queued is not None and answer is not None:
                instructions += self._rejected(queued, answer, now)
            elif queued is not None:
                instructions += self.failed_with_error(queued, error, now)
            self.undo(pod, now)
        return instructions

    @property
    def permit_due(self) -> bool:
        """Whether waiting pods are to be asked about again, since another was placed."""
        return bool(self._ask_again)

    def next_deadline(self) -> float | None:
        """When the first waiting pod has waited too long; None if none waits."""
        first = min((waiting.deadline for waiting in self._waiting.values()), default=None)
        times = (first, self.preparations.next_deadline())
        return min((time for time in times if time is not None), default=None)

    # -- waiting on PreBind ----------------------------------------------------------------------

    def bind_now(self, pod: Pod, now: float) -> list[Instruction]:
        """All that the pod needed on its node is ready."""
        return [self._bind((pod,), now)]

    def give_back(self, pod: Pod, error: VolumesNotPrepared | str, now: float) -> list[Instruction]:
        """What the pod needed could not be had: it gives its place up and is tried again."""
        instructions: list[Instruction] = []
        queued = self._queue.get(pod.uid)
        if queued is not None and _not_leading(error):
            self._queue.retry_now(pod.uid, now)
        elif queued is not None:
            retry_after = 0.0 if isinstance(error, str) else error.retry_after
            instructions += self.failed_with_error(queued, failure_text(error), now, retry_after)
        self.undo(pod, now)
        return instructions

    def undo(self, pod: Pod, now: float) -> None:
        """Give a placed pod's room back and tell those who wait for room."""
        self._unreserve(pod, now)
        if self._cache.forget(pod.uid) is not None:
            self._queue.wake(ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE, pod, None), now, but=pod.uid)

    def release(self, uid: str, now: float) -> bool:
        """The placement is over without a binding of ours: what was reserved is free.  False if there was none."""
        waiting = self._waiting.pop(uid, None)
        self._ask_again.discard(uid)
        preparing = self.preparations.end(uid)
        assumption = self._assumptions.end(uid)
        if waiting is not None:
            pod = waiting.pod
        elif preparing is not None:
            pod = preparing
        elif assumption is not None:
            pod = assumption.pod
        else:
            return False
        self._unreserve(pod, now)
        return True

    def _unreserve(self, pod: Pod, now: float) -> None:
        reservation = self._cache.snapshot.storage.reservations.get(pod.uid)
        self._faults += unreserve(self._runner_of(pod), pod)
        if reservation is not None:
            for change in released(reservation):
                self._queue.wake(change, now, but=pod.uid)

    def drain_faults(self) -> list[Fault]:
        """What plugins have raised where no attempt could fail for it, since the last call."""
        faults, self._faults = self._faults, []
        return faults

    # -- how attempts end ------------------------------------------------------------------------

    def _unschedulable(
        self, runner: Runner, queued: QueuedPod, outcome: Outcome, held: str, now: float
    ) -> list[Instruction]:
        failure = outcome.failure
        assert failure is not None, "an outcome without a row tells why"
        remedy = failure.remedy
        pod = queued.pod
        nomination: str | None = None
        instructions: list[Instruction] = []
        if remedy is not None and remedy.chosen is not None:
            nomination = remedy.chosen.node_name
            instructions += self._preemptions.begin(pod, remedy.chosen)
        elif remedy is None or remedy.clear_nomination:
            self._nominator.withdraw(pod.uid)
            nomination = "" if pod.nominated_node else None
        evicting = any(isinstance(instruction, Evict) for instruction in instructions)
        message = f"{held}: {failure.message}" if held else failure.message
        plugins = failure.diagnosis.plugins
        reason = POLICY_HOLD if held else ""
        tried = remedy is not None
        instructions += self._refused(
            queued, message, plugins, now, nomination, reason, preemption_tried=tried
        )
        instructions += self._policies.refused(queued, runner, plugins, failure.diagnosis.reasons(), now)
        if evicting:
            self._queue.hold(pod.uid, now)  # until it is known that all victims were asked to go
        return instructions

    def _rejected(self, queued: QueuedPod, rejection: Rejection, now: float) -> list[Instruction]:
        plugins = frozenset((rejection.plugin,))
        reasons = [(rejection.plugin, text) for text in rejection.reasons]
        return [
            *self._refused(queued, refusal_text(rejection), plugins, now),
            *self._policies.refused(queued, self._runner_of(queued.pod), plugins, reasons, now),
        ]

    def _refused(
        self,
        queued: QueuedPod,
        message: str,
        plugins: frozenset[str],
        now: float,
        nomination: str | None = None,
        reason: str = "",
        *,
        preemption_tried: bool = False,
    ) -> list[Instruction]:
        self._queue.requeue(queued.pod.uid, plugins, now)
        attempted = self._attempted(
            queued,
            AttemptResult.UNSCHEDULABLE,
            plugins=tuple(sorted(plugins)),
            message=message,
            preemption_tried=preemption_tried,
        )
        return [*_tell(queued.pod, reason or "Unschedulable", message, nomination), attempted]

    def failed_with_error(
        self, queued: QueuedPod, message: str, now: float, retry_after: float = 0.0
    ) -> list[Instruction]:
        """The attempt failed for a reason that is not the cluster's state."""
        self._queue.retry_after_error(queued.pod.uid, now, retry_after)
        attempted = self._attempted(queued, AttemptResult.ERROR, message=message)
        looked = self._policies.look(queued.pod.uid, now)
        return [*_tell(queued.pod, "SchedulerError", message), attempted, *looked]

    def _attempted(
        self,
        queued: QueuedPod,
        result: AttemptResult,
        *,
        node_name: str = "",
        feasible_nodes: int = 0,
        plugins: tuple[str, ...] = (),
        message: str = "",
        preemption_tried: bool = False,
    ) -> Attempted:
        pod = queued.pod
        return Attempted(
            pod.ref,
            pod.spec.scheduler_name,
            result,
            queued.attempts,
            queued.added,
            node_name,
            feasible_nodes,
            plugins,
            message,
            preemption_tried,
        )


def _not_leading(error: VolumesNotPrepared | str) -> bool:
    return isinstance(error, VolumesNotPrepared) and error.failure is BindFailure.NOT_LEADER


def _tell(pod: Pod, reason: str, message: str, nomination: str | None = None) -> list[Instruction]:
    """The event and the condition by which the user learns why the pod is pending."""
    told: list[Instruction] = [
        Record(
            pod.ref, RecordType.WARNING, "FailedScheduling", message, "Scheduling", pod.spec.scheduler_name
        )
    ]
    known = pod.scheduled_condition
    if known != ("False", reason, message) or nomination not in (None, pod.nominated_node):
        told.append(
            SetCondition(
                pod.ref,
                pod.resource_version,
                reason,
                message,
                nomination,
                generation=pod.generation,
                transition=known[0] != "False",
            )
        )
    return told
