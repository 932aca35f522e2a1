"""One pod's cycle: which node, and if none, what is said about it."""

from typing import Any

import numpy as np
import pytest

from moorage.core.cycle.scheduling_cycle import Circumstances, explain_pod, schedule_pod
from moorage.core.framework.answers import PluginError
from moorage.core.framework.interface import Reads
from moorage.core.framework.post_filter import Candidate, PostFiltered
from moorage.core.framework.runner import Runner
from moorage.core.model.decision import Code, Decision, Preemption, Rejection
from moorage.core.profile import default_profile
from moorage.core.snapshot.snapshot import Snapshot
from tests.kit.models import make_node, make_pod, taint

NOTHING = Circumstances()


class Remedy:
    """A PostFilter plugin that answers as told and remembers who asked."""

    def __init__(self, name: str, answer: PostFiltered) -> None:
        self.name: Any = name
        self.answer = answer
        self.asked: list[str] = []

    def post_filter(self, pod: Any, attempt: Any) -> PostFiltered:
        """Whatever it was told."""
        self.asked.append(pod.name)
        return self.answer

    def wakes_on(self) -> Any:
        """It rejects nothing by itself."""
        return ()


def runner_of(*nodes, more=(), without=("DefaultPreemption",)):
    """The default profile on these nodes."""
    snapshot = Snapshot()
    for node in nodes:
        snapshot.set_node(node)
    profile = default_profile(without=without)
    return Runner((*profile.plugins, *more), profile.weights, snapshot)


def scheduled(runner, pod, around=NOTHING):
    """(node, number of feasible nodes) of the cycle."""
    outcome = schedule_pod(runner, pod, around, np.random.default_rng(0))
    return None if outcome.row is None else runner.snapshot.name_at(outcome.row), outcome.feasible


def failed(runner, pod, around=NOTHING):
    """The failure of a cycle that must not find a node."""
    outcome = schedule_pod(runner, pod, around, np.random.default_rng(0))
    assert outcome.row is None
    assert outcome.failure is not None
    return outcome.failure


def test_the_best_node_is_chosen_among_all_that_are_feasible():
    runner = runner_of(make_node("a"), make_node("b", cpu=64000), make_node("c", unschedulable=True))
    assert scheduled(runner, make_pod("web", cpu=1000)) == ("b", 2)


def test_the_only_feasible_node_is_taken_without_scoring():
    class Asked(Exception):
        """A plugin that reads the cluster is asked each time, when scores are wanted."""

    class Scoring:
        name: Any = "Scoring"
        reads: Any = Reads.CLUSTER

        def pre_score(self, pod, snapshot, nodes):
            raise Asked

        score = normalize = pre_score

        def wakes_on(self):
            return ()

    nodes = make_node("a"), make_node("b", unschedulable=True)
    assert scheduled(runner_of(*nodes, more=(Scoring(),)), make_pod("web")) == ("a", 1)
    with pytest.raises(PluginError, match="Asked"):
        scheduled(runner_of(*nodes, make_node("c"), more=(Scoring(),)), make_pod("web"))


def test_the_promised_node_is_taken_alone_while_it_is_feasible():
    nodes = make_node("a", cpu=1000), make_node("b", cpu=64000)
    assert scheduled(runner_of(*nodes), make_pod("web", cpu=900, nominated_node="a")) == ("a", 1)
    assert scheduled(runner_of(*nodes), make_pod("web", cpu=1100, nominated_node="a")) == ("b", 1)
    assert scheduled(runner_of(*nodes), make_pod("web", nominated_node="ghost"))[0] == "b"


def test_room_promised_to_others_counts():
    runner = runner_of(make_node("a", cpu=1000), make_node("b", cpu=500))
    around = Circumstances(nominated={0: [make_pod("ahead", cpu=800)]})
    assert scheduled(runner, make_pod("web", cpu=400), around) == ("b", 1)


def test_remedies_are_asked_in_order_until_one_helps():
    none = Remedy("None", PostFiltered("nothing"))
    some = Remedy("Some", PostFiltered("evict", Candidate("a", (make_pod("victim"),))))
    late = Remedy("Late", PostFiltered("never asked"))
    failure = failed(runner_of(make_node("a", cpu=1), more=(none, some, late)), make_pod("web", cpu=5))
    assert failure.remedy is some.answer
    assert (none.asked, some.asked, late.asked) == (["web"], ["web"], [])
    assert failure.message == "0/1 nodes are available: 1 Insufficient cpu. evict"


def test_what_remedies_say_in_vain_is_joined():
    """A promise is void as soon as one of them says so."""
    more = Remedy("One", PostFiltered("one")), Remedy("Two", PostFiltered("two", clear_nomination=True))
    failure = failed(runner_of(make_node("a", cpu=1), more=more), make_pod("web", cpu=5))
    assert failure.remedy == PostFiltered("one, two", clear_nomination=True)


def test_without_any_node_no_remedy_is_asked():
    remedy = Remedy("One", PostFiltered("one"))
    failure = failed(runner_of(more=(remedy,)), make_pod("web"))
    assert (failure.remedy, failure.message, remedy.asked) == (
        None,
        "no nodes available to schedule pods",
        [],
    )


# -- the full record -------------------------------------------------------------------------------


def test_a_gated_pod_is_asked_nothing_else():
    pod = make_pod("web", gates=("wait",))
    gate = Rejection("SchedulingGates", ("waiting for scheduling gates: [wait]",), Code.UNRESOLVABLE)
    assert explain_pod(runner_of(make_node("a")), pod, NOTHING) == Decision(pod.ref, preenqueue=gate)


def test_the_record_of_a_pod_that_fits():
    """Ties are not drawn: the first by name is chosen, whatever the rows."""
    runner = runner_of(make_node("b"), make_node("c", taints=[taint("x")]), make_node("a"))
    decision = explain_pod(runner, make_pod("web", cpu=400), NOTHING)
    assert (decision.feasible, decision.best, decision.chosen) == (("a", "b"), ("a", "b"), "a")
    repelled = Rejection("TaintToleration", ("node(s) had untolerated taint(s)",), Code.UNRESOLVABLE)
    assert decision.filtered == {"c": repelled}
    assert decision.scores["a"] == {
        "TaintToleration": 300,
        "NodeResourcesFit": 93,
        "NodeResourcesBalancedAllocation": 72,
        "ImageLocality": 0,
        "VolumeBinding": 0,
        "total": 465,
    }
    assert decision.message == ""


def test_the_promised_node_is_chosen_in_the_record_too():
    runner = runner_of(make_node("a"), make_node("b", cpu=64000))
    decision = explain_pod(runner, make_pod("web", nominated_node="a"), NOTHING)
    assert (decision.best, decision.chosen) == (("b",), "a")


def test_a_question_about_some_nodes():
    """Of the others nothing is said, and what could be done on them is no part of the answer."""
    runner = runner_of(make_node("a"), make_node("b", cpu=1), make_node("c", cpu=1), without=())
    pod = make_pod("web", cpu=400, priority=9)
    assert explain_pod(runner, pod, NOTHING, ["b", "a", "ghost"]).chosen == "a"
    decision = explain_pod(runner, pod, NOTHING, ["c", "ghost"])
    assert (decision.chosen, list(decision.filtered), decision.preemption) == (None, ["c"], None)
    assert not decision.clears_nomination


def test_the_record_of_a_preemption():
    runner = runner_of(make_node("a", cpu=500), make_node("b", cpu=500), make_node("c", cpu=1), without=())
    for name, node in (("two", "a"), ("one", "a"), ("three", "b"), ("four", "b")):
        runner.snapshot.add_pod(runner.snapshot.row_of(node), make_pod(name, cpu=250, node=node))
    decision = explain_pod(runner, make_pod("web", cpu=500, priority=9), NOTHING)
    assert decision.preemption == Preemption(
        node="a",
        victims=("default/one", "default/two"),
        candidates={"a": ("default/one", "default/two"), "b": ("default/four", "default/three")},
        ties=("a", "b"),
    )
    assert decision.message == (
        "0/3 nodes are available: 3 Insufficient cpu. "
        "preemption: found a potential placement for pod on node a, preempting 2 victims"
    )
