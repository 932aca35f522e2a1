"""Metrics whose values others keep: they are read when Prometheus asks, and cost nothing before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

_PairCounts = Mapping[tuple[str, str], int]


@dataclass(frozen=True, slots=True)
class QueueReading:
    """``incoming`` by (queue, event), ``rejected`` by (plugin, profile), ``binding``: bindings being written."""

    incoming: _PairCounts
    rejected: _PairCounts
    binding: int


class QueueCollector(Collector):
    """What the scheduling queue counts."""

    def __init__(self, read: Callable[[], QueueReading]) -> None:
        self._read = read

    def collect(self) -> Iterable[Metric]:
        """The families, with what is so now."""
        reading = self._read()
        incoming = CounterMetricFamily(
            "scheduler_queue_incoming_pods",
            "Number of pods added to scheduling queues by event and queue type.",
            labels=("queue", "event"),
        )
        for labels, number in reading.incoming.items():
            incoming.add_metric(labels, number)
        yield incoming
        rejected = GaugeMetricFamily(
            "scheduler_unschedulable_pods",
            "The number of unschedulable pods broken down by plugin name. A pod will increment the gauge for all "
            "plugins that caused it to not schedule and so this metric have meaning only when broken down by plugin.",
            labels=("plugin", "profile"),
        )
        for labels, number in reading.rejected.items():
            rejected.add_metric(labels, number)
        yield rejected
        running = GaugeMetricFamily(
            "scheduler_goroutines",
            "Number of running tasks split by the work they do such as binding.",
            labels=("operation",),
        )
        running.add_metric(("binding",), reading.binding)
        yield running


@dataclass(frozen=True, slots=True)
class LeaseReading:
    """``holder`` is the replica that leads as far as is known, "" if that is not known; ``valid_for`` in seconds."""

    name: str
    holder: str
    leads: bool
    terms: int
    valid_for: float


class LeaseCollector(Collector):
    """The lease as this replica sees it; without a lease there is nothing to tell."""

    def __init__(self, read: Callable[[], LeaseReading | None]) -> None:
        self._read = read

    def collect(self) -> Iterable[Metric]:
        """The families, with what is so now."""
        reading = self._read()
        status = GaugeMetricFamily(
            "leader_election_master_status",
            "Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates master. "
            "'name' is the string used to identify the lease. Please make sure to group by name.",
            labels=("name",),
        )
        holder = GaugeMetricFamily(
            "moorage_lease_holder_info",
            "Who holds the lease, by this replica's last look.",
            labels=("holder",),
        )
        valid = GaugeMetricFamily(
            "moorage_lease_valid_seconds", "For how long the lease is surely ours; 0 for a standby."
        )
        terms = CounterMetricFamily("moorage_lease_terms", "How often this replica began to lead.")
        if reading is not None:
            status.add_metric((reading.name,), int(reading.leads))
            valid.add_metric((), reading.valid_for)
            terms.add_metric((), reading.terms)
            if reading.holder:
                holder.add_metric((reading.holder,), 1)
        yield from (status, holder, valid, terms)


@dataclass(frozen=True, slots=True)
class OvercommitReading:
    """By resource: how often nodes came to hold too much, and how many do now."""

    seen: Mapping[str, int]
    nodes: Mapping[str, int]


class OvercommitCollector(Collector):
    """Nodes whose pods ask for more than there is."""

    def __init__(self, read: Callable[[], OvercommitReading]) -> None:
        self._read = read

    def collect(self) -> Iterable[Metric]:
        """The families, with what is so now; cpu and memory are always told."""
        reading = self._read()
        seen = CounterMetricFamily(
            "moorage_overcommits",
            "Times that a node was seen to come to hold bound pods that ask for more than it has.",
            labels=("resource",),
        )
        nodes = GaugeMetricFamily(
            "moorage_overcommitted_nodes",
            "Nodes whose pods ask for more than there is.",
            labels=("resource",),
        )
        for resource in sorted({"cpu", "memory", *reading.seen, *reading.nodes}):
            seen.add_metric((resource,), reading.seen.get(resource, 0))
            nodes.add_metric((resource,), reading.nodes.get(resource, 0))
        yield from (seen, nodes)
