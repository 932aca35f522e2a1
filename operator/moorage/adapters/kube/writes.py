"""Small writes over connections of their own: bindings, events, conditions.

Two such requests are on the way of every pod, and a general HTTP client spends six times as long on one
as this does, which sends JSON, and reads no more of the answer than whether it went well.  There is
another reason: ``check`` is called with the connection in hand, right before the write, so that nothing
is sent on what was true when the wait for a connection began.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import Callable
from typing import Any, cast

import orjson
from yarl import URL

from moorage.adapters.kube.answers import Answer, AnswerReader, BrokenAnswer
from moorage.adapters.kube.client import KubeClient
from moorage.adapters.kube.errors import BadAnswer, Unauthorized, Unreachable, error_from_answer

#: The API server closes idle connections after 90 s; a write should not meet one that is just being closed.
_IDLE_SECONDS = 30.0
_CONNECT_SECONDS = 10.0
#: A peer that vanished without a word is noticed after so many milliseconds without acknowledgement.
_USER_TIMEOUT = 30_000


class Writer:
    """Sends requests and tells whether they went well; at most ``limit`` at a time, each on its own connection."""

    def __init__(self, client: KubeClient, *, limit: int, user_agent: str = "moorage") -> None:
        """``client`` has the credentials, and does the work where a proxy is in between; it is not closed here."""
        self._client = client
        self._credentials = client.credentials
        self._user_agent = user_agent
        self._slots = asyncio.Semaphore(limit)
        self._idle: deque[_Connection] = deque()
        self._open: set[_Connection] = set()
        self._generation = -1
        self._tls: ssl.SSLContext | None = None
        self._base = URL()
        self._prefix = ""  # a server may be a part of another one: https://proxy/clusters/one
        self._closed = False

    async def write(
        self,
        method: str,
        path: str,
        body: Any,
        *,
        content_type: str = "application/json",
        timeout: float = 30.0,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """Send it.  What ``check`` raises, it raises; beside that only ``KubeError``."""
        payload = orjson.dumps(body)
        async with self._slots:
            if self._credentials.due():
                await self._credentials.refresh()
            if self._credentials.access.proxy:
                check()
                await self._client.request(
                    method, path, body=payload, content_type=content_type, timeout=timeout
                )
                return
            while True:
                refused = self._credentials.access.authorization
                answer = await self._ask(method, path, payload, content_type, timeout, check)
                if 200 <= answer.status < 300:
                    return
                failure = error_from_answer(answer.status, answer.headers, answer.body)
                if not isinstance(failure, Unauthorized) or not await self._credentials.renew(refused):
                    raise failure

    async def close(self) -> None:
        """Close all connections; requests under way fail."""
        self._closed = True
        for connection in tuple(self._open):
            connection.abort()
        self._idle.clear()
        await asyncio.sleep(0)

    async def _ask(
        self,
        method: str,
        path: str,
        payload: bytes,
        content_type: str,
        timeout: float,
        check: Callable[[], None],
    ) -> Answer:
        connection = await self._connection()
        try:
            check()
            return await self._answer(connection, method, path, payload, content_type, timeout)
        finally:
            if connection.reusable:
                connection.idle_since = _now()
                self._idle.append(connection)
            else:
                connection.abort()

    async def _answer(
        self,
        connection: _Connection,
        method: str,
        path: str,
        payload: bytes,
        content_type: str,
        timeout: float,
    ) -> Answer:
        try:
            async with asyncio.timeout(timeout):  # awaits nothing before the write
                return await connection.ask(self._request(method, path, payload, content_type))
        except TimeoutError:
            raise Unreachable(f"{self._base}: no answer in time", sent=True) from None
        except BrokenAnswer as error:
            raise BadAnswer(f"{method} {path}: {error}") from error
        except OSError as error:
            sent = not isinstance(error, _NotSent)
            raise Unreachable(f"{self._base}: {str(error) or type(error).__name__}", sent=sent) from error

    def _request(self, method: str, path: str, payload: bytes, content_type: str) -> bytes:
        authorization = self._credentials.access.authorization
        secret = f"Authorization: {authorization}\r\n" if authorization else ""
        head = (
            f"{method} {self._prefix}{path} HTTP/1.1\r\nHost: {self._base.authority}\r\n{secret}"
            f"User-Agent: {self._user_agent}\r\nAccept: application/json\r\n"
            f"Content-Type: {content_type}\r\nContent-Length: {len(payload)}\r\n\r\n"
        )
        return head.encode() + payload

    async def _connection(self) -> _Connection:
        """An idle connection, or a new one."""
        self._notice_new_credentials()
        while self._idle:
            connection = self._idle.pop()  # the most recent: it is the least likely to be just closed
            if connection.reusable and _now() - connection.idle_since < _IDLE_SECONDS:
                return connection
            connection.abort()
        if self._closed:
            raise Unreachable("the writer is closed", sent=False)
        access = self._credentials.access
        secure = self._tls is not None
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                _, connection = await asyncio.get_running_loop().create_connection(
                    lambda: _Connection(self._open),
                    self._base.host or "",
                    self._base.port or 0,
                    ssl=self._tls,
                    server_hostname=(access.tls_server_name or self._base.host) if secure else None,
                )
        except (OSError, TimeoutError) as error:
            text = str(error) or type(error).__name__
            raise Unreachable(f"{self._base}: no connection: {text}", sent=False) from error
        return connection

    def _notice_new_credentials(self) -> None:
        """Certificates and servers belong to a connection; what is idle on older ones ends."""
        if self._generation == self._credentials.generation:
            return
        access = self._credentials.access
        self._generation = self._credentials.generation
        self._base = URL(access.server)
        self._prefix = self._base.path.rstrip("/")
        self._tls = access.ssl_context() if self._base.scheme == "https" else None
        while self._idle:
            self._idle.pop().abort()


class _NotSent(ConnectionResetError):
    """The connection was gone before anything was written to it."""


class _Connection(asyncio.Protocol):
    """One connection and the answer it waits for."""

    def __init__(self, register: set[_Connection]) -> None:
        """``register`` holds the connections that are open, those too whose maker was cancelled meanwhile."""
        self._register = register
        self._transport: asyncio.Transport | None = None
        self._reader = AnswerReader()
        self._waiting: asyncio.Future[Answer] | None = None
        self._keep_alive = True
        self.idle_since = 0.0

    @property
    def reusable(self) -> bool:
        """Whether another request may be sent on it."""
        transport = self._transport
        return (
            self._keep_alive
            and self._waiting is None
            and transport is not None
            and not transport.is_closing()
        )

    async def ask(self, request: bytes) -> Answer:
        """Send a request, and give its answer; the write itself comes before anything is awaited."""
        transport = self._transport
        if transport is None or transport.is_closing():
            raise _NotSent("the connection was closed")
        self._waiting = asyncio.get_running_loop().create_future()
        transport.write(request)
        answer = await self._waiting
        self._waiting = None
        self._keep_alive = answer.keep_alive
        return answer

    def abort(self) -> None:
        """Close it at once."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is there."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one, but not by its class
        self._register.add(self)
        _watch_over(transport.get_extra_info("socket"))

    def data_received(self, data: bytes) -> None:
        """A part of the answer, or all of it."""
        try:
            answer = self._reader.feed(data)
        except BrokenAnswer as error:
            self._fail(error)
            self.abort()
            return
        if answer is not None:
            self._finish(answer)

    def eof_received(self) -> bool:
        """No more comes: the answer may have ended by that."""
        answer = self._reader.end()
        if answer is not None:
            self._finish(answer)
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone."""
        self._transport = None
        self._register.discard(self)
        self._fail(exc if isinstance(exc, OSError) else ConnectionResetError("the connection was lost"))

    def _finish(self, answer: Answer) -> None:
        if self._waiting is None or self._waiting.done():
            self._keep_alive = False  # nobody asked, or nobody waits any more
            self.abort()
            return
        self._waiting.set_result(answer)

    def _fail(self, error: Exception) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(error)


def _watch_over(sock: socket.socket | None) -> None:
    """Have the system notice a peer that is gone."""
    if sock is None:
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # not on every system
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _USER_TIMEOUT)


def _now() -> float:
    return asyncio.get_running_loop().time()
