"""PolicyNodes: the nodes that policies leave to their pods.

``keepFree`` holds where ``(allocatable - requested - the pod's request) * 100 >= percent * allocatable``, in integers.
Of a resource that a node does not have at all nothing need be left, so there it holds for pods that do not ask for it
(as long as nobody else does).  ``pods`` is a resource like others: the number of pods.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from moorage.core.framework.interface import Bools, Reads, Reason, Skip, Verdict
from moorage.core.framework.percentages import at_least
from moorage.core.model.cluster_event import Action, ClusterEvent, Resource, WakesOn
from moorage.core.model.node import Node
from moorage.core.model.pod import Pod
from moorage.core.model.policy import AvoidedTaint, NodeRules, PolicyRef, Speaks
from moorage.core.model.resources import PODS, Requests
from moorage.core.model.taint import Taint
from moorage.core.snapshot.amounts import SATURATED
from moorage.core.snapshot.expression_columns import USAGE_STALE_AFTER
from moorage.core.snapshot.snapshot import Snapshot
from moorage.core.snapshot.view import Nodes

Rule = tuple[PolicyRef, NodeRules]


@dataclass(frozen=True, slots=True)
class PolicyNodes:
    """``rules`` are those of all policies in force for a pod; a node must satisfy each."""

    name: ClassVar[str] = "PolicyNodes"

    rules: tuple[Rule, ...]
    _reasons: tuple[Reason, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_reasons", _reasons(self.rules))

    @property
    def reads(self) -> Reads:
        """The node; what is on it, for ``keepFree`` and expressions; samples of its use are no part of either."""
        reads = Reads.NODE
        for _, rules in self.rules:
            if rules.keep_free:
                reads |= Reads.USAGE
            if rules.expression is not None:
                if Speaks.REQUESTED in rules.expression.speaks:
                    reads |= Reads.USAGE
                if Speaks.USAGE in rules.expression.speaks:
                    reads |= Reads.CLUSTER
        return reads

    def pre_filter(self, pod: Pod, snapshot: Snapshot) -> Requests | Skip:
        """What the pod asks for."""
        return pod.spec.requests if self.rules else Skip.SKIP

    def filter(self, state: Requests, nodes: Nodes) -> Verdict:
        """Everything that speaks against each node, policy by policy."""
        failed: list[Bools] = []
        for ref, rules in self.rules:
            if rules.selector is not None:
                failed.append(~nodes.labelled(rules.selector))
            if rules.expression is not None:
                truth = nodes.snapshot.expressions.truth(
                    ref, rules.expression, None if nodes.whole else nodes.rows
                )
                failed.append(~(truth if nodes.whole else truth[nodes.rows]))
            if rules.avoid_taints:
                failed.append(nodes.measure_taints(_avoided, rules.avoid_taints) > 0)
            for resource, percent in rules.keep_free.items():
                failed += _too_little_left(nodes, resource, percent, state)
        if not failed:  # rules that say nothing
            failed.append(nodes.false())
        return Verdict(self._reasons, np.stack(failed))

    def changes_at(self, pod: Pod, snapshot: Snapshot) -> float | None:
        """When an expression over real use may change its mind although nothing happens: the use goes stale."""
        if not self.reads & Reads.CLUSTER:
            return None
        return snapshot.usage_samples.goes_stale(USAGE_STALE_AFTER)

    def wakes_on(self) -> Sequence[WakesOn]:
        """Nodes come to satisfy the rules; room appears, where some must be left; what expressions speak of changes."""
        nodes = (
            Action.ADD | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT | Action.UPDATE_NODE_ALLOCATABLE
        )
        wakes = [WakesOn(Resource.NODE, nodes, self._comes_to_match)]
        speaks = [rules.expression.speaks for _, rules in self.rules if rules.expression is not None]
        if any(Speaks.REQUESTED in each for each in speaks):
            wakes.append(
                WakesOn(Resource.ASSIGNED_POD, Action.ADD | Action.DELETE | Action.UPDATE_POD_SCALE_DOWN)
            )
        elif any(rules.keep_free for _, rules in self.rules):
            wakes.append(WakesOn(Resource.ASSIGNED_POD, Action.DELETE | Action.UPDATE_POD_SCALE_DOWN))
        if any(rules.keep_free for _, rules in self.rules):
            wakes.append(WakesOn(Resource.PENDING_POD, Action.UPDATE_POD_SCALE_DOWN))
        if any(Speaks.USAGE in each for each in speaks):
            wakes.append(WakesOn(Resource.NODE_USAGE, Action.UPDATE_OTHER))
            wakes.append(WakesOn(Resource.ASSIGNED_POD, Action.ADD | Action.DELETE))
        return tuple(wakes)

    def _comes_to_match(self, pod: Pod, event: ClusterEvent) -> bool:
        """The node may satisfy all rules now, and perhaps did not before; expressions may always have changed."""
        if not self._matches(event.new):
            return False
        if event.old is None or not self._matches(event.old):
            return True
        if any(rules.expression is not None for _, rules in self.rules):
            return True
        resized = event.old.allocatable != event.new.allocatable
        return resized and any(rules.keep_free for _, rules in self.rules)

    def _matches(self, node: Node) -> bool:
        """Whether the node satisfies what depends on labels and taints only."""
        return all(
            (rules.selector is None or rules.selector.matches(node.labels))
            and not _avoided(node.taints, rules.avoid_taints)
            for _, rules in self.rules
        )


def _avoided(taints: tuple[Taint, ...], avoided: tuple[AvoidedTaint, ...]) -> int:
    """1 if one of the taints is to be avoided, else 0; whether the pod tolerates it does not matter."""
    return int(any(rule.matches(taint) for rule in avoided for taint in taints))


def _too_little_left(nodes: Nodes, resource: str, percent: int, requests: Requests) -> tuple[Bools, Bools]:
    """Where the pod would leave too little: (what preemption may change, where the pod is too large anyway)."""
    allocatable = nodes.allocatable(resource)
    if resource == PODS:
        requested, amount = nodes.pod_count, 1
    else:
        requested, amount = nodes.requested(resource), min(requests.of(resource), SATURATED)
    peak = 2 * nodes.snapshot.peak(resource) + amount
    never = ~at_least(allocatable - amount, percent, allocatable, peak)
    short = ~at_least(allocatable - requested - amount, percent, allocatable, peak)
    return short & ~never, short & never


def _reasons(rules: tuple[Rule, ...]) -> tuple[Reason, ...]:
    found: list[Reason] = []
    for ref, rule in rules:
        policy = f'policy "{ref.key}"'
        if rule.selector is not None:
            found.append(Reason(f"node(s) didn't match the node selector of {policy}", resolvable=False))
        if rule.expression is not None:
            lasting = not rule.expression.speaks & Speaks.REQUESTED
            found.append(
                Reason(f"node(s) didn't match the node expression of {policy}", resolvable=not lasting)
            )
        if rule.avoid_taints:
            found.append(Reason(f"node(s) had a taint that {policy} avoids", resolvable=False))
        for resource in rule.keep_free:
            text = f"node(s) would keep too little {resource} free for {policy}"
            found += (Reason(text), Reason(text, resolvable=False))
    return tuple(found) or (Reason("node(s) didn't match a policy", resolvable=False),)
