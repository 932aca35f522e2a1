"""kube-scheduler's stable and beta metrics: those that there are have its labels and buckets, others are accounted for.

The facts are of ``pkg/scheduler/metrics/metrics.go`` at v1.37.
"""

import re
from pathlib import Path

import pytest

from moorage.adapters.telemetry.collectors import QueueCollector, QueueReading
from moorage.adapters.telemetry.metrics import Metrics
from moorage.adapters.telemetry.observer import Observer
from tests.kit.fakes import FakeClock

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "observability.md"

#: Type, labels, and the buckets' start, factor and number.
FACTS: dict[str, tuple[str, tuple[str, ...], tuple[float, float, int] | None]] = {
    "schedule_attempts_total": ("counter", ("result", "profile"), None),
    "scheduling_attempt_duration_seconds": ("histogram", ("result", "profile"), (0.001, 2, 15)),
    "scheduling_algorithm_duration_seconds": ("histogram", (), (0.001, 2, 15)),
    "preemption_victims": ("histogram", (), (1, 2, 7)),
    "preemption_attempts_total": ("counter", (), None),
    "pending_pods": ("gauge", ("queue",), None),
    "goroutines": ("gauge", ("operation",), None),
    "pod_scheduling_sli_duration_seconds": ("histogram", ("attempts",), (0.01, 2, 20)),
    "pod_scheduling_attempts": ("histogram", (), (1, 2, 5)),
    "framework_extension_point_duration_seconds": (
        "histogram",
        ("extension_point", "status", "profile"),
        (0.0001, 2, 12),
    ),
    "plugin_execution_duration_seconds": (
        "histogram",
        ("plugin", "extension_point", "status"),
        (0.00001, 1.5, 20),
    ),
    "queue_incoming_pods_total": ("counter", ("queue", "event"), None),
    "permit_wait_duration_seconds": ("histogram", ("result",), (0.001, 2, 15)),
    "unschedulable_pods": ("gauge", ("plugin", "profile"), None),
    "plugin_evaluation_total": ("counter", ("plugin", "extension_point", "profile"), None),
}
LEFT_OUT = {"permit_wait_duration_seconds", "plugin_evaluation_total"}


@pytest.fixture(scope="module")
def families():
    """Every family of the scheduler's, by name."""
    metrics = Metrics(FakeClock())
    Observer(metrics)
    metrics.registry.register(QueueCollector(lambda: QueueReading({}, {}, 0)))
    found = {}
    for family in metrics.registry.collect():
        name = f"{family.name}_total" if family.type == "counter" else family.name
        found[name] = family
    collectors = {
        name: collector
        for name, collector in metrics.registry._names_to_collectors.items()
        if hasattr(collector, "_labelnames")
    }
    return found, collectors


@pytest.mark.parametrize("name", sorted(FACTS.keys() - LEFT_OUT))
def test_it_is_as_in_kube_scheduler(families, name):
    found, collectors = families
    kind, labels, buckets = FACTS[name]
    family = found[f"scheduler_{name}"]
    assert family.type == kind
    collector = collectors.get(f"scheduler_{name}".removesuffix("_total"))
    if collector is not None:
        assert collector._labelnames == labels
    if buckets is not None:
        start, factor, number = buckets
        expected = [start * factor**index for index in range(number)]
        assert collector._kwargs["buckets"] == pytest.approx(expected)


def test_what_is_left_out_is_said(families):
    found, _ = families
    text = DOCUMENT.read_text().split("two are left out:")[1].split("\n\n")[0]
    assert set(re.findall(r"`scheduler_(\w+)`", text)) == LEFT_OUT
    assert not {f"scheduler_{name}" for name in LEFT_OUT} & found.keys()
