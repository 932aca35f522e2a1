"""Profiles."""

from typing import Any, ClassVar

import numpy as np
import pytest

from moorage.core.cycle.scoring import score_nodes
from moorage.core.framework.interface import FilterPlugin, Reads, ScorePlugin
from moorage.core.framework.points import Point
from moorage.core.framework.runner import Runner
from moorage.core.plugins.node_name import NodeName
from moorage.core.plugins.priority_sort import PrioritySort
from moorage.core.profile import (
    NO_ADDITIONS,
    Additions,
    Profile,
    bare_profile,
    default_profile,
    score_plugins,
)
from moorage.core.snapshot.snapshot import Snapshot
from tests.kit.models import make_node, make_pod, taint
from tests.kit.scalar import FILTER_ORDER, WEIGHTS


def test_the_default_profile_filters_in_kube_scheduler_s_order():
    """The first plugin to refuse a node gives the reason, so the order is what users read."""
    plugins = default_profile().plugins
    assert tuple(plugin.name for plugin in plugins if isinstance(plugin, FilterPlugin)) == FILTER_ORDER


def test_the_default_weights():
    profile = default_profile("mine")
    scoring = {plugin.name for plugin in profile.plugins if isinstance(plugin, ScorePlugin)}
    assert {name: profile.weight(name) for name in scoring} == {
        name: WEIGHTS.get(name, 1) for name in scoring
    }
    assert profile.scheduler_name == "mine"


class Own:
    """Scores."""

    name: ClassVar[str] = "Own"
    reads: ClassVar[Reads] = Reads.NODE

    def pre_score(self, *_):
        return None

    def score(self, *_):
        return None

    def normalize(self, raw):
        return raw

    def wakes_on(self):
        return ()


def test_additions_come_last_wherever_they_have_a_part():
    own = Additions((Own(),), {"Own": 7})
    profile = default_profile(additions=own)
    assert [plugin.name for plugin in profile.plugins] == [
        *(p.name for p in default_profile().plugins),
        "Own",
    ]
    assert (profile.weight("Own"), profile.weight("NodeAffinity")) == (7, 2)
    points = {Point.SCORE: ("NodeAffinity",), Point.FILTER: ()}
    some = Profile("some", default_profile().plugins, {}, points).extended(own)
    assert some.points == {Point.SCORE: ("NodeAffinity", "Own"), Point.FILTER: ()}
    assert profile.extended(NO_ADDITIONS) is profile


def test_what_scores_can_be_weighed():
    assert score_plugins(Additions((Own(),))) == score_plugins() | {"Own"}
    assert "NodeName" not in score_plugins()


def test_plugins_can_be_left_out():
    names = [plugin.name for plugin in default_profile(without=("DefaultPreemption", "NodePorts")).plugins]
    assert not {"DefaultPreemption", "NodePorts"} & set(names)
    assert len(names) == len(default_profile().plugins) - 2


def test_two_default_profiles_share_no_plugin():
    one, two = default_profile().plugins, default_profile().plugins
    assert [a for a, b in zip(one, two, strict=True) if a is b] == []


class Deaf:
    """A plugin that rejects and names nothing that could change its mind."""

    name: Any = "Deaf"
    reads: Any = Reads.NODE

    def pre_filter(self, pod: Any, snapshot: Any) -> Any:
        """Never called."""

    def filter(self, state: Any, nodes: Any) -> Any:
        """Never called."""

    def wakes_on(self) -> Any:
        """Nothing."""
        return ()


@pytest.mark.parametrize(
    ("plugins", "words"),
    [
        (
            (PrioritySort(), NodeName(), NodeName()),
            "'mine' names a plugin twice: PrioritySort, NodeName, NodeName",
        ),
        ((NodeName(),), "'mine' needs exactly one QueueSort plugin"),
        ((PrioritySort(), Deaf()), "plugin Deaf can reject pods but names nothing that wakes them"),
    ],
)
def test_profiles_that_cannot_work(plugins, words):
    with pytest.raises(ValueError, match=words):
        Profile("mine", plugins, {})


def test_the_bare_profile_refuses_and_scores_nothing():
    """By itself; policies give its plugins something to do."""
    snapshot = Snapshot()
    snapshot.set_node(make_node("a", cpu=100, taints=[taint("dirty")], unschedulable=True))
    profile = bare_profile("mine")
    runner = Runner(profile.plugins, profile.weights, snapshot, profile.points)
    pod = make_pod("big", cpu=1000)
    screened = runner.screen(pod, {})
    assert screened.feasible[0]
    told: dict[str, object] = {}
    assert score_nodes(runner, pod, screened, np.array([0]), told.__setitem__).tolist() == [0]
    assert told == {}
