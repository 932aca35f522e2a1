"""PrioritySort: the highest priority first, among equals the one that has waited longest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from moorage.core.model.cluster_event import WakesOn
from moorage.core.model.pod import Pod


class PrioritySort:
    """The default order of the active queue."""

    name: ClassVar[str] = "PrioritySort"

    def queue_key(self, pod: Pod, since: float) -> tuple[float, ...]:
        """Descending priority, then the time of entry."""
        return (-pod.priority, since)

    def wakes_on(self) -> Sequence[WakesOn]:
        """It rejects nothing."""
        return ()
