"""Requests to the API server: raw JSON over one shared connection pool.

Generated model classes cost more than the scheduling itself, and some of them fail on answers that
are fine (the one to a Binding, for one), so there are none.  Errors are those of ``errors.py`` only.
"""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import Any, Self
from urllib.parse import urlencode

import aiohttp
import orjson
from yarl import URL

from moorage.adapters.kube.credentials import Credentials
from moorage.adapters.kube.errors import BadAnswer, Unauthorized, Unreachable, error_from_answer

MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"

#: Shorter than the 90 s after which the API server closes an idle connection, so that a POST does not
#: meet one that is just being closed.
_KEEPALIVE_SECONDS = 30.0
#: Of a request's time, the share it may take to get a connection; what times out later was sent.
_CONNECT_SHARE = 0.8
#: aiohttp rounds timeouts from 5 s on up to whole seconds, which the lease cannot use.
_EXACT = float("inf")
#: A peer that vanished without a word is noticed after this many seconds without acknowledgement.
_USER_TIMEOUT_SECONDS = 30

_JSON_CONTENT = "application/json"
_Params = Mapping[str, str | int | bool]


class KubeClient:
    """One API server, one identity, one pool of connections."""

    def __init__(
        self, credentials: Credentials, *, user_agent: str = "moorage", connection_limit: int = 100
    ) -> None:
        self.credentials = credentials
        self._user_agent = user_agent
        self._connection_limit = connection_limit
        self._session: aiohttp.ClientSession | None = None
        self._retired: list[aiohttp.ClientSession] = []
        self._generation = credentials.generation
        self._extra: dict[str, Any] = {}
        self._base = credentials.access.server
        self._closed = False

    @classmethod
    async def connect(
        cls,
        kubeconfig: str | None = None,
        context: str | None = None,
        *,
        user_agent: str = "moorage",
        connection_limit: int = 100,
    ) -> Self:
        """A client with credentials found as ``Credentials.load`` does; sends nothing yet."""
        credentials = await Credentials.load(kubeconfig, context)
        return cls(credentials, user_agent=user_agent, connection_limit=connection_limit)

    @property
    def server(self) -> str:
        """The API server's URL."""
        return self.credentials.access.server

    def separate(self, *, connection_limit: int = 2) -> KubeClient:
        """The same identity over connections of its own, which a flood of other requests cannot hold up."""
        return KubeClient(self.credentials, user_agent=self._user_agent, connection_limit=connection_limit)

    async def close(self) -> None:
        """Close all connections; requests under way fail."""
        self._closed = True
        sessions = [*self._retired, *([self._session] if self._session else [])]
        self._session = None
        self._retired.clear()
        for session in sessions:
            await session.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: _Params | None = None,
        body: Any = None,
        content_type: str = _JSON_CONTENT,
        timeout: float | None = 30.0,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """The parsed answer (None for an empty one); ``body`` is bytes as they are, or made JSON.

        Raises only ``KubeError``.  A 401 renews the credentials and tries once more.
        """
        data = body if body is None or isinstance(body, bytes) else orjson.dumps(body)
        wire = {} if headers is None else dict(headers)
        if data is not None:
            wire["Content-Type"] = content_type
        while True:
            session = await self._ready()
            refused = self._authorize(wire)
            try:
                response = await session.request(
                    method,
                    self._url(path, params),
                    data=data,
                    headers=wire,
                    timeout=_timeout(timeout),
                    allow_redirects=False,
                    **self._extra,
                )
                content = await response.read()
            except (aiohttp.ClientError, TimeoutError, OSError, RuntimeError) as error:
                raise self._unreachable(error) from error
            if 200 <= response.status < 300:
                break
            failure = error_from_answer(response.status, response.headers, content)
            if not isinstance(failure, Unauthorized) or not await self.credentials.renew(refused):
                raise failure
        if not content:
            return None
        try:
            return orjson.loads(content)
        except orjson.JSONDecodeError as error:
            raise BadAnswer(f"{method} {path}: the answer is not JSON: {error}") from error

    async def get(self, path: str, *, params: _Params | None = None, timeout: float | None = 30.0) -> Any:
        """GET."""
        return await self.request("GET", path, params=params, timeout=timeout)

    async def post(
        self, path: str, body: Any, *, params: _Params | None = None, timeout: float | None = 30.0
    ) -> Any:
        """POST."""
        return await self.request("POST", path, params=params, body=body, timeout=timeout)

    async def put(
        self, path: str, body: Any, *, params: _Params | None = None, timeout: float | None = 30.0
    ) -> Any:
        """PUT."""
        return await self.request("PUT", path, params=params, body=body, timeout=timeout)

    async def patch(
        self,
        path: str,
        body: Any,
        *,
        content_type: str = MERGE_PATCH,
        params: _Params | None = None,
        timeout: float | None = 30.0,
    ) -> Any:
        """PATCH, a JSON merge patch unless ``content_type`` says otherwise."""
        return await self.request(
            "PATCH", path, params=params, body=body, content_type=content_type, timeout=timeout
        )

    async def delete(
        self, path: str, body: Any = None, *, params: _Params | None = None, timeout: float | None = 30.0
    ) -> Any:
        """DELETE; ``body`` are DeleteOptions (preconditions, for one)."""
        return await self.request("DELETE", path, params=params, body=body, timeout=timeout)

    @asynccontextmanager
    async def stream(
        self,
        path: str,
        *,
        params: _Params | None = None,
        silence: float | None = None,
        connect_timeout: float = 10.0,
        headers: Mapping[str, str] | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """An answer to be read while it comes, as a watch's; without a byte for ``silence`` seconds it fails.

        Failures of reading inside the ``async with`` leave it as ``Unreachable``, too.
        """
        wire = {} if headers is None else dict(headers)
        timeout = aiohttp.ClientTimeout(connect=connect_timeout, sock_read=silence, ceil_threshold=_EXACT)
        while True:
            session = await self._ready()
            refused = self._authorize(wire)
            try:
                async with session.get(
                    self._url(path, params),
                    headers=wire,
                    timeout=timeout,
                    allow_redirects=False,
                    **self._extra,
                ) as response:
                    if response.status == 200:
                        transport = response.connection and response.connection.transport
                        try:
                            yield response
                        finally:
                            # Never back to the pool: the rest of an endless answer would have to be read.  And no
                            # goodbye by TLS: for a peer that is silent it would keep the connection half a minute.
                            response.close()
                            if transport is not None:
                                transport.abort()
                        return
                    failure = error_from_answer(response.status, response.headers, await response.read())
            except (aiohttp.ClientError, TimeoutError, OSError, RuntimeError) as error:
                raise self._unreachable(error) from error
            if not isinstance(failure, Unauthorized) or not await self.credentials.renew(refused):
                raise failure

    async def _ready(self) -> aiohttp.ClientSession:
        """The session for the next request, after whatever renewal is due."""
        if self.credentials.due():
            await self.credentials.refresh()
        if self._session is not None and self._generation == self.credentials.generation:
            return self._session
        if self._closed:
            raise Unreachable("the client is closed", sent=False)
        if self._session is not None:
            # Requests and watches under way may end on the old connections; two generations back, none does.
            for session in self._retired:
                await session.close()
            self._retired = [self._session]
        self._session = self._open()
        return self._session

    def _open(self) -> aiohttp.ClientSession:
        access = self.credentials.access
        self._generation = self.credentials.generation
        self._base = access.server
        self._extra = {}
        if access.tls_server_name:
            self._extra["server_hostname"] = access.tls_server_name
        if access.proxy:
            self._extra["proxy"] = access.proxy
            if access.proxy_authorization:
                self._extra["proxy_headers"] = {"Proxy-Authorization": access.proxy_authorization}
        connector = aiohttp.TCPConnector(
            limit=self._connection_limit,
            ssl=access.ssl_context() if access.server.startswith("https") else True,
            keepalive_timeout=_KEEPALIVE_SECONDS,
            ttl_dns_cache=60,
            socket_factory=_socket,
        )
        return aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            # Compression would save network that is not short and cost CPU that is, on both sides.
            headers={"User-Agent": self._user_agent, "Accept": _JSON_CONTENT, "Accept-Encoding": "identity"},
            read_bufsize=2**20,
        )

    def _authorize(self, headers: dict[str, str]) -> str | None:
        authorization = self.credentials.access.authorization
        if authorization:
            headers["Authorization"] = authorization
        return authorization

    def _url(self, path: str, params: _Params | None) -> URL:
        query = "?" + urlencode({k: _text(v) for k, v in params.items()}) if params else ""
        return URL(self._base + path + query, encoded=True)

    def _unreachable(self, error: BaseException) -> Unreachable:
        """Whether it was sent: errors of getting a connection come before the request is written."""
        unsent = isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError)
        if isinstance(error, RuntimeError) and not self._closed:
            raise error  # a bug, unless the session was closed under the request
        what = "no answer in time" if isinstance(error, TimeoutError) else type(error).__name__
        return Unreachable(f"{self._base}: {str(error) or what}", sent=not unsent)


@lru_cache(maxsize=64)
def _timeout(seconds: float | None) -> aiohttp.ClientTimeout:
    if seconds is None:
        return aiohttp.ClientTimeout()
    return aiohttp.ClientTimeout(total=seconds, connect=seconds * _CONNECT_SHARE, ceil_threshold=_EXACT)


def _text(value: str | int | bool) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def _socket(address: Any) -> socket.socket:
    """A socket that notices a vanished peer: a watch writes nothing that could fail."""
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", _USER_TIMEOUT_SECONDS // 2),
        ("TCP_KEEPINTVL", _USER_TIMEOUT_SECONDS // 6),
        ("TCP_KEEPCNT", 3),
        ("TCP_USER_TIMEOUT", _USER_TIMEOUT_SECONDS * 1000),
    ):
        if hasattr(socket, name):  # not on every system
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return made
