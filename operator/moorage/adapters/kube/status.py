"""Writes the PodScheduled condition, others of ours, and nominations into pods' status.

Autoscalers act on nothing but this condition, so it is written promptly; and it must never speak of
a pod that is bound or replaced meanwhile, so every patch carries the UID and the resource version it
was decided on, and a bind settles the pod's patches before it goes (``settle``).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from moorage.adapters.kube.client import STRATEGIC_PATCH
from moorage.adapters.kube.errors import (
    ApiError,
    Conflict,
    Forbidden,
    NotFound,
    ServerError,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from moorage.adapters.kube.writes import Writer
from moorage.core.model.instructions import SetCondition
from moorage.core.model.pod import Pod, PodRef
from moorage.runtime.ports import Clock, PodReader, PodReadError

logger = logging.getLogger(__name__)

_TIMEOUT = 10.0
#: Pauses before another try when the API server is away; after them the engine's next attempt writes again.
_PAUSES = (0.2, 1.0, 3.0, 9.0)
_CONFLICTS = 5

#: By the condition's type.
_Changes = dict[str, SetCondition]
_SCHEDULED = "PodScheduled"


class _Flight:
    """A patch being written: ``settle`` abandons its next try and awaits its end."""

    def __init__(self) -> None:
        self.abandoned = asyncio.Event()
        self.landed = asyncio.Event()

    async def pause(self, seconds: float) -> bool:
        """Wait before another try; False when there is to be none."""
        try:
            await asyncio.wait_for(self.abandoned.wait(), seconds)
        except TimeoutError:
            return True
        return False


class KubeStatusWriter:
    """Patches ``pods/status``; at most one write a pod at a time, ``workers`` pods at a time.

    ``count`` is told how each write ended: written, unchanged, dropped, failed.
    """

    def __init__(
        self,
        writer: Writer,
        reader: PodReader,
        clock: Clock,
        *,
        workers: int = 8,
        count: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._writer = writer
        self._reader = reader
        self._clock = clock
        self._workers = workers
        self._count = count
        self._waiting: dict[str, _Changes] = {}  # by UID
        self._in_flight: dict[str, _Flight] = {}  # by UID
        self._queue: asyncio.Queue[str] = asyncio.Queue()
        self._warned = False

    @property
    def backlog(self) -> int:
        """How many pods wait for their patch."""
        return len(self._waiting)

    def set_condition(self, change: SetCondition) -> None:
        """Enqueue the patch; a newer one for the same pod and condition replaces one still waiting."""
        uid = change.ref.uid
        waiting = self._waiting.get(uid)
        if waiting is None:
            waiting = self._waiting[uid] = {}
            if uid not in self._in_flight:
                self._queue.put_nowait(uid)
        older = waiting.pop(change.type, None)  # the newest comes last
        if older is not None and change.nominated_node is None:
            change = replace(change, nominated_node=older.nominated_node)
        waiting[change.type] = change

    async def settle(self, ref: PodRef) -> None:
        """Drop the pod's waiting patch and wait for one in flight, so that a bind may follow."""
        self._waiting.pop(ref.uid, None)
        flight = self._in_flight.get(ref.uid)
        if flight is not None:
            flight.abandoned.set()
            await flight.landed.wait()

    async def run(self) -> None:
        """Write for ever."""
        async with asyncio.TaskGroup() as tasks:
            for _ in range(self._workers):
                tasks.create_task(self._work(), name="status writer")

    async def flush(self, grace: float) -> None:
        """Wait until everything is written, for ``grace`` seconds at most."""
        deadline = asyncio.get_running_loop().time() + grace
        while (self._waiting or self._in_flight) and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.02)

    async def _work(self) -> None:
        while True:
            uid = await self._queue.get()
            if uid in self._in_flight:
                continue  # the writer at work puts it in line again
            changes = self._waiting.pop(uid, None)
            if changes is None:
                continue  # settled meanwhile
            flight = self._in_flight[uid] = _Flight()
            try:
                self._count(await self._write(changes, flight))
            finally:
                del self._in_flight[uid]
                flight.landed.set()
                if uid in self._waiting:
                    self._queue.put_nowait(uid)

    async def _write(self, changes: _Changes, flight: _Flight) -> str:
        """One patch of all the conditions."""
        newest = next(reversed(changes.values()))
        ref = newest.ref
        path = f"/api/v1/namespaces/{ref.namespace}/pods/{ref.name}/status"
        pauses, conflicts, version = iter(_PAUSES), 0, newest.resource_version
        while not (flight.abandoned.is_set() or ref.uid in self._waiting):
            try:
                await self._writer.write(
                    "PATCH",
                    path,
                    self._body(changes, version),
                    content_type=STRATEGIC_PATCH,
                    timeout=_TIMEOUT,
                )
            except NotFound:
                return "dropped"
            except Conflict as error:
                live = await self._live(ref)
                conflicts += 1
                if live is None or conflicts > _CONFLICTS:
                    logger.debug("Condition of %s dropped: %s", ref.key, error)
                    return "dropped"
                changes = _still_to_write(changes, live)
                if not changes:
                    return "unchanged"
                version = live.resource_version
            except (Unreachable, ServerError, TooManyRequests, Unauthorized) as error:
                pause = next(pauses, None)
                if pause is None:
                    logger.warning("Condition of %s cannot be written: %s", ref.key, error)
                    return "failed"
                asked = error.retry_after if isinstance(error, ApiError) else 0.0
                if not await flight.pause(max(pause, min(asked, _PAUSES[-1]))):
                    return "dropped"
            except ApiError as error:
                self._refused(ref, error)
                return "failed"
            else:
                return "written"
        if not flight.abandoned.is_set():  # something newer waits: what it says nothing of goes with it
            waiting = self._waiting[ref.uid]
            for kind, change in changes.items():
                waiting.setdefault(kind, change)
        return "dropped"

    async def _live(self, ref: PodRef) -> Pod | None:
        """The pod as it is now, if a condition of ours still has a place in it."""
        try:
            pod = await self._reader.fetch(ref)
        except PodReadError:
            return None
        return pod if pod is not None and pod.uid == ref.uid and not pod.node_name else None

    def _body(self, changes: _Changes, version: str) -> dict[str, Any]:
        """The patch.  A strategic merge keeps conditions of other types, and the fields that it does not name."""
        now = datetime.fromtimestamp(self._clock.now(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        status: dict[str, Any] = {"conditions": []}
        uid = ""
        for kind, change in changes.items():
            uid = change.ref.uid
            condition: dict[str, Any] = {
                "type": kind,
                "status": change.status,
                "reason": change.reason,
                "message": change.message,
            }
            if change.transition:
                condition["lastTransitionTime"] = now
            if change.generation:
                condition["observedGeneration"] = change.generation
            status["conditions"].append(condition)
            if change.nominated_node is not None:
                status["nominatedNodeName"] = change.nominated_node or None
        return {"metadata": {"uid": uid, "resourceVersion": version}, "status": status}

    def _refused(self, ref: PodRef, error: ApiError) -> None:
        if isinstance(error, Forbidden):
            if self._warned:
                return
            self._warned = True
        logger.warning("Condition of %s cannot be written: %s", ref.key, error)


def _still_to_write(changes: _Changes, live: Pod) -> _Changes:
    """The changes as they are to be made to the pod as it is now."""
    change = changes.get(_SCHEDULED)
    if change is None:
        return changes
    status, reason, message = live.scheduled_condition
    same = (status, reason, message) == (change.status, change.reason, change.message)
    if same and change.nominated_node in (None, live.nominated_node):
        return {kind: other for kind, other in changes.items() if kind != _SCHEDULED}
    return {**changes, _SCHEDULED: replace(change, transition=status != change.status)}
