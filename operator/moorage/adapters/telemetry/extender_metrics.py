"""Metrics of an extender that others call."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram

_BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1.0, 5.0)


class ExtenderMetrics:
    """By verb: how it ended, and how long it took from the head of the request to the answer."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = Counter(
            "moorage_extender_requests",
            "Requests to the extender, by the verb, the HTTP status, and how they ended: success, error (no answer, or "
            "a binding that was refused), malformed, refused (not allowed).",
            ("verb", "code", "outcome"),
            registry=registry,
        )
        self._duration = Histogram(
            "moorage_extender_request_duration_seconds",
            "Time to answer, by the verb, reading the request included",
            ("verb",),
            buckets=_BUCKETS,
            registry=registry,
        )

    def answered(self, verb: str, code: int, outcome: str, seconds: float) -> None:
        """A request has been answered."""
        self._requests.labels(verb, str(code), outcome).inc()
        self._duration.labels(verb).observe(seconds)
