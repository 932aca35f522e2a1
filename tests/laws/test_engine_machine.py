"""The engine beside a small API server whose streams lag behind, each in its own time.

The server holds the truth.  What it does goes into three streams (nodes, pending pods, bound pods) that deliver in
order but independently; binds, look-ups and lists are answered late, twice as it were, or never.
"""

from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from moorage.core.cache.cache import Cache
from moorage.core.model.events import (
    BindFailed,
    BindFailure,
    BindSucceeded,
    Event,
    EvictionFinished,
    NodeApplied,
    NodeGone,
    PendingListed,
    PodBound,
    PodFetched,
    PodGone,
    PodLeftPending,
    PodPending,
)
from moorage.core.model.instructions import Bind, Evict, FetchPod, Placement, SetCondition
from moorage.core.model.node import Node
from moorage.core.model.pod import Pod
from moorage.core.model.taint import Toleration
from moorage.core.queue.scheduling_queue import Place
from moorage.core.snapshot.snapshot import Snapshot
from tests.core.driving import Driven, assert_empty
from tests.kit.models import GI, make_node, make_pod, make_spec, taint
from tests.kit.strategies import columns_of, thoroughly

NODES = ("a", "b", "c")
SPECS = [
    make_spec(cpu=300),
    make_spec(cpu=300, priority=5),
    make_spec(cpu=600, memory=GI),
    make_spec(cpu=100, ports=[80]),
    make_spec(cpu=900, priority=10, ports=[81]),
    make_spec(cpu=0, node_selector={"disk": "ssd"}),
    make_spec(cpu=200, tolerations=(Toleration("x", "Exists"),)),
    make_spec(cpu=5000),
    make_spec(cpu=100, unsupported=("volumes",)),
    make_spec(cpu=100, scheduler_name="other"),
]
RETRYABLE = (
    BindFailure.CONFLICT,
    BindFailure.FORBIDDEN,
    BindFailure.INVALID,
    BindFailure.UNAVAILABLE,
    BindFailure.NOT_LEADER,
)


WIRES = (
    "nodes", "pending", "bound", "all", "step", "run", "bind", "bind", "lose", "refuse", "answer", "read", "list",
    "evict", "spare", "wait", "well", "well", "well",
)  # fmt: skip
#: Everything comes through, and up to six pods are bound.
WELL = (("all", 0), ("run", 0), *[("bind", 0)] * 6, ("all", 0), *[("answer", 0)] * 6, ("run", 0))
#: What happens behind each change: with rules of their own, few examples would have all that a bind takes.
THEN = st.lists(st.tuples(st.sampled_from(WIRES), st.integers(0, 4)), max_size=4)


class EngineMachine(RuleBasedStateMachine):
    """See the module's text."""

    without: tuple[str, ...] = ("DefaultPreemption",)

    def __init__(self) -> None:
        super().__init__()
        self.driven = Driven(without=self.without, node_ready_guard=True)
        self.engine = self.driven.engine
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self.streams: dict[str, list[Event]] = {"nodes": [], "pending": [], "bound": []}
        self.sent: list[Placement] = []  # binds the server has not seen yet
        self.answers: list[Event] = []
        self.reads: list[FetchPod] = []
        self.evictions: list[Evict] = []
        self.number = 0
        self.disturbed: set[str] = set()  # nodes that others overcommitted or shrank
        self.successes: dict[str, int] = {}

    @initialize(
        sizes=st.lists(st.sampled_from((500, 1000)), min_size=1, max_size=3),
        specs=st.lists(st.sampled_from(SPECS[:7]), min_size=2, max_size=6),
        then=st.sampled_from((WELL, WELL, ())),
    )
    def begin(self, sizes, specs, then):
        """Some nodes and more pods than fit there, most often bound and waiting already."""
        for name, cpu in zip(NODES, sizes, strict=False):
            self.make_a_node(name=name, cpu=cpu, labels={}, then=())
        for number, spec in enumerate(specs):
            self.create_a_pod(name=f"p{number}", spec=spec, gates=(), nominated="", then=())
        self.goes_on(then)

    # -- the server ------------------------------------------------------------------------------

    def name_taken(self, name):
        return any(pod.name == name for pod in self.pods.values())

    def put(self, pod):
        """The pod is new or changed: the stream whose selector it matches shows it, the one it left says so."""
        before = self.pods.get(pod.uid)
        self.number += 1
        pod = replace(pod, resource_version=str(self.number))
        was_pending = before is not None and not before.node_name and not before.finished
        is_pending = not pod.node_name and not pod.finished
        if is_pending:
            self.streams["pending"].append(PodPending(pod))
        elif was_pending:
            self.streams["pending"].append(PodLeftPending(pod.ref))
        was_bound = before is not None and bool(before.node_name) and not before.finished
        if pod.node_name and not pod.finished:
            self.streams["bound"].append(PodBound(pod))
        elif was_bound:
            self.streams["bound"].append(PodGone(pod.ref))
        self.pods[pod.uid] = pod

    def drop(self, uid):
        pod = self.pods.pop(uid)
        if not pod.finished:
            kind = PodGone(pod.ref) if pod.node_name else PodLeftPending(pod.ref)
            self.streams["bound" if pod.node_name else "pending"].append(kind)

    def choose(self, data, pods):
        return self.pods[data.draw(st.sampled_from(sorted(pod.uid for pod in pods)))]

    def unbound(self):
        return [pod for pod in self.pods.values() if not pod.node_name and not pod.finished]

    def on_nodes(self):
        return [pod for pod in self.pods.values() if pod.node_name and not pod.finished]

    @rule(
        then=THEN,
        name=st.sampled_from(NODES),
        cpu=st.sampled_from((500, 1000, 2000)),
        labels=st.sampled_from(({}, {"disk": "ssd"})),
    )
    def make_a_node(self, then, name, cpu, labels):
        if name in self.nodes:
            self.disturbed.add(name)
        else:
            self.number += 1
        uid = self.nodes[name].uid if name in self.nodes else str(self.number)
        self.apply(make_node(name, uid=uid, cpu=cpu, memory=4 * GI, pods=4, labels=labels, ready="True"))
        self.goes_on(then)

    def apply(self, node):
        self.nodes[node.name] = node
        self.streams["nodes"].append(NodeApplied(node))

    @precondition(lambda self: self.nodes)
    @rule(
        then=THEN, data=st.data(), change=st.sampled_from(("cordon", "taint", "unready", "open", "heartbeat"))
    )
    def change_a_node(self, then, data, change):
        node = self.nodes[data.draw(st.sampled_from(sorted(self.nodes)))]
        match change:
            case "cordon":
                node = replace(node, unschedulable=True)
            case "taint":
                node = replace(node, taints=(taint("x"),))
            case "unready":
                node = replace(node, ready="False")
            case "open":
                node = replace(node, taints=(), unschedulable=False, ready="True")
            case _:
                node = replace(node, images={"image": len(node.images)})
        self.apply(node)
        self.goes_on(then)

    @precondition(lambda self: self.nodes)
    @rule(then=THEN, data=st.data())
    def remove_a_node(self, then, data):
        name = data.draw(st.sampled_from(sorted(self.nodes)))
        del self.nodes[name]
        self.disturbed.add(name)
        self.streams["nodes"].append(NodeGone(name))
        self.goes_on(then)

    @rule(
        then=THEN,
        name=st.sampled_from(tuple(f"p{i}" for i in range(6))),
        spec=st.sampled_from(SPECS),
        gates=st.sampled_from(((), (), (), ("gate",))),
        nominated=st.sampled_from(("", "", "", *NODES)),
    )
    def create_a_pod(self, then, name, spec, gates, nominated):
        if not self.name_taken(name):
            self.number += 1
            pod = make_pod(
                name, uid=f"{name}-{self.number}", spec=spec, gates=gates, nominated_node=nominated
            )
            self.put(pod)
        self.goes_on(then)

    @precondition(lambda self: self.unbound())
    @rule(
        then=THEN,
        data=st.data(),
        change=st.sampled_from(("ungate", "tolerate", "shrink", "nothing", "promise", "unpromise")),
    )
    def change_a_pending_pod(self, then, data, change):
        pod = self.choose(data, self.unbound())
        match change:
            case "ungate":
                pod = replace(pod, gates=())
            case "tolerate":
                spec = replace(pod.spec, tolerations=(Toleration("", "Exists"),))
                pod = replace(pod, spec=spec)
            case "shrink":
                spec = replace(pod.spec, requests=SPECS[3].requests)
                pod = replace(pod, spec=spec, requests=spec.requests)
            case "promise":
                pod = replace(pod, nominated_node=data.draw(st.sampled_from(NODES)))
            case "unpromise":
                pod = replace(pod, nominated_node="")
        self.put(pod)
        self.goes_on(then)

    @precondition(lambda self: self.pods)
    @rule(then=THEN, data=st.data(), how=st.sampled_from(("at once", "gracefully", "finished")))
    def end_a_pod(self, then, data, how):
        pod = self.choose(data, self.pods.values())
        if how == "at once":
            self.drop(pod.uid)
        elif how == "gracefully":
            self.put(replace(pod, deleting=True))
        elif not pod.finished:
            self.put(replace(pod, finished=True))
        self.goes_on(then)

    @precondition(lambda self: self.unbound())
    @rule(then=THEN, data=st.data(), node=st.sampled_from((*NODES, "unseen")))
    def someone_else_binds(self, then, data, node):
        pod = self.choose(data, self.unbound())
        self.disturbed.add(node)
        self.put(replace(pod, node_name=node))
        self.goes_on(then)

    @precondition(lambda self: self.on_nodes())
    @rule(then=THEN, data=st.data(), spec=st.sampled_from(SPECS[:3]))
    def resize(self, then, data, spec):
        pod = self.choose(data, self.on_nodes())
        self.disturbed.add(pod.node_name)
        self.put(replace(pod, requests=spec.requests))
        self.goes_on(then)

    # -- the wires -------------------------------------------------------------------------------

    def goes_on(self, then):
        """What the streams, the engine and the server do next; ``index`` chooses among what is under way."""
        for action, index in then:
            match action:
                case "nodes" | "pending" | "bound":
                    self.deliver(action, index + 1)
                case "all":
                    self.deliver_everything()
                case "step" if self.engine.ready(self.driven.now):
                    self.take(self.driven.step())
                case "run":
                    self.take(self.driven.run())
                case "bind" | "lose" if self.sent:
                    self.bind(self.sent.pop(index % len(self.sent)), action, RETRYABLE[0])
                case "refuse" if self.sent:
                    self.bind(self.sent.pop(index % len(self.sent)), action, RETRYABLE[index])
                case "answer" if self.answers:
                    self.driven.tell(self.answers.pop(index % len(self.answers)))
                case "read" if self.reads:
                    self.read(self.reads.pop(index % len(self.reads)))
                case "list":
                    self.answers.append(
                        PendingListed(frozenset(p.uid for p in self.unbound()), self.driven.now)
                    )
                case "evict" | "spare" if self.evictions:
                    self.evict(fails=action == "spare")
                case "well":
                    self.goes_on(WELL)
                case "wait":
                    self.driven.now += (0.1, 1.0, 2.0, 10.0, 300.0)[index]

    @rule(then=THEN)
    def time_goes_on(self, then):
        self.goes_on(then)

    def deliver(self, stream, number):
        waiting = self.streams[stream]
        for event in waiting[:number]:
            self.driven.tell(event)
        del waiting[:number]

    def deliver_everything(self):
        for stream in self.streams:
            self.deliver(stream, 1000)

    def take(self, instructions):
        for instruction in instructions:
            match instruction:
                case Bind():
                    for placement in instruction.placements:
                        self.check_new(placement)
                        self.sent.append(placement)
                case FetchPod():
                    self.reads.append(instruction)
                case Evict():
                    self.evictions.append(instruction)
                case SetCondition() if instruction.type != "PodScheduled":
                    pod = self.pods.get(instruction.ref.uid)
                    if pod is not None and not pod.node_name:
                        self.put(replace(pod, overdue=True))
                case SetCondition():
                    pod = self.pods.get(instruction.ref.uid)
                    if pod is not None and not pod.node_name:
                        condition = ("False", instruction.reason, instruction.message)
                        nominated = instruction.nominated_node
                        self.put(
                            replace(
                                pod,
                                scheduled_condition=condition,
                                nominated_node=pod.nominated_node if nominated is None else nominated,
                            )
                        )

    def check_new(self, placement):
        """Never two binds of one pod at a time, unless the pod is gone from the server anyway."""
        uid = placement.ref.uid
        under_way = [p for p in self.sent if p.ref.uid == uid] + [
            a for a in self.answers if isinstance(a, BindSucceeded | BindFailed) and a.ref.uid == uid
        ]
        assert not under_way or uid not in self.pods or self.pods[uid].finished, f"{placement} twice"
        state = self.engine.cache.state(uid)
        assert state is not None
        assert state.node_name == placement.node_name

    def bind(self, placement, fate, failure):
        ref, node = placement.ref, placement.node_name
        look = self.engine.last_look(placement)
        answer: BindFailed | BindSucceeded
        pod = self.pods.get(ref.uid)
        if look is not None:
            answer = BindFailed(ref, node, BindFailure.STALE, look)
        elif fate == "refuse":
            answer = BindFailed(ref, node, failure, "refused")
        elif pod is None or pod.deleting or pod.finished:
            answer = BindFailed(ref, node, BindFailure.GONE, "not found")
        elif pod.node_name:
            answer = BindFailed(ref, node, BindFailure.BOUND_ELSEWHERE, "bound")
        else:
            answer = BindSucceeded(ref, node)
            self.successes[ref.uid] = self.successes.get(ref.uid, 0) + 1
            assert self.successes[ref.uid] == 1
            assert not pod.gates
            self.put(replace(pod, node_name=node))
            self.check_room(node)
        if not (
            fate == "lose" and isinstance(answer, BindSucceeded)
        ):  # the binder finds out about all others
            self.answers.append(answer)

    def check_room(self, name):
        """Only others can overcommit a node."""
        if name in self.disturbed or name not in self.nodes:
            return
        there = [pod for pod in self.on_nodes() if pod.node_name == name]
        assert sum(pod.requests.of("cpu") for pod in there) <= self.nodes[name].allocatable["cpu"]
        assert len(there) <= self.nodes[name].allocatable["pods"]
        ports = [port for pod in there for port in pod.spec.host_ports]
        assert len(ports) == len(set(ports))

    def read(self, fetch):
        live = next((pod for pod in self.pods.values() if pod.name == fetch.ref.name), None)
        self.answers.append(PodFetched(fetch.ref, live))

    def evict(self, fails):
        eviction = self.evictions.pop(0)
        preemptor = self.pods.get(eviction.preemptor.uid)
        if preemptor is None or preemptor.node_name or fails:
            self.answers.append(EvictionFinished(eviction.preemptor, "it did not work"))
            return
        for victim in eviction.victims:
            pod = self.pods.get(victim.uid)
            if pod is not None and not pod.finished:
                self.put(replace(pod, deleting=True, preempted=True))
        self.answers.append(EvictionFinished(eviction.preemptor))

    # -- invariants ------------------------------------------------------------------------------

    @invariant()
    def columns_equal_a_rebuild(self):
        cache = Cache(Snapshot())
        for node in self.engine.snapshot.nodes:
            if node is not None:
                cache.apply_node(node)
        for state in self.engine.cache._pods.values():
            cache.add(state.pod)
        assert columns_of(cache.snapshot) == columns_of(self.engine.snapshot)

    @invariant()
    def a_pod_is_in_one_place(self):
        for queued in self.engine.queue.entries():
            uid = queued.pod.uid
            state = self.engine.cache.state(uid)
            assumption = self.engine.assumptions.get(uid)
            if queued.place is Place.IN_FLIGHT:
                assert state is not None
                assert state.assumed
                assert assumption is not None
                assert assumption.pod is state.pod
            else:
                assert state is None
                assert assumption is None
            assert queued.pod.spec.scheduler_name == "moorage"
        assert len(self.engine.assumptions) == self.engine.cache.assumed_count

    @invariant()
    def promises_are_made_to_waiting_pods(self):
        for uid in self.engine.nominator._by_uid:
            assert self.engine.queue.get(uid) is not None
            assert self.engine.cache.state(uid) is None

    @invariant()
    def nobody_sleeps_who_could_go(self):
        """No wake-up was lost: an unschedulable pod fits nowhere as things are."""
        for queued in self.engine.queue.entries():
            if queued.place is Place.UNSCHEDULABLE:
                decision = self.engine.evaluate(queued.pod, self.driven.now)
                assert decision.feasible == (), f"{queued.pod.name} waits for {sorted(queued.rejectors)}"

    # -- the end ---------------------------------------------------------------------------------

    def teardown(self):
        """All comes through in the end: the engine knows the truth, and each pod that fits somewhere is bound."""
        self.settle()
        truth = {pod.uid: pod.node_name for pod in self.on_nodes()}
        known = {uid: state.node_name for uid, state in self.engine.cache._pods.items()}
        assert truth == known
        assert len(self.engine.assumptions) == 0
        waiting = {p.uid for p in self.unbound() if p.spec.scheduler_name == "moorage" and not p.deleting}
        assert waiting == {queued.pod.uid for queued in self.engine.queue.entries()}
        for queued in self.engine.queue.entries():
            assert self.engine.evaluate(queued.pod, self.driven.now).feasible == ()
        for uid in list(self.pods):
            self.drop(uid)
        for name in list(self.nodes):
            del self.nodes[name]
            self.streams["nodes"].append(NodeGone(name))
        self.settle()
        self.driven.later(100.0)
        assert_empty(self.engine)

    def settle(self):
        """Deliver, carry out and answer everything, for six minutes at the longest."""
        for _ in range(200):
            self.deliver_everything()
            self.take(self.driven.run())
            while self.sent:
                self.bind(self.sent.pop(0), "bind", RETRYABLE[0])
            while self.reads:
                self.read(self.reads.pop(0))
            while self.evictions:
                self.evict(fails=False)
            for pod in [pod for pod in self.pods.values() if pod.deleting]:
                self.drop(pod.uid)
            while self.answers:
                self.driven.tell(self.answers.pop(0))
            if not any(self.streams.values()) and not self.engine.ready(self.driven.now):
                wake = self.engine.next_wake()
                if wake is None:
                    return
                if (
                    self.engine.assumptions.next_check() is None
                    and not self.engine.queue.counts()[Place.BACKOFF]
                ):
                    return
                self.driven.now = max(wake, self.driven.now)
        raise AssertionError(f"nothing settles: {self.engine.stats()}")


class PreemptingMachine(EngineMachine):
    """The same with preemption."""

    without = ()


TestEngine = EngineMachine.TestCase
TestPreempting = PreemptingMachine.TestCase
TestEngine.settings = thoroughly(10)
TestPreempting.settings = thoroughly(10)
