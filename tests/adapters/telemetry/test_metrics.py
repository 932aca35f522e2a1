"""Metrics: kube-scheduler's names and what they count."""

from moorage.adapters.telemetry.metrics import Metrics
from moorage.core.model.events import BindFailed, BindFailure, BindSucceeded
from moorage.core.model.instructions import Attempted, AttemptResult, Audited, Bind, Placement
from moorage.core.model.policy import PolicyRef
from tests.kit.fakes import FakeClock, pod_ref

REF = pod_ref("p")


def attempted(result, attempts=1, ref=REF):
    return Attempted(ref, "moorage", result, attempts, added=999_990.0)


class Rig:
    def __init__(self):
        self.clock = FakeClock()
        self.metrics = Metrics(self.clock)

    def value(self, name, **labels):
        return self.metrics.registry.get_sample_value(name, labels)

    def schedule(self, result=None, attempts=1):
        bind = Bind((Placement(REF, "n"),))
        self.metrics.cycle([bind, attempted(AttemptResult.SCHEDULED, attempts)], 0.001)
        self.metrics.bound(result or BindSucceeded(REF, "n"), 0.002)


def test_a_pod_counts_as_scheduled_when_it_is_bound():
    rig = Rig()
    rig.metrics.cycle([attempted(AttemptResult.SCHEDULED)], 0.001)
    labels = {"result": "scheduled", "profile": "moorage"}
    assert rig.value("scheduler_schedule_attempts_total", **labels) == 0
    rig.metrics.bound(BindSucceeded(REF, "n"), 0.002)
    assert rig.value("scheduler_schedule_attempts_total", **labels) == 1
    assert rig.value("scheduler_scheduling_attempt_duration_seconds_count", **labels) == 1
    assert rig.value("scheduler_scheduling_algorithm_duration_seconds_count") == 1
    assert rig.value("scheduler_pod_scheduling_sli_duration_seconds_sum", attempts="1") == 10
    assert rig.value("scheduler_pod_scheduling_attempts_sum") == 1
    assert rig.value("moorage_binds_total", outcome="bound") == 1


def test_many_attempts_share_a_label():
    rig = Rig()
    rig.schedule(attempts=40)
    assert rig.value("scheduler_pod_scheduling_sli_duration_seconds_count", attempts="15+") == 1


def test_attempts_in_vain_are_counted_at_once():
    rig = Rig()
    rig.metrics.cycle([attempted(AttemptResult.UNSCHEDULABLE)], 0.001)
    rig.metrics.cycle([attempted(AttemptResult.ERROR)], 0.001)
    for result in ("unschedulable", "error"):
        assert rig.value("scheduler_schedule_attempts_total", result=result, profile="moorage") == 1


def test_a_refused_binding_is_an_error_and_a_stale_choice_is_none():
    rig = Rig()
    rig.schedule(BindFailed(REF, "n", BindFailure.FORBIDDEN, "no"))
    assert rig.value("scheduler_schedule_attempts_total", result="error", profile="moorage") == 1
    rig.schedule(BindFailed(REF, "n", BindFailure.STALE, "gone"))
    assert rig.value("scheduler_schedule_attempts_total", result="error", profile="moorage") == 1
    assert rig.value("moorage_binds_total", outcome="stale") == 1


def test_nothing_is_kept_of_pods_that_are_done():
    rig = Rig()
    for _ in range(100):
        rig.schedule()
    assert rig.metrics._in_flight == {}


def test_placements_that_never_end_do_not_add_up():
    rig = Rig()
    for i in range(10_050):
        rig.metrics.cycle([attempted(AttemptResult.SCHEDULED, ref=pod_ref(f"p{i}"))], 0.001)
    assert len(rig.metrics._in_flight) == 10_000


def test_turns_and_their_maximum():
    rig = Rig()
    for seconds in (0.001, 0.04, 0.002):
        rig.metrics.turn(seconds)
    assert rig.value("moorage_loop_turn_seconds_count") == 3
    assert rig.value("moorage_loop_turn_max_seconds") == 0.04


def test_gauges_are_set_when_they_are_asked_for():
    rig = Rig()
    stats = {"pending_active": 3, "pending_gated": 1, "nodes": 5, "pods": 7, "assumed": 2, "other": "x"}
    rig.metrics.on_scrape(lambda: rig.metrics.engine_stats(stats))
    text = rig.metrics.exposition().decode()
    assert 'scheduler_pending_pods{queue="active"} 3.0' in text
    assert 'scheduler_pending_pods{queue="backoff"} 0.0' in text
    assert 'scheduler_cache_size{type="assumed_pods"} 2.0' in text
    assert "process_resident_memory_bytes" in text


def test_the_writers_have_their_counters():
    rig = Rig()
    rig.metrics.recorded(0.5)
    rig.metrics.record_dropped("full")
    rig.metrics.condition_written("written")
    rig.metrics.late()
    rig.metrics.object_malformed("nodes")
    assert rig.value("moorage_event_lag_seconds_sum") == 0.5
    assert rig.value("moorage_events_dropped_total", reason="full") == 1
    assert rig.value("moorage_condition_writes_total", outcome="written") == 1
    assert rig.value("moorage_late_binds_total") == 1
    assert rig.value("moorage_malformed_objects_total", resource="nodes") == 1


def test_audits_are_counted_by_policy_until_it_is_gone():
    rig, ref = Rig(), PolicyRef("n", "p")
    rig.metrics.cycle([Audited(REF, ref, differs=True), Audited(REF, ref, differs=False)], 0.001)
    rig.metrics.cycle(
        [Audited(REF, ref, differs=True), Audited(REF, PolicyRef("", "q"), differs=True)], 0.001
    )
    name = "moorage_policy_audit_decisions_total"
    assert rig.value(name, policy="n/p", differs="true") == 2
    assert rig.value(name, policy="n/p", differs="false") == 1
    rig.metrics.policy_gone(ref)
    rig.metrics.policy_gone(ref)
    assert rig.value(name, policy="n/p", differs="true") is None
    assert rig.value(name, policy="q", differs="true") == 1
    assert rig.value("scheduler_schedule_attempts_total", result="scheduled", profile="moorage") == 0


def test_what_is_counted_of_policies():
    rig = Rig()
    rig.metrics.count_policies(in_force=3, refused=1)
    rig.metrics.policy_status_written("written")
    rig.metrics.usage_polled("NotServed")
    assert rig.value("moorage_policies", state="in_force") == 3
    assert rig.value("moorage_policies", state="refused") == 1
    assert rig.value("moorage_policy_status_writes_total", outcome="written") == 1
    assert rig.value("moorage_node_metrics_polls_total", outcome="NotServed") == 1
