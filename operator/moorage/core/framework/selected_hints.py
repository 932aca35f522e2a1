"""Which changes of placed pods matter to plugins that count the pods of policies."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from moorage.core.model.cluster_event import ClusterEvent
from moorage.core.model.pod import Pod
from moorage.core.model.policy import PolicyRef


@dataclass(frozen=True, slots=True)
class SelectedHints:
    """``selects`` tells the policies that select a pod, None if nobody knows: then every pod may matter."""

    refs: frozenset[PolicyRef]
    selects: Callable[[Pod], Collection[PolicyRef]] | None

    def counted(self, event: ClusterEvent) -> bool:
        """Whether one of the policies selects the pod as it was or as it is."""
        return any(self._selected(pod) for pod in (event.old, event.new) if pod is not None)

    def counted_otherwise(self, event: ClusterEvent) -> bool:
        """The same for a pod that came or went; one that changed must be selected by others of the policies now."""
        old, new = event.old, event.new
        if self.selects is None or old is None or new is None:
            return self.counted(event)
        return self.refs.intersection(self.selects(old)) != self.refs.intersection(self.selects(new))

    def _selected(self, pod: Pod) -> bool:
        return self.selects is None or not self.refs.isdisjoint(self.selects(pod))
