"""SchedulingGates."""

from dataclasses import replace

from moorage.core.cache.pod_changes import pending_event
from moorage.core.framework.interface import Rejected
from moorage.core.model.decision import Code
from moorage.core.plugins.scheduling_gates import SchedulingGates
from tests.kit.models import make_pod
from tests.kit.plugin_checks import wakes

GATED = make_pod("web", gates=("b", "a"))


def test_the_gates_are_listed_as_go_prints_them():
    """In the order of the pod, between brackets, without commas."""
    expected = Rejected(("waiting for scheduling gates: [b a]",), Code.UNRESOLVABLE)
    assert SchedulingGates().pre_enqueue(GATED) == expected


def test_a_pod_without_gates_comes_in():
    assert SchedulingGates().pre_enqueue(make_pod("web")) is None


def test_only_the_last_gate_s_removal_helps():
    for gates, expected in (((), True), (("a",), False)):
        assert wakes(SchedulingGates(), GATED, pending_event(GATED, replace(GATED, gates=gates))) is expected
    assert not wakes(SchedulingGates(), GATED, pending_event(GATED, replace(GATED, labels={"x": "y"})))
