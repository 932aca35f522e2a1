"""The scheduling queue in any order of calls, beside a naive model that keeps one dict and looks at every pod."""

from dataclasses import dataclass, replace

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from moorage.core.model.cluster_event import Action, ClusterEvent, Resource, WakesOn
from moorage.core.model.pod import Pod
from moorage.core.queue.scheduling_queue import Place, SchedulingQueue
from tests.kit.models import make_node, make_pod, make_spec
from tests.kit.strategies import thoroughly

LARGE, SMALL = make_node("large", cpu=9000), make_node("small", cpu=1)


def _large_enough(pod, event):
    """The hint of plugin B: depends on the spec alone."""
    return event.new.allocatable["cpu"] >= 100 or pod.spec.priority > 0


def _labelled(pod, event):
    """The hint of plugin C: depends on the pod's own labels."""
    return pod.labels.get("awake") == "yes"


#: What wakes whom, by scheduler name: the same plugin may listen to other things in another profile.
WAKES: dict[str, dict[str, tuple[WakesOn, ...]]] = {
    "one": {
        "A": (WakesOn(Resource.ASSIGNED_POD, Action.DELETE),),
        "B": (WakesOn(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL, _large_enough),),
        "C": (WakesOn(Resource.NODE, Action.UPDATE_NODE_TAINT, _labelled, per_spec=False),),
    },
    "two": {
        "A": (WakesOn(Resource.NODE, Action.ADD),),
        "B": (WakesOn(Resource.PENDING_POD, Action.UPDATE_POD_LABEL),),
        "C": (),
    },
}
SPECS = {
    (name, priority): make_spec(scheduler_name=name, priority=priority)
    for name in WAKES
    for priority in (0, 0.5, 5)
}
EVENTS = [
    ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE, make_pod("gone", node="x"), None),
    ClusterEvent(Resource.NODE, Action.ADD, None, LARGE),
    ClusterEvent(Resource.NODE, Action.ADD, None, SMALL),
    ClusterEvent(Resource.NODE, Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT, SMALL, LARGE),
    ClusterEvent(Resource.NODE, Action.UPDATE_NODE_TAINT, LARGE, SMALL),
    ClusterEvent(Resource.NODE, Action.UPDATE_NODE_ALLOCATABLE, SMALL, LARGE),
]


@dataclass
class Modelled:
    """What the model knows of a pod."""

    pod: Pod
    place: Place
    age: float
    order: int
    since: float
    unschedulable: int = 0
    errors: int = 0
    attempts: int = 0
    backoff_until: float = 0.0
    from_error: bool = False
    rejectors: frozenset[str] = frozenset()
    missed: tuple[ClusterEvent, ...] = ()


class QueueMachine(RuleBasedStateMachine):
    """Time moves on by rules only."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0
        self.queue = SchedulingQueue(self.sort_key, lambda pod: WAKES[pod.spec.scheduler_name])
        self.model: dict[str, Modelled] = {}
        self.number = 0
        self.order = 0
        self.next_flush = 0.0

    @staticmethod
    def sort_key(pod, since):
        return (-pod.priority, since)

    def helps(self, m, event):
        """Whether the event may help the pod, by its own profile."""
        if not m.rejectors:
            return True
        return any(
            w.resource is event.resource
            and w.action & event.action
            and (w.hint is None or w.hint(m.pod, event))
            for name in m.rejectors
            for w in WAKES[m.pod.spec.scheduler_name].get(name, ())
        )

    def to(self, m, place):
        m.place, m.since = place, self.now
        self.order += 1
        m.order = self.order

    def reactivate(self, m):
        self.to(m, Place.BACKOFF if m.backoff_until > self.now else Place.ACTIVE)

    def some(self, data, *places):
        return data.draw(st.sampled_from(sorted(u for u, m in self.model.items() if m.place in places)))

    def any_in(self, *places):
        return any(m.place in places for m in self.model.values())

    # -- rules -----------------------------------------------------------------------------------

    @rule(spec=st.sampled_from(sorted(SPECS)), gated=st.booleans(), awake=st.sampled_from(("yes", "no")))
    def add(self, spec, gated, awake):
        self.number += 1
        pod = make_pod(f"p{self.number}", spec=SPECS[spec], labels={"awake": awake})
        self.queue.add(pod, self.now, gated=gated)
        self.model[pod.uid] = m = Modelled(pod, Place.GATED, self.now, 0, self.now)
        self.to(m, Place.GATED if gated else Place.ACTIVE)

    @precondition(lambda self: self.model)
    @rule(data=st.data(), priority=st.sampled_from((0, 0.5, 5)), awake=st.sampled_from(("yes", "no")))
    def update(self, data, priority, awake):
        m = self.model[data.draw(st.sampled_from(sorted(self.model)))]
        spec = SPECS[m.pod.spec.scheduler_name, priority]
        m.pod = replace(m.pod, spec=spec, labels={"awake": awake})
        self.queue.update(m.pod, self.now)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def wake_pod(self, data):
        """A change of one pod; all pods in flight share one log, so it may bring others back early, too."""
        m = self.model[data.draw(st.sampled_from(sorted(self.model)))]
        event = ClusterEvent(Resource.PENDING_POD, Action.UPDATE_POD_LABEL, m.pod, m.pod)
        self.queue.wake_pod(m.pod.uid, event, self.now)
        if m.place is Place.UNSCHEDULABLE and self.helps(m, event):
            self.reactivate(m)
        elif m.place is Place.IN_FLIGHT:
            for other in self.model.values():
                other.missed += (event,)

    @rule(event=st.sampled_from(EVENTS))
    def wake(self, event):
        woken = [m for m in self.model.values() if m.place is Place.UNSCHEDULABLE and self.helps(m, event)]
        assert len(woken) == self.queue.wake(event, self.now)
        for m in woken:
            self.reactivate(m)
        for m in self.model.values():
            if m.place is Place.IN_FLIGHT:
                m.missed += (event,)

    @rule()
    def pop(self):
        for m in self.model.values():
            if m.place is Place.BACKOFF and m.backoff_until <= self.now:
                self.to(m, Place.ACTIVE)
        if self.now >= self.next_flush:
            self.next_flush = self.now + 30.0
            for m in self.model.values():
                if m.place is Place.UNSCHEDULABLE and self.now - m.since >= 300.0:
                    self.reactivate(m)
        active = [m for m in self.model.values() if m.place is Place.ACTIVE]
        early = [m for m in self.model.values() if m.place is Place.BACKOFF and not m.from_error]
        queued = self.queue.pop(self.now)
        candidates = active or early
        if not candidates:
            assert queued is None
            return
        assert queued is not None
        key = min(self.sort_key(m.pod, m.age) for m in candidates)
        best = [m.pod.uid for m in candidates if self.sort_key(m.pod, m.age) == key]
        assert queued.pod.uid in best
        m = self.model[queued.pod.uid]
        m.attempts += 1
        m.missed = ()
        self.to(m, Place.IN_FLIGHT)

    @precondition(lambda self: self.any_in(Place.IN_FLIGHT))
    @rule(data=st.data(), rejectors=st.sets(st.sampled_from("ABC")).map(frozenset))
    def requeue(self, data, rejectors):
        m = self.model[self.some(data, Place.IN_FLIGHT)]
        self.queue.requeue(m.pod.uid, rejectors, self.now)
        m.unschedulable += 1
        m.errors, m.from_error = 0, False
        m.rejectors, m.age = rejectors, self.now
        m.backoff_until = self.now + min(2.0 ** (m.unschedulable - 1), 10.0)
        self.to(m, Place.BACKOFF if any(self.helps(m, e) for e in m.missed) else Place.UNSCHEDULABLE)

    @precondition(lambda self: self.any_in(Place.IN_FLIGHT))
    @rule(data=st.data(), at_least=st.sampled_from((0.0, 25.0)))
    def retry_after_error(self, data, at_least):
        m = self.model[self.some(data, Place.IN_FLIGHT)]
        self.queue.retry_after_error(m.pod.uid, self.now, at_least)
        m.errors += 1
        m.from_error, m.rejectors, m.age = True, frozenset(), self.now
        m.backoff_until = self.now + max(min(2.0 ** (m.errors - 1), 10.0), at_least)
        self.to(m, Place.BACKOFF)

    @precondition(lambda self: self.any_in(Place.IN_FLIGHT))
    @rule(data=st.data())
    def retry_now(self, data):
        m = self.model[self.some(data, Place.IN_FLIGHT)]
        self.queue.retry_now(m.pod.uid, self.now)
        self.to(m, Place.ACTIVE)

    @precondition(lambda self: self.any_in(Place.UNSCHEDULABLE, Place.BACKOFF, Place.ACTIVE, Place.GATED))
    @rule(data=st.data())
    def activate(self, data):
        m = self.model[self.some(data, Place.UNSCHEDULABLE, Place.BACKOFF, Place.ACTIVE, Place.GATED)]
        self.queue.activate(m.pod.uid, self.now)
        if m.place in (Place.UNSCHEDULABLE, Place.BACKOFF):
            self.to(m, Place.ACTIVE)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def remove(self, data):
        uid = data.draw(st.sampled_from(sorted(self.model)))
        queued = self.queue.remove(uid)
        assert queued is not None
        assert queued.pod is self.model.pop(uid).pod
        assert self.queue.remove(uid) is None

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def gate(self, data):
        m = self.model[data.draw(st.sampled_from(sorted(self.model)))]
        self.queue.gate(m.pod.uid, self.now)
        if m.place is not Place.IN_FLIGHT:
            self.to(m, Place.GATED)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def ungate(self, data):
        m = self.model[data.draw(st.sampled_from(sorted(self.model)))]
        self.queue.ungate(m.pod.uid, self.now)
        if m.place is Place.GATED:
            m.age = self.now
            self.to(m, Place.ACTIVE)

    @rule(seconds=st.sampled_from((0.0, 0.5, 1.0, 9.0, 31.0, 300.0)))
    def time_passes(self, seconds):
        self.now += seconds

    # -- invariants ------------------------------------------------------------------------------

    @invariant()
    def places_are_the_model_s(self):
        assert {uid: m.place for uid, m in self.model.items()} == {
            q.pod.uid: q.place for q in self.queue.entries()
        }
        for uid, m in self.model.items():
            queued = self.queue.get(uid)
            assert queued is not None
            assert (m.pod, m.attempts, m.backoff_until, m.since) == (
                queued.pod, queued.attempts, queued.backoff_until, queued.since,
            )  # fmt: skip
        counts = {place: sum(m.place is place for m in self.model.values()) for place in Place}
        assert counts == self.queue.counts()
        assert len(self.model) == len(self.queue)

    @invariant()
    def it_knows_whether_there_is_something_to_do(self):
        places = {m.place for m in self.model.values()}
        early = any(
            m.place is Place.BACKOFF and (not m.from_error or m.backoff_until <= self.now)
            for m in self.model.values()
        )
        assert (Place.ACTIVE in places or early) == self.queue.ready(self.now)
        ends = [m.backoff_until for m in self.model.values() if m.place is Place.BACKOFF]
        if Place.UNSCHEDULABLE in places:
            ends.append(self.next_flush)
        assert min(ends, default=None) == self.queue.next_wake()

    @invariant()
    def it_remembers_no_change_that_nobody_can_have_missed(self):
        if not self.any_in(Place.IN_FLIGHT):
            assert len(self.queue._in_flight._log) == 0

    def teardown(self):
        for uid in list(self.model):
            self.queue.remove(uid)
        assert len(self.queue._unschedulable) == 0
        assert self.queue.pop(self.now) is None
        assert self.queue._active.first_key() is None
        assert not self.queue.ready(self.now)
        assert self.queue.next_wake() is None


TestQueue = QueueMachine.TestCase
TestQueue.settings = thoroughly(12)
