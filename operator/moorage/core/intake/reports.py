"""How the policies fare: what their status shows."""

from __future__ import annotations

from collections import Counter

from moorage.core.intake.state import State
from moorage.core.model.policy import Mode, Policy, PolicyRef
from moorage.core.model.policy_report import PolicyReport
from moorage.core.plugins.policy_pools import PolicyPools

#: The most common reasons that a report names.
_REASONS = 5


def policy_reports(state: State) -> list[PolicyReport]:
    """One report for each policy, in order of kind, namespace and name.

    A pod that is being bound counts as bound.
    """
    being_bound = Counter(
        ref
        for uid in state.queue.in_flight()
        if state.cache.state(uid) is not None
        for ref in state.census.refs_of(uid)
    )
    policies = sorted(state.book.policies(), key=lambda policy: policy.ref)
    return [_report(state, policy, being_bound[policy.ref]) for policy in policies]


def _report(state: State, policy: Policy, being_bound: int) -> PolicyReport:
    ref: PolicyRef = policy.ref
    snapshot = state.snapshot
    failures = snapshot.expressions.failures(ref)
    counted = policy.mode is not Mode.DISABLED
    return PolicyReport(
        ref,
        policy.generation,
        pending=state.census.pending(ref) - being_bound,
        bound=snapshot.selected.total(ref) if counted else 0,
        reasons=state.census.blocked(ref, _REASONS),
        pools=PolicyPools(ref, policy.pools).use(snapshot) if counted and policy.pools is not None else (),
        lost=state.book.lost(ref),
        audit=state.audits.report(policy) if policy.mode is Mode.AUDIT else None,
        failed_expressions=failures.count,
        last_error=failures.last,
        stale_nodes=None
        if policy.load is None
        else snapshot.usage_samples.stale_count(policy.load.stale_after),
    )
