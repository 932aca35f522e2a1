"""Metrics about plugins, phases and preemption, under kube-scheduler's names where it has some."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from prometheus_client import CollectorRegistry, Counter, Histogram

from moorage.adapters.telemetry.step_timer import Call

#: The extension points of the metrics, by what the core calls them; others are nobody's label.
_POINTS = {
    "PreFilter": "PreFilter",
    "Filter": "Filter",
    "PreFilterExtension": "PreFilterExtensionAddPod",  # pods come and go in one call
    "PostFilter": "PostFilter",
    "PreScore": "PreScore",
    "Score": "Score",
    "NormalizeScore": "ScoreExtensionNormalize",
    "Reserve": "Reserve",
    "Unreserve": "Unreserve",
    "Permit": "Permit",
    "PreBind": "PreBind",
}
#: Worse ones later: an extension point ends as the worst of its plugins does.
_STATUSES = ("Skip", "Success", "Wait", "Unschedulable", "UnschedulableAndUnresolvable", "Error")


def _exponential(start: float, factor: float, count: int) -> list[float]:
    return [start * factor**i for i in range(count)]


class FrameworkMetrics:
    """What a step was made of.  Durations are those of sampled steps (``step_timer.SHARE``)."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.extension_points = Histogram(
            "scheduler_framework_extension_point_duration_seconds",
            "Latency for running all plugins of a specific extension point.",
            ("extension_point", "status", "profile"),
            buckets=_exponential(0.0001, 2, 12),
            registry=registry,
        )
        self.plugins = Histogram(
            "scheduler_plugin_execution_duration_seconds",
            "Duration for running a plugin at a specific extension point.",
            ("plugin", "extension_point", "status"),
            buckets=_exponential(0.00001, 1.5, 20),
            registry=registry,
        )
        self.preemption_attempts = Counter(
            "scheduler_preemption_attempts",
            "Total preemption attempts in the cluster till now",
            registry=registry,
        )
        self.preemption_victims = Histogram(
            "scheduler_preemption_victims",
            "Number of selected preemption victims for preemption initiated by a single pod",
            buckets=_exponential(1, 2, 7),
            registry=registry,
        )
        self.phases = Histogram(
            "moorage_decision_phase_seconds",
            "The parts of sampled decisions.",
            ("phase",),
            buckets=_exponential(0.00001, 2, 15),
            registry=registry,
        )
        self.slow = Counter(
            "moorage_slow_decisions", "Decisions that took longer than --slow-decision.", registry=registry
        )
        # Looking a child up by its labels takes as long as observing; there are only some dozens.
        self._plugin_children: dict[tuple[str, str, str], Histogram] = {}

    def sampled(self, calls: Sequence[Call], phases: Mapping[str, float], profile: str) -> None:
        """A sampled step of an attempt has ended."""
        points: dict[str, tuple[float, int]] = {}
        for call in calls:
            point = _POINTS.get(call.point)
            if point is None:
                continue
            self._plugin(call.plugin, point, call.status).observe(call.seconds)
            if not call.nested:
                seconds, worst = points.get(point, (0.0, 0))
                points[point] = seconds + call.seconds, max(worst, _STATUSES.index(call.status))
        for point, (seconds, worst) in points.items():
            self.extension_points.labels(point, _STATUSES[max(worst, 1)], profile).observe(seconds)
        for phase, seconds in phases.items():
            self.phases.labels(phase).observe(seconds)

    def bound(self, profile: str, seconds: float, *, ok: bool) -> None:
        """A binding ended, so long after it was decided."""
        self.extension_points.labels("Bind", "Success" if ok else "Error", profile).observe(seconds)

    def _plugin(self, plugin: str, point: str, status: str) -> Histogram:
        key = plugin, point, status
        child = self._plugin_children.get(key)
        if child is None:
            child = self._plugin_children[key] = self.plugins.labels(plugin, point, status)
        return child
