"""Prometheus metrics: kube-scheduler's, by name, label and bucket, and our own as ``moorage_*``.

One registry an instance, so that tests and several schedulers in a process do not meet.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)

from moorage import __version__
from moorage.core.model.events import BindFailed, BindFailure, BindSucceeded
from moorage.core.model.instructions import Attempted, AttemptResult, Audited, Instruction
from moorage.core.model.policy import PolicyRef
from moorage.runtime.ports import Clock

CONTENT_TYPE = CONTENT_TYPE_LATEST

#: kube-scheduler's words for the places of its queue.
_QUEUES = ("active", "backoff", "unschedulable", "gated")
_CACHE_SIZES = {"nodes": "nodes", "pods": "pods", "assumed_pods": "assumed"}
_MOST_ATTEMPTS = 15
#: Placements whose end was never told (the process is stopping, or a bug) must not add up.
_MOST_IN_FLIGHT = 10_000


def _exponential(start: float, factor: float, count: int) -> list[float]:
    return [start * factor**i for i in range(count)]


_ATTEMPT_BUCKETS = _exponential(0.001, 2, 15)
_TURN_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.25, 1.0)


@dataclass(frozen=True, slots=True)
class _Chosen:
    """A pod that has a node and is being bound."""

    attempted: Attempted
    started: float


class Metrics:
    """Every metric there is.  Implements ``runtime.ports.Meter`` and ``adapters.kube.record.RecordMeter``."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._in_flight: dict[str, _Chosen] = {}
        self._refreshers: list[Callable[[], None]] = []
        self._longest_turn = 0.0
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)

        # kube-scheduler's
        self.attempts = Counter(
            "scheduler_schedule_attempts",
            "Number of attempts to schedule pods, by the result. 'unschedulable' means a pod could not be "
            "scheduled, while 'error' means an internal scheduler problem.",
            ("result", "profile"),
            registry=registry,
        )
        self.attempt_duration = Histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "Scheduling attempt latency in seconds (scheduling algorithm + binding)",
            ("result", "profile"),
            buckets=_ATTEMPT_BUCKETS,
            registry=registry,
        )
        self.algorithm_duration = Histogram(
            "scheduler_scheduling_algorithm_duration_seconds",
            "Scheduling algorithm latency in seconds",
            buckets=_ATTEMPT_BUCKETS,
            registry=registry,
        )
        self.sli_duration = Histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "E2e latency for a pod being scheduled, from the time the pod enters the scheduling queue and "
            "might involve multiple scheduling attempts.",
            ("attempts",),
            buckets=_exponential(0.01, 2, 20),
            registry=registry,
        )
        self.pod_attempts = Histogram(
            "scheduler_pod_scheduling_attempts",
            "Number of attempts to successfully schedule a pod.",
            buckets=_exponential(1, 2, 5),
            registry=registry,
        )
        self.pending = Gauge(
            "scheduler_pending_pods",
            "Number of pending pods, by the queue type.",
            ("queue",),
            registry=registry,
        )
        self.cache_size = Gauge(
            "scheduler_cache_size",
            "Number of nodes, pods, and assumed (bound) pods in the scheduler cache.",
            ("type",),
            registry=registry,
        )

        # our own
        self.decision_duration = Histogram(
            "moorage_decision_duration_seconds",
            "The same as scheduler_scheduling_algorithm_duration_seconds, in buckets that begin below a millisecond.",
            buckets=_exponential(0.00005, 2, 15),
            registry=registry,
        )
        self.turns = Histogram(
            "moorage_loop_turn_seconds",
            "How long the scheduling loop held the event loop in one turn.",
            buckets=_TURN_BUCKETS,
            registry=registry,
        )
        self.longest_turn = Gauge(
            "moorage_loop_turn_max_seconds", "The longest turn since the start.", registry=registry
        )
        self.loop_lag = Histogram(
            "moorage_event_loop_lag_seconds",
            "How late a timer of the event loop was, whoever held it.",
            buckets=_TURN_BUCKETS,
            registry=registry,
        )
        self.backlog = Gauge(
            "moorage_loop_backlog", "Events that wait for the scheduling loop.", registry=registry
        )
        self.binds = Counter("moorage_binds", "Bindings by their outcome.", ("outcome",), registry=registry)
        self.bind_duration = Histogram(
            "moorage_bind_duration_seconds",
            "From the decision to the certain end of the binding.",
            buckets=_ATTEMPT_BUCKETS,
            registry=registry,
        )
        self.late_binds = Counter(
            "moorage_late_binds",
            "Bindings that took effect although the lease was lost while they were written.",
            registry=registry,
        )
        self.conditions = Counter(
            "moorage_condition_writes",
            "PodScheduled patches by their outcome.",
            ("outcome",),
            registry=registry,
        )
        self.event_lag = Histogram(
            "moorage_event_lag_seconds",
            "How long after it was recorded an Event was in the cluster.",
            buckets=_ATTEMPT_BUCKETS,
            registry=registry,
        )
        self.event_drops = Counter(
            "moorage_events_dropped", "Events not written, by the reason.", ("reason",), registry=registry
        )
        self.watch_streams = Gauge(
            "moorage_watch_streams",
            "Watch streams opened since the start.",
            ("resource",),
            registry=registry,
        )
        self.watch_lists = Gauge(
            "moorage_watch_lists",
            "Complete lists taken since the start.",
            ("resource",),
            registry=registry,
        )
        self.watch_age = Gauge(
            "moorage_watch_age_seconds",
            "Seconds since a watch was last heard of.",
            ("resource",),
            registry=registry,
        )
        self.malformed = Counter(
            "moorage_malformed_objects", "Objects that could not be read.", ("resource",), registry=registry
        )
        self.config_reads = Counter(
            "moorage_config_changes",
            "New contents of the configuration file, by whether they were taken over.",
            ("outcome",),
            registry=registry,
        )
        self.config_stale = Gauge(
            "moorage_config_stale",
            "1 while the configuration file cannot be used and an earlier one is in force.",
            registry=registry,
        )
        self.extender_duration = Histogram(
            "moorage_extender_call_duration_seconds",
            "Calls of the configuration's extenders.",
            ("extender", "verb", "outcome"),
            buckets=_ATTEMPT_BUCKETS,
            registry=registry,
        )
        self.policies = Gauge(
            "moorage_policies",
            "Policies of which a generation is in force, and those whose newest generation was refused.",
            ("state",),
            registry=registry,
        )
        self.policy_held = Gauge(
            "moorage_policy_held_pods", "Pods that wait for a window of their policies.", registry=registry
        )
        self.policy_status = Counter(
            "moorage_policy_status_writes",
            "Writes of the status of policies by their outcome.",
            ("outcome",),
            registry=registry,
        )
        self.usage_polls = Counter(
            "moorage_node_metrics_polls",
            "Times that metrics.k8s.io was asked what nodes use, by the outcome.",
            ("outcome",),
            registry=registry,
        )
        self.policy_audits = Counter(
            "moorage_policy_audit_decisions",
            "Decisions made once more as if a policy in Audit mode were in force, by whether they differ.",
            ("policy", "differs"),
            registry=registry,
        )
        self.leading = Gauge("moorage_leading", "1 while this replica may schedule.", registry=registry)
        build = Gauge("moorage_build_info", "The version that runs.", ("version",), registry=registry)
        build.labels(__version__).set(1)
        for result in AttemptResult:
            self.attempts.labels(result.value, "moorage")
        for outcome in ("bound", *(failure.value for failure in BindFailure)):
            self.binds.labels(outcome)

    # -- the loop --------------------------------------------------------------------------------

    def turn(self, seconds: float) -> None:
        """The loop held the event loop for so long."""
        self.turns.observe(seconds)
        if seconds > self._longest_turn:
            self._longest_turn = seconds
            self.longest_turn.set(seconds)

    def cycle(self, instructions: Sequence[Instruction], seconds: float) -> None:
        """One step of the engine led to these instructions."""
        for instruction in instructions:
            if isinstance(instruction, Audited):
                self.policy_audits.labels(instruction.policy.key, str(instruction.differs).lower()).inc()
            if not isinstance(instruction, Attempted):
                continue
            self.algorithm_duration.observe(seconds)
            self.decision_duration.observe(seconds)
            if instruction.result is AttemptResult.SCHEDULED:
                chosen = _Chosen(instruction, time.perf_counter() - seconds)
                self._in_flight[instruction.ref.uid] = chosen
                if len(self._in_flight) > _MOST_IN_FLIGHT:
                    del self._in_flight[next(iter(self._in_flight))]
            else:
                self._count(instruction.result, instruction.scheduler_name, seconds)

    def profile_of(self, uid: str) -> str | None:
        """The profile of a pod that is being bound, None if that is not known."""
        chosen = self._in_flight.get(uid)
        return None if chosen is None else chosen.attempted.scheduler_name

    def bound(self, result: BindSucceeded | BindFailed, seconds: float) -> None:
        """A binding ended."""
        chosen = self._in_flight.pop(result.ref.uid, None)
        self.bind_duration.observe(seconds)
        if isinstance(result, BindSucceeded):
            self.binds.labels("bound").inc()
            if chosen is not None:
                self._scheduled(chosen)
            return
        self.binds.labels(result.failure.value).inc()
        # A stale choice or a lost lease is no error: the pod is tried again at once, here or elsewhere.
        if chosen is not None and result.failure not in (BindFailure.STALE, BindFailure.NOT_LEADER):
            taken = time.perf_counter() - chosen.started
            self._count(AttemptResult.ERROR, chosen.attempted.scheduler_name, taken)

    def _scheduled(self, chosen: _Chosen) -> None:
        attempted = chosen.attempted
        taken = time.perf_counter() - chosen.started
        self._count(AttemptResult.SCHEDULED, attempted.scheduler_name, taken)
        many = attempted.attempts >= _MOST_ATTEMPTS
        label = f"{_MOST_ATTEMPTS}+" if many else str(attempted.attempts)
        self.sli_duration.labels(label).observe(max(0.0, self._clock.now() - attempted.added))
        self.pod_attempts.observe(attempted.attempts)

    def _count(self, result: AttemptResult, profile: str, seconds: float) -> None:
        self.attempts.labels(result.value, profile).inc()
        self.attempt_duration.labels(result.value, profile).observe(seconds)

    def config_read(self, *, accepted: bool) -> None:
        """The configuration file has changed."""
        self.config_reads.labels("accepted" if accepted else "refused").inc()
        self.config_stale.set(not accepted)

    def extender_called(self, extender: str, verb: str, outcome: str, seconds: float) -> None:
        """A call of an extender ended."""
        self.extender_duration.labels(extender, verb, outcome).observe(seconds)

    # -- the writers -----------------------------------------------------------------------------

    def late(self) -> None:
        """A binding took effect after the lease was lost."""
        self.late_binds.inc()

    def condition_written(self, outcome: str) -> None:
        """A write of a condition ended."""
        self.conditions.labels(outcome).inc()

    def recorded(self, lag: float) -> None:
        """An Event is in the cluster."""
        self.event_lag.observe(lag)

    def record_dropped(self, why: str) -> None:
        """An Event is not written."""
        self.event_drops.labels(why).inc()

    def object_malformed(self, resource: str) -> None:
        """An object could not be read."""
        self.malformed.labels(resource).inc()

    def policy_status_written(self, outcome: str) -> None:
        """A write of a policy's status ended."""
        self.policy_status.labels(outcome).inc()

    def usage_polled(self, outcome: str) -> None:
        """metrics.k8s.io was asked."""
        self.usage_polls.labels(outcome).inc()

    def policy_gone(self, ref: PolicyRef) -> None:
        """A policy is gone, and its samples with it."""
        for differs in ("true", "false"):
            with contextlib.suppress(KeyError):
                self.policy_audits.remove(ref.key, differs)

    # -- at the scrape ---------------------------------------------------------------------------

    def on_scrape(self, refresh: Callable[[], None]) -> None:
        """Call this before each exposition, to set gauges."""
        self._refreshers.append(refresh)

    def engine_stats(self, stats: Mapping[str, object]) -> None:
        """Set the gauges that the engine's figures belong to."""
        for queue in _QUEUES:
            self.pending.labels(queue).set(_number(stats.get(f"pending_{queue}")))
        for kind, key in _CACHE_SIZES.items():
            self.cache_size.labels(kind).set(_number(stats.get(key)))

    def count_policies(self, *, in_force: int, refused: int) -> None:
        """Set the gauges of policies."""
        self.policies.labels("in_force").set(in_force)
        self.policies.labels("refused").set(refused)

    def exposition(self) -> bytes:
        """All metrics as the text that Prometheus reads."""
        for refresh in self._refreshers:
            refresh()
        return generate_latest(self.registry)


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
