"""The HTTP session that Kopf uses: our credentials, and one answer translated that Kopf does not know.

A resource version that is too old usually comes as an ERROR event in a watch, upon which Kopf lists again.
It may as well come as the status of the answer, and that would end Kopf, and with it the process.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Self

import aiohttp
import kopf
import orjson

from moorage.adapters.kube.credentials import Credentials

if TYPE_CHECKING:
    from aiohttp.connector import Connection

_GONE = 410


class KopfResponse(aiohttp.ClientResponse):
    """An answer; a watch's 410 reads as a stream of one ERROR event."""

    async def start(self, connection: Connection) -> Self:
        """Read the head, and put the event in the place of the body if need be."""
        protocol = connection.protocol  # the connection may be free again once the answer is read
        await super().start(connection)
        if protocol is not None and self.status == _GONE and self.url.query.get("watch") == "true":
            status = {
                "kind": "Status",
                "code": _GONE,
                "reason": "Expired",
                "message": "too old resource version",
            }
            content = aiohttp.StreamReader(protocol, 2**16, loop=asyncio.get_running_loop())
            content.feed_data(orjson.dumps({"type": "ERROR", "object": status}) + b"\n")
            content.feed_eof()
            self.status, self.reason, self.content = 200, "OK", content
        return self


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
