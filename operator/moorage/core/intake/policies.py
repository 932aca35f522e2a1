"""Policies that come, change and go, and samples of what nodes really use."""

from __future__ import annotations

from collections.abc import Mapping

from moorage.core.intake.state import Handlers, State
from moorage.core.model.cluster_event import Action, ClusterEvent, Resource
from moorage.core.model.events import PolicyApplied, PolicyGone, UsageMeasured
from moorage.core.model.policy import Mode, Policy, PolicyRef
from moorage.core.policy.derive import REJECTING
from moorage.core.policy.matching import in_scope
from moorage.core.queue.scheduling_queue import QueuedPod


def _applied(state: State, event: PolicyApplied, now: float) -> None:
    policy = event.policy
    before = state.book.apply(policy)
    if before is not policy:
        _changed(state, policy.ref, before, policy, now)


def _gone(state: State, event: PolicyGone, now: float) -> None:
    before = state.book.remove(event.ref)
    if before is not None:
        _changed(state, event.ref, before, None, now)


def _changed(state: State, ref: PolicyRef, before: Policy | None, policy: Policy | None, now: float) -> None:
    """Forget what followed from the policy, and look again at the pods that it selected, or selects now."""
    if before is not None:
        state.roster.forget(before)
    state.audits.forget(ref)
    state.snapshot.expressions.drop(ref)
    if policy is None or policy.mode is Mode.DISABLED:
        state.snapshot.selected.drop(ref)
    else:
        state.snapshot.selected.track(ref)
    for queued in list(state.queue.entries()):
        pod = queued.pod
        selected = ref in state.census.refs_of(pod.uid)
        if selected or (policy is not None and state.book.is_of(policy, pod)):
            _look_again(state, queued, now)


def _look_again(state: State, queued: QueuedPod, now: float) -> None:
    if adopt(state, queued, now):
        state.outbox += state.turns.look(queued.pod.uid, now)


def adopt(state: State, queued: QueuedPod, now: float) -> bool:
    """Go by the policies that select the pod now; false if those in force are the same as before.

    What is only audited makes no difference to a pod in the queue.
    """
    uid, shaping = queued.pod.uid, state.book.shaping(queued.pod)
    state.census.enter(uid, shaping.refs)
    before, queued.policies = queued.policies, shaping.merged.policies
    if before == queued.policies:
        return False
    state.attempts.start_over(now, uid)
    state.queue.regroup(uid)
    if _may_help(queued, before):
        state.queue.nudge(uid, now)
    return True


def _may_help(queued: QueuedPod, before: tuple[Policy, ...]) -> bool:
    """Whether a pod that was refused may have a better chance now that other policies are in force.

    Policies only ever add reasons, but one may take the place of another's pools, or count on other nodes.  Guards that
    are gone may let the pod evict others.
    """
    gone = (policy for policy in before if policy not in queued.policies)
    evicts = any(policy.preemption is not None for policy in gone)
    return evicts or not queued.rejectors or not REJECTING.isdisjoint(queued.rejectors)


def namespace_changed(
    state: State, name: str, before: Mapping[str, str], labels: Mapping[str, str], now: float
) -> None:
    """The namespace has other labels: policies that select by them may have other pods."""
    book = state.book
    if not len(book):
        return
    book.namespace_changed(name)
    changed = [
        policy.ref
        for policy in book.policies()
        if policy.mode is not Mode.DISABLED
        and in_scope(policy, name)
        and policy.selection.namespaces is not None
        and policy.selection.namespaces.matches(before) != policy.selection.namespaces.matches(labels)
    ]
    if not changed:
        return
    state.snapshot.selected.track(*changed)
    for queued in list(state.queue.entries()):
        if queued.pod.namespace == name:
            _look_again(state, queued, now)


def _measured(state: State, event: UsageMeasured, now: float) -> None:
    change = state.snapshot.usage_samples.apply(event.samples)
    state.wake(ClusterEvent(Resource.NODE_USAGE, Action.UPDATE_OTHER, None, change), now)


HANDLERS: Handlers = {PolicyApplied: _applied, PolicyGone: _gone, UsageMeasured: _measured}
