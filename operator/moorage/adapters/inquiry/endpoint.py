"""Serves /explain/NAMESPACE/POD: read-only, to callers with a bearer token who may get the pod."""

from __future__ import annotations

import asyncio
import logging
import re
import ssl
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import orjson
from aiohttp import web

from moorage.adapters.inquiry.access import Access, Gatekeeper
from moorage.adapters.kube.errors import KubeError
from moorage.runtime.ports import PodReadError

logger = logging.getLogger(__name__)

#: Namespace, name of the pod, whether to look for what would help; None if there is no such pod.
Explain = Callable[[str, str, bool], Awaitable[Mapping[str, Any] | None]]

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
#: Callers that may wait for an answer; more are sent away.
_WAITING: Final = 8
_HEADERS: Final = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


class InquiryEndpoint:
    """An HTTP server, with TLS if ``tls`` is given; one question is answered at a time."""

    def __init__(self, gatekeeper: Gatekeeper, explain: Explain, tls: ssl.SSLContext | None = None) -> None:
        self._gatekeeper = gatekeeper
        self._explain = explain
        self._tls = tls
        self._one = asyncio.Lock()
        self._waiting = 0
        self._runner: web.AppRunner | None = None

    async def start(self, host: str, port: int) -> None:
        """Listen; raises OSError when the address is taken."""
        app = web.Application(client_max_size=1024)
        app.router.add_get("/explain/{namespace}/{pod}", self._serve, allow_head=False)
        runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=0.5)
        await runner.setup()
        try:
            await web.TCPSite(runner, host, port, ssl_context=self._tls).start()
        except OSError:
            await runner.cleanup()
            raise
        self._runner = runner
        scheme = "http" if self._tls is None else "https"
        logger.info("Explanations at %s://%s:%d/explain/NAMESPACE/POD", scheme, *self.address)

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

    async def _serve(self, request: web.Request) -> web.Response:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            return _refuse(401, "a bearer token is needed", {"WWW-Authenticate": "Bearer"})
        namespace, pod = request.match_info["namespace"], request.match_info["pod"]
        if not (_NAME.fullmatch(namespace) and _NAME.fullmatch(pod)):
            return _refuse(400, "no such names")
        if self._waiting >= _WAITING:
            return _refuse(503, "too many questions", {"Retry-After": "1"})
        self._waiting += 1
        try:
            return await self._answer(request, token.strip(), namespace, pod)
        except (KubeError, PodReadError) as error:
            logger.warning("A question about a pod cannot be answered: %s", error)
            return _refuse(503, "the API server does not answer", {"Retry-After": "1"})
        finally:
            self._waiting -= 1

    async def _answer(self, request: web.Request, token: str, namespace: str, pod: str) -> web.Response:
        match await self._gatekeeper.may_see(token, namespace, pod):
            case Access.UNKNOWN:
                return _refuse(401, "the token is not accepted", {"WWW-Authenticate": "Bearer"})
            case Access.FORBIDDEN:
                return _refuse(403, f"not allowed to get pod {namespace}/{pod}")
            case Access.ALLOWED:
                pass
        async with self._one:
            record = await self._explain(namespace, pod, request.query.get("search", "true") != "false")
        if record is None:
            return _refuse(404, f"there is no pod {namespace}/{pod}")
        return web.Response(body=orjson.dumps(record), content_type="application/json", headers=_HEADERS)


def _refuse(status: int, message: str, headers: Mapping[str, str] | None = None) -> web.Response:
    body = orjson.dumps({"error": message})
    return web.Response(
        status=status, body=body, content_type="application/json", headers={**_HEADERS, **(headers or {})}
    )
