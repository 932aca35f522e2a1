"""When pods were seen first on a watch: the clock of the benchmarks, the same for every scheduler."""

from __future__ import annotations

import asyncio
import time
from typing import Self

from tests.bench.api import Api
from tests.bench.workloads import COUNTED

_PODS = "/api/v1/pods"
BOUND = "spec.nodeName!="


class Sightings:
    """An async context manager; ``times`` maps the names of counted pods to monotonic seconds.

    ``fields`` selects which pods are seen; a pod that begins to match is seen then.  ``expected`` is how many of them
    are waited for.
    """

    def __init__(self, api: Api, expected: int, fields: str = "") -> None:
        self._api = api
        self._expected = expected
        self._fields = fields
        self._complete = asyncio.Event()
        self.times: dict[str, float] = {}

    async def __aenter__(self) -> Self:
        since = await self._api.version(_PODS)
        self._task = asyncio.create_task(self._look(since), name="sightings")
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def wait(self, seconds: float) -> None:
        """Until all expected pods are seen; TimeoutError after so long."""
        complete = asyncio.create_task(self._complete.wait())
        try:
            done, _ = await asyncio.wait(
                (self._task, complete), timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            complete.cancel()
        if self._task in done:
            self._task.result()
        if not self._complete.is_set():
            raise TimeoutError(f"{len(self.times)} of {self._expected} pods in {seconds:.0f} s")

    async def _look(self, since: str) -> None:
        async for event in self._api.watch(_PODS, since, fields=self._fields):
            name = event["object"]["metadata"]["name"]
            if event["type"] == "ADDED" and name.startswith(COUNTED):
                self.times.setdefault(name, time.monotonic())
                if len(self.times) >= self._expected:
                    self._complete.set()
