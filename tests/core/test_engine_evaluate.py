"""Questions change nothing, and their answers are what happens."""

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest

from moorage.core.framework.interface import Reads, Reason, Verdict
from moorage.core.model.cluster_event import Action, Resource, WakesOn
from moorage.core.model.pod import Pod
from moorage.core.snapshot.snapshot import Snapshot
from moorage.core.snapshot.view import Nodes
from tests.core.driving import (
    Driven,
    nominated,
    plain,
)
from tests.kit.models import GI, make_node, make_pod, required, term
from tests.kit.strategies import columns_of


def state_of(engine):
    """What decisions rest on, as one value to compare."""
    queue, cache = engine.queue, engine.cache
    return repr((
        columns_of(engine.snapshot),
        [list(pods) for pods in engine.snapshot.pods],
        list(engine.snapshot.nodes),
        {uid: (q.place, q.since, q.attempts, q.backoff_until, q.rejectors) for uid, q in queue._pods.items()},
        {uid: (s.pod.name, s.node_name, s.assumed) for uid, s in cache._pods.items()},
        {node: list(pods) for node, pods in cache._by_node.items()},
        cache._stamps,
        engine.stats(),
        engine.next_wake(),
        engine.nominator._by_uid,
        engine._state.outbox,
        engine._attempts._rng.bit_generator.state,
    ))  # fmt: skip


def test_evaluate_changes_nothing():
    driven = Driven()
    driven.tell(
        make_node("a", cpu=4000), make_node("b", cpu=4000, labels={"zone": "z"}, images={"app:latest": GI})
    )
    driven.tell(make_pod("p", cpu=500, node="a", ports=[80]), make_pod("p2", cpu=100, node="a"))
    driven.tell(
        nominated("n1", "a", cpu=3600, priority=9), nominated("n2", "b", cpu=5000, ports=[81], priority=9)
    )
    driven.tell(make_pod("flight", cpu=10, priority=10))
    driven.step()
    driven.tell(make_pod("queued"))
    before = state_of(driven.engine)
    for pod in (
        make_pod("ask", cpu=100, ports=[80, 81], images=("app:latest",)),
        make_pod("too-big", cpu=9000, priority=20),
        make_pod("evicting", cpu=3800, priority=20),
        make_pod("gated", gates=("x",)),
        make_pod("named", required=required(term(names=("a", "ghost")))),
        make_pod("selecting", node_selector={"zone": "z"}),
    ):
        driven.engine.evaluate(pod, driven.now)
        driven.engine.evaluate(pod, driven.now, ["b", "ghost"])
    assert before == state_of(driven.engine)


def test_a_cycle_that_places_nothing_changes_no_column():
    driven = Driven()
    driven.tell(make_node("a", cpu=1000), make_pod("p", cpu=500, node="a"), make_pod("p2", cpu=100, node="a"))
    driven.tell(nominated("n", "a", cpu=3600, priority=9, preemption_policy="Never"))
    driven.run()
    before = columns_of(driven.engine.snapshot), [list(pods) for pods in driven.engine.snapshot.pods]
    driven.tell(make_pod("web", cpu=600, preemption_policy="Never"))
    driven.run()
    assert before == (columns_of(driven.engine.snapshot), [list(p) for p in driven.engine.snapshot.pods])


def test_evaluate_and_step_agree():
    driven = plain()
    driven.tell(make_node("a", cpu=1000), make_node("b", cpu=4000), make_node("c", cpu=2000))
    pod = make_pod("web", cpu=500)
    decision = driven.engine.evaluate(pod, driven.now)
    assert ("a", "b", "c") == decision.feasible
    assert ("b",) == decision.best
    driven.tell(pod)
    assert {"web": decision.chosen} == driven.bound()


def test_evaluate_among_some_nodes_only():
    driven = plain()
    driven.tell(make_node("a"), make_node("b"), make_node("c", unschedulable=True), make_node("d", cpu=8000))
    decision = driven.engine.evaluate(make_pod("web", cpu=500), driven.now, ["c", "a", "ghost"])
    assert ("a",) == decision.feasible
    assert ["c"] == list(decision.filtered)
    assert decision.chosen == "a"


class Curfew:
    """Lets nobody in before a point in time."""

    name: ClassVar[str] = "Curfew"
    reads: ClassVar[Reads] = Reads.CLUSTER

    def pre_filter(self, pod: Pod, snapshot: Snapshot) -> float:
        """The time of the question."""
        return snapshot.now

    def filter(self, state: float, nodes: Nodes) -> Verdict:
        """All nodes or none."""
        return Verdict((Reason("too early"),), np.full((1, len(nodes)), state < 200.0))

    def wakes_on(self) -> Sequence[WakesOn]:
        """Nodes only: the time itself is no change."""
        return (WakesOn(Resource.NODE, Action.ADD),)


def test_plugins_see_the_time_of_the_question():
    driven = plain(Curfew())
    pod = make_pod("web")
    driven.tell(make_node("a"), make_node("b", unschedulable=True), pod)
    assert driven.bound() == {}
    assert driven.engine.evaluate(pod, 200.0).feasible == ("a",)
    assert driven.engine.evaluate(pod, 199.0).feasible == ()
    driven.now = 200.0
    driven.tell(make_pod("second"))
    assert driven.engine.snapshot.now == 200.0
    assert driven.bound() == {"second": "a"}
    driven.tell(replace(make_node("b"), labels={"zone": "z"}))
    assert driven.engine.evaluate(pod, driven.now).feasible == ("a", "b")


def test_an_explanation_sees_it_too():
    driven = plain(Curfew())
    driven.tell(make_node("a"))
    for now, feasible in ((200.0, ("a",)), (199.0, ())):
        with pytest.raises(StopIteration) as end:
            next(driven.engine.explanation(make_pod("web"), now))
        assert end.value.value.feasible == feasible
