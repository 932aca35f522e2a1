"""Reads the pods that wait once more, when they are to be read differently."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

from moorage.adapters.kube.client import KubeClient
from moorage.adapters.kube.errors import Gone, KubeError
from moorage.adapters.kube.pending import pages_of_pending

logger = logging.getLogger(__name__)

_RETRY = 2.0


class PendingReview:
    """Tells of every pod that waits, unless the stream has told of it meanwhile: then that is newer.

    The stream itself cannot be told to begin anew.
    """

    def __init__(
        self,
        client: KubeClient,
        tell: Callable[[Mapping[str, Any]], None],
        *,
        selector: str,
        slice: float = 0.008,
    ) -> None:
        self._client = client
        self._tell = tell
        self._selector = selector
        self._slice = slice
        self._newer: set[str] | None = None  # UIDs that the stream has told of since the beginning

    def saw(self, uid: str) -> None:
        """The stream shows the pod, or its leaving."""
        if self._newer is not None:
            self._newer.add(uid)

    async def carry_out(self) -> None:
        """Return when all were told of, however long the API server is away."""
        self._newer = set()
        try:
            while True:
                try:
                    await self._list()
                except Gone:
                    logger.debug("The list of pending pods took too long and starts over")
                except KubeError as error:
                    logger.info("Pending pods cannot be listed now: %s", error)
                    await asyncio.sleep(_RETRY)
                else:
                    return
        finally:
            self._newer = None

    async def _list(self) -> None:
        async for page in pages_of_pending(self._client, self._selector):
            end = time.perf_counter() + self._slice
            for pod in page:
                if self._newer is not None and pod["metadata"]["uid"] not in self._newer:
                    self._tell(pod)
                if time.perf_counter() > end:
                    await asyncio.sleep(0)
                    end = time.perf_counter() + self._slice
