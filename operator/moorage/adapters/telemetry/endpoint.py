"""Serves /metrics, /healthz and /readyz over plain HTTP; on loopback unless told otherwise."""

from __future__ import annotations

import logging
from collections.abc import Callable

from aiohttp import web

from moorage.adapters.telemetry.metrics import CONTENT_TYPE, Metrics

logger = logging.getLogger(__name__)


class Endpoint:
    """An HTTP server for probes and Prometheus.

    ``healthy`` and ``ready`` return None, or the reason why not.
    """

    def __init__(
        self,
        metrics: Metrics,
        *,
        healthy: Callable[[], str | None],
        ready: Callable[[], str | None],
    ) -> None:
        self._metrics = metrics
        self._healthy = healthy
        self._ready = ready
        self._runner: web.AppRunner | None = None

    async def start(self, host: str, port: int) -> None:
        """Listen; raises OSError when the address is taken."""
        app = web.Application()
        app.add_routes(self.routes())
        runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=0.5)
        await runner.setup()
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError:
            await runner.cleanup()
            raise
        self._runner = runner
        logger.info("Metrics and probes at http://%s:%d/metrics", *self.address)

    def routes(self) -> list[web.RouteDef]:
        """What it serves, for another server that does it."""
        return [
            web.get("/metrics", self._serve_metrics),
            web.get("/healthz", self._serve_health),
            web.get("/livez", self._serve_health),
            web.get("/readyz", self._serve_readiness),
        ]

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens."""
        assert self._runner is not None, "not started"
        host, port = self._runner.addresses[0][:2]
        return str(host), int(port)

    async def stop(self) -> None:
        """Stop listening."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _serve_metrics(self, _: web.Request) -> web.Response:
        return web.Response(body=self._metrics.exposition(), headers={"Content-Type": CONTENT_TYPE})

    async def _serve_health(self, _: web.Request) -> web.Response:
        return _answer(self._healthy())

    async def _serve_readiness(self, _: web.Request) -> web.Response:
        return _answer(self._ready())


def _answer(trouble: str | None) -> web.Response:
    return web.Response(text="ok\n") if trouble is None else web.Response(status=503, text=f"{trouble}\n")
