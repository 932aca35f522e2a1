"""The engine beside its small API server, with policies that come, change and go, and samples of the nodes' use.

See test_engine_machine for the server and its streams; what is added here are the laws that policies are under.
"""

from collections import Counter
from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from moorage.core.model.events import NamespaceApplied, PolicyApplied, PolicyGone, UsageMeasured, UsageSample
from moorage.core.model.instructions import Bind
from moorage.core.model.policy import (
    Backoff,
    LimitRule,
    LoadRules,
    Mode,
    NodeRules,
    OnStale,
    Pool,
    Pools,
    PreemptionRules,
    Preference,
    Scoring,
    SpreadRule,
    StrategyRule,
)
from moorage.core.model.workload import Namespace
from moorage.core.queue.scheduling_queue import Place
from tests.core.driving import assert_empty
from tests.kit.policy_builders import labelled, make_policy, window
from tests.kit.strategies import thoroughly
from tests.laws.test_engine_machine import NODES, THEN, EngineMachine

SSD, ANY = labelled({"disk": "ssd"}), labelled({})

#: What policies say; the machine's clock begins at 00:01:40 of a Thursday.
FIELDS = (
    {"nodes": NodeRules(selector=SSD)},
    {"nodes": NodeRules(keep_free={"cpu": 30})},
    {"windows": (window("", "00:03", "00:12"),)},
    {"windows": (window("", "00:02", "00:06", hold=True), window("Thu", "00:00", "09:00")), "max_delay": 500.0},
    {"windows": (window("", "00:00", "00:00", hold=True),), "max_delay": 120.0},
    {"limits": (LimitRule("disk", 1),)},
    {"pools": Pools((Pool("ssd", SSD, 1), Pool("rest", ANY)))},
    {"pools": Pools((Pool("ssd", SSD, 1), Pool("rest", ANY)), wait=True)},
    {"pools": Pools((Pool("ssd", SSD, max_percent=50), Pool("rest", ANY, max_percent=50)))},
    {"spread": (SpreadRule("disk", hard_for=60.0),)},
    {"spread": (SpreadRule("disk", min_domains=2, hard_for=300.0),)},
    {"load": LoadRules(limit={"cpu": 50}, stale_after=30.0)},
    {"load": LoadRules(target={"cpu": 20}, limit={"cpu": 80}, stale_after=60.0, on_stale=OnStale.EXCLUDE)},
    {"preemption": PreemptionRules(never=True)},
    {"preemption": PreemptionRules(min_priority_gap=6, max_victims=1), "pending_deadline": 30.0},
    {"backoff": Backoff(0.5, 2.0), "pending_deadline": 100.0},
    {"scoring": Scoring(StrategyRule("MostAllocated", (("cpu", 1),)), {"ImageLocality": 0}, (Preference(9, SSD),))},
)  # fmt: skip
POLICIES = st.builds(
    lambda fields, more, **own: make_policy(**{**fields, **more, **own}),
    st.sampled_from(FIELDS),
    st.sampled_from(FIELDS),
    name=st.sampled_from(("p", "q", "r")),
    namespace=st.sampled_from(("", "", "default", "elsewhere")),
    labels=st.sampled_from(({}, {}, {"tier": "batch"})),
    namespace_labels=st.sampled_from((None, None, {"strict": "yes"})),
    mode=st.sampled_from((Mode.ENFORCE, Mode.ENFORCE, Mode.ENFORCE, Mode.AUDIT, Mode.DISABLED)),
    canary_percent=st.sampled_from((None, None, None, 50)),
    precedence=st.integers(0, 2),
)
STARTS = (0.0, 30.0, 90.0)


class PoliciesMachine(EngineMachine):
    """See the module's text."""

    def __init__(self):
        super().__init__()
        self.policies = {}
        self.batch = {"p1": True, "p4": True}
        self.placed_at = None

    def put(self, pod):
        """Some pods are of the tier batch; when they were created follows from their names."""
        labels = {"tier": "batch"} if self.batch.get(pod.name) else {}
        labels = pod.labels if pod.labels == labels else labels
        super().put(replace(pod, labels=labels, created=STARTS[ord(pod.name[-1]) % len(STARTS)]))

    # -- changes ---------------------------------------------------------------------------------

    @rule(then=THEN, policy=POLICIES)
    def apply_a_policy(self, then, policy):
        self.policies[policy.ref] = policy
        self.driven.tell(PolicyApplied(policy))
        self.goes_on(then)

    @precondition(lambda self: self.policies)
    @rule(then=THEN, data=st.data())
    def remove_a_policy(self, then, data):
        ref = data.draw(st.sampled_from(sorted(self.policies)))
        del self.policies[ref]
        self.driven.tell(PolicyGone(ref))
        self.goes_on(then)

    @rule(then=THEN, labels=st.sampled_from(({}, {"strict": "yes"})))
    def label_the_namespace(self, then, labels):
        self.driven.tell(NamespaceApplied(Namespace("default", labels)))
        self.goes_on(then)

    @precondition(lambda self: self.pods)
    @rule(then=THEN, data=st.data())
    def label_a_pod(self, then, data):
        pod = self.choose(data, self.pods.values())
        self.batch[pod.name] = not self.batch.get(pod.name)
        self.put(pod)
        self.goes_on(then)

    @rule(
        then=THEN, used=st.dictionaries(st.sampled_from(NODES), st.sampled_from((10, 400, 900)), max_size=3)
    )
    def measure(self, then, used):
        now = self.driven.now
        self.driven.tell(
            UsageMeasured({name: UsageSample(now - 5, {"cpu": cpu}) for name, cpu in used.items()})
        )
        self.goes_on(then)

    def take(self, instructions):
        for instruction in instructions:
            if isinstance(instruction, Bind):
                self.check_policies(instruction)
        super().take(instructions)

    def check_policies(self, bind):
        """A binding goes out only for a pod that no policy holds, and names just the policies that shape it."""
        for placement in bind.placements:
            state = self.engine.cache.state(placement.ref.uid)
            queued = self.engine.queue.get(placement.ref.uid)
            assert state is not None
            assert queued is not None
            assert self.engine._turns.hold_of(queued.pod, self.driven.now) is None
            merged = self.engine.policies.shaping(state.pod).merged
            named = ",".join(ref.key for ref in merged.shaping)
            assert dict(bind.annotations).get("moorage.dev/policies", "") == named

    # -- invariants ------------------------------------------------------------------------------

    @invariant()
    def policies_count_their_pods(self):
        """What is counted step by step is what a look at every pod finds."""
        book, engine = self.engine.policies, self.engine
        pending = Counter(ref for q in engine.queue.entries() for ref in book.selects(q.pod))
        on_nodes = Counter(
            p.ref
            for pods in engine.snapshot.pods
            for pod in pods.values()
            for p in self.policies.values()
            if book.is_of(p, pod)
        )
        in_flight = [q.pod for q in engine.queue.entries() if q.place is Place.IN_FLIGHT]
        assumed = Counter(ref for pod in in_flight for ref in book.selects(pod))
        reports = {report.ref: report for report in engine.policy_reports()}
        assert set(reports) == set(self.policies)
        for ref, report in reports.items():
            assert report.pending == pending[ref] - assumed[ref]
            assert report.bound == on_nodes[ref]

    @invariant()
    def pods_wait_for_what_their_policies_wait_for(self):
        unschedulable = self.engine.queue._unschedulable
        for queued in self.engine.queue.entries():
            if queued.place is Place.UNSCHEDULABLE:
                room = unschedulable._rooms[unschedulable._places[queued.pod.uid]]
                assert room.wakes is self.engine._roster.wakes(queued.pod)

    def due(self):
        turn = self.engine._turns.next_turn()
        return turn is not None and turn <= self.driven.now

    @invariant()
    def nobody_sleeps_who_could_go(self):
        """Unless time alone has changed something and no step was made since."""
        if not self.due():
            super().nobody_sleeps_who_could_go()

    @invariant()
    def who_is_held_is_held_by_somebody(self):
        if self.due():
            return
        for queued in self.engine.queue.entries():
            hold = self.engine._turns.hold_of(queued.pod, self.driven.now)
            if queued.pod.gates or self.engine.queue.held(queued.pod.uid):
                continue
            if queued.place is Place.GATED:
                assert hold is not None
                assert queued.held_by == hold.message
            elif queued.place is not Place.IN_FLIGHT:
                assert hold is None

    # -- the end ---------------------------------------------------------------------------------

    def teardown(self):
        """As without policies; then, without any left, every pod that they held or refused has its chance."""
        self.settle()
        for ref in list(self.policies):
            del self.policies[ref]
            self.driven.tell(PolicyGone(ref))
        super().teardown()
        assert len(self.engine._census) == 0
        assert_empty(self.engine)


class PreemptingPoliciesMachine(PoliciesMachine):
    """The same with preemption."""

    without = ()


TestPolicies = PoliciesMachine.TestCase
TestPreemptingPolicies = PreemptingPoliciesMachine.TestCase
TestPolicies.settings = thoroughly(6)
TestPreemptingPolicies.settings = thoroughly(6)
