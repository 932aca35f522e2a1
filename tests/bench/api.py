"""A fast client of the benchmarks: many requests in flight, watches that cost little, no caches.

It is as plain as can be, since what it costs is taken from the schedulers on the same machine.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any, Self, TypeVar

import aiohttp
import orjson

from tests.controlplane.client import ApiError, Client
from tests.controlplane.controlplane import ControlPlane

T = TypeVar("T")
Obj = dict[str, Any]
MERGE = "application/merge-patch+json"
#: Only the metadata of objects, which is a tenth of a pod.
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_LONGEST_LINE = 1 << 21


class Api:
    """An async context manager; ``width`` requests are in flight at most."""

    def __init__(
        self, url: str, token: str, ca: str, *, admin: Client | None = None, width: int = 64
    ) -> None:
        self._url, self._token, self._ca = url, token, ca
        self._admin = admin
        self._width = width

    @classmethod
    def of(cls, plane: ControlPlane) -> Self:
        """For a control plane, whose own client knows the paths of kinds."""
        return cls(plane.url, plane.token, plane.ca, admin=plane.admin)

    @property
    def admin(self) -> Client:
        """The control plane's own client: slower, and it waits for what takes effect later."""
        assert self._admin is not None
        return self._admin

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            base_url=self._url,
            headers={"Authorization": f"Bearer {self._token}"},
            connector=aiohttp.TCPConnector(limit=0, ssl=ssl.create_default_context(cadata=self._ca)),
            timeout=aiohttp.ClientTimeout(total=60),
            read_bufsize=_LONGEST_LINE,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        params: dict[str, str] | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> bytes:
        """Send one request and give the answer as it came; ApiError for 400 and above."""
        headers = {"Accept": accept, "Content-Type": content_type}
        payload = body if body is None or isinstance(body, bytes) else orjson.dumps(body)
        async with self._session.request(
            method, path, data=payload, params=params, headers=headers
        ) as answer:
            text = await answer.read()
            if answer.status >= 400:
                said = orjson.loads(text) if "json" in answer.content_type else text.decode(errors="replace")
                raise ApiError(answer.status, said, f"{method} {path}")
            return text

    def path(self, obj: Obj) -> str:
        """The path of the collection that an object belongs to."""
        client, kind, version = self.admin, obj["kind"], obj["apiVersion"]
        namespaced = client.resource(kind, version).namespaced
        namespace = obj["metadata"].get("namespace", "default") if namespaced else None
        return client.path(kind, None, namespace, version)

    async def create(self, obj: Obj) -> None:
        """Create one object."""
        await self.request("POST", self.path(obj), obj)

    async def create_all(self, objects: Iterable[Obj]) -> None:
        """Create the objects, taken from the iterable in order, many at a time."""
        await self.each(objects, self.create)

    async def each(self, items: Iterable[T], do: Callable[[T], Awaitable[object]]) -> None:
        """Do it to every item, ``width`` of them at a time."""
        left = iter(items)

        async def work() -> None:
            for item in left:
                await do(item)

        async with asyncio.TaskGroup() as tasks:
            for _ in range(self._width):
                tasks.create_task(work())

    async def items(self, path: str, **params: str) -> list[Obj]:
        """The objects of a collection."""
        answer = orjson.loads(await self.request("GET", path, params=params))
        found: list[Obj] = answer["items"]
        return found

    async def version(self, path: str) -> str:
        """A resource version of a collection from which a watch can start."""
        answer = orjson.loads(await self.request("GET", path, params={"limit": "1"}))
        return str(answer["metadata"]["resourceVersion"])

    async def count(self, path: str) -> int:
        """How many objects a collection has."""
        answer = orjson.loads(await self.request("GET", path, params={"limit": "1"}))
        return len(answer["items"]) + int(answer["metadata"].get("remainingItemCount", 0))

    async def watch(
        self, path: str, since: str, *, fields: str = "", accept: str = METADATA
    ) -> AsyncIterator[Obj]:
        """The events of a watch for as long as it is asked for them; where the server ends it, it is taken up again.

        ConnectionError if the server cannot go on from there.
        """
        params = {"watch": "true", "resourceVersion": since, "timeoutSeconds": "3600"}
        if fields:
            params["fieldSelector"] = fields
        timeout = aiohttp.ClientTimeout(total=None)
        while True:
            async with self._session.get(
                path, params=params, headers={"Accept": accept}, timeout=timeout
            ) as answer:
                answer.raise_for_status()
                connection = answer.connection  # None once all is read
                try:
                    async for line in answer.content:
                        event: Obj = orjson.loads(line)
                        if event["type"] == "ERROR":
                            raise ConnectionError(f"watch of {path}: {event['object']}")
                        params["resourceVersion"] = event["object"]["metadata"]["resourceVersion"]
                        yield event
                finally:
                    # A polite end takes a round trip, for which nobody waits: the loop may be closed by then.
                    if connection is not None and connection.transport is not None:
                        connection.transport.abort()
            await asyncio.sleep(0.05)
