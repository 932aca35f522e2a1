"""How a policy fares: what its status shows."""

from __future__ import annotations

from dataclasses import dataclass

from moorage.core.model.policy import PolicyRef


@dataclass(frozen=True, slots=True)
class BlockedPods:
    """How many of a policy's pending pods one plugin's reason speaks against."""

    plugin: str
    reason: str
    pods: int


@dataclass(frozen=True, slots=True)
class PoolUse:
    """How many of a policy's pods are in a pool, and the most there may be now; None: no bound."""

    name: str
    pods: int
    most: int | None


@dataclass(frozen=True, slots=True)
class LostField:
    """A field of a policy that is not in force for some of its pods, since another policy sets it first."""

    field: str
    winner: PolicyRef


@dataclass(frozen=True, slots=True)
class AuditSample:
    """One pod that would have gone elsewhere: "" stands for nowhere (or not yet)."""

    pod: str
    chosen: str
    would_choose: str
    why: str


@dataclass(frozen=True, slots=True)
class AuditReport:
    """Decisions made once more as if the policy were in force; ``skipped`` ones for want of time."""

    evaluated: int = 0
    different: int = 0
    skipped: int = 0
    samples: tuple[AuditSample, ...] = ()


@dataclass(frozen=True, slots=True)
class PolicyReport:
    """One policy at one instant.

    ``matched`` pods are those it selects, pending and bound together.  ``failed_expressions`` counts evaluations
    that ended in an error, with the last of them in words.  ``stale_nodes`` is the number of nodes without a recent
    sample of their use, None for a policy that does not ask for one.
    """

    ref: PolicyRef
    generation: int
    pending: int = 0
    bound: int = 0
    reasons: tuple[BlockedPods, ...] = ()
    pools: tuple[PoolUse, ...] = ()
    lost: tuple[LostField, ...] = ()
    audit: AuditReport | None = None
    failed_expressions: int = 0
    last_error: str = ""
    stale_nodes: int | None = None

    @property
    def matched(self) -> int:
        """How many pods the policy selects."""
        return self.pending + self.bound
