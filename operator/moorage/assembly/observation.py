"""Lets metrics read what the engine, the loop and the lease know, and tells of overcommitted nodes."""

from __future__ import annotations

import asyncio
import logging

from moorage.adapters.kube.leadership import Leadership
from moorage.adapters.telemetry.collectors import (
    LeaseCollector,
    LeaseReading,
    OvercommitCollector,
    OvercommitReading,
    QueueCollector,
    QueueReading,
)
from moorage.adapters.telemetry.metrics import Metrics
from moorage.core.engine import Engine
from moorage.runtime.loop import SchedulingLoop
from moorage.runtime.settings import Settings

logger = logging.getLogger(__name__)

_LOOK_EVERY = 1.0


def observe(
    metrics: Metrics, engine: Engine, loop: SchedulingLoop, leadership: Leadership, settings: Settings
) -> None:
    """Add what is read at each scrape."""

    def queue() -> QueueReading:
        figures = engine.queue.figures
        return QueueReading(figures.incoming, figures.rejected, loop.binding.in_flight)

    def lease() -> LeaseReading | None:
        if not settings.leader_elect:
            return None
        return LeaseReading(
            name=settings.lease_name,
            holder=leadership.holder,
            leads=leadership.holds(),
            terms=leadership.terms,
            valid_for=leadership.valid_for,
        )

    def overcommits() -> OvercommitReading:
        return OvercommitReading(engine.overcommits.seen, engine.overcommits.nodes())

    metrics.registry.register(QueueCollector(queue))
    metrics.registry.register(LeaseCollector(lease))
    metrics.registry.register(OvercommitCollector(overcommits))


async def tell_of_overcommits(engine: Engine) -> None:
    """Log, for ever, which nodes were seen to come to hold too much."""
    recent = engine.overcommits.recent
    while True:
        while recent:
            found = recent.popleft()
            logger.warning(
                "A node is overcommitted: bound pods ask for %d of %d %s",
                found.requested,
                found.allocatable,
                found.resource,
                extra={"node": found.node_name, "resource": found.resource},
            )
        await asyncio.sleep(_LOOK_EVERY)
