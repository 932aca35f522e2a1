"""Scores: raw by plugin, normalised over the feasible nodes, weighted, added up."""

from typing import Any, ClassVar

import numpy as np
import pytest

from moorage.core.cycle.scoring import score_nodes
from moorage.core.framework.answers import PluginError
from moorage.core.framework.interface import Reads, Skip, normalize_by_max
from moorage.core.framework.runner import Runner
from moorage.core.plugins.priority_sort import PrioritySort
from moorage.core.snapshot.snapshot import Snapshot
from tests.kit.models import make_node, make_pod

POD = make_pod("web")


class Scoring:
    """Gives row r of its list of scores, and counts the calls."""

    name: ClassVar[str] = "Scoring"
    reads: ClassVar[Reads] = Reads.CLUSTER

    def __init__(self, *scores: int, reverse: bool | None = None) -> None:
        self.scores = np.array(scores)
        self.reverse = reverse
        self.calls = 0

    def pre_score(self, pod: Any, snapshot: Any, nodes: Any) -> Any:
        """The scores are known, unless there are none."""
        return self.scores if self.scores.size else Skip.SKIP

    def score(self, state: Any, nodes: Any) -> Any:
        """By row."""
        self.calls += 1
        return np.resize(state, nodes.snapshot.capacity)[nodes.rows]

    def normalize(self, raw: Any) -> Any:
        """By the highest, if so wished."""
        return raw if self.reverse is None else normalize_by_max(raw, reverse=self.reverse)

    def wakes_on(self) -> Any:
        """Scores only."""
        return ()


class Alike(Scoring):
    """The same for alike pods."""

    name = "Alike"
    reads = Reads.NODE


def scored(*plugins, rows=(0, 1, 2), **weights):
    """(totals, what was reported) for these rows of three nodes."""
    snapshot = Snapshot()
    for name in "abc":
        snapshot.set_node(make_node(name))
    runner = Runner((PrioritySort(), *plugins), weights, snapshot)
    told: dict[str, list[int]] = {}
    totals = score_nodes(
        runner, POD, runner.screen(POD, {}), np.array(rows), lambda name, s: told.update({name: s.tolist()})
    )
    return totals.tolist(), told


def test_weighted_scores_are_added_up():
    totals, told = scored(Scoring(1, 2, 3), Alike(10, 20, 30), Scoring=5)
    assert told == {"Scoring": [5, 10, 15], "Alike": [10, 20, 30]}
    assert totals == [15, 30, 45]


def test_a_plugin_without_weight_is_not_even_asked():
    plugin = Scoring(1, 2, 3)
    assert scored(plugin, Scoring=0) == ([0, 0, 0], {})
    assert plugin.calls == 0


def test_a_plugin_that_skips_is_absent():
    assert scored(Scoring(), Alike(1, 1, 1)) == ([1, 1, 1], {"Alike": [1, 1, 1]})


def test_only_feasible_nodes_count_when_normalising():
    """The same raw scores give others when the best node is not feasible."""
    for plugin in (Scoring(10, 20, 40, reverse=False), Alike(10, 20, 40, reverse=False)):
        assert scored(plugin)[0] == [25, 50, 100]
        assert scored(plugin, rows=(0, 1))[0] == [50, 100]


def test_what_alike_pods_share_is_not_asked_again():
    plugin = Alike(1, 2, 3)
    scored(plugin)
    assert plugin.calls == 1


@pytest.mark.parametrize("score", [-1, 101])
def test_a_score_out_of_range_is_an_error_of_the_plugin(score):
    with pytest.raises(PluginError, match=r'^running Score plugin "Scoring": a score is outside 0\.\.100$'):
        scored(Scoring(0, score, 100))


def test_the_bounds_are_in_range_and_the_weight_comes_after_the_check():
    assert scored(Scoring(0, 50, 100), Scoring=3)[0] == [0, 150, 300]


class OwnScale(Scoring):
    """Its points are added as they are, up to 700."""

    name: ClassVar[str] = "OwnScale"
    most = 700


@pytest.mark.parametrize(("score", "fits"), [(700, True), (701, False), (-1, False)])
def test_a_plugin_may_have_a_scale_of_its_own(score, fits):
    snapshot = Snapshot()
    for name in "ab":
        snapshot.set_node(make_node(name))
    runner = Runner((PrioritySort(), OwnScale(score, 0), Scoring(3, 4)), {"OwnScale": 2}, snapshot)
    screened = runner.screen(POD, {})
    rows = np.arange(2, dtype=np.int64)
    if fits:
        assert score_nodes(runner, POD, screened, rows).tolist() == [2 * score + 3, 4]
    else:
        with pytest.raises(PluginError, match=r"a score is outside 0\.\.700$"):
            score_nodes(runner, POD, screened, rows)
