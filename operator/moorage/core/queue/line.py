"""A line of pods in the order of a key, from which pods may leave anywhere."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K", float, tuple[float, ...])

#: Whether an entry with this ticket and UID is still the pod's valid one.
Current = Callable[[int, str], bool]


class Line(Generic[K]):
    """A heap whose entries are dropped lazily: one counts only while its ticket is the pod's current one.

    Stale entries are cleared away when they outnumber the others, so that a line nobody takes pods from
    (a standby's) does not grow with every pod ever seen.
    """

    _SLACK = 64

    def __init__(self, current: Current) -> None:
        self._current = current
        self._entries: list[tuple[K, int, str]] = []
        self._sweep_at = self._SLACK

    def __len__(self) -> int:
        return len(self._entries)

    def push(self, key: K, ticket: int, uid: str) -> None:
        """Put a pod in line."""
        if len(self._entries) >= self._sweep_at:
            self._entries = [entry for entry in self._entries if self._current(entry[1], entry[2])]
            heapq.heapify(self._entries)
            self._sweep_at = self._SLACK + 2 * len(self._entries)
        heapq.heappush(self._entries, (key, ticket, uid))

    def first_key(self) -> K | None:
        """The key of the pod that is first, None if the line is empty."""
        entries = self._entries
        while entries and not self._current(entries[0][1], entries[0][2]):
            heapq.heappop(entries)
        return entries[0][0] if entries else None

    def pop(self) -> str | None:
        """Take the first pod out; returns its UID, None if the line is empty."""
        return None if self.first_key() is None else heapq.heappop(self._entries)[2]

    def ahead_of(self, uid: str) -> int | None:
        """How many pods come before the pod, None if it is not in the line."""
        valid = [(key, ticket, who) for key, ticket, who in self._entries if self._current(ticket, who)]
        own = next((entry for entry in valid if entry[2] == uid), None)
        return None if own is None else sum(entry < own for entry in valid)
