"""Lists which pods are pending, so that one whose end no stream has told about is forgotten.

Kopf lists again after a 410 without telling what has vanished meanwhile.  Only names and UIDs are
asked for: that is cheap enough to do every half minute.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

from moorage.adapters.kube.client import KubeClient
from moorage.adapters.kube.errors import Gone, KubeError
from moorage.core.model.events import PendingListed
from moorage.runtime.ports import Clock

logger = logging.getLogger(__name__)

_PENDING = "spec.nodeName=,status.phase!=Succeeded,status.phase!=Failed"
_METADATA_ONLY = {"Accept": "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"}
_PAGE = 1000


def pending_selector(scheduler_names: Sequence[str]) -> str:
    """The field selector of the pods that wait for us; the Kopf handler watches the same.

    With a single name, the API server leaves out the pods of other schedulers; several cannot be
    asked for at once.
    """
    return f"{_PENDING},spec.schedulerName={scheduler_names[0]}" if len(scheduler_names) == 1 else _PENDING


async def list_pending(client: KubeClient, scheduler_name: str) -> list[dict[str, Any]]:
    """The pods that wait under this scheduler name, complete, in pages.  Raises ``KubeError``."""
    selector = pending_selector((scheduler_name,))
    while True:
        try:
            return [pod async for page in pages_of_pending(client, selector) for pod in page]
        except Gone:
            logger.debug("The list of pending pods took too long and starts over")


async def pages_of_pending(
    client: KubeClient, selector: str, headers: Mapping[str, str] | None = None
) -> AsyncIterator[list[dict[str, Any]]]:
    params: dict[str, str | int | bool] = {"fieldSelector": selector, "limit": _PAGE}
    while True:
        page = await client.request("GET", "/api/v1/pods", params=params, headers=headers)
        yield page.get("items") or []
        token = (page.get("metadata") or {}).get("continue")
        if not token:
            return
        params["continue"] = token


class PendingLister:
    """Submits a ``PendingListed`` every ``interval`` seconds."""

    def __init__(
        self,
        client: KubeClient,
        submit: Callable[[PendingListed], None],
        clock: Clock,
        *,
        selector: str,
        interval: float = 30.0,
    ) -> None:
        self._client = client
        self._submit = submit
        self._clock = clock
        self._selector = selector
        self._interval = interval

    async def run(self) -> None:
        """List for ever.  A list that fails is left out: the next one tells the same."""
        while True:
            await asyncio.sleep(self._interval)
            try:
                self._submit(await self.list_once())
            except KubeError as error:
                logger.info("Pending pods cannot be listed now: %s", error)

    async def list_once(self) -> PendingListed:
        """One list, in pages; a page too old to go on from starts it over."""
        while True:
            listed_at = self._clock.now()
            try:
                return PendingListed(frozenset(await self._uids()), listed_at)
            except Gone:
                logger.debug("The list of pending pods took too long and starts over")

    async def _uids(self) -> list[str]:
        pages = pages_of_pending(self._client, self._selector, _METADATA_ONLY)
        return [item["metadata"]["uid"] async for page in pages for item in page]
