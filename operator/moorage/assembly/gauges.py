"""Figures that are read when they are asked for, and the lag of the event loop."""

from __future__ import annotations

import asyncio

from moorage.adapters.kube.cluster_state import ClusterState
from moorage.adapters.telemetry.metrics import Metrics
from moorage.core.engine import Engine
from moorage.runtime.loop import SchedulingLoop

_LAG_EVERY = 0.1


def refresh_gauges(
    metrics: Metrics, engine: Engine, loop: SchedulingLoop, state: ClusterState, *, leading: bool
) -> None:
    """Set the gauges to what is so now."""
    metrics.engine_stats(engine.stats())
    metrics.backlog.set(loop.backlog)
    metrics.policy_held.set(sum(bool(queued.held_by) for queued in engine.queue.entries()))
    metrics.leading.set(leading)
    for resource, reflector in state.reflectors.items():
        metrics.watch_streams.labels(resource).set(reflector.streams)
        metrics.watch_lists.labels(resource).set(reflector.lists)
        metrics.watch_age.labels(resource).set(reflector.age)


async def measure_lag(metrics: Metrics) -> None:
    """Observe, for ever, by how much the event loop is late."""
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + _LAG_EVERY
        await asyncio.sleep(_LAG_EVERY)
        metrics.loop_lag.observe(max(0.0, loop.time() - due))
