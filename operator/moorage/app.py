"""The composition root: builds the objects of a running scheduler, starts them in order and stops them in order.

The only module that knows everyone.  Kopf's handlers (``handlers.py``) and ``moorage run`` both use it.
"""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Callable, Mapping
from typing import Any

from moorage.adapters.extender.client import ExtenderClient
from moorage.adapters.inquiry.endpoint import InquiryEndpoint
from moorage.adapters.kube.client import KubeClient
from moorage.adapters.kube.cluster_state import ClusterState
from moorage.adapters.kube.convert import Converter
from moorage.adapters.kube.credentials import Credentials
from moorage.adapters.kube.device_classes import DEVICE_CLASSES
from moorage.adapters.kube.errors import KubeError
from moorage.adapters.kube.leadership import Leadership
from moorage.adapters.kube.permissions import EXPLAIN_ENDPOINT
from moorage.adapters.kube.raw_objects import RawObjects
from moorage.adapters.kube.read import KubePodReader
from moorage.adapters.kube.watch import Pace
from moorage.adapters.policy.pod_expressions import PodExpressions
from moorage.adapters.telemetry.debug.endpoint import DebugEndpoint
from moorage.adapters.telemetry.endpoint import Endpoint
from moorage.adapters.telemetry.metrics import Metrics
from moorage.adapters.telemetry.observer import Observer
from moorage.assembly.dumps import dumps_of
from moorage.assembly.gauges import measure_lag, refresh_gauges
from moorage.assembly.inquiries import AttemptLog, Inquiries, inquiry_endpoint
from moorage.assembly.observation import observe, tell_of_overcommits
from moorage.assembly.pending_pods import PendingPods
from moorage.assembly.policies import Policies
from moorage.assembly.scheduling import first_scheduling, keep_for, scheduling_by
from moorage.assembly.startup import StartupError, lease_settings, missing_features
from moorage.assembly.writers import Writers
from moorage.configuration.file import ConfigFile
from moorage.configuration.read import Configuration
from moorage.core.engine import Engine, EngineConfig
from moorage.core.model.events import Reconfigured
from moorage.core.profile import NO_ADDITIONS, Additions, Profile, score_plugins
from moorage.plugins.refresh import Refresher
from moorage.plugins.watch import Watch
from moorage.runtime.audit_budget import AuditBudget
from moorage.runtime.clock import SteadyClock
from moorage.runtime.loop import SchedulingLoop
from moorage.runtime.settings import Listen, Settings
from moorage.runtime.supervisor import Supervisor

logger = logging.getLogger(__name__)

_GRACE = 10.0
#: The loop and the reflectors may all have something to do in one turn of the event loop, which is to
#: stay under 50 ms.
_TURN, _SLICE = 0.015, 0.008
_STUCK_LOOP = 15.0
#: Objects that are listed within a fraction of a second.
_FEW = 2_000


class App:
    """One scheduler, with users' plugins as ``additions``.

    ``on_failure`` is called when it has broken down and should be stopped.
    """

    def __init__(
        self,
        settings: Settings,
        client: KubeClient,
        *,
        off: frozenset[str] = frozenset(),
        additions: Additions = NO_ADDITIONS,
        on_failure: Callable[[BaseException], None] = lambda _: None,
    ) -> None:
        self.settings = settings
        self._off = off
        clock = SteadyClock()
        self.metrics = Metrics(clock)
        observer = Observer(self.metrics, slow=settings.slow_decision)
        self._config_file = None
        if settings.config is not None:
            self._config_file = ConfigFile(
                settings.config, apply=self.reconfigure, meter=self.metrics, additions=additions
            )
        scheduling = first_scheduling(settings, self._config_file, off, additions)
        self._refresher = Refresher(Watch(), on_ready=lambda: self.loop.wake())  # noqa: PLW0108
        self._follow_plugins(scheduling.profiles)
        names = tuple(scheduling.profiles)
        self._raw = RawObjects(client)
        keep_for(scheduling.endpoints, self._raw)
        self._extenders = ExtenderClient(self._raw, scheduling.endpoints, self.metrics)
        self._client = client
        self._lease_client = client.separate()
        self._supervisor = Supervisor(on_failure)
        self._stopping = False
        holds = PodExpressions()
        self._converter = Converter(holds=holds)
        self.engine = Engine(
            EngineConfig(
                profiles=scheduling.profiles,
                queue=scheduling.queue,
                node_ready_guard=settings.node_ready_guard,
                audit_budget=AuditBudget(),
            )
        )
        reader = KubePodReader(client, self._converter.pod)
        self._leadership = Leadership(
            self._lease_client,
            lease_settings(settings) if settings.leader_elect else None,
            refresh=lambda: self.state.refresh(),  # noqa: PLW0108 - it is made below
            wake=lambda: self.loop.wake(),  # noqa: PLW0108
            on_lost=self._supervisor.fail,
        )
        self._writers = writers = Writers(
            client,
            reader,
            clock,
            self.metrics,
            self._extenders,
            holds=self._leadership.holds,
            max_binds=settings.max_binds,
            controller=names[0],
            off=off,
        )
        attempts = AttemptLog(observer, clock)
        self.loop = SchedulingLoop(
            self.engine,
            binder=writers.binder,
            evictor=writers.evictor,
            volumes=writers.volumes,
            status=writers.status,
            recorder=writers.recorder,
            reader=reader,
            clock=clock,
            meter=observer if settings.explain_listen is None else attempts,
            may_schedule=self._may_schedule,
            max_binds=settings.max_binds,
            turn_budget=_TURN,
            grace=_GRACE,
            extenders=self._extenders,
            watch=observer.timer,
        )
        self._pending = PendingPods(
            client,
            self.loop,
            self._converter,
            self._raw,
            clock,
            self.metrics,
            settings=settings,
            names=names,
        )
        self.state = ClusterState(
            client,
            self._converter,
            self._pending.bound_event,
            on_synced=self._synced,
            meter=self.metrics,
            budgets="preemption" not in off,
            workloads="default spreading" not in off,
            device_classes=DEVICE_CLASSES not in off,
            pace=Pace(silence=settings.watch_silence, slice=_SLICE, few=_FEW),
            raw=self._raw,
        )
        self.policies = Policies(
            client,
            clock,
            self.metrics,
            holds=holds,
            submit=self.loop.submit,
            reports=self.engine.policy_reports,
            leading=self._may_schedule,
            look_again=self._look_at_pods_again,
            settings=settings,
            score_plugins=score_plugins(additions),
            status="status of policies" not in off,
        )
        self._endpoint = Endpoint(self.metrics, healthy=self.trouble, ready=self.unready)
        self._debug = DebugEndpoint(dumps_of(self.engine, client, clock))
        self.metrics.on_scrape(self._refresh_gauges)
        self._explanations = None
        if settings.explain_listen is not None and EXPLAIN_ENDPOINT not in off:
            inquiries = Inquiries(self.engine, reader, clock, attempts, self._may_schedule)
            self._explanations = inquiry_endpoint(settings, client, inquiries)
        observe(self.metrics, self.engine, self.loop, self._leadership, settings)

    @classmethod
    async def create(
        cls,
        settings: Settings,
        *,
        additions: Additions = NO_ADDITIONS,
        on_failure: Callable[[BaseException], None],
    ) -> App:
        """Connect and check permissions, then build.  Raises ``StartupError``."""
        try:
            client = await KubeClient.connect(settings.kubeconfig, settings.context, connection_limit=40)
        except KubeError as error:
            raise StartupError(str(error)) from error
        try:
            off = await missing_features(client, settings)
            return cls(settings, client, off=off, additions=additions, on_failure=on_failure)
        except BaseException:
            await client.close()
            raise

    # -- life ------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start everything; returns when it runs, which is before it has synced or leads."""
        if self.settings.metrics_listen is not None:
            await self._listen(self.settings.metrics_listen.host, self.settings.metrics_listen.port)
        if self._explanations is not None:
            await self._listen_for_questions(self._explanations)
        if self.settings.debug_listen is not None:
            await self._listen_for_debugging(self.settings.debug_listen)
        await self.policies.first()
        start = self._supervisor.start
        start("scheduling loop", self.loop.run())
        start("status writer", self._writers.status.run())
        start("event writer", self._writers.recorder.run())
        start("loop lag", measure_lag(self.metrics))
        start("overcommitted nodes", tell_of_overcommits(self.engine))
        start("lease", self._leadership.run())
        start("refreshing of plugins", self._refresher.run())
        start("cluster state", self._follow_cluster())
        start("policies", self.policies.run())
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
            await self._writers.flush()
        await self._supervisor.cancel("lease")
        await self._supervisor.cancel()
        await self._endpoint.stop()
        if self._explanations is not None:
            await self._explanations.stop()
        await self._debug.stop()
        await self._extenders.close()
        for closable in (self._writers, self._lease_client, self._client):
            await closable.close()

    @property
    def failure(self) -> BaseException | None:
        """What it has died of."""
        return self._supervisor.failure

    # -- configuration ---------------------------------------------------------------------------

    async def reconfigure(self, configuration: Configuration) -> None:
        """Schedule by another configuration from now on.  Raises ``ConfigError`` if that is not possible."""
        scheduling = scheduling_by(configuration, self.settings, self._off)
        keep_for(scheduling.endpoints, self._raw)
        await self._extenders.configure(scheduling.endpoints)
        self.loop.submit(Reconfigured(scheduling.profiles, scheduling.queue))
        self._follow_plugins(scheduling.profiles)
        await self._pending.rename(frozenset(scheduling.profiles))

    def _follow_plugins(self, profiles: Mapping[str, Profile]) -> None:
        """Keep fresh what the plugins of these profiles go by."""
        self._refresher.follow(plugin for profile in profiles.values() for plugin in profile.plugins)

    # -- for the handlers ------------------------------------------------------------------------

    @property
    def pending_selector(self) -> str:
        """The field selector of the stream of unscheduled pods."""
        return self._pending.selector

    def pod_event(self, kind: str | None, obj: Mapping[str, Any]) -> None:
        """The stream of unscheduled pods shows a pod, or its leaving (``DELETED``); never raises."""
        self._pending.event(kind, obj)

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
            and self._pending.all_seen
            and self._refresher.ready
        )

    async def _follow_cluster(self) -> None:
        await self._leadership.before_first_list()
        async with asyncio.TaskGroup() as tasks:
            for resource, reflector in self.state.reflectors.items():
                tasks.create_task(reflector.run(), name=f"moorage watch of {resource}")
            tasks.create_task(self._pending.run(), name="moorage list of pending pods")
            tasks.create_task(self._pending.expect(), name="moorage first list of pending pods")

    async def _look_at_pods_again(self) -> None:
        """Read all pods, with a node and without, once more."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.state.tell_pods_again(), name="moorage bound pods told again")
            tasks.create_task(self._pending.look_again(), name="moorage pending pods told again")

    def _synced(self) -> None:
        # What is there now stays for long: keep the garbage collector from walking it again and again.
        gc.freeze()
        self.loop.wake()

    async def _listen(self, host: str, port: int) -> None:
        try:
            await self._endpoint.start(host, port)
        except OSError as error:
            if self.settings.metrics_listen != Settings().metrics_listen:
                raise StartupError(f"metrics-listen: {host}:{port} cannot be listened at: {error}") from error
            logger.warning("No metrics are served: %s:%d cannot be listened at: %s", host, port, error)

    async def _listen_for_questions(self, endpoint: InquiryEndpoint) -> None:
        listen = self.settings.explain_listen
        assert listen is not None, "an endpoint has an address"
        try:
            await endpoint.start(listen.host, listen.port)
        except OSError as error:
            raise StartupError(f"explain-listen: {listen} cannot be listened at: {error}") from error

    async def _listen_for_debugging(self, address: Listen) -> None:
        try:
            await self._debug.start(address.host, address.port)
        except OSError as error:
            raise StartupError(f"debug-listen: {address} cannot be listened at: {error}") from error

    def _refresh_gauges(self) -> None:
        self.policies.refresh_gauges()
        refresh_gauges(self.metrics, self.engine, self.loop, self.state, leading=self._may_schedule())
