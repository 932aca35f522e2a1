"""The HTTP session that Kopf uses: our credentials, and those answers translated that would end Kopf.

A resource version that is too old usually comes as an ERROR event in a watch, upon which Kopf lists again.
It may as well come as the status of the answer, and that would end Kopf, and with it the process.  The same goes
for kinds that are not served (``kopf_kinds.py``).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Self

import aiohttp
import kopf
import orjson
from aiohttp.base_protocol import BaseProtocol

from moorage.adapters.kube import kopf_kinds
from moorage.adapters.kube.credentials import Credentials

if TYPE_CHECKING:
    from aiohttp.connector import Connection

_GONE = 410


class KopfResponse(aiohttp.ClientResponse):
    """An answer; a watch's 410 reads as a stream of one ERROR event."""

    _discovery = False
    _refusal = False

    async def start(self, connection: Connection) -> Self:
        """Read the head, and put something else in the place of the answer if need be."""
        await super().start(connection)
        watched = self.url.query.get("watch") == "true"
        self._discovery = kopf_kinds.is_discovery(self.url, self.status)
        self._refusal = kopf_kinds.is_refusal(self.url, self.status)
        if self._refusal and watched:
            await self.read()
            await asyncio.sleep(kopf_kinds.LOOK_AGAIN)
            self.content = _expired()
        elif self.status == _GONE and watched:
            self.content = _expired()
        elif not (self._discovery or self._refusal):
            return self
        self.status, self.reason = 200, "OK"
        return self

    async def json(self, **options: Any) -> Any:
        """The parsed answer."""
        if self._refusal:
            return kopf_kinds.empty_list()
        if not self._discovery:
            return await super().json(**options)
        try:
            answer = orjson.loads(await self.read())
        except orjson.JSONDecodeError:  # where nothing is, the answer is plain text
            answer = None
        return kopf_kinds.with_policies(self.url, answer)


def _expired() -> aiohttp.StreamReader:
    """A watch's stream, with the one event upon which Kopf lists again."""
    loop = asyncio.get_running_loop()
    content = aiohttp.StreamReader(
        BaseProtocol(loop), 2**16, loop=loop
    )  # the connection may be others' by now
    status = {"kind": "Status", "code": _GONE, "reason": "Expired", "message": "too old resource version"}
    content.feed_data(orjson.dumps({"type": "ERROR", "object": status}) + b"\n")
    content.feed_eof()
    return content


async def open_kopf_session(credentials: Credentials) -> kopf.AiohttpSession:
    """A session for an ``@kopf.on.login`` handler.  Kopf closes it, and asks for another one after a 401."""
    await credentials.renew(credentials.access.authorization)
    access = credentials.access
    secure = access.server.startswith("https:")
    headers = {"Accept-Encoding": "identity"}  # as in client.py
    if access.authorization:
        headers["Authorization"] = access.authorization
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, ssl=access.ssl_context() if secure else True),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers=headers,
        response_class=KopfResponse,
        proxy=access.proxy,
    )
    return kopf.AiohttpSession(server=access.server, aiohttp_session=session)
