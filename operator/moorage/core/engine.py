"""The core as one state machine: events in, instructions out.

* ``handle(event, now)`` takes in what happened and only changes state.
* ``step(now)`` runs at most one scheduling cycle and returns what is to be done about it.
* ``evaluate(pod, now)`` answers where a pod could go and changes nothing.

Time is an argument, chance a seed, so the same events give the same instructions.  Engine time is in seconds
since the epoch (UTC); plugins find it in ``snapshot.now``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from moorage.core.attempts import Attempts
from moorage.core.cache.assumptions import Assumptions
from moorage.core.cache.cache import Cache
from moorage.core.cache.node_changes import guard_ready, node_event
from moorage.core.cache.pod_changes import assigned_event, pending_event
from moorage.core.cache.storage_changes import storage_event
from moorage.core.cycle.consultation import Asking, ExtenderError
from moorage.core.cycle.reservation import reserve, unreserve
from moorage.core.cycle.scheduling_cycle import explain, explain_pod
from moorage.core.framework.answers import PluginError
from moorage.core.framework.runner import Runner
from moorage.core.model.cluster_event import Action, ClusterEvent, Resource, WakesOn
from moorage.core.model.decision import Decision, Rejection
from moorage.core.model.events import (
    BindFailed,
    BindFailure,
    BindSucceeded,
    BudgetApplied,
    BudgetGone,
    Event,
    EvictionFinished,
    ExtenderAnswered,
    NamespaceApplied,
    NamespaceGone,
    NodeApplied,
    NodeGone,
    PendingListed,
    PodBound,
    PodFetched,
    PodGone,
    PodLeftPending,
    PodPending,
    Reconfigured,
    StorageApplied,
    StorageGone,
    VolumesNotPrepared,
    VolumesPrepared,
    WorkloadApplied,
    WorkloadGone,
)
from moorage.core.model.instructions import FetchPod, Instruction, Placement, Record, RecordType
from moorage.core.model.pod import Pod
from moorage.core.model.storage import StorageObject
from moorage.core.profile import DEFAULT_SCHEDULER_NAME, Profile, default_profile
from moorage.core.queue.nominator import Nominator
from moorage.core.queue.preemptions import Preemptions
from moorage.core.queue.scheduling_queue import Place, QueueSettings, SchedulingQueue
from moorage.core.snapshot.snapshot import Snapshot


def _default_profiles() -> Mapping[str, Profile]:
    return {DEFAULT_SCHEDULER_NAME: default_profile()}


@dataclass(frozen=True)
class EngineConfig:
    """What the engine is made with; durations in seconds.

    ``profiles`` maps scheduler names to profiles; the first also answers ``evaluate`` for pods of other names.
    ``node_ready_guard``: nodes that report not to be ready count as tainted.
    ``confirm_after`` and ``confirm_at_most``: the first and the longest wait for word of a placement
    before the API server is asked.
    """

    profiles: Mapping[str, Profile] = field(default_factory=_default_profiles)
    seed: int = 0
    node_ready_guard: bool = False
    queue: QueueSettings = field(default_factory=QueueSettings)
    confirm_after: float = 2.0
    confirm_at_most: float = 30.0


class Engine:
    """Owns queue, cache and the runners of all profiles."""

    def __init__(self, config: EngineConfig | None = None) -> None:
        self.config = config or EngineConfig()
        if not self.config.profiles:
            raise ValueError("an engine needs at least one profile")
        self.snapshot = Snapshot()
        self.cache = Cache(self.snapshot)
        self.profiles = self.config.profiles
        self.runners = {name: self._runner(profile) for name, profile in self.profiles.items()}
        self._default_runner = next(iter(self.runners.values()))
        self.queue = SchedulingQueue(self._sort_key, self._wakes, self.config.queue)
        self.nominator = Nominator()
        self.assumptions = Assumptions(self.config.confirm_after, self.config.confirm_at_most)
        self.preemptions = Preemptions(self.nominator)
        self._attempts = Attempts(
            cache=self.cache,
            queue=self.queue,
            nominator=self.nominator,
            assumptions=self.assumptions,
            preemptions=self.preemptions,
            runner_of=self._runner_of,
            seed=self.config.seed,
        )
        self._outbox: list[Instruction] = []
        self._handlers: Mapping[type[Any], Callable[[Any, float], None]] = {
            NodeApplied: self._node_applied,
            NodeGone: self._node_gone,
            PodPending: self._pod_pending,
            PodLeftPending: self._pod_left_pending,
            PendingListed: self._pending_listed,
            PodBound: self._pod_bound,
            PodGone: self._pod_gone,
            BindSucceeded: self._bind_succeeded,
            BindFailed: self._bind_failed,
            PodFetched: self._pod_fetched,
            BudgetApplied: self._budget_applied,
            BudgetGone: self._budget_gone,
            EvictionFinished: self._eviction_finished,
            ExtenderAnswered: self._extender_answered,
            Reconfigured: self._reconfigured,
            StorageApplied: self._storage_applied,
            StorageGone: self._storage_gone,
            VolumesPrepared: self._volumes_prepared,
            VolumesNotPrepared: self._volumes_not_prepared,
            NamespaceApplied: self._namespace_applied,
            NamespaceGone: self._namespace_gone,
            WorkloadApplied: self._workload_applied,
            WorkloadGone: self._workload_gone,
        }

    # -- the three verbs -------------------------------------------------------------------------

    def handle(self, event: Event, now: float) -> None:
        """Take in an event; instructions that follow from it come with the next ``step``."""
        self.snapshot.now = now
        self._handlers[type(event)](event, now)
        self._announce_promises(now)

    def step(self, now: float) -> list[Instruction]:
        """Run at most one scheduling cycle; an empty list means that nothing came of it."""
        self.snapshot.now = now
        instructions = self.flush()
        instructions += [FetchPod(ref) for ref in self.assumptions.due(now)]
        instructions += self._attempts.revisit_waiting(now)
        instructions += self._attempts.preparations.overdue(now)
        if self._attempts.suspended:
            instructions += self._attempts.resume(now)
        elif (queued := self.queue.pop(now)) is not None:
            instructions += self._attempts.attempt(queued, now)
        self._announce_promises(now)
        instructions += self.queue.drain_faults() + self._attempts.drain_faults()
        return instructions

    def flush(self) -> list[Instruction]:
        """What follows from events alone, without a cycle: for the end, when nothing is to be decided any more."""
        instructions, self._outbox = self._outbox, []
        return instructions

    def evaluate(self, pod: Pod, now: float, nodes: Sequence[str] | None = None) -> Decision:
        """Where the pod could go as things stand, with every reason and score; changes nothing.

        ``nodes`` limits the question to the nodes of these names.  Extenders are not asked.
        """
        self.snapshot.now = now
        try:
            return explain_pod(self._runner_of(pod), pod, self._attempts.circumstances(pod), nodes)
        except PluginError as error:
            return Decision(pod.ref, error=str(error))

    def explanation(self, pod: Pod, now: float) -> Asking[Decision]:
        """As ``evaluate``, with the extenders of the pod's profile, whom the caller asks what it yields."""
        self.snapshot.now = now
        runner = self._runner_of(pod)
        look = lambda: self._attempts.circumstances(pod)  # noqa: E731 - a cycle looks more than once
        try:
            return (yield from explain(runner, pod, look, runner.concerned(pod)))
        except (PluginError, ExtenderError) as error:
            return Decision(pod.ref, error=str(error))

    def reserve(self, pod: Pod) -> Rejection | None:
        """Promise a pod what it is to get on ``pod.node_name``, as a cycle would that places it there.

        For front doors that place pods without binding them; raises PluginError.
        """
        runner = self._runner_of(pod)
        rejection = reserve(runner, pod)
        if rejection is not None:
            unreserve(runner, pod)
        return rejection

    # -- for the runtime -------------------------------------------------------------------------

    def ready(self, now: float) -> bool:
        """Whether ``step`` would do something now."""
        if self._outbox or self._attempts.permit_due:
            return True
        if self._attempts.resumable if self._attempts.suspended else self.queue.ready(now):
            return True
        wake = self.next_wake()
        return wake is not None and wake <= now

    def next_wake(self) -> float | None:
        """The engine time at which ``step`` has something to do even if nothing happens; None if never."""
        queue = None if self._attempts.suspended else self.queue.next_wake()
        times = (self.assumptions.next_check(), queue, self._attempts.next_deadline())
        return min((time for time in times if time is not None), default=None)

    def last_look(self, placement: Placement) -> str | None:
        """Right before the bind: why the chosen node is no longer fit, from our own cache; None if it is."""
        assumption = self.assumptions.get(placement.ref.uid)
        if assumption is None:
            return "the placement was withdrawn"
        stamp = self.cache.stamp(placement.node_name)
        if stamp == assumption.stamp:
            return None
        row = self.snapshot.row_of(placement.node_name)
        if row is None:
            return f"node {placement.node_name} no longer exists"
        pod = assumption.pod
        runner = self._runner_of(pod)
        try:
            pre = runner.pre_filter(pod)
            rejection = pre.rejection or runner.judge_with(pre, row, added=(), removed=(pod,))
        except PluginError as error:
            return str(error)
        if rejection is not None:
            return ", ".join(rejection.reasons)
        assumption.stamp = stamp
        return None

    def stats(self) -> dict[str, int]:
        """Counts for metrics: ``pending_<place>``, ``nodes``, ``pods``, ``assumed``, ``preparing``, ``nominated``."""
        counts = {f"pending_{place.value}": number for place, number in self.queue.counts().items()}
        return {
            **counts,
            "nodes": self.snapshot.node_count,
            "pods": len(self.cache),
            "assumed": len(self.assumptions),
            "preparing": len(self._attempts.preparations),
            "nominated": len(self.nominator),
        }

    # -- nodes -----------------------------------------------------------------------------------

    def _node_applied(self, event: NodeApplied, now: float) -> None:
        node = guard_ready(event.node) if self.config.node_ready_guard else event.node
        before = self.cache.apply_node(node)
        if before is not None and before.uid != node.uid:  # deleted and made again under the same name
            self._wake(ClusterEvent(Resource.NODE, Action.DELETE, before, None), now)
            before = None
        change = node_event(before, node)
        if change is not None:
            self._wake(change, now)
            self._outbox += self._attempts.preparations.node_changed(node.name, now)

    def _node_gone(self, event: NodeGone, now: float) -> None:
        before = self.cache.remove_node(event.name)
        if before is not None:
            self._wake(ClusterEvent(Resource.NODE, Action.DELETE, before, None), now)
            self._outbox += self._attempts.preparations.node_changed(event.name, now)

    # -- pending pods ----------------------------------------------------------------------------

    def _pod_pending(self, event: PodPending, now: float) -> None:
        pod = event.pod
        state = self.cache.state(pod.uid)
        confirmed = state is not None and not state.assumed
        if (
            confirmed
            or pod.node_name
            or pod.deleting
            or pod.finished
            or pod.spec.scheduler_name not in self.runners
        ):
            # Bound pods come by the other stream, and a pod that was seen bound never becomes pending again.
            self._leave_queue(pod.uid, now)
            return
        queued = self.queue.get(pod.uid)
        if pod.nominated_node and state is None:
            self.nominator.nominate(pod, pod.nominated_node)
        elif queued is not None and queued.pod.nominated_node:
            self.nominator.withdraw(pod.uid)  # the API server had it and has it no more
        else:
            self.nominator.update(pod)  # a promise of ours may be on its way
        gated = self._runner_of(pod).pre_enqueue(pod) is not None or self.queue.held(pod.uid)
        if queued is None:
            if state is None:
                self.queue.add(pod, now, gated=gated)
            return
        before = queued.pod
        self.queue.update(pod, now)
        if queued.place is Place.GATED and not gated:
            self.queue.ungate(pod.uid, now)
        elif queued.place is not Place.GATED and gated:
            self.queue.gate(pod.uid, now)
        elif (change := pending_event(before, pod)) is not None:
            self.queue.wake_pod(pod.uid, change, now)

    def _pod_left_pending(self, event: PodLeftPending, now: float) -> None:
        self._leave_queue(event.ref.uid, now)

    def _pending_listed(self, event: PendingListed, now: float) -> None:
        gone = [
            q.pod.uid
            for q in self.queue.entries()
            if q.pod.uid not in event.uids and q.seen < event.listed_at
        ]
        for uid in gone:
            self._leave_queue(uid, now)

    def _leave_queue(self, uid: str, now: float) -> None:
        queued = self.queue.get(uid)
        if queued is None:
            return
        if queued.place is Place.IN_FLIGHT:
            # Being bound: the bind's result or the bound stream ends it.  Waiting on permit: nothing was sent yet.
            queued.left = True
            if self.assumptions.get(uid) is None:
                self._release_room(uid, now)
            return
        self.queue.remove(uid)
        self.preemptions.abandon(uid)
        self.nominator.withdraw(uid)

    # -- bound pods ------------------------------------------------------------------------------

    def _pod_bound(self, event: PodBound, now: float) -> None:
        pod = event.pod
        if pod.finished:
            self._release_room(pod.uid, now)
            return
        state = self.cache.state(pod.uid)
        if state is not None and state.node_name == pod.node_name:
            self.assumptions.end(pod.uid)  # what was reserved there is in use now
        self._attempts.release(pod.uid, now)
        self.queue.remove(pod.uid)
        self.nominator.withdraw(pod.uid, pod)
        self.preemptions.abandon(pod.uid)
        if pod.deleting:
            self.preemptions.seen_going(pod.uid)
        before = self.cache.add(pod)
        if before is None or before.assumed:
            self._wake(ClusterEvent(Resource.ASSIGNED_POD, Action.ADD, None, pod), now)
        if before is None:
            return
        if before.node_name != pod.node_name:  # assumed here, bound elsewhere by someone else
            self._wake(ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE, before.pod, None), now)
        change = assigned_event(before.pod, pod)
        if change is not None:
            self._wake(change, now)

    def _pod_gone(self, event: PodGone, now: float) -> None:
        self._release_room(event.ref.uid, now)

    def _release_room(self, uid: str, now: float) -> None:
        """The pod takes nothing any more, and is not to be scheduled either."""
        self._attempts.release(uid, now)
        self.queue.remove(uid)
        self.nominator.withdraw(uid)
        self.preemptions.seen_going(uid)
        self.preemptions.abandon(uid)
        pod = self.cache.remove(uid)
        if pod is not None:
            self._wake(ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE, pod, None), now)

    def _announce_promises(self, now: float) -> None:
        """What was promised to a pod counts as taken by it: less of that is news to others, not to the pod itself."""
        for pod in self.nominator.drain_ended():
            self._wake(ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE, pod, None), now, but=pod.uid)
        for before, after in self.nominator.drain_changed():
            change = assigned_event(before, after)
            if change is not None:
                self._wake(change, now, but=after.uid)

    def _wake(self, event: ClusterEvent, now: float, *, but: str = "") -> None:
        if event.resource is Resource.ASSIGNED_POD:
            event = replace(event, namespace_labels=self.snapshot.namespaces.labels)
        self.queue.wake(event, now, but=but)

    # -- what pods belong to ---------------------------------------------------------------------

    def _namespace_applied(self, event: NamespaceApplied, now: float) -> None:
        namespace = event.namespace
        before = self.snapshot.namespaces.apply(namespace)
        if before is not namespace:
            action = Action.ADD if before is None else Action.UPDATE_OTHER
            self._wake(ClusterEvent(Resource.NAMESPACE, action, before, namespace), now)

    def _namespace_gone(self, event: NamespaceGone, now: float) -> None:
        self.snapshot.namespaces.remove(event.name)

    def _workload_applied(self, event: WorkloadApplied, now: float) -> None:
        if self.snapshot.workloads.apply(event.workload):
            self._wake(ClusterEvent(Resource.WORKLOAD, Action.UPDATE_OTHER, None, event.workload), now)

    def _workload_gone(self, event: WorkloadGone, now: float) -> None:
        gone = self.snapshot.workloads.remove(event.kind, event.namespace, event.name)
        if gone is not None:
            self._wake(ClusterEvent(Resource.WORKLOAD, Action.DELETE, gone, None), now)

    # -- what became of instructions -------------------------------------------------------------

    def _bind_succeeded(self, event: BindSucceeded, now: float) -> None:
        self.assumptions.settled(event.ref.uid, now)
        self.queue.remove(event.ref.uid)
        self.nominator.withdraw(event.ref.uid)
        text = f"Successfully assigned {event.ref.key} to {event.node_name}"
        state = self.cache.state(event.ref.uid)
        name = "" if state is None else state.pod.spec.scheduler_name
        self._outbox.append(Record(event.ref, RecordType.NORMAL, "Scheduled", text, "Binding", name))

    def _bind_failed(self, event: BindFailed, now: float) -> None:
        uid = event.ref.uid
        assumption = self.assumptions.end(uid)
        if assumption is not None:
            self._attempts.undo(assumption.pod, now)
        queued = self.queue.get(uid)
        if queued is None or queued.place is not Place.IN_FLIGHT:
            return
        if queued.left or event.failure in (BindFailure.GONE, BindFailure.BOUND_ELSEWHERE):
            self.queue.remove(uid)
            self.nominator.withdraw(uid)
        elif event.failure in (BindFailure.STALE, BindFailure.NODE_GONE, BindFailure.NOT_LEADER):
            self._renominate(queued.pod)
            self.queue.retry_now(uid, now)
        else:
            self._renominate(queued.pod)
            by_extender = event.failure is BindFailure.EXTENDER
            text = event.message if by_extender else f'running Bind plugin "DefaultBinder": {event.message}'
            self._outbox += self._attempts.failed_with_error(queued, text, now, event.retry_after)

    def _renominate(self, pod: Pod) -> None:
        """The pod gave its promised node up when it was placed; it gets the promise back."""
        if pod.nominated_node:
            self.nominator.nominate(pod, pod.nominated_node)

    def _pod_fetched(self, event: PodFetched, now: float) -> None:
        assumption = self.assumptions.get(event.ref.uid)
        if assumption is None:
            return
        live = event.pod
        if live is None or live.uid != event.ref.uid or live.finished:
            self._release_room(event.ref.uid, now)
        elif live.node_name and live.node_name != assumption.pod.node_name:
            self._pod_bound(PodBound(live), now)
        # Bound to this node, or not bound yet: the streams and the binder have the last word.

    def _extender_answered(self, event: ExtenderAnswered, now: float) -> None:
        self._attempts.answered(event.ticket, event.answer)

    # -- preemption ------------------------------------------------------------------------------

    def _budget_applied(self, event: BudgetApplied, now: float) -> None:
        self.preemptions.set_budget(event.budget)

    def _budget_gone(self, event: BudgetGone, now: float) -> None:
        self.preemptions.drop_budget(event.namespace, event.name)

    def _eviction_finished(self, event: EvictionFinished, now: float) -> None:
        uid = event.preemptor.uid
        self.queue.end_hold(uid, now)
        if event.error:
            self.preemptions.abandon(uid)
            self.nominator.withdraw(uid)
            self.queue.activate(uid, now)  # no victim's going will wake it

    # -- configuration ---------------------------------------------------------------------------

    def _runner(self, profile: Profile) -> Runner:
        return Runner(profile.plugins, profile.weights, self.snapshot, profile.points, profile.extenders)

    def _reconfigured(self, event: Reconfigured, now: float) -> None:
        """Pods keep their places in the queue; those whose profile has changed may be helped by that, others not."""
        if not event.profiles:
            raise ValueError("an engine needs at least one profile")
        self._attempts.start_over(now)
        before, self.profiles = self.profiles, event.profiles
        changed = {
            name
            for name, profile in self.profiles.items()
            if name not in before or not profile.decides_like(before[name])
        }
        self.runners = {
            name: self._runner(profile) if name in changed else self.runners[name]
            for name, profile in self.profiles.items()
        }
        self._default_runner = next(iter(self.runners.values()))
        self.queue.configure(event.queue)
        for queued in list(self.queue.entries()):
            pod, uid = queued.pod, queued.pod.uid
            name = pod.spec.scheduler_name
            gated = queued.place is Place.GATED and not self.queue.held(uid)
            if name not in self.profiles:
                self._leave_queue(uid, now)
            elif gated and name in changed and self.runners[name].pre_enqueue(pod) is None:
                self.queue.ungate(uid, now)
        if changed:
            self.queue.wake_all(changed, now)

    # -- storage ---------------------------------------------------------------------------------

    def _storage_applied(self, event: StorageApplied, now: float) -> None:
        before = self.cache.apply_storage(event.obj)
        self._storage_changed(event.obj, storage_event(before, event.obj), now)

    def _storage_gone(self, event: StorageGone, now: float) -> None:
        before = self.cache.remove_storage(event.kind, event.key)
        if before is not None:
            self._storage_changed(before, storage_event(before, None), now)

    def _storage_changed(self, obj: StorageObject, change: ClusterEvent | None, now: float) -> None:
        if change is not None:
            self._wake(change, now)
        concerned = self.snapshot.storage.concerned_pods(obj)
        if concerned:
            self._outbox += self._attempts.preparations.look_again(sorted(concerned), now)

    def _volumes_prepared(self, event: VolumesPrepared, now: float) -> None:
        self._outbox += self._attempts.preparations.prepared(event, now)

    def _volumes_not_prepared(self, event: VolumesNotPrepared, now: float) -> None:
        self._outbox += self._attempts.preparations.not_prepared(event, now)

    # -- look-ups --------------------------------------------------------------------------------

    def _runner_of(self, pod: Pod) -> Runner:
        return self.runners.get(pod.spec.scheduler_name, self._default_runner)

    def _sort_key(self, pod: Pod, since: float) -> tuple[float, ...]:
        return self._runner_of(pod).queue_sort.queue_key(pod, since)

    def _wakes(self, pod: Pod) -> Mapping[str, Sequence[WakesOn]]:
        return self._runner_of(pod).wakes
