"""What policies forbid their pods as preemptors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from moorage.core.framework.budgets import Budgets
from moorage.core.model.pod import Pod
from moorage.core.model.policy import PreemptionRules
from moorage.core.snapshot.snapshot import Snapshot

NEVER = "not eligible due to a policy that allows no preemption."
TOO_MANY = "node(s) would need more victims than a policy allows"
PROTECTED = "node(s) would need victims that a disruption budget protects from a policy's pods"


@dataclass(frozen=True, slots=True)
class Guards:
    """The rules of all policies in force for a pod, the strictest of each."""

    rules: PreemptionRules = field(default_factory=PreemptionRules)

    def allow(self, pod: Pod, other: Pod, now: float) -> bool:
        """Whether a pod of lower priority may be a victim: so much less important, and running for so long."""
        return self._far_below(pod, other) and self._ripe(other, now)

    def _far_below(self, pod: Pod, other: Pod) -> bool:
        gap = self.rules.min_priority_gap
        return gap is None or pod.priority - other.priority >= gap

    def _ripe(self, other: Pod, now: float) -> bool:
        """A pod that has not started yet has not run at all."""
        least = self.rules.min_victim_runtime
        return not least or (other.started is not None and now - other.started >= least)

    @property
    def choosy(self) -> bool:
        """Whether ``allow`` may say no."""
        return self.rules.min_priority_gap is not None or bool(self.rules.min_victim_runtime)

    def latest_start(self, now: float) -> float:
        """A victim must have started by then: finite, so that a pod that has not started yet is none."""
        return now - (self.rules.min_victim_runtime or 0.0)

    def highest_priority(self, pod: Pod) -> int:
        """A victim has at most this priority."""
        return pod.priority - max(self.rules.min_priority_gap or 0, 1)

    @property
    def limiting(self) -> bool:
        """Whether ``against`` may find something."""
        return self.rules.max_victims is not None or self.rules.strict_budgets

    def against(self, victims: Sequence[Pod], budgets: Budgets) -> tuple[str, ...]:
        """Why these victims, the most important first, are not allowed; () if they are."""
        if self.rules.max_victims is not None and len(victims) > self.rules.max_victims:
            return (TOO_MANY,)
        if self.rules.strict_budgets and any(budgets.broken(victims)):
            return (PROTECTED,)
        return ()

    def changes_at(self, pod: Pod, snapshot: Snapshot) -> float | None:
        """When the next pod has run long enough to be a victim; looks at every pod."""
        least = self.rules.min_victim_runtime
        if not least or self.rules.never or pod.spec.preemption_policy == "Never":
            return None
        ripe_from = snapshot.now - least
        starts = (
            other.started
            for pods in snapshot.pods
            for other in pods.values()
            if other.started is not None
            and other.started > ripe_from
            and other.priority < pod.priority
            and self._far_below(pod, other)
        )
        first = min(starts, default=None)
        return None if first is None else first + least


NO_GUARDS = Guards()
