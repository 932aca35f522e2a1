"""An HTTP server for the extender protocol, with health and metrics on the same port."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from ipaddress import ip_address

from aiohttp import web

from moorage.adapters.extender_server import writing
from moorage.adapters.extender_server.guard import Guards, Limits
from moorage.adapters.extender_server.tls import TlsFiles
from moorage.adapters.extender_server.verbs import Answered, Verbs
from moorage.adapters.telemetry.endpoint import Endpoint
from moorage.adapters.telemetry.extender_metrics import ExtenderMetrics

logger = logging.getLogger(__name__)

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

#: The paths of the protocol before its first version, which some configurations still name.
_OLDER = {
    "/scheduler/predicates": "filter",
    "/scheduler/prioritize": "prioritize",
    "/scheduler/preemption": "preempt",
    "/scheduler/bind": "bind",
}
_JSON = "application/json"
_MIB = 1 << 20
#: How often the log tells that requests are too large.
_TELL_AGAIN = 60.0
_HANDSHAKE = 10.0
#: Far longer than the 90 s after which kube-scheduler drops an idle connection, so that no request of its own meets
#: one that is just being closed.
_KEPT = 3600.0


class ExtenderServer:
    """Serves until it is stopped.  ``probes`` serves health and metrics, without certificates."""

    def __init__(
        self,
        verbs: Verbs,
        probes: Endpoint,
        metrics: ExtenderMetrics,
        *,
        prefix: str = "/scheduler",
        tls: TlsFiles | None = None,
        limits: Limits | None = None,
    ) -> None:
        self._verbs = verbs
        self._probes = probes
        self._metrics = metrics
        self._prefix = "/" + prefix.strip("/") if prefix.strip("/") else ""
        self._tls = tls
        self._limits = limits or Limits()
        self._guards = Guards(self._limits)
        self._runner: web.AppRunner | None = None
        self._server: asyncio.Server | None = None
        self._following: asyncio.Task[None] | None = None
        self._bodies = 0  # bytes of requests under way
        self._under_way = 0
        self._draining = False
        self._told = float("-inf")

    # -- life ------------------------------------------------------------------------------------

    async def start(self, host: str, port: int) -> None:
        """Listen.  Raises OSError, also for a certificate that cannot be read."""
        context = None if self._tls is None else self._tls.context()
        app = web.Application(middlewares=[self._around], client_max_size=self._limits.body)
        app.add_routes(self._probes.routes())
        paths = {f"{self._prefix}/{verb}": verb for verb in self._verbs.by_name}
        for path, verb in {**_OLDER, **paths}.items():
            app.router.add_post(path, self._serve(verb))
        runner = web.AppRunner(
            app, access_log=None, handle_signals=False, shutdown_timeout=1.0, keepalive_timeout=_KEPT
        )
        await runner.setup()
        make = runner.server
        assert make is not None, "the runner was set up"
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(
                lambda: self._guards.protocol(make),
                host,
                port,
                ssl=context,
                ssl_handshake_timeout=None if context is None else _HANDSHAKE,
                backlog=256,
            )
        except OSError:
            await runner.cleanup()
            raise
        self._runner = runner
        if self._tls is not None and context is not None:
            self._following = loop.create_task(self._tls.follow(context), name="moorage certificate")
        scheme = "http" if context is None else "https"
        logger.info("Serving the extender protocol at %s://%s:%d%s", scheme, *self.address, self._prefix)

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens."""
        assert self._server is not None, "not started"
        host, port = self._server.sockets[0].getsockname()[:2]
        return str(host), int(port)

    async def drain(self, patience: float) -> None:
        """Answer on, but have clients come back on other connections, until all have had time to notice."""
        self._draining = True
        await asyncio.sleep(patience)

    async def stop(self, grace: float = 5.0) -> None:
        """Take no more connections, finish the requests under way, close."""
        self._draining = True
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)
        if self._server is not None:
            self._server.close()
        deadline = time.monotonic() + grace
        while self._under_way and time.monotonic() < deadline:
            await asyncio.sleep(0.01)
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    # -- requests --------------------------------------------------------------------------------

    @web.middleware
    async def _around(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        """Whatever happens, the answer is JSON and says what is wrong; nobody is shown a traceback."""
        self._under_way += 1
        try:
            try:
                response = await handler(request)
            except web.HTTPException as answer:
                response = _refusal(answer.status, f"{request.method} {request.path}: {answer.reason}")
                if "Allow" in answer.headers:
                    response.headers["Allow"] = answer.headers["Allow"]
            except asyncio.CancelledError:
                raise
            except Exception:
                logger.exception("A request to %s failed", request.path)
                response = _refusal(500, "internal error; the extender's log has the details")
            if self._draining:
                response.force_close()
            return response
        finally:
            self._under_way -= 1
            self._guards.received(request.protocol)

    def _serve(self, verb: str) -> _Handler:
        answer = self._verbs.by_name[verb]

        async def serve(request: web.Request) -> web.StreamResponse:
            began = time.perf_counter()
            answered = self._not_allowed(verb, request)
            if answered is None:
                size = request.content_length or _MIB
                if (request.content_length or 0) > self._limits.body:
                    answered = self._too_large(request)
                elif self._bodies + size > self._limits.bodies:
                    answered = Answered(503, writing.error("too much is being asked at the same time"))
                else:
                    self._bodies += size
                    try:
                        content = await request.read()
                        self._guards.received(request.protocol)
                        answered = await answer(content)
                    except web.HTTPRequestEntityTooLarge:
                        answered = self._too_large(request)
                    finally:
                        self._bodies -= size
            self._metrics.answered(verb, answered.status, answered.outcome, time.perf_counter() - began)
            return web.Response(status=answered.status, body=answered.body, content_type=_JSON)

        return serve

    def _too_large(self, request: web.Request) -> Answered:
        size = request.content_length
        found = "the body is larger" if size is None else f"the body has {size / _MIB:.1f} MiB, more"
        text = (
            f"{found} than the {self._limits.body / _MIB:g} MiB that are read (--max-body): have kube-scheduler send "
            "the names of nodes, by nodeCacheCapable: true"
        )
        now = time.monotonic()
        if now - self._told >= _TELL_AGAIN:
            self._told = now
            logger.warning("A request to %s is refused: %s", request.path, text)
        return Answered(413, writing.error(text))

    def _not_allowed(self, verb: str, request: web.Request) -> Answered | None:
        """Who asks, and how, before anything is read."""
        if request.content_type != _JSON:
            # Also what keeps pages in a browser from posting here: they may not send this type elsewhere.
            return Answered(415, writing.error(f"the content must be {_JSON}, not {request.content_type}"))
        if self._tls is not None and self._tls.client_ca:
            transport = request.transport
            if transport is None or not transport.get_extra_info("peercert"):
                return Answered(403, writing.error("a client certificate is needed"))
        elif verb == "bind" and not _is_loopback(request.remote):
            return Answered(
                403, writing.error("binding needs a client certificate, or a caller on this machine")
            )
        return None


def _refusal(status: int, text: str) -> web.Response:
    return web.Response(status=status, body=writing.error(text), content_type=_JSON)


def _is_loopback(address: str | None) -> bool:
    try:
        return address is not None and ip_address(address.split("%")[0]).is_loopback
    except ValueError:
        return False


def listens_on_loopback(host: str) -> bool:
    """Whether nobody on another machine can reach an address to listen at."""
    return host == "localhost" or _is_loopback(host)
