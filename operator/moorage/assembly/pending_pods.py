"""The way of pods that wait for a node: from Kopf's handlers, and from lists, to the engine."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from moorage.adapters.kube.client import KubeClient
from moorage.adapters.kube.convert import Converter
from moorage.adapters.kube.errors import KubeError
from moorage.adapters.kube.pending import PendingLister, list_pending, pending_selector
from moorage.adapters.kube.pending_review import PendingReview
from moorage.adapters.kube.raw_objects import RawObjects
from moorage.adapters.telemetry.metrics import Metrics
from moorage.core.model.events import Event, PodBound, PodLeftPending, PodPending
from moorage.core.model.pod import PodRef
from moorage.runtime.first_sight import FirstSight
from moorage.runtime.loop import SchedulingLoop
from moorage.runtime.ports import Clock
from moorage.runtime.settings import Settings

logger = logging.getLogger(__name__)

_FIRST_LIST_RETRY = 1.0
_NEW_NAME_RETRY = 2.0


class PendingPods:
    """Passes on the pods of our scheduler names, and knows when all that waited at the start have been seen."""

    def __init__(
        self,
        client: KubeClient,
        loop: SchedulingLoop,
        converter: Converter,
        raw: RawObjects,
        clock: Clock,
        metrics: Metrics,
        *,
        settings: Settings,
        names: Sequence[str],
    ) -> None:
        self._client = client
        self._loop = loop
        self._converter = converter
        self._raw = raw
        self._metrics = metrics
        self._names = frozenset(names)
        self._first_sight = FirstSight(clock.now)
        # Names that come from a file may change with it, and the selector of a stream cannot.
        fixed = settings.scheduler_name or settings.config is None
        self.selector = pending_selector(names if fixed else ())
        self._lister = PendingLister(
            client, loop.submit, clock, selector=self.selector, interval=settings.pending_interval
        )
        self._review = PendingReview(client, self._waits_still, selector=self.selector)

    @property
    def all_seen(self) -> bool:
        """Whether the pods that waited at the start are known, so that decisions may be made."""
        return self._first_sight.is_open()

    def event(self, kind: str | None, obj: Mapping[str, Any]) -> None:
        """The stream of unscheduled pods shows a pod, or its leaving (``DELETED``); never raises.

        Leaving says nothing but that: the pod may be bound, finished or deleted.
        """
        try:
            self._first_sight.saw(obj["metadata"]["uid"])
            self._review.saw(obj["metadata"]["uid"])
            if kind != "DELETED":
                self._waits(obj)
            elif self._is_ours(obj):
                meta = obj["metadata"]
                self._raw.left_pending(meta["uid"])
                self._loop.submit(PodLeftPending(PodRef(meta["namespace"], meta["name"], meta["uid"])))
        except Exception as error:  # noqa: BLE001 - Kopf would log it and go on, and so do we, but counted
            self._malformed(error)

    def _is_ours(self, obj: Mapping[str, Any]) -> bool:
        return (obj.get("spec") or {}).get("schedulerName") in self._names

    def _waits(self, obj: Mapping[str, Any]) -> None:
        if self._is_ours(obj):
            pod = self._converter.pod(obj)
            self._raw.pending_pod(obj)
            self._loop.submit(PodPending(pod))

    def _waits_still(self, obj: Mapping[str, Any]) -> None:
        """The pod as a list has it."""
        try:
            self._waits(obj)
        except Exception as error:  # noqa: BLE001 - as above
            self._malformed(error)

    def _malformed(self, error: Exception) -> None:
        self._metrics.object_malformed("pending pods")
        logger.warning("A pending pod cannot be read and is left out: %s", error)

    async def look_again(self) -> None:
        """Read every pod that waits once more, and return when that is done."""
        await self._review.carry_out()

    def bound_event(self, event: Event) -> None:
        """The stream of bound pods, and of all else, passes by."""
        if isinstance(event, PodBound):
            self._first_sight.saw(event.pod.uid)
        self._loop.submit(event)

    async def rename(self, names: frozenset[str]) -> None:
        """These are our scheduler names from now on.

        Kopf has shown the pods of a new name before, when they were none of ours: they are listed.
        """
        before, self._names = self._names, names
        for name in sorted(names - before):
            for pod in await self._listed(name):
                self.event(None, pod)

    async def _listed(self, name: str) -> Sequence[Mapping[str, Any]]:
        while True:
            try:
                return await list_pending(self._client, name)
            except KubeError as error:
                logger.warning("The pods that wait for %s cannot be listed now: %s", name, error)
                await asyncio.sleep(_NEW_NAME_RETRY)

    async def run(self) -> None:
        """List the pods that wait from time to time, since a stream does not tell of all that vanish."""
        await self._lister.run()

    async def expect(self) -> None:
        """Learn which pods wait, so that the first decision is made knowing all of them."""
        while True:
            try:
                self._first_sight.expect((await self._lister.list_once()).uids)
            except KubeError as error:
                logger.info("Pending pods cannot be listed now: %s", error)
                await asyncio.sleep(_FIRST_LIST_RETRY)
            else:
                self._loop.wake()
                return
