"""The policies in force, and what they mean for a pod."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from moorage.core.model.pod import OwnerRef, Pod, PodSpec
from moorage.core.model.policy import Mode, Policy, PolicyRef
from moorage.core.model.policy_report import LostField
from moorage.core.policy.calendar import Calendar
from moorage.core.policy.canary import owner_key, takes_part
from moorage.core.policy.matching import Aspects, in_scope, selects
from moorage.core.policy.merge import NOTHING, Merged, merge, merge_key

#: Answers kept at the most, of each kind; when there are more, all are worked out again as they are asked for.
_KEPT = 16_384


@dataclass(frozen=True, slots=True, eq=False)
class Shaping:
    """What the policies mean for a pod: those in force, merged, those that are only audited, and all that select it."""

    merged: Merged = NOTHING
    audited: tuple[Policy, ...] = ()
    refs: tuple[PolicyRef, ...] = ()


UNTOUCHED = Shaping()


@dataclass(slots=True)
class _Selected:
    """The policies that select pods of one kind, before canaries; with those, by owner."""

    policies: tuple[Policy, ...]
    shaping: Shaping | None  # None: it depends on the owner
    by_owner: dict[str, Shaping] = field(default_factory=dict)


@dataclass(slots=True)
class _Scope:
    """What can be said of the pods of one namespace: the policies that come into question, and the answers so far."""

    policies: tuple[Policy, ...]
    aspects: Aspects
    known: dict[Hashable, _Selected] = field(default_factory=dict)


#: All of a pod that a selection reads, and the answer.
_Recent = tuple[PodSpec, Mapping[str, str], str, frozenset[str], OwnerRef | None, Shaping]


class PolicyBook:
    """Every policy by its ref; answers are kept until a change that could make them others.

    ``namespace_labels`` gives the labels of a namespace; ``namespace_changed`` says when they are others.
    """

    def __init__(self, namespace_labels: Callable[[str], Mapping[str, str]]) -> None:
        self._namespace_labels = namespace_labels
        self._policies: dict[PolicyRef, Policy] = {}
        self._calendars: dict[PolicyRef, tuple[Policy, Calendar]] = {}
        self._scopes: dict[str, _Scope] = {}
        self._recent: dict[str, _Recent] = {}
        self._shapings: dict[tuple[Policy, ...], Shaping] = {}
        self._lost: dict[PolicyRef, set[LostField]] | None = None  # worked out when somebody asks
        self._mergers: dict[
            tuple[Policy, ...], Merged
        ] = {}  # by the policies, in merge order as far as enforced

    def __len__(self) -> int:
        return len(self._policies)

    def get(self, ref: PolicyRef) -> Policy | None:
        """The policy of that name, None if there is none."""
        return self._policies.get(ref)

    def policies(self) -> Collection[Policy]:
        """All policies, disabled ones too, in the order in which they came."""
        return self._policies.values()

    # -- changes ---------------------------------------------------------------------------------

    def apply(self, policy: Policy) -> Policy | None:
        """Add or replace a policy; returns what it was before, the very same object if it says what it said."""
        before = self._policies.get(policy.ref)
        if before is policy or (before is not None and _same(before, policy)):
            return policy
        self._policies[policy.ref] = policy
        self._forget(policy.ref, before)
        return before

    def remove(self, ref: PolicyRef) -> Policy | None:
        """The policy is gone; returns what it was."""
        before = self._policies.pop(ref, None)
        if before is not None:
            self._forget(ref, before)
        return before

    def namespace_changed(self, name: str) -> None:
        """The namespace has other labels, or is new, or gone."""
        if self._scopes.pop(name, None) is not None:
            self._recent.clear()

    def _forget(self, ref: PolicyRef, before: Policy | None) -> None:
        """Drop the answers that the change touches."""
        self._calendars.pop(ref, None)
        self._lost = None
        self._recent.clear()
        if ref.namespace:
            self._scopes.pop(ref.namespace, None)
        else:
            self._scopes.clear()
        if before is not None:
            for kept in (self._shapings, self._mergers):
                for policies in [policies for policies in kept if before in policies]:
                    del kept[policies]

    # -- answers ---------------------------------------------------------------------------------

    def shaping(self, pod: Pod) -> Shaping:
        """What the policies mean for the pod; the same object for pods that are alike to them."""
        if not self._policies:
            return UNTOUCHED
        known = self._remembered(pod)
        if known is not None:
            return known
        shaping = self._work_out(pod)
        if len(self._recent) >= _KEPT:
            self._recent.clear()
        self._recent[pod.uid] = (pod.spec, pod.labels, pod.namespace, pod.holds, pod.owner, shaping)
        return shaping

    def selects(self, pod: Pod) -> tuple[PolicyRef, ...]:
        """The policies, in force or audited, whose pods the pod is one of: those that count it."""
        if not self._policies:
            return ()
        known = self._remembered(pod)
        return (self._work_out(pod) if known is None else known).refs

    def is_of(self, policy: Policy, pod: Pod) -> bool:
        """Whether the pod is one of the policy's, which need not be in the book."""
        labels = self._namespace_labels(pod.namespace)
        return selects(policy, pod, labels) and takes_part(policy, owner_key(pod))

    def together(self, merged: Merged, policy: Policy) -> Merged:
        """What would be in force with one policy more, whatever its mode."""
        return self._merged((*merged.policies, policy))

    def _merged(self, key: tuple[Policy, ...]) -> Merged:
        """One object for one set of policies, so that what is derived from it can be kept by it."""
        known = self._mergers.get(key)
        if known is None:
            if len(self._mergers) >= _KEPT:
                self._mergers.clear()
            known = self._mergers[key] = merge(key)
        return known

    def calendar_of(self, policy: Policy) -> Calendar:
        """When the policy's windows let pods go."""
        known = self._calendars.get(policy.ref)
        if known is None or known[0] is not policy:
            known = self._calendars[policy.ref] = (policy, Calendar(policy.windows))
        return known[1]

    def lost(self, ref: PolicyRef) -> tuple[LostField, ...]:
        """The fields of a policy that another one sets first for some of the pods asked about, in order of name."""
        if self._lost is None:
            self._lost = {}
            for merged in {shaping.merged for shaping in self._shapings.values()}:
                for loser, lost in merged.lost:
                    self._lost.setdefault(loser, set()).add(lost)
        return tuple(sorted(self._lost.get(ref, ()), key=lambda lost: (lost.field, lost.winner)))

    def _remembered(self, pod: Pod) -> Shaping | None:
        """What was answered for this very pod, if nothing of it that counts has changed."""
        known = self._recent.get(pod.uid)
        if known is None:
            return None
        spec, labels, namespace, holds, owner, shaping = known
        unchanged = (
            spec is pod.spec
            and labels is pod.labels
            and owner is pod.owner
            and namespace == pod.namespace
            and holds == pod.holds
        )
        return shaping if unchanged else None

    def _work_out(self, pod: Pod) -> Shaping:
        scope = self._scopes.get(pod.namespace)
        if scope is None:
            scope = self._scopes[pod.namespace] = self._scope(pod.namespace)
        if not scope.policies:
            return UNTOUCHED
        key = scope.aspects.key(pod)
        selected = scope.known.get(key)
        if selected is None:
            if len(scope.known) >= _KEPT:
                scope.known.clear()
            selected = scope.known[key] = self._selected(scope, pod)
        if selected.shaping is not None:
            return selected.shaping
        owner = owner_key(pod)
        shaping = selected.by_owner.get(owner)
        if shaping is None:
            if len(selected.by_owner) >= _KEPT:
                selected.by_owner.clear()
            shaping = self._shaping([p for p in selected.policies if takes_part(p, owner)])
            selected.by_owner[owner] = shaping
        return shaping

    def _scope(self, namespace: str) -> _Scope:
        labels = self._namespace_labels(namespace)
        policies = tuple(
            policy
            for policy in self._policies.values()
            if policy.mode is not Mode.DISABLED
            and in_scope(policy, namespace)
            and (policy.selection.namespaces is None or policy.selection.namespaces.matches(labels))
        )
        return _Scope(policies, Aspects(policies))

    def _selected(self, scope: _Scope, pod: Pod) -> _Selected:
        labels = self._namespace_labels(pod.namespace)
        policies = tuple(policy for policy in scope.policies if selects(policy, pod, labels))
        if any(policy.canary_percent is not None for policy in policies):
            return _Selected(policies, None)
        return _Selected(policies, self._shaping(policies))

    def _shaping(self, policies: Sequence[Policy]) -> Shaping:
        if not policies:
            return UNTOUCHED
        key = tuple(sorted(policies, key=merge_key))
        shaping = self._shapings.get(key)
        if shaping is None:
            if len(self._shapings) >= _KEPT:
                self._shapings.clear()
            enforced = tuple(policy for policy in key if policy.mode is Mode.ENFORCE)
            audited = tuple(policy for policy in key if policy.mode is Mode.AUDIT)
            shaping = Shaping(self._merged(enforced), audited, tuple(policy.ref for policy in key))
            self._shapings[key] = shaping
            self._lost = None
        return shaping


def _same(before: Policy, policy: Policy) -> bool:
    """Whether both are the same generation of one object, seen twice (a file has neither UID nor generation)."""
    return bool(policy.uid) and (before.uid, before.generation) == (policy.uid, policy.generation)
