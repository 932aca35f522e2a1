"""Connections that are held to deadlines and limits, which aiohttp's server leaves to whatever stands before it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

from aiohttp import web


@dataclass(frozen=True, slots=True)
class Limits:
    """``request`` seconds for a whole request to come in, ``idle`` for the first one to begin, ``stalled`` for a client
    to read on when it has stopped reading an answer; ``body`` bytes a request, ``bodies`` all at the same time.

    Parsing takes 5 ms or so a megabyte, during which nothing else is answered: the parser holds the interpreter's
    lock, in a thread of its own, too.
    """

    connections: int = 512
    request: float = 15.0
    idle: float = 120.0
    stalled: float = 15.0
    body: int = 32 << 20
    bodies: int = 512 << 20


@dataclass(slots=True)
class Guards:
    """All connections of a server."""

    limits: Limits
    by_handler: dict[asyncio.BaseProtocol, Guard] = field(default_factory=dict)
    turned_away: int = 0

    def protocol(self, make: Callable[[], web.RequestHandler]) -> asyncio.Protocol:
        """What a new connection is served by."""
        return Guard(self, make)

    def received(self, handler: asyncio.BaseProtocol) -> None:
        """The request that was coming in on a connection is complete, or nobody waits for the rest."""
        guard = self.by_handler.get(handler)
        if guard is not None:
            guard.received()


class Guard(asyncio.Protocol):
    """Passes one connection's events on to aiohttp's handler, and ends what takes too long."""

    def __init__(self, guards: Guards, make: Callable[[], web.RequestHandler]) -> None:
        self._guards = guards
        self._limits = guards.limits
        self._inner = make()
        self._transport: asyncio.Transport | None = None
        self._reading: asyncio.TimerHandle | None = None
        self._writing: asyncio.TimerHandle | None = None
        self._incoming = False  # a request has begun

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has connected."""
        transport = cast("asyncio.Transport", transport)  # uvloop's is one in all but its class
        if len(self._guards.by_handler) >= self._limits.connections:
            self._guards.turned_away += 1
            transport.abort()
            return
        self._transport = transport
        self._guards.by_handler[self._inner] = self
        self._expect(self._limits.idle)
        self._inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """A part of a request."""
        if self._transport is None:
            return
        if not self._incoming:
            self._incoming = True
            self._expect(self._limits.request)
        self._inner.data_received(data)

    def received(self) -> None:
        """See ``Guards.received``."""
        self._incoming = False
        self._expect(None)

    def eof_received(self) -> bool | None:
        """The client has nothing more to say."""
        if self._transport is not None:
            self._inner.eof_received()
        return None

    def pause_writing(self) -> None:
        """The client does not read what we write."""
        if self._transport is not None:
            loop = asyncio.get_running_loop()
            self._writing = loop.call_later(self._limits.stalled, self._transport.abort)
            self._inner.pause_writing()

    def resume_writing(self) -> None:
        """It reads again."""
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None
        if self._transport is not None:
            self._inner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """It has gone."""
        if self._transport is None:
            return
        self._expect(None)
        if self._writing is not None:
            self._writing.cancel()
        self._guards.by_handler.pop(self._inner, None)
        self._transport = None
        self._inner.connection_lost(exc)

    def _expect(self, within: float | None) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None
        if within is not None and self._transport is not None:
            self._reading = asyncio.get_running_loop().call_later(within, self._transport.abort)
