"""Figures of an extender that others call."""

from prometheus_client import CollectorRegistry, generate_latest

from moorage.adapters.telemetry.extender_metrics import ExtenderMetrics


def test_requests_are_counted_by_verb_and_end():
    registry = CollectorRegistry()
    metrics = ExtenderMetrics(registry)
    metrics.answered("filter", 200, "success", 0.003)
    metrics.answered("filter", 200, "success", 0.004)
    metrics.answered("bind", 403, "refused", 0.001)
    text = generate_latest(registry).decode()
    assert 'moorage_extender_requests_total{code="200",outcome="success",verb="filter"} 2.0' in text
    assert 'moorage_extender_requests_total{code="403",outcome="refused",verb="bind"} 1.0' in text
    assert 'moorage_extender_request_duration_seconds_bucket{le="0.005",verb="filter"} 2.0' in text
