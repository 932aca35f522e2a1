"""What the engine knows, and the changes of it that more than one kind of event leads to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from moorage.core.attempts import Attempts
from moorage.core.audits import Audits
from moorage.core.cache.assumptions import Assumptions
from moorage.core.cache.cache import Cache
from moorage.core.cache.overcommits import Overcommits
from moorage.core.cache.pod_changes import assigned_event
from moorage.core.intake.roster import Roster
from moorage.core.model.cluster_event import Action, ClusterEvent, Resource
from moorage.core.model.instructions import Instruction
from moorage.core.policy.book import PolicyBook
from moorage.core.policy.census import Census
from moorage.core.queue.nominator import Nominator
from moorage.core.queue.preemptions import Preemptions
from moorage.core.queue.scheduling_queue import Place, SchedulingQueue
from moorage.core.snapshot.snapshot import Snapshot
from moorage.core.turns import Turns


@dataclass(slots=True)
class State:
    """The parts of the engine.  ``outbox`` holds the instructions that follow from events, for the next step."""

    cache: Cache
    overcommits: Overcommits
    roster: Roster
    queue: SchedulingQueue
    nominator: Nominator
    assumptions: Assumptions
    preemptions: Preemptions
    attempts: Attempts
    turns: Turns
    audits: Audits
    census: Census
    node_ready_guard: bool = False
    outbox: list[Instruction] = field(default_factory=list)

    @property
    def snapshot(self) -> Snapshot:
        """The cluster as columns."""
        return self.cache.snapshot

    @property
    def book(self) -> PolicyBook:
        """The policies."""
        return self.roster.book

    def wake(self, event: ClusterEvent, now: float, *, but: str = "") -> None:
        """Tell the waiting pods, but for the one of that UID, of a change."""
        if event.resource is Resource.ASSIGNED_POD:
            event = replace(event, namespace_labels=self.snapshot.namespaces.labels)
        self.queue.wake(event, now, but=but)

    def announce_promises(self, now: float) -> None:
        """What was promised to a pod counts as taken by it: less of that is news to others, not to the pod itself."""
        for pod in self.nominator.drain_ended():
            self.wake(ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE, pod, None), now, but=pod.uid)
        for before, after in self.nominator.drain_changed():
            change = assigned_event(before, after)
            if change is not None:
                self.wake(change, now, but=after.uid)

    def leave_queue(self, uid: str, now: float) -> None:
        """The pod is not to be scheduled any more, at least not by us."""
        queued = self.queue.get(uid)
        if queued is None:
            return
        if queued.place is Place.IN_FLIGHT:
            # Being bound: the bind's result or the bound stream ends it.  Waiting on permit: nothing was sent yet.
            queued.left = True
            if self.assumptions.get(uid) is None:
                self.release_room(uid, now)
            return
        self.queue.remove(uid)
        self.preemptions.abandon(uid)
        self.nominator.withdraw(uid)

    def release_room(self, uid: str, now: float) -> None:
        """The pod takes nothing any more, and is not to be scheduled either."""
        self.attempts.release(uid, now)
        self.queue.remove(uid)
        self.nominator.withdraw(uid)
        self.preemptions.seen_going(uid)
        self.preemptions.abandon(uid)
        pod = self.cache.remove(uid)
        if pod is not None:
            self.wake(ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE, pod, None), now)


#: By type of event, what it does to the state at that time.
Handlers = Mapping[type[Any], Callable[[State, Any, float], None]]
