"""What is known of pods by their labels and terms, in any order of changes: it always equals a count from scratch.

The bounds are tiny here, so that tallies, groups and terms are dropped and made again all the time.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, precondition, rule

from moorage.core.cache.cache import Cache
from moorage.core.framework.interface import Skip
from moorage.core.model.node import Node
from moorage.core.model.pod import Pod
from moorage.core.model.pod_query import PodQuery
from moorage.core.model.workload import Namespace, Workload, WorkloadKind
from moorage.core.plugins.inter_pod_affinity import InterPodAffinity
from moorage.core.plugins.pod_topology_spread import PodTopologySpread
from moorage.core.snapshot.pod_counts import PodCounts
from moorage.core.snapshot.pod_groups import NamespacePods
from moorage.core.snapshot.pod_terms import PodTerms, TermKind
from moorage.core.snapshot.regrouping import Regrouping
from moorage.core.snapshot.snapshot import Snapshot
from moorage.core.snapshot.topology import NodeRules, Topology
from moorage.core.snapshot.view import Nodes
from tests.kit.peers import (
    KEYS,
    NAMES,
    NAMESPACES,
    World,
    label_selectors,
    namespaces,
    peer_nodes,
    peer_pods,
    peer_specs,
    pod_labels,
    workloads,
)

PLUGINS = (PodTopologySpread(), InterPodAffinity())

queries = st.builds(
    PodQuery,
    st.one_of(st.none(), st.sets(st.sampled_from((*NAMESPACES, "gone"))).map(frozenset)),
    label_selectors,
    st.booleans(),
)
rules = st.builds(
    NodeRules.of,
    st.sampled_from(({}, {}, {"rack": "1"})),
    st.none(),
    st.sampled_from((None, ())),
)
scopes = st.tuples(st.lists(st.sampled_from(KEYS), max_size=2, unique=True).map(tuple), rules)


@pytest.fixture(autouse=True)
def _tiny_bounds(monkeypatch):
    monkeypatch.setattr(PodCounts, "KEEP", 2)
    monkeypatch.setattr(PodCounts, "LIMIT", 2000)
    monkeypatch.setattr(PodCounts, "FORGET_AFTER", 7)
    monkeypatch.setattr(PodCounts, "SWEEP_EVERY", 5)
    monkeypatch.setattr(NamespacePods, "IDLE", 2)
    monkeypatch.setattr(NamespacePods, "FEW", 1)
    monkeypatch.setattr(Regrouping, "EFFORT", 20)
    monkeypatch.setattr(PodTerms, "IDLE", 2)
    monkeypatch.setattr(PodTerms, "LIMIT", 100)
    monkeypatch.setattr(PodTerms, "KEEP", 1)
    monkeypatch.setattr(Topology, "KEPT", 3)


class PeersMachine(RuleBasedStateMachine):
    """``nodes``, ``pods``, ``named`` and ``sets`` are what the snapshot should know."""

    asked = Bundle("asked")
    asking = Bundle("asking")

    def __init__(self) -> None:
        super().__init__()
        self.cache = Cache(Snapshot())
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self.named: dict[str, Namespace] = {}
        self.sets: dict[tuple[WorkloadKind, str, str], Workload] = {}
        self.recent: list[tuple[PodQuery, str, tuple]] = []
        self.number = 0

    @property
    def snapshot(self) -> Snapshot:
        return self.cache.snapshot

    # -- changes ---------------------------------------------------------------------------------

    @initialize(data=st.data())
    def first_nodes(self, data):
        for name in NAMES[:3]:
            self.apply_node(data.draw(peer_nodes(name)))

    @rule(data=st.data(), name=st.sampled_from(NAMES))
    def change_node(self, data, name):
        self.apply_node(data.draw(peer_nodes(name)))

    def apply_node(self, node):
        self.cache.apply_node(node)
        self.nodes[node.name] = node

    @rule(name=st.sampled_from(NAMES))
    def remove_node(self, name):
        self.cache.remove_node(name)
        self.nodes.pop(name, None)

    @rule(number=st.integers(1, 80))
    def outgrow(self, number):
        for i in range(number):
            self.apply_node(Node(f"extra-{i}", labels={"rack": str(i % 3)}))

    @rule(data=st.data(), node=st.sampled_from((*NAMES, "unseen")), assumed=st.booleans())
    def place(self, data, node, assumed):
        self.number += 1
        pod = data.draw(peer_pods(f"p{self.number}"))
        if assumed:
            self.pods[pod.uid] = self.cache.assume(pod, node)
        else:
            self.pods[pod.uid] = replace(pod, node_name=node)
            self.cache.add(self.pods[pod.uid])

    @precondition(lambda self: self.pods)
    @rule(
        data=st.data(),
        labels=pod_labels,
        dying=st.booleans(),
        how=st.sampled_from(("labels", "dying", "spec", "moved")),
    )
    def show(self, data, labels, dying, how):
        """The stream shows a pod again, perhaps changed."""
        uid = data.draw(st.sampled_from(sorted(self.pods)))
        pod = self.pods[uid]
        match how:
            case "labels":
                pod = replace(pod, labels=labels)
            case "dying":
                pod = replace(pod, deleting=dying)
            case "spec":
                pod = replace(pod, spec=replace(data.draw(peer_specs()), requests=pod.spec.requests))
            case _:
                pod = replace(pod, node_name=data.draw(st.sampled_from(NAMES)))
        self.cache.add(pod)
        self.pods[uid] = pod

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
        for state in reversed(states):
            assert state is not None
            self.cache.put_back(state)

    @rule(namespace=namespaces)
    def apply_namespace(self, namespace):
        self.snapshot.namespaces.apply(namespace)
        self.named[namespace.name] = namespace

    @rule(name=st.sampled_from(NAMESPACES))
    def remove_namespace(self, name):
        self.snapshot.namespaces.remove(name)
        self.named.pop(name, None)

    @rule(workload=workloads())
    def apply_workload(self, workload):
        self.snapshot.workloads.apply(workload)
        self.sets[workload.kind, workload.namespace, workload.name] = workload

    @precondition(lambda self: self.sets)
    @rule(data=st.data())
    def remove_workload(self, data):
        key = data.draw(st.sampled_from(sorted(self.sets)))
        assert self.snapshot.workloads.remove(*key) == self.sets.pop(key)
        assert self.snapshot.workloads.remove(*key) is None

    # -- questions -------------------------------------------------------------------------------

    @rule(target=asked, query=queries)
    def new_query(self, query):
        return query

    @rule(query=asked, key=st.sampled_from(KEYS), scope=scopes)
    def ask(self, query, key, scope):
        self.recent = [*self.recent[-3:], (query, key, scope)]
        self.check_query(query, key, scope)

    def check_query(self, query, key, scope):
        snapshot = self.snapshot
        expected = np.zeros(snapshot.capacity, dtype=np.int64)
        for row, pods in enumerate(snapshot.pods):
            expected[row] = sum(
                (query.terminating or not pod.deleting) and query.matches(pod.namespace, pod.labels)
                for pod in pods.values()
            )
        assert expected.tolist() == snapshot.pod_counts.tally(query).counts.tolist()
        domains = snapshot.topology.domains(key)
        scope = snapshot.topology.scope(*scope)
        counts = snapshot.pod_counts.by_domain(query, domains, scope)
        sums = np.zeros(domains.size + 1, dtype=np.int64)
        np.add.at(sums, domains.ids, expected * scope.mask)
        assert sums.tolist() == counts.values.tolist()
        assert counts.total == sums[:-1].sum()

    @rule(target=asking, data=st.data())
    def new_pod(self, data):
        return data.draw(peer_pods("asking"))

    @rule(pod=asking)
    def decide(self, pod):
        """The plugins say the same of a snapshot made from nothing."""
        world = World(
            tuple(self.nodes.values()),
            tuple(pod for pod in self.pods.values() if pod.node_name in self.nodes),
            tuple(self.named.values()),
            tuple(self.sets.values()),
        )
        fresh = world.snapshot()
        for plugin in PLUGINS:
            assert answers(plugin, pod, fresh) == answers(plugin, pod, self.snapshot)

    @invariant()
    def what_was_asked_lately_is_still_right(self):
        for query, key, scope in self.recent:
            self.check_query(query, key, scope)

    @invariant()
    def terms_are_those_of_the_pods(self):
        terms = self.snapshot.pod_terms
        kept = {term.key: dict(term.rows) for kind in TermKind for term in terms.of_kind(kind) if term.rows}
        fresh = PodTerms()
        for row, pods in enumerate(self.snapshot.pods):
            for pod in pods.values():
                fresh.add(row, pod)
        assert {term.key: dict(term.rows) for kind in TermKind for term in fresh.of_kind(kind)} == kept


def answers(plugin, pod, snapshot):
    """All that a plugin says about a pod, by node name."""
    rows = np.flatnonzero(snapshot.alive)
    names = [snapshot.name_at(int(row)) for row in rows]
    told = {}
    state = plugin.pre_filter(pod, snapshot)
    if state is not Skip.SKIP:
        told["failed"] = dict(
            zip(names, plugin.filter(state, Nodes(snapshot, rows)).failed.T.tolist(), strict=True)
        )
    state = plugin.pre_score(pod, snapshot, Nodes(snapshot, rows))
    if state is not Skip.SKIP:
        told["scores"] = dict(zip(names, plugin.score(state, Nodes(snapshot, rows)).tolist(), strict=True))
    return told


TestPeers = PeersMachine.TestCase
