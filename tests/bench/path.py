"""The whole path on a real control plane: one workload, one contestant, a control plane of their own."""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from tests.bench.api import Api
from tests.bench.contestants import SCHEDULER_NAMES, Contestant, Telling, Usage, running
from tests.bench.objects import Obj, node
from tests.bench.placement import Placement, judge
from tests.bench.sightings import BOUND, Sightings
from tests.bench.workloads import ASIDE, COUNTED, PACE, Mode, Size, Workload, counted
from tests.controlplane.controlplane import ControlPlane

_PODS, _EVENTS = "/api/v1/pods", "/apis/events.k8s.io/v1/events"
#: Within so many seconds all pods must be bound; if no Event comes for so long, no more are expected.
PATIENCE = 900.0
_QUIET = 5.0


@dataclass(frozen=True)
class Latency:
    """From a pod's creation to its binding, in milliseconds."""

    p50: float
    p90: float
    p99: float


@dataclass(frozen=True)
class Events:
    """Counted pods with an Event Scheduled in the end, and how long after the last binding Events still came (s)."""

    scheduled: int
    behind: float


@dataclass(frozen=True)
class Run:
    """What came of one run.

    ``seconds`` is what the rate is taken from (see ``Mode``), ``from_start`` the time from the start of the process to
    the last binding, ``setup`` how long it took to make the cluster.  ``usage`` counts from the start of the process
    to the last binding, ``settled`` until the Events were written, too.  ``evicted`` pods were preempted.  ``load`` is
    the machine's load average before the run: above the number of processors, something else was running.
    """

    workload: str
    contestant: str
    nodes: int
    pods: int
    setup: float
    seconds: float
    from_start: float
    usage: Usage
    settled: Usage
    latency: Latency | None
    placement: Placement
    evicted: int
    events: Events
    telling: Telling | None
    load: float

    @property
    def rate(self) -> float:
        """Pods a second."""
        return self.pods / self.seconds if self.seconds else 0.0


def measure(workload: Workload, contestant: str, size: Size) -> Run:
    """Run it; TimeoutError or RuntimeError if not all pods are bound."""
    load = os.getloadavg()[0]
    with ControlPlane() as plane:
        return asyncio.run(_measure(plane, workload, contestant, size, load))


async def _measure(plane: ControlPlane, workload: Workload, contestant: str, size: Size, load: float) -> Run:
    scheduler = SCHEDULER_NAMES[contestant]
    pods = [_asking(pod, scheduler) for pod in counted(workload, size)]
    async with AsyncExitStack() as stack:
        api = await stack.enter_async_context(Api.of(plane))
        began = time.monotonic()
        await _create(api, workload, size, scheduler)
        aside = await api.count(_PODS)
        if workload.mode is Mode.BACKLOG:
            await api.create_all(pods)
        setup = time.monotonic() - began
        bound = await stack.enter_async_context(Sightings(api, size.pods, BOUND))
        beside = workload.beside(api, scheduler) if workload.beside else asyncio.Event().wait()
        acting = await stack.enter_async_context(_meanwhile(beside))
        names = [(pod["metadata"]["namespace"], pod["metadata"]["name"]) for pod in pods]
        started = time.monotonic()
        scheduling = await stack.enter_async_context(running(contestant, plane, names, size.nodes))
        created: dict[str, float] = {}
        first = time.monotonic()
        if workload.mode is Mode.ARRIVAL:
            await api.create_all(pods)
        elif workload.mode is Mode.PACED:
            created = await _pace(api, pods)
        await _wait(bound, scheduling, acting)
        usage = scheduling.usage()
        last = max(bound.times.values())
        if workload.mode is Mode.BACKLOG:
            first = min(bound.times.values())
        acting.cancel()
        behind = await _until_quiet(api, last)
        settled, telling = scheduling.usage(), await asyncio.to_thread(scheduling.telling)
        found = await api.items(_PODS)
        left = sum(pod["metadata"]["name"].startswith(ASIDE) for pod in found)
        return Run(
            workload=workload.name,
            contestant=contestant,
            nodes=size.nodes,
            pods=size.pods,
            setup=setup,
            seconds=last - first,
            from_start=last - started,
            usage=usage,
            settled=settled,
            latency=_latency(created, bound.times) if created else None,
            placement=judge(found, size.nodes),
            evicted=aside - left if workload.beside is None else 0,
            events=Events(await _scheduled(api), behind),
            telling=telling,
            load=load,
        )


def _asking(pod: Obj, scheduler: str) -> Obj:
    pod["spec"]["schedulerName"] = scheduler
    return pod


async def _create(api: Api, workload: Workload, size: Size, scheduler: str) -> None:
    """The cluster as it is before: nodes, then what the workload names, kind by kind."""
    await api.create_all(map(node, range(size.nodes)))
    for kind, group in itertools.groupby(workload.before(size), key=lambda obj: obj["kind"]):
        if kind == "PriorityClass":  # waits until it is in force
            await asyncio.to_thread(api.admin.apply, list(group))
        elif kind == "Pod":
            await api.create_all(_asking(pod, scheduler) for pod in group)
        else:
            await api.create_all(group)


@asynccontextmanager
async def _meanwhile(action: Coroutine[Any, Any, object]) -> AsyncIterator[asyncio.Task[object]]:
    """Have something act until it is cancelled, or the context ends."""
    task = asyncio.create_task(action, name="beside")
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _pace(api: Api, pods: list[Obj]) -> dict[str, float]:
    """Create the pods at a steady pace, whether or not earlier ones are through; when each was seen."""
    async with Sightings(api, len(pods)) as created:
        began = time.monotonic()
        async with asyncio.TaskGroup() as tasks:
            for index, pod in enumerate(pods):
                await asyncio.sleep(began + index / PACE - time.monotonic())
                tasks.create_task(api.create(pod))
        await created.wait(PATIENCE)
        return created.times


def _latency(created: dict[str, float], bound: dict[str, float]) -> Latency:
    """Both times are taken on watches of the same kind, so what the watches take cancels out."""
    waits = sorted((bound[name] - created[name]) * 1e3 for name in bound)
    p50, p90, p99 = (waits[int(len(waits) * share)] for share in (0.5, 0.9, 0.99))
    return Latency(p50, p90, p99)


async def _wait(bound: Sightings, scheduling: Contestant, acting: asyncio.Task[object]) -> None:
    """Until all pods are bound; what the scheduler, or what acts beside it, fails of, the run fails of."""
    waiting = asyncio.create_task(bound.wait(PATIENCE))
    try:
        while not waiting.done():
            await asyncio.wait((waiting, acting), timeout=1, return_when=asyncio.FIRST_COMPLETED)
            scheduling.check()
            if acting.done():
                acting.result()
                raise RuntimeError("what acts beside the scheduler has ended")
    finally:
        waiting.cancel()
    await waiting


async def _until_quiet(api: Api, last: float) -> float:
    """Wait until no more Events come; how long after the last binding they did."""
    count, grown = await api.count(_EVENTS), time.monotonic()
    while time.monotonic() - grown < _QUIET:
        await asyncio.sleep(0.5)
        if (now := await api.count(_EVENTS)) > count:
            count, grown = now, time.monotonic()
    return max(0.0, grown - last)


async def _scheduled(api: Api) -> int:
    """How many of the counted pods have an Event that they were scheduled."""
    found = await api.items("/api/v1/events", fieldSelector="reason=Scheduled")
    names = {event["involvedObject"]["name"] for event in found}
    return sum(name.startswith(COUNTED) for name in names)
