"""TaintToleration."""

from dataclasses import replace

from moorage.core.cache.node_changes import node_event
from moorage.core.model.taint import NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE, Toleration
from moorage.core.plugins.taint_toleration import TaintToleration
from tests.kit.models import make_node, make_pod, taint
from tests.kit.plugin_checks import refusals, scores, wakes

REASON = "(node(s) had untolerated taint(s))"


def tainted(name, *effects, key="x"):
    """A node with a taint of each effect."""
    return make_node(name, taints=[taint(key, effect=effect) for effect in effects])


def test_hard_taints_keep_pods_away_and_soft_ones_do_not():
    nodes = [
        tainted("a"),
        tainted("b", NO_SCHEDULE),
        tainted("c", NO_EXECUTE),
        tainted("d", PREFER_NO_SCHEDULE),
    ]
    assert refusals(TaintToleration(), make_pod("web"), nodes) == {"b": [REASON], "c": [REASON]}


def test_every_hard_taint_must_be_tolerated():
    pod = make_pod("web", tolerations=(Toleration("x", "Exists", effect=NO_SCHEDULE),))
    nodes = [tainted("a", NO_SCHEDULE), tainted("b", NO_SCHEDULE, NO_EXECUTE)]
    assert refusals(TaintToleration(), pod, nodes) == {"b": [REASON]}


def test_the_fewest_untolerated_soft_taints_score_most():
    soft = PREFER_NO_SCHEDULE
    nodes = [tainted("a"), tainted("b", soft), tainted("c", soft, soft, soft), tainted("d", NO_SCHEDULE)]
    assert scores(TaintToleration(), make_pod("web"), nodes) == ([0, 1, 3, 0], [100, 67, 0, 100])


def test_tolerations_of_a_hard_effect_do_not_count_for_soft_taints():
    """kube-scheduler's PreScore keeps only those of effect PreferNoSchedule or of every effect."""
    node = tainted("a", PREFER_NO_SCHEDULE)
    for effect, raw in ((NO_SCHEDULE, 1), (PREFER_NO_SCHEDULE, 0), ("", 0)):
        pod = make_pod("web", tolerations=(Toleration("x", "Exists", effect=effect),))
        told = scores(TaintToleration(), pod, [node])
        assert told is not None
        assert told[0] == [raw]


def test_a_node_helps_when_its_taints_no_longer_repel():
    pod, dirty, clean = make_pod("web"), tainted("a", NO_SCHEDULE), tainted("a")
    assert wakes(TaintToleration(), pod, node_event(dirty, clean))
    assert wakes(TaintToleration(), pod, node_event(dirty, tainted("a", PREFER_NO_SCHEDULE)))
    assert wakes(TaintToleration(), pod, node_event(None, clean))
    assert not wakes(TaintToleration(), pod, node_event(None, dirty))
    assert not wakes(TaintToleration(), pod, node_event(dirty, tainted("a", NO_SCHEDULE, key="y")))
    assert not wakes(TaintToleration(), pod, node_event(clean, tainted("a", PREFER_NO_SCHEDULE)))
    assert not wakes(TaintToleration(), pod, node_event(dirty, replace(dirty, labels={"x": "y"})))
