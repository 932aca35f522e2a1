"""A proxy between a program and the API server that loses, delays, holds and falsifies on demand.

It runs in a thread of its own, on loopback, without TLS towards the program under test.

    with Proxy(control_plane) as proxy:
        held = proxy.on("POST", "/pods/p/binding", Hold())
        run_something(proxy.kubeconfig(control_plane.kubeconfig))
        held.wait()          # the request has arrived and goes no further
        held.release()
"""

from __future__ import annotations

import asyncio
import json
import re
import ssl
import threading
import time
from collections.abc import Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TypeVar
from urllib.parse import unquote

import aiohttp
import yaml
from aiohttp import web
from yarl import URL

from tests.controlplane.controlplane import ControlPlane

#: Patterns of the requests for the streams that the scheduler follows.
PENDING, BOUND = (f"(?=.*watch=true)(?=.*spec.nodeName{operator}=,)" for operator in ("", "!"))
NODES = "/nodes\\?.*watch=true"

_HOP = {"connection", "keep-alive", "transfer-encoding", "host", "content-length", "accept-encoding"}


@dataclass(frozen=True)
class Answer:
    """Answer with this status, and do not forward."""

    status: int
    message: str = "told to"
    reason: str = ""
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Gone:
    """Answer a watch as the API server does when the version is too old: an ERROR event with code 410."""


@dataclass(frozen=True)
class Lose:
    """Drop the connection without an answer; ``after`` the API server has done what was asked."""

    after: bool = True


@dataclass(frozen=True)
class Delay:
    """Do what is asked at once, and answer so many seconds later."""

    seconds: float


class Hold:
    """Keep a request from going on until released: before it is forwarded, or with ``after`` before its answer."""

    def __init__(self, *, after: bool = False) -> None:
        self.after = after
        self.drop = False
        self._reached = threading.Event()
        self._released = threading.Event()

    def wait(self, timeout: float = 15) -> None:
        """Wait until a request is held."""
        assert self._reached.wait(timeout), "no such request came"

    def release(self, *, drop: bool = False) -> None:
        """Let it go, and all later ones; with ``drop``, by resetting their connections."""
        self.drop = drop
        self._released.set()

    async def keep(self) -> None:
        """Called in the proxy: wait for the release."""
        self._reached.set()
        while not self._released.is_set():
            await asyncio.sleep(0.005)


Fault = Answer | Gone | Lose | Delay | Hold
F = TypeVar("F", bound=Fault)
T = TypeVar("T")


@dataclass
class _Rule:
    method: str
    pattern: re.Pattern[str]
    fault: Fault
    times: int | None


@dataclass(frozen=True)
class Passed:
    """A request and what it was answered with; status 0: nothing.  ``arrived`` is by the monotonic clock."""

    method: str
    path: str
    body: Any
    status: int
    arrived: float = 0.0


@dataclass(eq=False)
class _Stream:
    path: str
    request: web.Request
    silent: bool = False


class Proxy:
    """See the module; a context manager.  Patterns are searched for in the path with its query, unquoted."""

    def __init__(self, control_plane: ControlPlane) -> None:
        self._upstream = control_plane.url
        self._tls = ssl.create_default_context(cadata=control_plane.ca)
        self._folder = control_plane.folder
        self._rules: list[_Rule] = []
        self._streams: list[_Stream] = []
        self.passed: list[Passed] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._session: aiohttp.ClientSession | None = None
        self._runner: web.AppRunner | None = None
        self.port = 0

    def __enter__(self) -> Self:
        self._thread.start()
        self._do(self._start())
        return self

    def __exit__(self, *_: object) -> None:
        for rule in self._rules:
            if isinstance(rule.fault, Hold):
                rule.fault.release()
        self._do(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()

    def kubeconfig(self, original: Path) -> Path:
        """A kubeconfig as ``original``, but by way of the proxy."""
        config = yaml.safe_load(original.read_text())
        config["clusters"][0]["cluster"] = {"server": f"http://127.0.0.1:{self.port}"}
        path = self._folder / f"proxied-{self.port}-{original.name}"
        path.write_text(json.dumps(config))
        path.chmod(0o600)
        return path

    # -- what goes wrong -------------------------------------------------------------------------

    def on(self, method: str, pattern: str, fault: F, times: int | None = 1) -> F:
        """Let the next ``times`` requests that match meet the fault (None: all); gives it back."""
        self._rules.append(_Rule(method, re.compile(pattern), fault, times))
        return fault

    def forget(self, fault: Fault) -> None:
        """No more requests meet the fault; those it has are kept."""
        self._rules = [rule for rule in self._rules if rule.fault is not fault]

    def cut(self, pattern: str) -> int:
        """Reset the open watches that match; how many there were."""
        return self._do(self._each(pattern, cut=True))

    def silence(self, pattern: str) -> int:
        """Keep the open watches that match open, and let nothing through any more; how many there were."""
        return self._do(self._each(pattern, cut=False))

    def count(self, method: str, pattern: str, status: int | None = None) -> int:
        """How many requests that match have been answered (with this status)."""
        return sum(
            p.method == method and re.search(pattern, p.path) is not None and status in (None, p.status)
            for p in list(self.passed)
        )

    async def _each(self, pattern: str, *, cut: bool) -> int:
        found = [stream for stream in self._streams if re.search(pattern, stream.path)]
        for stream in found:
            stream.silent = True
            if cut and stream.request.transport is not None:
                stream.request.transport.abort()
        return len(found)

    # -- the server ------------------------------------------------------------------------------

    def _do(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(15)

    async def _start(self) -> None:
        connector = aiohttp.TCPConnector(limit=0, ssl=self._tls)
        self._session = aiohttp.ClientSession(connector=connector, auto_decompress=False)
        app = web.Application(client_max_size=2**24)
        app.router.add_route("*", "/{tail:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=0.05)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.port = int(self._runner.addresses[0][1])

    async def _stop(self) -> None:
        for stream in self._streams:
            if stream.request.transport is not None:
                stream.request.transport.abort()
        if self._runner is not None:
            await self._runner.cleanup()
        if self._session is not None:
            await self._session.close()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    def _fault(self, method: str, path: str) -> Fault | None:
        for rule in self._rules:
            if rule.times != 0 and rule.method == method and rule.pattern.search(path):
                if rule.times is not None:
                    rule.times -= 1
                return rule.fault
        return None

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        arrived = time.monotonic()
        body = await request.read()
        path = unquote(request.raw_path)
        fault = self._fault(request.method, path)
        status = 0
        try:
            match fault:
                case Answer():
                    status = fault.status
                    return _status(fault)
                case Gone():
                    status = 200
                    return _gone()
                case Lose(after=False):
                    return _drop(request)
                case Hold(after=False):
                    await fault.keep()
                    if fault.drop:
                        return _drop(request)
            try:
                response, status = await self._forward(request, path, body, fault)
            except aiohttp.ClientError:
                return _drop(request)
            return response
        finally:
            content = json.loads(body) if body else None
            self.passed.append(Passed(request.method, path, content, status, arrived))

    async def _forward(
        self, request: web.Request, path: str, body: bytes, fault: Fault | None
    ) -> tuple[web.StreamResponse, int]:
        assert self._session is not None
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP}
        timeout = aiohttp.ClientTimeout()
        async with self._session.request(
            request.method,
            URL(self._upstream + request.raw_path, encoded=True),
            data=body or None,
            headers=headers,
            timeout=timeout,
            allow_redirects=False,
        ) as upstream:
            kept = {n: v for n, v in upstream.headers.items() if n.lower() not in _HOP}
            if "watch=true" in path:
                return await self._stream(request, path, upstream, kept), upstream.status
            content = await upstream.read()
        match fault:
            case Lose(after=True):
                return _drop(request), 0
            case Delay(seconds=seconds):
                await asyncio.sleep(seconds)
            case Hold(after=True):
                await fault.keep()
        return web.Response(status=upstream.status, body=content, headers=kept), upstream.status

    async def _stream(
        self, request: web.Request, path: str, upstream: aiohttp.ClientResponse, headers: dict[str, str]
    ) -> web.StreamResponse:
        response = web.StreamResponse(status=upstream.status, headers=headers)
        stream = _Stream(path, request)
        self._streams.append(stream)
        try:
            await response.prepare(request)
            async for chunk in upstream.content.iter_any():
                if not stream.silent:
                    await response.write(chunk)
            while stream.silent:  # not even an end comes through
                await asyncio.sleep(0.05)
        except (ConnectionError, aiohttp.ClientError):
            pass
        finally:
            self._streams.remove(stream)
        return response


def _status(answer: Answer) -> web.Response:
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": answer.status,
        "reason": answer.reason,
        "message": answer.message,
    }
    return web.json_response(body, status=answer.status, headers=answer.headers)


def _gone() -> web.Response:
    status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
    return web.Response(
        body=json.dumps({"type": "ERROR", "object": status}).encode() + b"\n", content_type="application/json"
    )


def _drop(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response()
