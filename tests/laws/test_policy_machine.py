"""What policies count and measure, in any order of changes: the columns equal what a walk over everything finds."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from moorage.core.cache.cache import Cache
from moorage.core.cycle.scoring import score_nodes
from moorage.core.framework.runner import Runner
from moorage.core.model.events import UsageSample
from moorage.core.model.node import Node
from moorage.core.model.pod import Pod
from moorage.core.model.policy import ExpressionError, LoadRules, NodeRules, Preference
from moorage.core.model.resources import CPU, MEMORY, PODS
from moorage.core.plugins.policy_load import PolicyLoad
from moorage.core.plugins.policy_nodes import PolicyNodes
from moorage.core.plugins.policy_preferences import PolicyPreferences
from moorage.core.plugins.priority_sort import PrioritySort
from moorage.core.snapshot.snapshot import Snapshot
from tests.kit.models import make_pod
from tests.kit.policies import (
    BLUE,
    NAMES,
    NOW,
    RED,
    PolicyWorld,
    expressions,
    facts_of,
    labels,
    policy_nodes,
    policy_pods,
    selects,
)
from tests.kit.strategies import GPU, LABEL_KEYS

ASKING = make_pod("asking", cpu=100)


class _Usage(PolicyNodes):
    """A second one, which looks at real use."""

    name = "Usage"


class _UsagePreferences(PolicyPreferences):
    """A second one, which looks at real use."""

    name = "UsagePreferences"


class PolicyMachine(RuleBasedStateMachine):
    """``nodes`` and ``pods`` are what the snapshot should know; ``since`` is when a pod came, by UID.

    Of a pod that the samples of its node show already, ``since`` is None.
    """

    def __init__(self) -> None:
        super().__init__()
        self.cache = Cache(Snapshot())
        self.snapshot = self.cache.snapshot
        self.snapshot.now = NOW
        self.snapshot.selected.follow(selects)
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self.tracked: set = set()
        self.samples: dict[str, UsageSample] = {}
        self.since: dict[str, float | None] = {}
        self.number = 0
        self.expressions = expressions()
        rules = [(RED, NodeRules(expression=each)) for each in self.expressions[:5]]
        items = [(RED, Preference(1, expression=each)) for each in self.expressions]
        self.runner = Runner(
            (
                PrioritySort(),
                PolicyNodes((*rules[:2], (BLUE, NodeRules(keep_free={CPU: 10, PODS: 50})))),
                _Usage(((RED, NodeRules(expression=self.expressions[5])),)),
                PolicyLoad(((RED, LoadRules({CPU: 50}, {CPU: 80})),)),
                PolicyPreferences(tuple(items[:5]), (GPU,)),
                _UsagePreferences(tuple(items[5:])),
            ),
            {},
            self.snapshot,
        )

    # -- changes ---------------------------------------------------------------------------------

    @initialize(data=st.data())
    def first_nodes(self, data):
        for name in NAMES[:2]:
            self.apply_node(data.draw(policy_nodes(name)))

    def apply_node(self, node):
        known = node.name in self.nodes
        self.cache.apply_node(node)
        self.nodes[node.name] = node
        for pod in self.pods.values():
            if pod.node_name == node.name and not known:
                self.comes(pod)

    @rule(data=st.data(), name=st.sampled_from(NAMES))
    def change_node(self, data, name):
        self.apply_node(data.draw(policy_nodes(name)))

    @rule(name=st.sampled_from(NAMES))
    def remove_node(self, name):
        self.cache.remove_node(name)
        self.nodes.pop(name, None)
        self.tick(1)  # what comes back at once is not new; a node takes its time

    @rule(number=st.integers(60, 80))
    def outgrow(self, number):
        for i in range(number):
            self.apply_node(Node(f"extra-{i}", labels={"zone": "b"}))

    @rule(data=st.data(), node=st.sampled_from(NAMES))
    def place(self, data, node):
        self.number += 1
        pod = data.draw(policy_pods(f"p{self.number}", node))
        self.cache.add(pod)
        self.pods[pod.uid] = pod
        if node in self.nodes:
            self.comes(pod)

    def comes(self, pod):
        now = self.snapshot.now
        since = now if pod.started is None else min(pod.started, now)
        sample = self.samples.get(pod.node_name)
        self.since[pod.uid] = None if sample is not None and since < sample.at else since

    @precondition(lambda self: self.pods)
    @rule(data=st.data(), labels=labels, dying=st.booleans())
    def show(self, data, labels, dying):
        uid = data.draw(st.sampled_from(sorted(self.pods)))
        self.pods[uid] = replace(self.pods[uid], labels=labels, deleting=dying)
        self.cache.add(self.pods[uid])

    @precondition(lambda self: self.pods)
    @rule(data=st.data())
    def remove(self, data):
        uid = data.draw(st.sampled_from(sorted(self.pods)))
        self.cache.remove(uid)
        del self.pods[uid]

    @precondition(lambda self: self.pods)
    @rule(data=st.data())
    def look_without_some(self, data):
        """A dry run: pods go and come back."""
        uids = data.draw(st.lists(st.sampled_from(sorted(self.pods)), unique=True))
        states = [self.cache.take_out(uid) for uid in uids]
        gone = {uid: self.pods.pop(uid) for uid in uids}
        self.everything_is_counted()
        self.use_is_the_samples_and_what_came_since()
        for state in reversed(states):
            assert state is not None
            self.cache.put_back(state)
        self.pods |= gone

    @rule(seconds=st.sampled_from((1, 20, 100)))
    def tick(self, seconds):
        self.snapshot.now += seconds

    @rule(
        drawn=st.dictionaries(
            st.sampled_from(NAMES),
            st.tuples(st.sampled_from((0, 5, 30, 170)), st.sampled_from((0, 500, 2000)), st.booleans()),
        )
    )
    def measure(self, drawn):
        now = self.snapshot.now
        self.samples = {
            name: UsageSample(now - age, {CPU: cpu} if lone else {CPU: cpu, MEMORY: cpu // 2})
            for name, (age, cpu, lone) in drawn.items()
        }
        first = not self.snapshot.usage_samples.kept
        self.snapshot.usage_samples.apply(self.samples)
        for uid, pod in self.pods.items():
            if pod.node_name in self.nodes:
                sample, since = self.samples.get(pod.node_name), self.since[uid]
                if first:
                    self.comes(pod)
                elif sample is not None and since is not None and since < sample.at:
                    self.since[uid] = None

    @rule(refs=st.sets(st.sampled_from((RED, BLUE)), min_size=1))
    def track(self, refs):
        self.snapshot.selected.track(*refs)
        self.tracked |= refs

    @rule(ref=st.sampled_from((RED, BLUE)))
    def drop(self, ref):
        self.snapshot.selected.drop(ref)
        self.tracked.discard(ref)

    # -- what must hold --------------------------------------------------------------------------

    @invariant()
    def everything_is_counted(self):
        snapshot = self.snapshot
        for ref in self.tracked:
            found = snapshot.selected.of(ref)
            pods, dying = np.zeros((2, snapshot.capacity), dtype=np.int64)
            for pod in self.pods.values():
                row = snapshot.row_of(pod.node_name)
                if row is not None and ref in selects(pod):
                    pods[row] += 1
                    dying[row] += pod.deleting
            assert pods.tolist() == found.pods.counts.tolist()
            assert dying.tolist() == found.dying.counts.tolist()
            assert found.total == pods.sum()
            for key in LABEL_KEYS:
                domains, everywhere = snapshot.topology.domains(key), snapshot.topology.scope((), None)
                sums = np.zeros(domains.size + 1, dtype=np.int64)
                np.add.at(sums, domains.ids, pods)
                assert (
                    sums.tolist()
                    == snapshot.selected.by_domain(ref, domains, everywhere, dying=True).tolist()
                )

    @invariant()
    def use_is_the_samples_and_what_came_since(self):
        samples = self.snapshot.usage_samples
        if not samples.kept:
            return
        for name in self.nodes:
            row = self.snapshot.row_of(name)
            sample = self.samples.get(name)
            for resource in (CPU, MEMORY):
                measured = 0 if sample is None else sample.amounts.get(resource, 0)
                young = sum(
                    pod.requests.of(resource)
                    for uid, pod in self.pods.items()
                    if pod.node_name == name and self.since[uid] is not None
                )
                assert samples.used(resource)[row] == measured + young
                assert samples.knows(resource)[row] == (sample is not None and resource in sample.amounts)

    @invariant()
    def what_alike_pods_share_is_up_to_date(self):
        """A runner that has seen every change on the way says what a new one says."""
        fresh = Runner(self.runner.plugins, {}, self.snapshot)
        rows = np.flatnonzero(self.snapshot.alive)
        told = []
        for runner in (self.runner, fresh):
            screened = runner.screen(ASKING, {})
            told.append(
                (
                    screened.feasible.tolist(),
                    score_nodes(runner, ASKING, screened, rows).tolist() if rows.size else [],
                )
            )
        assert told[0] == told[1]

    @invariant()
    def expressions_are_up_to_date(self):
        samples = self.samples if self.snapshot.usage_samples.kept else {}
        pods, now = tuple(self.pods.values()), self.snapshot.now
        world = _World(tuple(self.nodes.values()), pods, samples, now, self.since)
        for expression in self.expressions:
            columns = (
                self.snapshot.expressions.truth(RED, expression),
                self.snapshot.expressions.score(RED, expression),
            )
            for name, node in self.nodes.items():
                facts = facts_of(world, node)
                for column, ask in zip(columns, (expression.truth, expression.score), strict=True):
                    try:
                        expected = float(ask(facts))
                    except ExpressionError:
                        expected = 0.0
                    assert column[self.snapshot.row_of(name)] == expected, (name, expression.text)


@dataclass(frozen=True)
class _World(PolicyWorld):
    """A world that knows since when its pods are there."""

    since: Mapping[str, float | None] = field(default_factory=dict)

    def used(self, node, resource):
        sample = self.samples[node.name]
        young = [pod for pod in self.on(node) if self.since[pod.uid] is not None]
        return sample.amounts.get(resource, 0) + sum(pod.requests.of(resource) for pod in young)


TestPolicies = PolicyMachine.TestCase
