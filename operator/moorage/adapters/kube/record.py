"""Writes Kubernetes Events about pods, as kube-scheduler does: same group, reasons, fields and texts.

Events are for people and may lag or be dropped (and then are counted); they never hold up anything.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
import uuid
from datetime import UTC, datetime
from typing import Any, Protocol

from moorage.adapters.kube.client import STRATEGIC_PATCH
from moorage.adapters.kube.errors import (
    ApiError,
    Forbidden,
    KubeError,
    NotFound,
    ServerError,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from moorage.adapters.kube.series import Series, SeriesBook
from moorage.adapters.kube.writes import Writer
from moorage.core.model.instructions import Record, RecordType
from moorage.runtime.ports import Clock

logger = logging.getLogger(__name__)

_TIMEOUT = 10.0
_PAUSES = (1.0, 2.0, 4.0, 8.0, 16.0)
#: The API's limits on a note and on reportingInstance.
_LONGEST_NOTE, _LONGEST_INSTANCE = 1024, 128
_CUT = " ..."
_LONGEST_NAME = 253
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
#: After a refusal for want of permission, how long none is tried: the permission may be given meanwhile.
_OFF_SECONDS = 300.0
_SWEEP_SECONDS = 60.0


class RecordMeter(Protocol):
    """Counts events."""

    def recorded(self, lag: float) -> None:
        """An event is in the cluster, so many seconds after it was recorded."""
        ...

    def record_dropped(self, why: str) -> None:
        """An event is not written: full, off, refused, unavailable."""
        ...


class KubeRecorder:
    """A bounded queue of events and a few workers that write them.

    ``controller`` is the name users know the scheduler by, where a record does not say; ``instance`` tells
    its replicas apart.
    """

    def __init__(
        self,
        writer: Writer,
        clock: Clock,
        meter: RecordMeter,
        *,
        controller: str,
        instance: str,
        workers: int = 8,
        capacity: int = 10_000,
        enabled: bool = True,
    ) -> None:
        self._writer = writer
        self._clock = clock
        self._meter = meter
        self._controller = controller
        self._instance = instance[:_LONGEST_INSTANCE]
        self._workers = workers
        self._queue: asyncio.Queue[tuple[Record, float]] = asyncio.Queue(capacity)
        self._series = SeriesBook()
        self._off_until = 0.0 if enabled else float("inf")
        self._warned = False
        self._writing = 0
        self._last_stamp = 0

    @property
    def backlog(self) -> int:
        """How many events wait to be written."""
        return self._queue.qsize()

    def record(self, record: Record) -> None:
        """Enqueue the event; never blocks and never raises."""
        if self._off_until and self._off():
            self._meter.record_dropped("off")
            return
        try:
            self._queue.put_nowait((record, self._clock.now()))
        except asyncio.QueueFull:
            self._meter.record_dropped("full")

    async def run(self) -> None:
        """Write for ever."""
        async with asyncio.TaskGroup() as tasks:
            for _ in range(self._workers):
                tasks.create_task(self._work(), name="event writer")
            tasks.create_task(self._sweep(), name="event series")

    async def flush(self, grace: float) -> None:
        """Wait until what is recorded is written, for ``grace`` seconds at most."""
        deadline = _time() + grace
        while (self._writing or self._queue.qsize()) and _time() < deadline:
            await asyncio.sleep(0.02)

    async def _work(self) -> None:
        while True:
            record, at = await self._queue.get()
            self._writing += 1
            try:
                await self._write(record, at)
            finally:
                self._writing -= 1

    async def _write(self, record: Record, at: float) -> None:
        # Only warnings repeat; a Normal record tells of something that happens once.
        if record.type is not RecordType.WARNING:
            await self._create(record, self._new_name(record), at)
            return
        series = self._series.seen(record, at)
        if series is None:
            name = self._new_name(record)
            series = self._series.begin(record, name, at)
            if not await self._create(record, name, at):
                self._series.end(record)
                return
            series.busy = False
        if series.due(self._clock.now()) and not await self._count_up(series):
            # The event has expired in the cluster (after an hour): the next one is a first one again.
            self._series.end(record)

    async def _create(self, record: Record, name: str, at: float) -> bool:
        ref = record.ref
        body = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": ref.namespace},
            "eventTime": _micro_time(at),
            "reportingController": record.scheduler_name or self._controller,
            "reportingInstance": self._instance,
            "action": record.action,
            "reason": record.reason,
            "regarding": {
                "apiVersion": "v1",
                "kind": "Pod",
                "namespace": ref.namespace,
                "name": ref.name,
                "uid": ref.uid,
            },
            "note": _cut(record.message),
            "type": record.type.value,
        }
        path = f"/apis/events.k8s.io/v1/namespaces/{ref.namespace}/events"
        written = await self._send("POST", path, body)
        if written:
            self._meter.recorded(self._clock.now() - at)
        return written

    async def _count_up(self, series: Series) -> bool:
        """Write how often a repeated event has happened; False if the event is not there any more."""
        count = series.count
        body = {"series": {"count": count, "lastObservedTime": _micro_time(series.last_seen)}}
        path = f"/apis/events.k8s.io/v1/namespaces/{series.namespace}/events/{series.name}"
        series.busy = True
        written = await self._send("PATCH", path, body, STRATEGIC_PATCH)
        series.busy = False
        if written:
            series.written_count, series.written_at = count, self._clock.now()
        return written

    async def _send(
        self, method: str, path: str, body: dict[str, Any], content_type: str = "application/json"
    ) -> bool:
        """One write, with patience for an API server that is away."""
        pauses = iter(_PAUSES)
        while True:
            try:
                await self._writer.write(method, path, body, content_type=content_type, timeout=_TIMEOUT)
            except (Unreachable, ServerError, TooManyRequests, Unauthorized) as error:
                pause = next(pauses, None)
                if pause is None:
                    self._meter.record_dropped("unavailable")
                    return False
                asked = error.retry_after if isinstance(error, ApiError) else 0.0
                await asyncio.sleep(max(pause, min(asked, _PAUSES[-1])))
            except KubeError as error:
                self._meter.record_dropped("refused")
                self._refused(error)
                return False
            else:
                return True

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            for series in self._series.sweep(self._clock.now()):
                await self._count_up(series)

    def _refused(self, error: KubeError) -> None:
        # In a namespace that is being deleted nothing can be created; that says nothing about the next one.
        if isinstance(error, NotFound) or "being terminated" in str(error):
            return
        if isinstance(error, Forbidden):
            self._off_until = _time() + _OFF_SECONDS
            if self._warned:
                return
            self._warned = True
            logger.warning("Events are not written: %s", error)
            return
        logger.info("An event was refused: %s", error)

    def _off(self) -> bool:
        if _time() < self._off_until:
            return True
        self._off_until = 0.0
        return False

    def _new_name(self, record: Record) -> str:
        """``pod.<time in hexadecimal>``, as client-go names events; unique within this process."""
        self._last_stamp = max(self._last_stamp + 1, time.time_ns())
        name = f"{record.ref.name}.{self._last_stamp:x}"
        return name if len(name) <= _LONGEST_NAME and _NAME.fullmatch(name) else str(uuid.uuid4())


def _time() -> float:
    """Seconds on the event loop's monotonic clock."""
    return asyncio.get_running_loop().time()


def _cut(note: str) -> str:
    """The note within the API's limit, which counts bytes, cut as kube-scheduler cuts it."""
    encoded = note.encode()
    if len(encoded) <= _LONGEST_NOTE:
        return note
    return encoded[: _LONGEST_NOTE - len(_CUT)].decode(errors="ignore") + _CUT


def _micro_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
