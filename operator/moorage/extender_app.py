"""The composition root of the extender: builds its objects, starts them in order and stops them in order.

It needs neither Kopf nor a queue: who asks has the pods, and policies come by reflectors like all else.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import ssl
from collections.abc import Callable

from moorage.adapters.extender_server.guard import Limits
from moorage.adapters.extender_server.server import ExtenderServer, listens_on_loopback
from moorage.adapters.extender_server.tls import TlsFiles
from moorage.adapters.extender_server.verbs import Verbs
from moorage.adapters.kube.bind import KubeBinder
from moorage.adapters.kube.client import KubeClient
from moorage.adapters.kube.cluster_state import ClusterState
from moorage.adapters.kube.convert import Converter
from moorage.adapters.kube.device_classes import DEVICE_CLASSES
from moorage.adapters.kube.errors import KubeError
from moorage.adapters.kube.permissions import needed_by_extender
from moorage.adapters.kube.read import KubePodReader
from moorage.adapters.kube.watch import Pace
from moorage.adapters.kube.writes import Writer
from moorage.adapters.policy.pod_expressions import PodExpressions
from moorage.adapters.telemetry.debug.endpoint import DebugEndpoint
from moorage.adapters.telemetry.endpoint import Endpoint
from moorage.adapters.telemetry.extender_metrics import ExtenderMetrics
from moorage.adapters.telemetry.metrics import Metrics
from moorage.assembly.dumps import dumps_of
from moorage.assembly.gauges import measure_lag
from moorage.assembly.policies import Policies
from moorage.assembly.policy_streams import PolicyStreams
from moorage.assembly.startup import StartupError, missing_among
from moorage.core.engine import Engine, EngineConfig
from moorage.core.profile import NO_ADDITIONS, Additions, extender_profile, score_plugins
from moorage.plugins.refresh import Refresher
from moorage.plugins.watch import Watch
from moorage.runtime.clock import SteadyClock
from moorage.runtime.extender_service import ExtenderService
from moorage.runtime.extender_settings import ExtenderSettings
from moorage.runtime.settings import Settings
from moorage.runtime.supervisor import Supervisor

logger = logging.getLogger(__name__)

#: Reflectors apply objects for so long before a request gets its turn.
_SLICE = 0.008
_BINDS = 100
_GRACE = 10.0


class ExtenderApp:
    """One extender, with users' plugins as ``additions``.

    ``on_failure`` is called when it has broken down and should be stopped.
    """

    def __init__(
        self,
        settings: ExtenderSettings,
        client: KubeClient,
        *,
        off: frozenset[str] = frozenset(),
        additions: Additions = NO_ADDITIONS,
        on_failure: Callable[[BaseException], None] = lambda _: None,
    ) -> None:
        check_binding(settings)
        self.settings = settings
        self._client = client
        self._stopping = False
        self._policies_known = False
        self._supervisor = Supervisor(on_failure)
        clock = SteadyClock()
        self.metrics = Metrics(clock)
        holds = PodExpressions()
        converter = Converter(holds=holds)
        profile = extender_profile(full=settings.full, additions=additions)
        self._refresher = Refresher(Watch())
        self._refresher.follow(profile.plugins)
        self.engine = Engine(EngineConfig(profiles={profile.scheduler_name: profile}))
        reader = KubePodReader(client, converter.pod)
        self._writer = Writer(client, limit=_BINDS)
        binder = None
        if settings.enable_bind:
            binder = KubeBinder(self._writer, reader, holds=lambda: True)
        self.service = ExtenderService(
            self.engine,
            reader=reader,
            binder=binder,
            clock=clock,
            names=frozenset(settings.scheduler_name),
            unready=self.unsynced,
        )
        self.state = ClusterState(
            client,
            converter,
            self.service.handle,
            on_synced=self._synced,
            meter=self.metrics,
            budgets=False,
            workloads=settings.full and "default spreading" not in off,
            device_classes=settings.full and DEVICE_CLASSES not in off,
            storage=settings.full,
            pace=Pace(slice=_SLICE),
        )
        self.policies = Policies(
            client,
            clock,
            self.metrics,
            holds=holds,
            submit=self.service.handle,
            reports=self.engine.policy_reports,
            leading=lambda: self.unready() is None,
            look_again=self.state.tell_pods_again,
            settings=Settings(),
            score_plugins=score_plugins(additions),
            status=settings.write_status and "status of policies" not in off,
            exact=settings.enable_bind,
        )
        self._streams = PolicyStreams(client, self.policies.event, self.metrics)
        tls = None
        if settings.tls_cert:
            tls = TlsFiles(settings.tls_cert, settings.tls_key, settings.client_ca)
        self.server = ExtenderServer(
            Verbs(self.service, converter),
            Endpoint(self.metrics, healthy=self.trouble, ready=self.unready),
            ExtenderMetrics(self.metrics.registry),
            prefix=settings.prefix,
            tls=tls,
            limits=Limits(body=settings.max_body << 20),
        )
        self._debug = DebugEndpoint(dumps_of(self.engine, client))
        self.metrics.on_scrape(self._refresh_gauges)

    @classmethod
    async def create(
        cls,
        settings: ExtenderSettings,
        *,
        additions: Additions = NO_ADDITIONS,
        on_failure: Callable[[BaseException], None],
    ) -> ExtenderApp:
        """Connect and check permissions, then build.  Raises ``StartupError``."""
        check_binding(settings)
        try:
            client = await KubeClient.connect(
                settings.kubeconfig, settings.context, user_agent="moorage-extender", connection_limit=40
            )
        except KubeError as error:
            raise StartupError(str(error)) from error
        try:
            permissions = needed_by_extender(
                full=settings.full, bind=settings.enable_bind, status=settings.write_status
            )
            off = await missing_among(client, permissions)
            return cls(settings, client, off=off, additions=additions, on_failure=on_failure)
        except BaseException:
            await client.close()
            raise

    # -- life ------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start everything; returns when it listens, which is before it is ready.  Raises ``StartupError``."""
        listen = self.settings.listen
        try:
            await self.server.start(listen.host, listen.port)
        except ssl.SSLError as error:
            raise StartupError(f"tls-cert, tls-key, client-ca: cannot be used: {error}") from error
        except OSError as error:
            raise StartupError(f"listen: {listen} cannot be listened at: {error}") from error
        debug = self.settings.debug_listen
        if debug is not None:
            try:
                await self._debug.start(debug.host, debug.port)
            except OSError as error:
                raise StartupError(f"debug-listen: {debug} cannot be listened at: {error}") from error
        start = self._supervisor.start
        start("extender", self.service.run())
        start("loop lag", measure_lag(self.metrics))
        start("refreshing of plugins", self._refresher.run())
        start("cluster", self._follow())

    async def stop(self) -> None:
        """Tell those in front, finish what was begun, close the connections."""
        self._stopping = True
        if self.failure is None:
            await self.server.drain(self.settings.drain)
        await self.service.finish(_GRACE)
        await self.server.stop()
        await self._debug.stop()
        await self._supervisor.cancel()
        await self._writer.close()
        await self._client.close()

    async def _follow(self) -> None:
        await self.policies.first()
        self._policies_known = True
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.policies.run(), name="moorage policies")
            self._streams.start(tasks)
            for resource, reflector in self.state.reflectors.items():
                tasks.create_task(reflector.run(), name=f"moorage watch of {resource}")

    def _synced(self) -> None:
        # What is there now stays for long: keep the garbage collector from walking it again and again.
        gc.freeze()
        logger.info("Ready to answer")

    # -- health ----------------------------------------------------------------------------------

    @property
    def failure(self) -> BaseException | None:
        """What it has died of."""
        return self._supervisor.failure

    def unsynced(self) -> str | None:
        """Why nothing can be answered yet, None if it can."""
        if not self._policies_known:
            return "the policies are not known yet"
        if not self._refresher.ready:
            return "plugins have not refreshed yet"
        return None if self.state.synced else "the cluster's state has not synced yet"

    def trouble(self) -> str | None:
        """Why this process should be restarted, None if it works.  An API server that is away is no reason."""
        if self.failure is not None:
            return f"failed: {self.failure}"
        return self.state.stuck()

    def unready(self) -> str | None:
        """Why nobody should ask it now, None if one may."""
        if self._stopping:
            return "stopping"
        return self.trouble() or self.unsynced()

    def _refresh_gauges(self) -> None:
        self.policies.refresh_gauges()
        self.metrics.engine_stats(self.engine.stats())
        for resource, reflector in self.state.reflectors.items():
            self.metrics.watch_streams.labels(resource).set(reflector.streams)
            self.metrics.watch_lists.labels(resource).set(reflector.lists)
            self.metrics.watch_age.labels(resource).set(reflector.age)


def check_binding(settings: ExtenderSettings) -> None:
    """Binding is a power: whoever can call it can place pods.  Raises ``StartupError``."""
    if settings.enable_bind and not settings.client_ca and not listens_on_loopback(settings.listen.host):
        raise StartupError(
            f"enable-bind: anybody who reaches {settings.listen} could place pods: give --client-ca (with --tls-cert "
            "and --tls-key), so that callers must show a certificate, or listen at 127.0.0.1"
        )
