"""What the loop reports becomes metrics and log lines."""

import logging

import pytest

from moorage.adapters.telemetry.metrics import Metrics
from moorage.adapters.telemetry.observer import Observer
from moorage.adapters.telemetry.step_timer import StepTimer
from moorage.core.engine import Engine
from moorage.core.framework.watching import watched
from moorage.core.model.events import (
    BindFailed,
    BindFailure,
    BindSucceeded,
    NodeApplied,
    PodBound,
    PodPending,
)
from moorage.core.model.instructions import Attempted, AttemptResult, Bind, Evict, Placement
from tests.kit.fakes import FakeClock, pod_ref
from tests.kit.models import make_node, make_pod

REF = pod_ref("p")
LOGGER = "moorage.adapters.telemetry.attempt_log"


class Rig:
    def __init__(self, slow=1000.0, share=1.0):
        self.metrics = Metrics(FakeClock())
        self.observer = Observer(self.metrics, slow=slow, timer=StepTimer(share=share))
        self.engine = Engine()

    def value(self, name, **labels):
        return self.metrics.registry.get_sample_value(name, labels)

    def tell(self, *events):
        for event in events:
            self.engine.handle(event, 0.0)

    def step(self, seconds=0.002):
        self.observer.timer.begin()
        instructions = watched(self.observer.timer, self.engine.step, 1.0)
        self.observer.cycle(instructions, seconds)
        return instructions


@pytest.fixture
def rig():
    return Rig()


def test_a_sampled_placement_is_told_by_plugin_and_by_extension_point(rig):
    rig.tell(*(NodeApplied(make_node(f"n{i}")) for i in range(2)), PodPending(make_pod("p")))
    rig.step()
    for point in ("PreFilter", "Filter", "PreScore", "Score", "ScoreExtensionNormalize"):
        labels = {"extension_point": point, "status": "Success", "profile": "moorage"}
        assert rig.value("scheduler_framework_extension_point_duration_seconds_count", **labels) == 1, point
    labels = {"plugin": "NodeResourcesFit", "extension_point": "Filter", "status": "Success"}
    assert rig.value("scheduler_plugin_execution_duration_seconds_count", **labels) >= 1
    labels = {"plugin": "NodeAffinity", "extension_point": "PreFilter", "status": "Skip"}
    assert rig.value("scheduler_plugin_execution_duration_seconds_count", **labels) == 1
    assert rig.value("moorage_decision_phase_seconds_count", phase="filter") == 1
    assert rig.value("moorage_decision_phase_seconds_count", phase="place") == 1


def test_a_step_that_is_not_sampled_costs_no_series():
    rig = Rig(share=0.0)
    rig.tell(NodeApplied(make_node("n")), PodPending(make_pod("p")))
    rig.step()
    assert b"scheduler_plugin_execution_duration_seconds_count{" not in rig.metrics.exposition()


def test_preemption(rig):
    low = make_pod("low", cpu=4000, node="n", priority=0)
    rig.tell(
        NodeApplied(make_node("n", cpu=4000)), PodBound(low), PodPending(make_pod("p", cpu=4000, priority=9))
    )
    assert any(isinstance(each, Evict) for each in rig.step())
    assert rig.value("scheduler_preemption_attempts_total") == 1
    assert rig.value("scheduler_preemption_victims_sum") == 1
    labels = {"extension_point": "PostFilter", "status": "Success", "profile": "moorage"}
    assert rig.value("scheduler_framework_extension_point_duration_seconds_count", **labels) == 1


def test_preemption_in_vain_is_an_attempt(rig):
    rig.tell(NodeApplied(make_node("n", cpu=1000)), PodPending(make_pod("p", cpu=4000)))
    rig.step()
    assert rig.value("scheduler_preemption_attempts_total") == 1
    assert rig.value("scheduler_preemption_victims_count") == 0
    labels = {"extension_point": "PostFilter", "status": "Unschedulable", "profile": "moorage"}
    assert rig.value("scheduler_framework_extension_point_duration_seconds_count", **labels) == 1


def test_bindings_are_an_extension_point_too(rig):
    rig.tell(NodeApplied(make_node("n")), PodPending(make_pod("p")))
    (bind,) = [each for each in rig.step() if isinstance(each, Bind)]
    rig.observer.bound(BindSucceeded(bind.placements[0].ref, "n"), 0.25)
    labels = {"extension_point": "Bind", "status": "Success", "profile": "moorage"}
    assert rig.value("scheduler_framework_extension_point_duration_seconds_sum", **labels) == 0.25
    assert rig.value("moorage_binds_total", outcome="bound") == 1


# -- logs ------------------------------------------------------------------------------------------


def attempted(result, **fields):
    return Attempted(REF, "moorage", result, 3, 0.0, **fields)


def test_a_slow_decision_leaves_a_line_with_its_phases(caplog):
    rig = Rig(slow=0.1)
    rig.tell(NodeApplied(make_node("n")), PodPending(make_pod("p")))
    rig.step(seconds=0.25)
    (record,) = [each for each in caplog.records if each.name == LOGGER]
    assert record.levelno == logging.WARNING
    assert record.getMessage().startswith("Slow decision, 250 ms: ")
    assert (record.pod, record.node, record.attempt, record.seconds) == ("default/p", "n", 1, 0.25)
    assert set(record.phases) >= {"filter", "place"}
    assert rig.value("moorage_slow_decisions_total") == 1


def test_others_leave_none(caplog):
    rig = Rig(slow=0.1)
    rig.tell(NodeApplied(make_node("n")), PodPending(make_pod("p")))
    rig.step(seconds=0.0999)
    assert caplog.records == []


def test_debugging_tells_each_placement_with_its_policies(rig, caplog):
    caplog.set_level(logging.DEBUG, LOGGER)
    bind = Bind((Placement(REF, "n"),), (("moorage.dev/policies", "a,b"),))
    rig.observer.cycle([bind, attempted(AttemptResult.SCHEDULED, node_name="n", feasible_nodes=4)], 0.001)
    (record,) = caplog.records
    assert (record.pod, record.node, record.policy, record.attempt) == (REF.key, "n", "a,b", 3)
    assert record.getMessage() == "Placed, 4 nodes were feasible"


def test_debugging_tells_each_refusal(rig, caplog):
    caplog.set_level(logging.DEBUG, LOGGER)
    refused = attempted(AttemptResult.UNSCHEDULABLE, plugins=("A", "B"), message="0/1 nodes")
    rig.observer.cycle([refused], 0.001)
    (record,) = caplog.records
    assert (record.getMessage(), record.plugins, record.result) == (
        "Not placed: 0/1 nodes",
        "A,B",
        "unschedulable",
    )


def test_errors_are_told_always(rig, caplog):
    rig.observer.cycle([attempted(AttemptResult.ERROR, message="boom")], 0.001)
    rig.observer.bound(BindFailed(REF, "n", BindFailure.FORBIDDEN, "no"), 0.1)
    rig.observer.bound(BindFailed(REF, "n", BindFailure.STALE, "full"), 0.1)
    rig.observer.bound(BindSucceeded(REF, "n"), 0.1)
    texts = [record.getMessage() for record in caplog.records]
    assert texts == ["The attempt has failed: boom", "Not bound: no"]
