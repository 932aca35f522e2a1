"""The composition root: builds the objects of a running scheduler, starts them in order and stops them in order.

The only module that knows everyone.  Kopf's handlers (``handlers.py``) and ``moorage run`` both use it.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import socket
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from moorage.adapters.extender.bind import RoutedBinder
from moorage.adapters.extender.client import ExtenderClient
from moorage.adapters.extender.endpoint import ExtenderEndpoint
from moorage.adapters.kube.bind import KubeBinder
from moorage.adapters.kube.client import KubeClient
from moorage.adapters.kube.cluster_state import ClusterState
from moorage.adapters.kube.convert import Converter
from moorage.adapters.kube.credentials import Credentials, own_namespace
from moorage.adapters.kube.errors import KubeError
from moorage.adapters.kube.leadership import Leadership
from moorage.adapters.kube.lease import LeaseSettings
from moorage.adapters.kube.pending import PendingLister, list_pending, pending_selector
from moorage.adapters.kube.permissions import check, needed
from moorage.adapters.kube.preempt import KubeEvictor
from moorage.adapters.kube.raw_objects import RawObjects
from moorage.adapters.kube.read import KubePodReader
from moorage.adapters.kube.record import KubeRecorder
from moorage.adapters.kube.status import KubeStatusWriter
from moorage.adapters.kube.volumes import KubeVolumeWriter
from moorage.adapters.kube.watch import Pace
from moorage.adapters.kube.writes import Writer
from moorage.adapters.telemetry.endpoint import Endpoint
from moorage.adapters.telemetry.metrics import Metrics
from moorage.configuration.file import ConfigFile
from moorage.configuration.read import ConfigError, Configuration
from moorage.core.engine import Engine, EngineConfig
from moorage.core.model.events import Event, PodBound, PodLeftPending, PodPending, Reconfigured
from moorage.core.model.extender import Verb
from moorage.core.model.pod import PodRef
from moorage.core.profile import DEFAULT_SCHEDULER_NAME, Profile, default_profile
from moorage.core.queue.scheduling_queue import QueueSettings
from moorage.runtime.clock import SteadyClock
from moorage.runtime.first_sight import FirstSight
from moorage.runtime.loop import SchedulingLoop
from moorage.runtime.settings import Settings
from moorage.runtime.supervisor import Supervisor

logger = logging.getLogger(__name__)

#: How long an API server that does not answer is waited for at the start.
_START_PATIENCE = 60.0
_GRACE = 10.0
#: Connections for events and conditions.
_WRITES = 16
#: The loop and the reflectors may all have something to do in one turn of the event loop, which is to
#: stay under 50 ms.
_TURN, _SLICE = 0.015, 0.008
_STUCK_LOOP = 15.0
_FIRST_LIST_RETRY = 1.0
_LAG_EVERY = 0.1


class StartupError(Exception):
    """Moorage cannot run like this; the text says what to do."""


class App:
    """One scheduler.  ``on_failure`` is called when it has broken down and should be stopped."""

    def __init__(
        self,
        settings: Settings,
        client: KubeClient,
        *,
        off: frozenset[str] = frozenset(),
        on_failure: Callable[[BaseException], None] = lambda _: None,
    ) -> None:
        self.settings = settings
        self._off = off
        clock = SteadyClock()
        self.metrics = Metrics(clock)
        self._config_file = None
        if settings.config is not None:
            self._config_file = ConfigFile(settings.config, apply=self.reconfigure, meter=self.metrics)
        profiles, queue, endpoints = self._configure(self._config_file)
        self._raw = RawObjects(client)
        self._keep(endpoints)
        self._extenders = ExtenderClient(self._raw, endpoints, self.metrics)
        names = tuple(profiles)
        self.names = frozenset(names)
        # Names that come from a file may change with it, and the selector of a stream cannot.
        fixed = settings.scheduler_name or settings.config is None
        self.pending_selector = pending_selector(names if fixed else ())
        self._client = client
        self._bind_writer = Writer(client, limit=settings.max_binds)
        self._writer = Writer(client, limit=_WRITES)
        self._lease_client = client.separate()
        self._supervisor = Supervisor(on_failure)
        self._stopping = False
        self._converter = Converter()
        self.engine = Engine(
            EngineConfig(profiles=profiles, queue=queue, node_ready_guard=settings.node_ready_guard)
        )
        self._first_sight = FirstSight(clock.now)
        reader = KubePodReader(client, self._converter.pod)
        self._leadership = Leadership(
            self._lease_client,
            _lease_settings(settings) if settings.leader_elect else None,
            refresh=lambda: self.state.refresh(),  # noqa: PLW0108 - it is made below
            wake=lambda: self.loop.wake(),  # noqa: PLW0108
            on_lost=self._supervisor.fail,
        )
        binder = KubeBinder(
            self._bind_writer,
            reader,
            holds=self._leadership.holds,
            late=self.metrics.late,
        )
        self._status = KubeStatusWriter(self._writer, reader, clock, count=self.metrics.condition_written)
        self._recorder = KubeRecorder(
            self._writer,
            clock,
            self.metrics,
            controller=names[0],
            instance=f"{names[0]}-{socket.gethostname()}",
            enabled="events" not in off,
        )
        self.loop = SchedulingLoop(
            self.engine,
            binder=RoutedBinder(binder, self._extenders, reader, holds=self._leadership.holds),
            evictor=KubeEvictor(
                client, reader, clock, record=self._recorder.record, holds=self._leadership.holds
            ),
            volumes=KubeVolumeWriter(client, holds=self._leadership.holds),
            status=self._status,
            recorder=self._recorder,
            reader=reader,
            clock=clock,
            meter=self.metrics,
            may_schedule=self._may_schedule,
            max_binds=settings.max_binds,
            turn_budget=_TURN,
            grace=_GRACE,
            extenders=self._extenders,
        )
        self.state = ClusterState(
            client,
            self._converter,
            self._bound_event,
            on_synced=self._synced,
            meter=self.metrics,
            budgets="preemption" not in off,
            workloads="default spreading" not in off,
            pace=Pace(silence=settings.watch_silence, slice=_SLICE),
            raw=self._raw,
        )
        self._pending = PendingLister(
            client,
            self.loop.submit,
            clock,
            selector=self.pending_selector,
            interval=settings.pending_interval,
        )
        self._endpoint = Endpoint(self.metrics, healthy=self.trouble, ready=self.unready)
        self.metrics.on_scrape(self._refresh_gauges)

    @classmethod
    async def create(cls, settings: Settings, *, on_failure: Callable[[BaseException], None]) -> App:
        """Connect and check permissions, then build.  Raises ``StartupError``."""
        try:
            client = await KubeClient.connect(settings.kubeconfig, settings.context, connection_limit=40)
        except KubeError as error:
            raise StartupError(str(error)) from error
        try:
            missing = await _check_permissions(client, settings)
            return cls(settings, client, off=frozenset(missing), on_failure=on_failure)
        except BaseException:
            await client.close()
            raise

    # -- life ------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start everything; returns when it runs, which is before it has synced or leads."""
        if self.settings.metrics_listen is not None:
            await self._listen(self.settings.metrics_listen.host, self.settings.metrics_listen.port)
        start = self._supervisor.start
        start("scheduling loop", self.loop.run())
        start("status writer", self._status.run())
        start("event writer", self._recorder.run())
        start("loop lag", self._measure_lag())
        start("lease", self._leadership.run())
        start("cluster state", self._follow_cluster())
        if self._config_file is not None:
            start("configuration file", self._config_file.run())

    async def stop(self) -> None:
        """Begin nothing more, end what is under way, release the lease, close the connections."""
        self._stopping = True
        self._leadership.step_down()
        self._supervisor.release("scheduling loop")
        self.loop.stop()
        await self._supervisor.join("scheduling loop")
        if self.failure is None:
            await self._recorder.flush(3.0)
            await self._status.flush(2.0)
        await self._supervisor.cancel("lease")
        await self._supervisor.cancel()
        await self._endpoint.stop()
        await self._extenders.close()
        for closable in (self._bind_writer, self._writer, self._lease_client, self._client):
            await closable.close()

    @property
    def failure(self) -> BaseException | None:
        """What it has died of."""
        return self._supervisor.failure

    # -- configuration ---------------------------------------------------------------------------

    def _configure(
        self, file: ConfigFile | None
    ) -> tuple[Mapping[str, Profile], QueueSettings, Sequence[ExtenderEndpoint]]:
        if file is None:
            names = self.settings.scheduler_name or (DEFAULT_SCHEDULER_NAME,)
            return self._allowed({name: default_profile(name) for name in names}), QueueSettings(), ()
        try:
            configuration = file.load()
            self._check_names(configuration)
        except ConfigError as error:
            raise StartupError(str(error)) from error
        file.announce(configuration)
        return self._allowed(configuration.profiles), configuration.queue, configuration.extenders

    def _keep(self, endpoints: Sequence[ExtenderEndpoint]) -> None:
        """Keep the objects that extenders want to see."""
        blind = [endpoint for endpoint in endpoints if not endpoint.node_cache_capable]
        self._raw.keep(
            pending=bool(endpoints),
            nodes=any({Verb.FILTER, Verb.PRIORITIZE} & endpoint.extender.verbs for endpoint in blind),
            bound=any(Verb.PREEMPT in endpoint.extender.verbs for endpoint in blind),
        )

    def _check_names(self, configuration: Configuration) -> None:
        """Names that are given as options, too, must be those of the profiles."""
        given, found = self.settings.scheduler_name, tuple(configuration.profiles)
        if given and set(given) != set(found):
            message = (
                f"the profiles are for {', '.join(found)}, but --scheduler-name says {', '.join(given)}: "
                "leave that option out, or name the same"
            )
            raise ConfigError([("profiles", message)], self.settings.config or "")

    def _allowed(self, profiles: Mapping[str, Profile]) -> Mapping[str, Profile]:
        """The profiles without the plugins that permissions are missing for."""
        without = ("DefaultPreemption",) if "preemption" in self._off else ()
        return {name: profile.without(without) for name, profile in profiles.items()} if without else profiles

    async def reconfigure(self, configuration: Configuration) -> None:
        """Schedule by another configuration from now on.  Raises ``ConfigError`` if that is not possible."""
        self._check_names(configuration)
        self._keep(configuration.extenders)
        await self._extenders.configure(configuration.extenders)
        self.loop.submit(Reconfigured(self._allowed(configuration.profiles), configuration.queue))
        before, self.names = self.names, frozenset(configuration.profiles)
        for name in sorted(self.names - before):
            await self._take_in(name)

    async def _take_in(self, name: str) -> None:
        """Kopf has shown the pods of a new name before, when they were none of ours."""
        while True:
            try:
                pods = await list_pending(self._client, name)
                break
            except KubeError as error:
                logger.warning("The pods that wait for %s cannot be listed now: %s", name, error)
                await asyncio.sleep(2.0)
        for pod in pods:
            self.pod_event(None, pod)

    # -- for the handlers ------------------------------------------------------------------------

    def pod_event(self, kind: str | None, obj: Mapping[str, Any]) -> None:
        """The stream of unscheduled pods shows a pod, or its leaving (``DELETED``); never raises.

        Leaving says nothing but that: the pod may be bound, finished or deleted.
        """
        try:
            self._first_sight.saw(obj["metadata"]["uid"])
            if (obj.get("spec") or {}).get("schedulerName") not in self.names:
                return
            if kind == "DELETED":
                meta = obj["metadata"]
                self._raw.left_pending(meta["uid"])
                self.loop.submit(PodLeftPending(PodRef(meta["namespace"], meta["name"], meta["uid"])))
            else:
                pod = self._converter.pod(obj)
                self._raw.pending_pod(obj)
                self.loop.submit(PodPending(pod))
        except Exception as error:  # noqa: BLE001 - Kopf would log it and go on, and so do we, but counted
            self.metrics.object_malformed("pending pods")
            logger.warning("A pending pod cannot be read and is left out: %s", error)

    @property
    def credentials(self) -> Credentials:
        """Who we are, for others who talk to the same API server."""
        return self._client.credentials

    def trouble(self) -> str | None:
        """Why this process should be restarted, None if it works.  An API server that is away is no reason."""
        if self.failure is not None:
            return f"failed: {self.failure}"
        if self.loop.idle_for() > _STUCK_LOOP:
            return f"the scheduling loop has not turned for {self.loop.idle_for():.0f} s"
        return self.state.stuck()

    def unready(self) -> str | None:
        """Why it could not schedule if it led, None if it could."""
        return self.trouble() or (None if self.state.synced else "the cluster's state has not synced yet")

    # -- background work -------------------------------------------------------------------------

    def _may_schedule(self) -> bool:
        return (
            self.state.synced
            and self._leadership.allowed
            and not self._stopping
            and self._first_sight.is_open()
        )

    async def _follow_cluster(self) -> None:
        await self._leadership.before_first_list()
        async with asyncio.TaskGroup() as tasks:
            for resource, reflector in self.state.reflectors.items():
                tasks.create_task(reflector.run(), name=f"moorage watch of {resource}")
            tasks.create_task(self._pending.run(), name="moorage list of pending pods")
            tasks.create_task(self._expect_pending(), name="moorage first list of pending pods")

    async def _expect_pending(self) -> None:
        """Learn which pods wait, so that the first decision is made knowing all of them."""
        while True:
            try:
                self._first_sight.expect((await self._pending.list_once()).uids)
            except KubeError as error:
                logger.info("Pending pods cannot be listed now: %s", error)
                await asyncio.sleep(_FIRST_LIST_RETRY)
            else:
                self.loop.wake()
                return

    def _synced(self) -> None:
        # What is there now stays for long: keep the garbage collector from walking it again and again.
        gc.freeze()
        self.loop.wake()

    def _bound_event(self, event: Event) -> None:
        if isinstance(event, PodBound):
            self._first_sight.saw(event.pod.uid)
        self.loop.submit(event)

    async def _measure_lag(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + _LAG_EVERY
            await asyncio.sleep(_LAG_EVERY)
            self.metrics.loop_lag.observe(max(0.0, loop.time() - due))

    async def _listen(self, host: str, port: int) -> None:
        try:
            await self._endpoint.start(host, port)
        except OSError as error:
            if self.settings.metrics_listen != Settings().metrics_listen:
                raise StartupError(f"metrics-listen: {host}:{port} cannot be listened at: {error}") from error
            logger.warning("No metrics are served: %s:%d cannot be listened at: %s", host, port, error)

    def _refresh_gauges(self) -> None:
        metrics = self.metrics
        metrics.engine_stats(self.engine.stats())
        metrics.backlog.set(self.loop.backlog)
        metrics.leading.set(self._may_schedule())
        for resource, reflector in self.state.reflectors.items():
            metrics.watch_streams.labels(resource).set(reflector.streams)
            metrics.watch_lists.labels(resource).set(reflector.lists)
            metrics.watch_age.labels(resource).set(reflector.age)


def tune_collector() -> None:
    """Have the garbage collector look at what is young, and seldom: JSON and arrays make no cycles.

    The defaults cost a tenth of the time on the way of a pod.  What is imported stays for ever.
    """
    gc.freeze()
    gc.set_threshold(10_000, 20, 100)


def lease_namespace(settings: Settings) -> str:
    """Where the lease is: as set, else the pod's own namespace, else kube-system."""
    return settings.lease_namespace or own_namespace() or "kube-system"


def _lease_settings(settings: Settings) -> LeaseSettings:
    return LeaseSettings(
        name=settings.lease_name,
        namespace=lease_namespace(settings),
        lease_duration=settings.lease_duration,
        renew_deadline=settings.renew_deadline,
        retry_period=settings.retry_period,
    )


async def _check_permissions(client: KubeClient, settings: Settings) -> set[str]:
    """The features that are off for want of permission.  Raises ``StartupError`` if something required is missing."""
    deadline = asyncio.get_running_loop().time() + _START_PATIENCE
    while True:
        try:
            findings = await check(
                client,
                needed(leader_elect=settings.leader_elect),
                lease_namespace=lease_namespace(settings),
                lease_name=settings.lease_name,
            )
            break
        except KubeError as error:
            if asyncio.get_running_loop().time() > deadline:
                raise StartupError(f"the API server cannot be asked for permissions: {error}") from error
            logger.warning("The API server cannot be asked for permissions yet: %s", error)
            await asyncio.sleep(1.0)
    blocking = [finding.text() for finding in findings if finding.blocking]
    if blocking:
        raise StartupError("\n".join(blocking))
    for finding in findings:
        if not finding.ok:
            logger.warning("%s", finding.text())
    return {finding.permission.feature for finding in findings if not finding.ok}
