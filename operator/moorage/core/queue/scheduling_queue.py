"""The scheduling queue: active, backoff, unschedulable and gated pods.

A pod that was tried in vain waits as *unschedulable* until a change that one of the plugins that
rejected it declared helpful; then, if its backoff is over, it is active again, else it waits the
rest of it out.  Backoff starts at 1 s and doubles to 10 s (Kubernetes documentation, "Scheduler
Configuration": podInitialBackoffSeconds, podMaxBackoffSeconds).  When nothing is active, the pod
first in line among those backing off is tried early, unless it backs off from an error.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum

from moorage.core.model.cluster_event import ClusterEvent
from moorage.core.model.instructions import Fault
from moorage.core.model.pod import Pod
from moorage.core.model.policy import Backoff, Policy
from moorage.core.queue.figures import Cause, QueueFigures, cause_of
from moorage.core.queue.in_flight import InFlight
from moorage.core.queue.line import Line
from moorage.core.queue.unschedulable import UnschedulablePods, Wakes


class Place(StrEnum):
    """Where a queued pod is; the names are the values of kube-scheduler's ``queue`` metric label."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    IN_FLIGHT = "in-flight"


@dataclass(slots=True, eq=False)
class QueuedPod:
    """A pod and its history in the queue; times are engine time in seconds."""

    pod: Pod
    added: float
    place: Place
    since: float  # entered its place
    age_from: float  # came in, or was last tried: orders pods of equal priority
    seen: float  # when the API server last showed it pending
    attempts: int = 0
    unschedulable_count: int = 0
    error_count: int = 0
    rejectors: frozenset[str] = frozenset()
    backoff_until: float = 0.0
    backs_off_from_error: bool = False
    left: bool = False  # in flight, and no longer pending by the API server's word
    ticket: int = 0  # the valid heap entry, others are stale
    turn_ticket: int = 0  # the same among the turns that time alone brings about (``turns``)
    policies: tuple[Policy, ...] = ()  # in force for it when it was looked at last
    lapses: float | None = None  # when its rejection may be void by time alone
    held_by: str = ""  # the words for the policies' hold on it
    overdue: bool = False  # it was told that the pod has been pending for too long
    shaped_by: str = ""  # the policies that shaped its placement, as the Binding names them


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """Seconds; ``flush_after`` is the longest a pod stays unschedulable without another try."""

    initial_backoff: float = 1.0
    max_backoff: float = 10.0
    flush_after: float = 300.0
    flush_every: float = 30.0


SortKey = Callable[[Pod, float], tuple[float, ...]]

#: What a pod's policies say about its backoff.
BackoffOf = Callable[[Pod], Backoff]

_AS_SET = Backoff()


def _as_set(pod: Pod) -> Backoff:
    return _AS_SET


def _nothing(uid: str) -> None:
    pass


class SchedulingQueue:
    """Holds every pending pod that is ours, by UID.

    ``sort_key`` orders pods (QueueSort); ``wakes`` gives, by plugin of a pod's profile, what wakes the
    pods that the plugin rejected.  ``backoff_of`` tells of backoffs other than the settings'.  ``left`` is called with
    the UID of a pod that leaves.
    """

    def __init__(
        self,
        sort_key: SortKey,
        wakes: Wakes,
        settings: QueueSettings | None = None,
        *,
        backoff_of: BackoffOf = _as_set,
        left: Callable[[str], None] = _nothing,
    ) -> None:
        self._sort_key = sort_key
        self._backoff_of = backoff_of
        self._left = left
        self._settings = settings or QueueSettings()
        self._pods: dict[str, QueuedPod] = {}
        self._active: Line[tuple[float, ...]] = Line(self._current)
        self._backoff: Line[float] = Line(self._current)  # by the end of the backoff
        self._early: Line[tuple[float, ...]] = Line(self._current)  # the same pods, by who is next
        self._unschedulable = UnschedulablePods(wakes)
        self._held: dict[str, bool] = {}  # whether a change that helps came meanwhile
        self._counts = dict.fromkeys(Place, 0)
        self._tickets = 0
        self._next_flush = 0.0
        self._in_flight = InFlight()
        self.figures = QueueFigures()

    def configure(self, settings: QueueSettings) -> None:
        """Backoffs that begin from now on last as these settings say."""
        self._settings = settings

    # -- looking ---------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._pods)

    def get(self, uid: str) -> QueuedPod | None:
        """The pod's entry, None if it is not in the queue."""
        return self._pods.get(uid)

    def entries(self) -> Iterable[QueuedPod]:
        """All entries, in order of arrival."""
        return self._pods.values()

    def in_flight(self) -> Iterable[str]:
        """The UIDs of the pods that were taken out for a try, being bound included."""
        return iter(self._in_flight)

    def counts(self) -> dict[Place, int]:
        """How many pods are in each place."""
        return dict(self._counts)

    def ahead_of(self, uid: str) -> int | None:
        """How many active pods are tried before this one, None if it is not active."""
        queued = self._pods.get(uid)
        return self._active.ahead_of(uid) if queued is not None and queued.place is Place.ACTIVE else None

    def ready(self, now: float) -> bool:
        """Whether ``pop`` would return a pod."""
        if self._counts[Place.ACTIVE]:
            return True
        ends = self._backoff.first_key()
        return (ends is not None and ends <= now) or self._early.first_key() is not None

    def next_wake(self) -> float | None:
        """When something becomes due by time alone: a backoff ends or unschedulable pods are flushed."""
        ends = self._backoff.first_key()
        times = [] if ends is None else [ends]
        if self._counts[Place.UNSCHEDULABLE]:
            times.append(self._next_flush)
        return min(times, default=None)

    # -- pods come and go ------------------------------------------------------------------------

    def add(self, pod: Pod, now: float, *, gated: bool) -> QueuedPod:
        """A pod that is not in the queue comes in."""
        queued = QueuedPod(pod, now, Place.GATED, now, now, now)
        self._pods[pod.uid] = queued
        self._counts[Place.GATED] += 1
        if gated:
            self.figures.came(Place.GATED, Cause.POD_ADDED)
        else:
            self._move(queued, Place.ACTIVE, now, Cause.POD_ADDED)
        return queued

    def update(self, pod: Pod, now: float) -> QueuedPod:
        """The API server shows the pod again, perhaps changed; its place stays the same.

        Raises LookupError if the pod is not in the queue.
        """
        queued = self._pods.get(pod.uid)
        if queued is None:
            raise LookupError(f"pod {pod.key} ({pod.uid}) is not in the queue")
        resort = queued.place is Place.ACTIVE and queued.pod.priority != pod.priority
        queued.pod = pod
        queued.seen = now
        queued.left = False
        if resort:
            self._move(queued, Place.ACTIVE, queued.since)
        elif queued.place is Place.UNSCHEDULABLE:
            self._unschedulable.add(queued)
        return queued

    def ungate(self, uid: str, now: float, *, keeps_age: bool = False) -> None:
        """The pod's last gate is gone; with ``keeps_age`` it is as old as it was among pods of its priority."""
        queued = self._pods[uid]
        if queued.place is Place.GATED:
            queued.added = now
            if not keeps_age:
                queued.age_from = now
            self._move(queued, Place.ACTIVE, now, Cause.POLICY if keeps_age else Cause.GATE_CHANGED)

    def gate(self, uid: str, now: float) -> None:
        """The pod may not be tried for the time being."""
        queued = self._pods[uid]
        if queued.place is not Place.IN_FLIGHT:
            self._move(queued, Place.GATED, now, Cause.POLICY)

    def hold(self, uid: str, now: float) -> None:
        """Keep a waiting pod from being tried until ``end_hold``, whatever happens (its victims are being evicted)."""
        self._held[uid] = False
        self._move(self._pods[uid], Place.GATED, now)

    def held(self, uid: str) -> bool:
        """Whether the pod is kept from being tried by ``hold``."""
        return uid in self._held

    def end_hold(self, uid: str, now: float) -> None:
        """The pod may be tried again: soon if something that helps happened meanwhile, else when it does."""
        if uid not in self._held:
            return
        queued = self._pods[uid]
        if self._held.pop(uid):
            self._reactivate(queued, now, Cause.TOLD_TO)
        else:
            self._move(queued, Place.UNSCHEDULABLE, now)

    def hold_back(self, uid: str, now: float) -> None:
        """The pod was taken out for a try that may not be made now."""
        queued = self._pods[uid]
        self._in_flight.end(uid)
        queued.attempts -= 1
        self._move(queued, Place.GATED, now, Cause.POLICY)

    def remove(self, uid: str) -> QueuedPod | None:
        """The pod is bound, finished or deleted; returns its entry if it was here."""
        queued = self._pods.pop(uid, None)
        if queued is None:
            return None
        self._held.pop(uid, None)
        if queued.place is Place.IN_FLIGHT:
            self._in_flight.end(uid)
        self._leave(queued)
        self._reject(queued, frozenset())
        queued.ticket = queued.turn_ticket = -1
        self._left(uid)
        return queued

    # -- tries -----------------------------------------------------------------------------------

    def pop(self, now: float) -> QueuedPod | None:
        """Take the next pod out for a try; it is in flight until ``requeue``, ``retry_after_error`` or ``remove``."""
        self._release(now)
        uid = self._active.pop() or self._early.pop()
        if uid is None:
            return None
        queued = self._pods[uid]
        if queued.place is Place.BACKOFF:
            self.figures.came(Place.ACTIVE, Cause.TAKEN_EARLY)
        queued.attempts += 1
        self._move(queued, Place.IN_FLIGHT, now)
        self._in_flight.begin(queued.pod.uid)
        return queued

    def requeue(self, uid: str, rejectors: frozenset[str], now: float) -> None:
        """The try ended with rejections by these plugins; changes since ``pop`` count at once."""
        queued = self._pods[uid]
        missed = self._in_flight.end(uid)
        queued.unschedulable_count += 1
        queued.error_count = 0
        self._reject(queued, rejectors)
        queued.age_from = now
        queued.backoff_until = now + self._backoff_seconds(queued.pod, queued.unschedulable_count)
        queued.backs_off_from_error = False
        if missed is None or any(self._unschedulable.helps(queued, event) for event in missed):
            self._move(queued, Place.BACKOFF, now, Cause.FAILED)
        else:
            self._move(queued, Place.UNSCHEDULABLE, now, Cause.FAILED)

    def retry_after_error(self, uid: str, now: float, at_least: float = 0.0) -> None:
        """The try failed for a reason that is not the cluster's state; it backs off, at least that many seconds."""
        queued = self._pods[uid]
        self._in_flight.end(uid)
        queued.error_count += 1
        self._reject(queued, frozenset())
        queued.age_from = now
        queued.backoff_until = now + max(self._backoff_seconds(queued.pod, queued.error_count), at_least)
        queued.backs_off_from_error = True
        self._move(queued, Place.BACKOFF, now, Cause.FAILED)

    def activate(self, uid: str, now: float) -> None:
        """Let a waiting pod be tried again at once, without waiting for a change or the end of its backoff."""
        queued = self._pods.get(uid)
        if queued is not None and queued.place in (Place.UNSCHEDULABLE, Place.BACKOFF):
            self._move(queued, Place.ACTIVE, now, Cause.TOLD_TO)

    def retry_now(self, uid: str, now: float) -> None:
        """The try came to nothing through no fault of the pod: it is active again."""
        self._in_flight.end(uid)
        self._move(self._pods[uid], Place.ACTIVE, now, Cause.FAILED)

    def _backoff_seconds(self, pod: Pod, count: int) -> float:
        """A policy that sets only one end of the range moves the other one with it where they would cross."""
        settings, own = self._settings, self._backoff_of(pod)
        initial = settings.initial_backoff if own.initial is None else own.initial
        longest = max(settings.max_backoff, own.initial or 0.0) if own.longest is None else own.longest
        return float(min(initial * 2 ** min(count - 1, 30), longest))

    # -- changes of the cluster ------------------------------------------------------------------

    def wake(self, event: ClusterEvent, now: float, *, but: str = "") -> int:
        """Move the unschedulable pods that the change may help, but for the one of that UID; returns how many."""
        self._in_flight.note(event)
        woken = self._unschedulable.helped_by(event, but=but)
        for uid, helped in self._held.items():
            if uid != but and not helped:
                self._held[uid] = self._unschedulable.helps(self._pods[uid], event)
        cause = cause_of(event.resource, event.action)
        for queued in woken:
            self._reactivate(queued, now, cause)
        return len(woken)

    def wake_all(self, scheduler_names: Collection[str], now: float) -> None:
        """Their profiles have changed, and with them what may reject a pod: all pods of these names are tried again."""
        self._in_flight.lose_track()
        for queued in self._unschedulable.everyone():
            if queued.pod.spec.scheduler_name in scheduler_names:
                self._reactivate(queued, now, Cause.PROFILE)
        for uid in self._held:
            if self._pods[uid].pod.spec.scheduler_name in scheduler_names:
                self._held[uid] = True

    def nudge(self, uid: str, now: float) -> None:
        """Something that no event can tell may help this one pod: it is tried again, after its backoff."""
        queued = self._pods[uid]
        if uid in self._held:
            self._held[uid] = True
        elif queued.place is Place.IN_FLIGHT:
            self._in_flight.lose_track_of(uid)
        elif queued.place is Place.UNSCHEDULABLE:
            self._reactivate(queued, now, Cause.POLICY)

    def regroup(self, uid: str) -> None:
        """The plugins that the pod waits for are others now, though of the same names."""
        queued = self._pods[uid]
        if queued.place is Place.UNSCHEDULABLE:
            self._unschedulable.add(queued)

    def wake_pod(self, uid: str, event: ClusterEvent, now: float) -> None:
        """A change of a waiting pod itself, judged for that pod alone."""
        queued = self._pods[uid]
        if queued.place is Place.IN_FLIGHT:
            self._in_flight.note(event)
        elif uid in self._held:
            self._held[uid] = self._held[uid] or self._unschedulable.helps(queued, event)
        elif queued.place is Place.UNSCHEDULABLE and self._unschedulable.helps(queued, event):
            self._reactivate(queued, now, cause_of(event.resource, event.action))

    def drain_faults(self) -> list[Fault]:
        """What hints have raised since the last call."""
        return self._unschedulable.drain_faults()

    def _reactivate(self, queued: QueuedPod, now: float, cause: str) -> None:
        self._move(queued, Place.BACKOFF if queued.backoff_until > now else Place.ACTIVE, now, cause)

    def _reject(self, queued: QueuedPod, rejectors: frozenset[str]) -> None:
        if rejectors is not queued.rejectors:
            self.figures.rejections(queued.rejectors, rejectors, queued.pod.spec.scheduler_name)
            queued.rejectors = rejectors

    def _release(self, now: float) -> None:
        """Activate pods whose backoff is over, and flush those that waited too long for a change."""
        while (ends := self._backoff.first_key()) is not None and ends <= now:
            uid = self._backoff.pop()
            if uid is not None:
                self._move(self._pods[uid], Place.ACTIVE, now, Cause.BACKOFF_OVER)
        if now >= self._next_flush:
            self._next_flush = now + self._settings.flush_every
            for queued in self._unschedulable.everyone():
                if now - queued.since >= self._settings.flush_after:
                    self._reactivate(queued, now, Cause.WAITED_LONG)

    # -- places ----------------------------------------------------------------------------------

    def _move(self, queued: QueuedPod, place: Place, now: float, cause: str = "") -> None:
        self._leave(queued)
        self.figures.came(place, cause)
        uid = queued.pod.uid
        queued.place = place
        queued.since = now
        self._tickets += 1
        queued.ticket = self._tickets
        self._counts[place] += 1
        match place:
            case Place.ACTIVE:
                self._active.push(self._sort_key(queued.pod, queued.age_from), queued.ticket, uid)
            case Place.BACKOFF:
                self._backoff.push(queued.backoff_until, queued.ticket, uid)
                if not queued.backs_off_from_error:
                    self._early.push(self._sort_key(queued.pod, queued.age_from), queued.ticket, uid)
            case Place.UNSCHEDULABLE:
                self._unschedulable.add(queued)
            case _:
                pass

    def _leave(self, queued: QueuedPod) -> None:
        self._counts[queued.place] -= 1
        if queued.place is Place.UNSCHEDULABLE:
            self._unschedulable.discard(queued.pod.uid)

    def _current(self, ticket: int, uid: str) -> bool:
        queued = self._pods.get(uid)
        return queued is not None and queued.ticket == ticket
