"""Snapshot and cache in any order of changes: the incremental columns always equal a rebuild from scratch."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, precondition, rule

from moorage.core.cache.cache import Cache
from moorage.core.cache.transaction import Transaction
from moorage.core.cycle.scoring import score_nodes
from moorage.core.framework.runner import Runner
from moorage.core.model.node import Node
from moorage.core.model.pod import Pod
from moorage.core.model.taint import Taint
from moorage.core.profile import default_profile
from moorage.core.snapshot.snapshot import Snapshot
from tests.kit.models import make_pod
from tests.kit.strategies import (
    IMAGE_SIZES,
    LABEL_KEYS,
    NODE_NAMES,
    columns_of,
    host_ports,
    node_selectors,
    nodes,
    requests,
    requirements,
    specs,
    thoroughly,
    tolerations,
)

PROFILE = default_profile()


class CacheMachine(RuleBasedStateMachine):
    """``nodes`` and ``pods`` are what the cache should know; pods as (pod as it is on its node, assumed)."""

    specs_asked = Bundle("specs_asked")

    def __init__(self) -> None:
        super().__init__()
        self.cache = Cache(Snapshot())
        self.runner = Runner(PROFILE.plugins, PROFILE.weights, self.cache.snapshot)
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, tuple[Pod, bool]] = {}
        self.transaction: Transaction | None = None
        self.saved: dict[str, tuple[Pod, bool]] = {}
        self.evicted = False
        self.number = 0
        self.first: Pod | None = None

    @initialize(target=specs_asked, spec=specs(), known=st.lists(nodes(), max_size=3))
    def first_spec(self, spec, known):
        """Its answers are checked after every step, so that they are brought up to date one change at a time."""
        self.first = make_pod("first", spec=spec)
        for node in known:
            self.apply_node(node=node)
        return spec

    @rule(target=specs_asked, spec=specs())
    def another_spec(self, spec):
        return spec

    # -- nodes -----------------------------------------------------------------------------------

    @rule(node=nodes())
    def apply_node(self, node):
        assert self.cache.apply_node(node) == self.nodes.get(node.name)
        self.nodes[node.name] = node

    @rule(number=st.integers(0, 200))
    def apply_many(self, number):
        """Enough nodes to outgrow the first capacity, each with taints, labels and sizes of its own."""
        for i in range(0, number, 3):
            self.apply_node(make_filler(i))

    @rule()
    def remove_many(self):
        for name in [name for name in self.nodes if name not in NODE_NAMES][::2]:
            self.remove_node(name)

    @rule(name=st.sampled_from(NODE_NAMES))
    def remove_node(self, name):
        assert self.cache.remove_node(name) == self.nodes.pop(name, None)

    # -- pods ------------------------------------------------------------------------------------

    def _new_pod(self, spec_requests, ports, node=""):
        self.number += 1
        return make_pod(f"p{self.number}", requests=spec_requests, ports=ports, node=node)

    @rule(
        asked=requests(),
        ports=st.lists(host_ports, max_size=2),
        node=st.sampled_from((*NODE_NAMES, "unseen")),
    )
    def assume(self, asked, ports, node):
        pod = self._new_pod(asked, ports)
        target = self.transaction or self.cache
        placed = target.place(pod, node) if isinstance(target, Transaction) else target.assume(pod, node)
        assert (placed.uid, placed.node_name) == (pod.uid, node)
        self.pods[pod.uid] = (placed, True)
        with pytest.raises(ValueError, match="already takes room"):
            self.cache.assume(pod, node)

    @precondition(lambda self: self.transaction is None)
    @rule(
        asked=requests(),
        ports=st.lists(host_ports, max_size=2),
        node=st.sampled_from((*NODE_NAMES, "unseen")),
    )
    def add_unknown(self, asked, ports, node):
        pod = self._new_pod(asked, ports, node)
        assert self.cache.add(pod) is None
        self.pods[pod.uid] = (pod, False)

    @precondition(lambda self: self.transaction is None and self.pods)
    @rule(data=st.data(), how=st.sampled_from(("same", "copied", "resized", "moved")))
    def show(self, data, how):
        """The watch shows a pod that is known."""
        uid = data.draw(st.sampled_from(sorted(self.pods)))
        pod, assumed = self.pods[uid]
        match how:
            case "copied":
                shown = replace(pod, labels={"new": "label"}, requests=replace(pod.requests))
            case "resized":
                shown = replace(pod, requests=data.draw(requests()))
            case "moved":
                shown = replace(pod, node_name=data.draw(st.sampled_from(NODE_NAMES)))
            case _:
                shown = replace(pod, resource_version="2")
        before = self.cache.add(shown)
        assert before is not None
        assert (before.pod is pod, before.assumed) == (True, assumed)
        self.pods[uid] = (shown, False)

    @precondition(lambda self: self.transaction is None and self.pods)
    @rule(data=st.data())
    def forget(self, data):
        uid = data.draw(st.sampled_from(sorted(self.pods)))
        pod, assumed = self.pods[uid]
        assert self.cache.forget(uid) is (pod if assumed else None)
        assert self.cache.forget("never seen") is None
        if assumed:
            del self.pods[uid]
            assert self.cache.forget(uid) is None

    @precondition(lambda self: self.transaction is None and self.pods)
    @rule(data=st.data())
    def remove(self, data):
        uid = data.draw(st.sampled_from(sorted(self.pods)))
        assert self.cache.remove(uid) is self.pods.pop(uid)[0]
        assert self.cache.remove(uid) is None

    # -- transactions ----------------------------------------------------------------------------

    def under_way(self) -> Transaction:
        assert self.transaction is not None
        return self.transaction

    @precondition(lambda self: self.transaction is None)
    @rule()
    def begin(self):
        self.transaction = Transaction(self.cache)
        self.saved = dict(self.pods)
        self.evicted = False

    @precondition(lambda self: self.transaction is not None and self.pods)
    @rule(data=st.data())
    def evict(self, data):
        uid = data.draw(st.sampled_from(sorted(self.pods)))
        transaction = self.under_way()
        transaction.evict(uid)
        self.evicted = True
        del self.pods[uid]
        with pytest.raises(LookupError):
            transaction.evict(uid)

    @precondition(lambda self: self.transaction is not None)
    @rule()
    def rollback(self):
        self.under_way().rollback()
        self.pods, self.transaction = self.saved, None

    @precondition(lambda self: self.transaction is not None)
    @rule()
    def commit(self):
        placed = [pod for uid, (pod, _) in self.pods.items() if uid not in self.saved]
        transaction = self.under_way()
        if self.evicted:
            with pytest.raises(ValueError, match="cannot be committed"):
                transaction.commit()
            self.rollback()
        else:
            assert set(map(id, transaction.commit())) == set(map(id, placed))
            transaction.rollback()  # nothing is left to undo
            self.transaction = None

    # -- looking ---------------------------------------------------------------------------------

    @rule(spec=specs_asked)
    def screen(self, spec):
        """What is kept for alike pods equals what a fresh runner finds; the scores do, too."""
        self.compare(make_pod("asking", spec=spec))

    @invariant()
    def the_first_spec_s_answers_are_up_to_date(self):
        if self.first is not None:
            self.compare(self.first)

    def compare(self, pod):
        fresh = Runner(PROFILE.plugins, PROFILE.weights, self.cache.snapshot)
        kept, new = self.runner.screen(pod, {}), fresh.screen(pod, {})
        assert new.feasible.tolist() == kept.feasible.tolist()
        rows = np.flatnonzero(new.feasible)
        told_kept: dict[str, list[int]] = {}
        told_new: dict[str, list[int]] = {}
        score_nodes(
            self.runner, pod, kept, rows, lambda name, scores: told_kept.update({name: scores.tolist()})
        )
        score_nodes(fresh, pod, new, rows, lambda name, scores: told_new.update({name: scores.tolist()}))
        assert told_new == told_kept

    @rule(selector=node_selectors, requirement=requirements())
    def select(self, selector, requirement):
        snapshot = self.cache.snapshot
        for name, node in self.nodes.items():
            row = snapshot.row_of(name)
            assert selector.matches(name, node.labels) == bool(snapshot.selector_mask(selector)[row])
            admitted = requirement.admits(node.labels.get(requirement.key))
            assert admitted == bool(snapshot.requirement_mask(requirement)[row])
            for term in selector.terms:
                assert term.matches(name, node.labels) == bool(snapshot.term_mask(term)[row])

    @rule(
        ports=st.lists(host_ports, max_size=2),
        key=st.sampled_from(LABEL_KEYS),
        image=st.sampled_from(sorted(IMAGE_SIZES)),
    )
    def look_up(self, ports, key, image):
        snapshot, rebuilt = self.cache.snapshot, self.rebuilt()
        present, size = snapshot.images.column(image, snapshot.nodes, snapshot.capacity)
        having = {name for name, node in self.nodes.items() if image in node.images}
        assert having == {snapshot.name_at(int(row)) for row in np.flatnonzero(present)}
        assert size == (IMAGE_SIZES[image] if having else 0)
        column = snapshot.label(key)
        for name, node in self.nodes.items():
            value = node.labels.get(key)
            found = column.ids[snapshot.row_of(name)]
            assert (column.values[found] if found >= 0 else None) == value
        taken, rebuilt_taken = snapshot.host_ports, rebuilt.host_ports
        assert {rebuilt.name_at(row) for row in rebuilt_taken.rows_in_conflict(ports)} == {
            snapshot.name_at(row) for row in taken.rows_in_conflict(ports)
        }

    @rule(tolerated=st.lists(tolerations, max_size=2).map(tuple))
    def measure(self, tolerated):
        snapshot = self.cache.snapshot
        measured = snapshot.taints.measure(_count, tolerated)[snapshot.taints.ids]
        assert {name: _count(node.taints, tolerated) for name, node in self.nodes.items()} == {
            name: measured[snapshot.row_of(name)] for name in self.nodes
        }

    def rebuilt(self):
        """A snapshot made from nothing."""
        cache = Cache(Snapshot())
        for node in self.nodes.values():
            cache.apply_node(node)
        for pod, _ in self.pods.values():
            cache.add(pod)
        return cache.snapshot

    @invariant()
    def columns_equal_a_rebuild(self):
        snapshot = self.cache.snapshot
        assert columns_of(self.rebuilt()) == columns_of(snapshot)
        assert snapshot.node_count == len(self.nodes) == int(np.count_nonzero(snapshot.alive))
        assert {pod.uid: assumed for pod, assumed in self.pods.values()} == {
            uid: state.assumed for uid in self.pods if (state := self.cache.state(uid)) is not None
        }
        assert len(self.cache) == len(self.pods)
        assert self.cache.assumed_count == sum(assumed for _, assumed in self.pods.values())
        for name in (*NODE_NAMES, "unseen"):
            expected = {uid for uid, (pod, _) in self.pods.items() if pod.node_name == name}
            assert expected == {pod.uid for pod in self.cache.pods_on(name)}

    @invariant()
    def free_rows_hold_nothing(self):
        snapshot = self.cache.snapshot
        free = ~snapshot.alive
        assert not snapshot.pod_count[free].any()
        assert not snapshot.unschedulable[free].any()
        assert not snapshot.scoring_cpu.values[free].any()
        for resource in snapshot.resources:
            assert not snapshot.allocatable(resource)[free].any()
            assert not snapshot.requested(resource)[free].any()
            has = [node.allocatable.get(resource, 0) for node in self.nodes.values()]
            assert all(has) == snapshot.everywhere(resource) or not has
            assert max(has, default=0) <= snapshot.peak(resource) or snapshot.peak(resource) == 1 << 62

    def teardown(self):
        """When all is gone, nothing is left."""
        if self.transaction is not None:
            self.rollback()
        for uid in list(self.pods):
            self.cache.remove(uid)
        for name in list(self.nodes):
            self.cache.remove_node(name)
        assert len(self.cache) == 0
        assert self.cache._by_node == {}
        assert self.cache._stamps == {}
        snapshot = self.cache.snapshot
        assert snapshot.node_count == 0
        assert snapshot.host_ports._taken == {}
        for column in (
            *snapshot._allocatable.values(),
            *snapshot._requested.values(),
            snapshot.scoring_memory,
        ):
            assert not column.values.any()
            assert column._exact == {}


def _count(taints, tolerations):
    return sum(not any(o.tolerates(t) for o in tolerations) for t in taints)


def make_filler(number):
    """A node unlike all others."""
    return Node(
        f"filler-{number}",
        labels={"zone": f"z{number}", "gen": str(number)},
        taints=(Taint("own", str(number)),),
        allocatable={"cpu": 1000 + number, "memory": 1 << 30, "pods": 110},
    )


TestCache = CacheMachine.TestCase
TestCache.settings = thoroughly(4)
