"""Equal events about one pod, told once and then counted.

As in client-go: the first is created, the second makes a series of it, and later ones only count
up a number that is written now and then, so that a pod which fits nowhere for hours has one Event.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from moorage.core.model.instructions import Record

#: A series is written at most this often once it is one.
REFRESH_SECONDS = 300.0
#: Quiet for so long, it is over: what comes later is a new event (client-go: finishTime).
FINISH_SECONDS = 360.0
_CAPACITY = 4096

_Key = tuple[str, str, str, str]


@dataclass(slots=True)
class Series:
    """One Event in the cluster and how often it has happened."""

    namespace: str
    name: str
    last_seen: float
    count: int = 1
    written_count: int = 1
    written_at: float = 0.0
    busy: bool = True  # a request about it is under way

    def due(self, now: float) -> bool:
        """Whether the count is to be written now; the first repetition at once."""
        if self.busy or self.count == self.written_count:
            return False
        return self.written_count == 1 or now - self.written_at >= REFRESH_SECONDS


class SeriesBook:
    """The series that go on; the least recent is forgotten when there are too many."""

    def __init__(self, capacity: int = _CAPACITY) -> None:
        self._capacity = capacity
        self._open: OrderedDict[_Key, Series] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    def seen(self, record: Record, now: float) -> Series | None:
        """Count the record in; None if it is the first of its kind."""
        key = _key(record)
        series = self._open.get(key)
        if series is not None:
            series.count += 1
            series.last_seen = now
            self._open.move_to_end(key)
        return series

    def begin(self, record: Record, name: str, now: float) -> Series:
        """The record is the first of its kind and is being written under this name."""
        series = Series(record.ref.namespace, name, last_seen=now, written_at=now)
        self._open[_key(record)] = series
        if len(self._open) > self._capacity:
            self._open.popitem(last=False)
        return series

    def end(self, record: Record) -> None:
        """Forget the series: its event could not be written, or is gone from the cluster."""
        self._open.pop(_key(record), None)

    def sweep(self, now: float) -> list[Series]:
        """Close what has gone quiet; gives the series whose count is still to be written."""
        unwritten = []
        for key, series in list(self._open.items()):
            finished = now - series.last_seen >= FINISH_SECONDS
            if not series.busy and series.count != series.written_count and (finished or series.due(now)):
                unwritten.append(series)
            if finished:
                del self._open[key]
        return unwritten


def _key(record: Record) -> _Key:
    """What makes two records equal.  client-go leaves the text out, which hides why a pod is pending now."""
    return (record.ref.uid, record.reason, record.action, record.message)
