"""The pages under /debug, as an application to be mounted into a server that listens on loopback.

Everything is read only.  A request must name a loopback host, so that no web page in a browser on this machine can
read it under a name of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from ipaddress import ip_address
from typing import Any

import orjson
from aiohttp import web
from yarl import URL

from moorage.adapters.telemetry.debug.heap import summary
from moorage.adapters.telemetry.debug.stack_sampler import sample

#: Gives a dump line by line, each an object for JSON; it must give way to others between slices of its work.
Dump = Callable[[], AsyncIterator[Mapping[str, Any]]]

_LONGEST = 60.0
_CHUNK = 1 << 16


def debug_app(dumps: Mapping[str, Dump]) -> web.Application:
    """``/`` (what there is), ``/profile``, ``/heap``, and one page for each dump, by name.

    The event loop that serves it must run in the main thread: that is the one that is profiled.
    """
    pages = _Pages(dumps)
    app = web.Application(middlewares=[_loopback_only])
    app.add_routes(
        [
            web.get("/", pages.index),
            web.get("/profile", pages.profile),
            web.get("/heap", pages.heap),
            *(web.get(f"/{name}", pages.dump(dump)) for name, dump in dumps.items()),
        ]
    )
    return app


class _Pages:
    def __init__(self, dumps: Mapping[str, Dump]) -> None:
        self._dumps = dumps
        self._busy = asyncio.Lock()

    async def index(self, _: web.Request) -> web.Response:
        names = [*self._dumps, "profile?seconds=5&format=top|folded", "heap?seconds=5"]
        return web.Response(text="".join(f"{name}\n" for name in names))

    def dump(self, dump: Dump) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def serve(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
            await response.prepare(request)
            chunk = bytearray()
            async for line in dump():
                chunk += orjson.dumps(line, default=str, option=orjson.OPT_APPEND_NEWLINE)
                if len(chunk) >= _CHUNK:
                    await response.write(bytes(chunk))
                    chunk.clear()
            await response.write(bytes(chunk))
            await response.write_eof()
            return response

        return serve

    async def profile(self, request: web.Request) -> web.Response:
        seconds = _seconds(request, at_least=0.1)
        shape = request.query.get("format", "top")
        if shape not in ("top", "folded"):
            raise web.HTTPBadRequest(text=f"format: must be top or folded, not {shape!r}\n")
        async with self._alone():
            profile = await sample(seconds)
        return web.Response(text=profile.table() if shape == "top" else profile.folded())

    async def heap(self, request: web.Request) -> web.Response:
        seconds = _seconds(request, at_least=0.0)
        async with self._alone():
            found = await summary(seconds)
        return web.Response(
            body=orjson.dumps(found, option=orjson.OPT_INDENT_2), content_type="application/json"
        )

    def _alone(self) -> asyncio.Lock:
        """Two at a time would measure each other."""
        if self._busy.locked():
            raise web.HTTPConflict(text="another profile or heap summary is being made\n")
        return self._busy


def _seconds(request: web.Request, *, at_least: float) -> float:
    text = request.query.get("seconds", "5")
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not at_least <= seconds <= _LONGEST:
        raise web.HTTPBadRequest(
            text=f"seconds: must be a number from {at_least:g} to {_LONGEST:g}, not {text!r}\n"
        )
    return seconds


@web.middleware
async def _loopback_only(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Refuse who comes from elsewhere (it should not be able to), or by another name."""
    if not (_is_loopback(request.remote) and _is_loopback(_host(request))):
        raise web.HTTPForbidden(text="only from this machine, as localhost or 127.0.0.1\n")
    return await handler(request)


def _host(request: web.Request) -> str | None:
    try:
        return URL(f"http://{request.host}").host
    except ValueError:
        return None


def _is_loopback(host: str | None) -> bool:
    try:
        return host == "localhost" or ip_address(host or "").is_loopback
    except ValueError:
        return False
