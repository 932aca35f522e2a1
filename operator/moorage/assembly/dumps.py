"""What the engine knows and what waits, line by line, for /debug.

A large cluster's dump takes longer than a turn of the event loop may, so it is made in slices: lines are right at
the moment they are made, and not all at one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from moorage.adapters.kube.client import KubeClient
from moorage.adapters.kube.comparison import Belief, Comparison
from moorage.adapters.kube.errors import KubeError
from moorage.adapters.telemetry.debug.pages import Dump
from moorage.core.engine import Engine
from moorage.core.model.pod import Pod
from moorage.core.queue.scheduling_queue import QueuedPod
from moorage.runtime.ports import Clock

Line = Mapping[str, Any]

_SLICE = 50


def dumps_of(engine: Engine, client: KubeClient, clock: Clock | None = None) -> dict[str, Dump]:
    """The pages that ``adapters.telemetry.debug.pages.debug_app`` is to have.

    Without a clock nobody waits: the engine only answers, as the extender's does, and has no queue to show.
    """
    names: Callable[[], tuple[str, ...]] = (lambda: ()) if clock is None else (lambda: tuple(engine.runners))
    comparison = Comparison(client, lambda: belief(engine), names)
    dumps: dict[str, Dump] = {
        "cache": lambda: cache_lines(engine),
        "compare": lambda: comparison_lines(comparison),
    }
    if clock is not None:
        dumps["queue"] = lambda: queue_lines(engine, clock)
    return dumps


def belief(engine: Engine) -> Belief:
    """What the engine takes for true now."""
    states = list(engine.cache.states())
    return Belief(
        nodes=frozenset(engine.snapshot.node_names()),
        pods={state.pod.uid: (state.pod.key, state.node_name) for state in states},
        assumed=frozenset(state.pod.uid for state in states if state.assumed),
        pending={queued.pod.uid: queued.pod.key for queued in engine.queue.entries()},
    )


async def cache_lines(engine: Engine) -> AsyncIterator[Line]:
    """A line for each node, by name: what it has, what is asked for, which pods are on it; amounts in base units."""
    for index, name in enumerate(sorted(engine.snapshot.node_names())):
        if index % _SLICE == 0:
            await asyncio.sleep(0)
        row = engine.snapshot.row_of(name)
        if row is None:
            continue  # gone meanwhile
        snapshot = engine.snapshot
        node = snapshot.node_at(row)
        requested = {resource: snapshot.requested(resource).item(row) for resource in snapshot.resources}
        yield {
            "node": name,
            "uid": node.uid,
            "unschedulable": node.unschedulable,
            "taints": [f"{taint.key}:{taint.effect}" for taint in node.taints],
            "allocatable": dict(node.allocatable),
            "requested": {resource: amount for resource, amount in requested.items() if amount},
            "pods": [_placed(engine, pod) for pod in engine.cache.pods_on(name)],
            "nominated": [pod.key for pod in engine.nominator.promised(name)],
        }


def _placed(engine: Engine, pod: Pod) -> Line:
    state = engine.cache.state(pod.uid)
    return {
        "pod": pod.key,
        "uid": pod.uid,
        "priority": pod.priority,
        "assumed": state is not None and state.assumed,
        "requests": dict(pod.requests.amounts),
    }


async def queue_lines(engine: Engine, clock: Clock) -> AsyncIterator[Line]:
    """A line for each pod in the queue, in order of arrival; times are seconds from now."""
    for index, queued in enumerate(list(engine.queue.entries())):
        if index % _SLICE == 0:
            await asyncio.sleep(0)
        if engine.queue.get(queued.pod.uid) is queued:
            yield _queued(engine, queued, clock.now())


def _queued(engine: Engine, queued: QueuedPod, now: float) -> Line:
    pod = queued.pod
    return {
        "pod": pod.key,
        "uid": pod.uid,
        "scheduler": pod.spec.scheduler_name,
        "priority": pod.priority,
        "queue": queued.place.value,
        "waiting": round(now - queued.added, 3),
        "attempts": queued.attempts,
        "plugins": sorted(queued.rejectors),
        "backoff": round(max(0.0, queued.backoff_until - now), 3),
        "gates": list(pod.gates),
        "held": queued.held_by,
        "policies": [policy.ref.key for policy in queued.policies],
        "nominated": engine.nominator.node_of(pod.uid),
    }


async def comparison_lines(comparison: Comparison) -> AsyncIterator[Line]:
    """A line for each difference from the API server, and one at the end that counts them."""
    try:
        differences = await comparison.carry_out()
    except KubeError as error:
        yield {"error": str(error)}
        return
    for each in differences:
        yield {"kind": each.kind, "what": each.what, "ours": each.ours, "theirs": each.theirs}
    yield {"differences": len(differences)}
