"""Serves /debug on an address of loopback."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from aiohttp import web

from moorage.adapters.telemetry.debug.pages import Dump, debug_app

logger = logging.getLogger(__name__)


class DebugEndpoint:
    """An HTTP server of its own, for nobody but people on this machine."""

    def __init__(self, dumps: Mapping[str, Dump]) -> None:
        self._dumps = dumps
        self._runner: web.AppRunner | None = None

    async def start(self, host: str, port: int) -> None:
        """Listen; raises OSError when the address is taken."""
        app = web.Application()
        app.add_subapp("/debug", debug_app(self._dumps))
        runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=0.5)
        await runner.setup()
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError:
            await runner.cleanup()
            raise
        self._runner = runner
        logger.info("Debugging at http://%s:%d/debug/", *self.address)

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
