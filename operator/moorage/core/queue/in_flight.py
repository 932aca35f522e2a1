"""Cluster changes that happen while a pod is being tried, so that none is lost to it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from moorage.core.model.cluster_event import ClusterEvent


class InFlight:
    """The pods being tried, and the changes since the oldest of them was taken out of the queue."""

    #: Changes kept at the most; a pod in flight for longer is simply tried again.
    LIMIT = 10_000

    def __init__(self) -> None:
        self._since: dict[str, int] = {}
        self._log: deque[ClusterEvent] = deque()
        self._base = 0

    def __len__(self) -> int:
        return len(self._since)

    def __contains__(self, uid: str) -> bool:
        return uid in self._since

    def __iter__(self) -> Iterator[str]:
        return iter(self._since)

    def begin(self, uid: str) -> None:
        """The pod is taken out of the queue now."""
        self._since[uid] = self._base + len(self._log)

    def note(self, event: ClusterEvent) -> None:
        """Something changed; kept only while some pod is in flight."""
        if not self._since:
            return
        if len(self._log) >= self.LIMIT:
            self._log.popleft()
            self._base += 1
        self._log.append(event)

    def lose_track(self) -> None:
        """Something changed that no event can tell: whoever is in flight now is to be tried again."""
        if self._since:
            self._base += len(self._log) + 1
            self._log.clear()

    def lose_track_of(self, uid: str) -> None:
        """Something changed for this pod alone: if it is in flight it is to be tried again."""
        if uid in self._since:
            self._since[uid] = -1

    def end(self, uid: str) -> list[ClusterEvent] | None:
        """The changes since ``begin``; None if they were too many to keep, so that anything may have changed."""
        start = self._since.pop(uid, None)
        if start is None:
            return []
        missed: list[ClusterEvent] | None
        if start < self._base:
            missed = None
        elif start == self._base + len(self._log):
            missed = []
        else:
            missed = list(self._log)[start - self._base :]
        self._trim()
        return missed

    def _trim(self) -> None:
        if not self._since:
            self._base += len(self._log)
            self._log.clear()
            return
        oldest = next((since for since in self._since.values() if since >= 0), self._base + len(self._log))
        # Begun in order, so the first is the oldest.
        while self._log and self._base < oldest:
            self._log.popleft()
            self._base += 1
