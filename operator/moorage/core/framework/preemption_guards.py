"""What policies forbid their pods as preemptors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from moorage.core.framework.budgets import Budgets
from moorage.core.model.pod import Pod
from moorage.core.model.policy import PreemptionRules
from moorage.core.snapshot.ranking import start_of
from moorage.core.snapshot.snapshot import Snapshot

NEVER = "not eligible due to a policy that allows no preemption."
TOO_MANY = "node(s) would need more victims than a policy allows"
PROTECTED = "node(s) would need victims that a disruption budget protects from a policy's pods"


@dataclass(frozen=True, slots=True)
class Guards:
    """The rules of all policies in force for a pod, the strictest of each."""

    rules: PreemptionRules = field(default_factory=PreemptionRules)

    def allow(self, pod: Pod, other: Pod, now: float) -> bool:
        """Whether another pod may be a victim: so much less important, and running for so long."""
        return other.priority < self.below(pod) and start_of(other) <= self.latest_start(now)

    def below(self, pod: Pod) -> int:
        """A victim's priority must be lower than this."""
        gap = self.rules.min_priority_gap
        return pod.priority if gap is None else pod.priority - max(gap, 1) + 1

    def latest_start(self, now: float) -> float:
        """A victim must have started by then; infinity if even one that has not started will do."""
        least = self.rules.min_victim_runtime
        return now - least if least else math.inf

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
            if other.started is not None and other.started > ripe_from and other.priority < self.below(pod)
        )
        first = min(starts, default=None)
        return None if first is None else first + least


NO_GUARDS = Guards()
