"""Metrics that are read at the scrape."""

from prometheus_client import CollectorRegistry, generate_latest

from moorage.adapters.telemetry.collectors import (
    LeaseCollector,
    LeaseReading,
    OvercommitCollector,
    OvercommitReading,
    QueueCollector,
    QueueReading,
)


def scrape(collector):
    registry = CollectorRegistry()
    registry.register(collector)
    return generate_latest(registry).decode()


def test_the_queue():
    text = scrape(
        QueueCollector(lambda: QueueReading({("active", "NodeAdd"): 3}, {("Fit", "moorage"): 2}, 4))
    )
    assert 'scheduler_queue_incoming_pods_total{event="NodeAdd",queue="active"} 3.0' in text
    assert 'scheduler_unschedulable_pods{plugin="Fit",profile="moorage"} 2.0' in text
    assert 'scheduler_goroutines{operation="binding"} 4.0' in text


def test_the_lease_of_a_standby():
    text = scrape(LeaseCollector(lambda: LeaseReading("moorage", "other", False, 0, 0.0)))
    assert 'leader_election_master_status{name="moorage"} 0.0' in text
    assert 'moorage_lease_holder_info{holder="other"} 1.0' in text
    assert "moorage_lease_valid_seconds 0.0" in text
    assert "moorage_lease_terms_total 0.0" in text


def test_without_a_lease_there_are_no_values():
    text = scrape(LeaseCollector(lambda: None))
    assert [line for line in text.splitlines() if not line.startswith("#")] == []


def test_overcommitted_nodes():
    text = scrape(OvercommitCollector(lambda: OvercommitReading({"cpu": 2}, {"example.com/gpu": 1})))
    assert 'moorage_overcommits_total{resource="cpu"} 2.0' in text
    assert 'moorage_overcommits_total{resource="memory"} 0.0' in text
    assert 'moorage_overcommitted_nodes{resource="example.com/gpu"} 1.0' in text
