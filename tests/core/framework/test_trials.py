"""Nodes on trial: what plugins say of nodes whose sums are changed, in order, with the pods that come and without."""

from typing import Any

import numpy as np
import pytest

from moorage.core.framework.answers import PluginError
from moorage.core.framework.interface import Reads, Reason, Verdict
from moorage.core.framework.trials import (
    NOBODY,
    Balance,
    Bench,
    LesserPods,
    PodsOnNodes,
    Trial,
    by_labels,
    pods_on,
)
from moorage.core.model.decision import Code
from moorage.core.snapshot.snapshot import Snapshot
from tests.kit.models import make_node, make_pod


class AtMost:
    """So many milli-CPU of pods on a node."""

    name: Any = "AtMost"
    reads: Any = Reads.USAGE

    def __init__(self, unsure: Any = None, error: Exception | None = None) -> None:
        self.unsure = unsure
        self.error = error
        self.judged: list[list[int]] = []

    def trial(self, state: int, trial: Trial) -> Balance:
        """One sum: what the pods ask for."""
        taken = trial.nodes.requested("cpu")

        def judge(change: Any, at: Any) -> Verdict:
            self.judged.append(at.tolist())
            if self.error is not None:
                raise self.error
            return Verdict((Reason("full"),), (taken[at] + change[0] > state)[None, :])

        sums = trial.leaving.amounts("cpu"), trial.coming.amounts("cpu")
        unsure = None if self.unsure is None else np.array(self.unsure)
        return Balance.of((sums,), judge, unsure)


class Closed:
    """A plugin that looks at nodes only: these rows are closed."""

    name: Any = "Closed"
    reads: Any = Reads.NODE

    def filter(self, state: Any, nodes: Any) -> Verdict:
        """``state`` are the closed rows."""
        return Verdict((Reason("closed", resolvable=False),), np.isin(nodes.rows, state)[None, :])


class Foreign(Closed):
    """One that looks at pods and cannot judge nodes on trial."""

    reads: Any = Reads.USAGE


def a_trial(pods=(), coming=NOBODY, nodes=3):
    """Nodes of which each has one pod of 10 milli-CPU, or these."""
    snapshot = Snapshot()
    for number in range(nodes):
        snapshot.set_node(make_node(f"n{number}"))
        snapshot.add_pod(number, make_pod(f"p{number}", cpu=10))
    rows = np.arange(nodes)
    return Trial(snapshot, rows, LesserPods(snapshot.ranking.at(rows.tolist()), 100), coming)


def bench_of(active: Any, trial: Trial) -> Bench:
    """A bench of plugins that have no more methods than they need here."""
    return Bench(active, trial)


ALL = np.arange(3)


def told(refusals):
    """Rejections by the index of the node."""
    return {i: (r.plugin, r.reasons, r.code) for each in refusals for i, r in each.rejections()}


def test_the_first_plugin_to_refuse_has_the_word():
    bench = bench_of([(Closed(), [1]), (AtMost(), 5)], a_trial())
    change = np.array([[0, 0, -10]])
    refusals, fits, unsure = bench.refusals(change, ALL)
    assert told(refusals) == {
        1: ("Closed", ("closed",), Code.UNRESOLVABLE),
        0: ("AtMost", ("full",), Code.UNSCHEDULABLE),
    }
    assert [dict(refusal.words()) for refusal in refusals] == [{"closed": 1}, {"full": 1}]
    assert (fits.tolist(), unsure.tolist()) == ([2], [])


def test_what_a_plugin_is_unsure_about_is_left_out_once_those_before_it_had_their_say():
    doubting = AtMost(unsure=[True, True, False])
    refusals, fits, unsure = bench_of([(Closed(), [1]), (doubting, 50)], a_trial()).refusals(
        np.zeros((1, 3), int), ALL
    )
    assert list(told(refusals)) == [1]
    assert (fits.tolist(), unsure.tolist()) == ([2], [0])
    assert doubting.judged == [[2]]


def test_a_plugin_that_cannot_judge_is_unsure_about_all():
    last = AtMost()
    refusals, fits, unsure = bench_of([(Closed(), [1]), (Foreign(), []), (last, 50)], a_trial()).refusals(
        np.zeros((1, 3), int), ALL
    )
    assert list(told(refusals)) == [1]
    assert (fits.tolist(), unsure.tolist()) == ([], [0, 2])
    assert last.judged == []


def test_pods_that_leave_and_come_are_added_up():
    coming = PodsOnNodes([make_pod("x", cpu=3), make_pod("y", cpu=4)], np.array([1, 1]))
    bench = bench_of([(AtMost(), 14)], a_trial(coming=coming))
    assert bench.leaving.tolist() == [[10, 10, 10]]
    assert bench.coming.tolist() == [[0, 7, 0]]
    change, visited = bench.with_coming(np.zeros((1, 3), int), ALL)
    assert (change.tolist(), visited.tolist()) == ([[7]], [1])
    # Without those that come all fit; with them node 1 does only if two units go.
    assert bench.fit(np.zeros((1, 3), int), ALL).tolist() == [True, False, True]
    assert bench.fit(np.array([[-3]]), np.array([1])).tolist() == [True]
    assert bench.fit(np.array([[5]]), np.array([0])).tolist() == [False]


def test_what_does_not_depend_on_pods_is_not_judged_again():
    assert bench_of([(Closed(), [0, 1, 2])], a_trial()).fit(np.zeros((0, 3), int), ALL).all()


@pytest.mark.parametrize("error", [RuntimeError("boom"), PluginError("Other", "Filter", "boom")])
def test_a_plugin_that_raises_is_named(error):
    bench = bench_of([(AtMost(error=error), 5)], a_trial())
    name = "Other" if isinstance(error, PluginError) else "AtMost"
    with pytest.raises(PluginError, match=f'"{name}" filter plugin: .*boom'):
        bench.refusals(np.zeros((1, 3), int), ALL)


def test_lesser_pods_are_those_below_a_priority():
    snapshot = Snapshot()
    for row, priorities in enumerate([(5, 1, 3), (9,), (2,)]):
        snapshot.set_node(make_node(f"n{row}"))
        for number in priorities:
            snapshot.add_pod(row, make_pod(f"p{number}", priority=number, cpu=number, started=float(number)))
    lesser = LesserPods(snapshot.ranking.at([0, 1, 2]), 5)
    assert [pod.name for pod in lesser.pods] == ["p3", "p1", "p2"]
    assert lesser.at.tolist() == [0, 0, 2]
    assert lesser.priorities.tolist() == lesser.amounts("cpu").tolist() == lesser.starts.tolist() == [3, 1, 2]
    assert lesser.weighed(lambda pod: pod.priority, np.array([False, True, True])).tolist() == [0, 0, 2]
    assert len(LesserPods(snapshot.ranking.at([1]), 9)) == len(LesserPods([], 9)) == 0


def test_pods_on_some_rows():
    a, b, c = make_pod("a"), make_pod("b"), make_pod("c")
    found = pods_on({7: [a], 4: [b, c], 9: [a]}, {4: 0, 7: 1})
    assert (list(found.pods), found.at.tolist()) == ([b, c, a], [0, 0, 1])
    assert pods_on({9: [a]}, {}).at.tolist() == []


def test_pods_that_share_labels_are_compared_once():
    labels = {"app": "x"}
    asked = []

    def means(pod):
        asked.append(pod.name)
        return pod.labels == {"app": "x"} and pod.namespace == "default"

    weigh = by_labels(means)
    pods = [
        make_pod("a", labels=labels),
        make_pod("b", labels=labels),
        make_pod("c", labels=labels, namespace="other"),
    ]
    assert [weigh(pod) for pod in pods] == [1, 1, 0]
    assert asked == ["a", "c"]
