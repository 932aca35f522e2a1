"""PodDisruptionBudgets, as much of them as preemption reads."""

from __future__ import annotations

from dataclasses import dataclass

from moorage.core.model.pod import Pod
from moorage.core.model.selector import LabelSelector


@dataclass(frozen=True, slots=True)
class DisruptionBudget:
    """How many of the selected pods may still be disrupted.

    ``disrupted`` names pods whose eviction the API server has accepted already; they are not counted again.
    """

    namespace: str
    name: str
    selector: LabelSelector | None = None
    allowed: int = 0
    disrupted: frozenset[str] = frozenset()

    def guards(self, pod: Pod) -> bool:
        """Whether evicting the pod uses the budget.

        A missing or empty selector guards nothing, and pods without labels are guarded by none.
        """
        return (
            self.namespace == pod.namespace
            and self.selector is not None
            and bool(self.selector.requirements)
            and bool(pod.labels)
            and self.selector.matches(pod.labels)
            and pod.name not in self.disrupted
        )
