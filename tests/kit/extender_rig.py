"""An extender in this process: the real server, service and engine, on loopback, without a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import aiohttp
import orjson

from moorage.adapters.extender_server.guard import Limits
from moorage.adapters.extender_server.server import ExtenderServer
from moorage.adapters.extender_server.tls import TlsFiles
from moorage.adapters.extender_server.verbs import Verbs
from moorage.adapters.kube.convert import Converter
from moorage.adapters.telemetry.endpoint import Endpoint
from moorage.adapters.telemetry.extender_metrics import ExtenderMetrics
from moorage.adapters.telemetry.metrics import Metrics
from moorage.core.engine import Engine, EngineConfig
from moorage.core.model.events import NodeApplied, PolicyApplied
from moorage.core.model.policy import Policy
from moorage.core.profile import NO_ADDITIONS, Additions, extender_profile
from moorage.runtime.extender_service import ExtenderService
from tests.kit.builders import make_node
from tests.kit.fakes import FakeBinder, FakeClock, FakeReader

JSON = {"Content-Type": "application/json"}


class ExtenderRig:
    """Nodes by their labels, policies, and a server; an async context manager."""

    def __init__(
        self,
        *policies: Policy,
        nodes: Mapping[str, Mapping[str, str]] | None = None,
        full: bool = False,
        additions: Additions = NO_ADDITIONS,
        limits: Limits | None = None,
        tls: TlsFiles | None = None,
        prefix: str = "/scheduler",
    ) -> None:
        self.reader, self.binder, self.unready = FakeReader(), FakeBinder(), ""
        profile = extender_profile(full=full, additions=additions)
        self.engine = Engine(EngineConfig(profiles={profile.scheduler_name: profile}))
        clock, self.converter = FakeClock(), Converter()
        self.metrics = Metrics(clock)
        self.service = ExtenderService(
            self.engine,
            reader=self.reader,
            binder=self.binder,
            clock=clock,
            names=frozenset({"default-scheduler"}),
            unready=lambda: self.unready or None,
        )
        self.server = ExtenderServer(
            Verbs(self.service, self.converter),
            Endpoint(self.metrics, healthy=lambda: None, ready=lambda: self.unready or None),
            ExtenderMetrics(self.metrics.registry),
            prefix=prefix,
            tls=tls,
            limits=limits,
        )
        self._scheme = "http" if tls is None else "https"
        for name, labels in (nodes or {}).items():
            self.service.handle(NodeApplied(self.converter.node(make_node(name, labels=dict(labels)))))
        for policy in policies:
            self.service.handle(PolicyApplied(policy))

    async def __aenter__(self) -> Self:
        await self.server.start("127.0.0.1", 0)
        self.session = aiohttp.ClientSession()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.session.close()
        await self.server.stop()

    @property
    def base(self) -> str:
        """The server's address, without the prefix."""
        return f"{self._scheme}://{self.server.address[0]}:{self.server.address[1]}"

    async def post(self, path: str, body: Any, **more: Any) -> tuple[int, Any]:
        """Status and JSON of an answer; a body that is not bytes is sent as JSON."""
        data = body if isinstance(body, bytes) else orjson.dumps(body)
        async with self.session.post(self.base + path, data=data, **{"headers": JSON, **more}) as response:
            return response.status, orjson.loads(await response.read())

    async def get(self, path: str) -> tuple[int, str]:
        """Status and text."""
        async with self.session.get(self.base + path) as response:
            return response.status, await response.text()
