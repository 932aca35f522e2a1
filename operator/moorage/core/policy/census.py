"""Pending pods by policy, and what speaks against them: counted as pods come, go and are refused, never by a walk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from moorage.core.model.policy import PolicyRef
from moorage.core.model.policy_report import BlockedPods

#: A plugin and its words against a pod.
Reason = tuple[str, str]


@dataclass(frozen=True, slots=True)
class _Entry:
    refs: tuple[PolicyRef, ...]
    reasons: frozenset[Reason] = frozenset()


class Census:
    """By UID the pods that some policy selects; others leave no trace."""

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}
        self._pods: Counter[PolicyRef] = Counter()
        self._reasons: dict[PolicyRef, Counter[Reason]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def enter(self, uid: str, refs: tuple[PolicyRef, ...]) -> None:
        """These policies select the pending pod, and no others; what spoke against it still does."""
        known = self._entries.get(uid)
        if known is None and not refs:
            return
        if known is None or known.refs != refs:
            self.leave(uid)
            if refs:
                self._put(uid, _Entry(refs, frozenset() if known is None else known.reasons))

    def refuse(self, uid: str, reasons: Iterable[Reason] = ()) -> None:
        """What speaks against the pod since it was looked at last; nothing for a pod that has its chance."""
        known = self._entries.get(uid)
        found = frozenset(reasons)
        if known is not None and known.reasons != found:
            self.leave(uid)
            self._put(uid, _Entry(known.refs, found))

    def leave(self, uid: str) -> None:
        """The pod is not pending any more; nothing happens if no policy selected it."""
        entry = self._entries.pop(uid, None)
        if entry is None:
            return
        for ref in entry.refs:
            self._pods[ref] -= 1
            if not self._pods[ref]:
                del self._pods[ref]
            counts = self._reasons.get(ref)
            if counts is not None:
                counts.subtract(entry.reasons)
                for reason in entry.reasons:
                    if not counts[reason]:
                        del counts[reason]
                if not counts:
                    del self._reasons[ref]

    def _put(self, uid: str, entry: _Entry) -> None:
        self._entries[uid] = entry
        self._pods.update(entry.refs)
        if entry.reasons:
            for ref in entry.refs:
                self._reasons.setdefault(ref, Counter()).update(entry.reasons)

    def refs_of(self, uid: str) -> tuple[PolicyRef, ...]:
        """The policies that select the pod."""
        entry = self._entries.get(uid)
        return () if entry is None else entry.refs

    def pending(self, ref: PolicyRef) -> int:
        """How many pending pods the policy selects."""
        return self._pods[ref]

    def blocked(self, ref: PolicyRef, at_most: int) -> tuple[BlockedPods, ...]:
        """What speaks against most of them, the most common first."""
        counts = self._reasons.get(ref, Counter())
        ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:at_most]
        return tuple(BlockedPods(plugin, text, pods) for (plugin, text), pods in ordered)
