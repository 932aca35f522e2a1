"""PolicySpread: keep the pods that a policy selects evenly spread over the values of a node label.

The rules are PodTopologySpread's, with its defaults for which nodes count: those that the pod's node affinity admits,
whatever their taints.  Pods that are being deleted do not count.  A rule that is hard for a time only is a preference
after it, like one with ScheduleAnyway.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from moorage.core.framework.interface import Bools, Ints, Reads, Reason, Skip, Verdict
from moorage.core.framework.selected_hints import SelectedHints
from moorage.core.framework.spread_scoring import SoftState, Weighed, admitted, normalize, scored_rows
from moorage.core.model.cluster_event import Action, ClusterEvent, Resource, WakesOn
from moorage.core.model.node import Node
from moorage.core.model.pod import Pod
from moorage.core.model.policy import PolicyRef, SpreadRule
from moorage.core.model.selector import Requirement
from moorage.core.model.spread import HOSTNAME
from moorage.core.snapshot.snapshot import Snapshot
from moorage.core.snapshot.topology import Domains, NodeRules, Scope
from moorage.core.snapshot.view import Nodes

Rule = tuple[PolicyRef, SpreadRule]


def created(pod: Pod) -> float:
    """When a pod began to wait, if nothing else is known."""
    return pod.created


@dataclass(frozen=True, slots=True, eq=False)
class HardState:
    """The hard rules, each with its domains and the nodes that count."""

    rules: tuple[tuple[int, Domains, Scope], ...]  # by index in the plugin's rules


@dataclass(frozen=True, slots=True)
class PolicySpread:
    """``since`` tells when a pod began to wait, from which ``hardFor`` runs.

    ``within`` are requirements on nodes that policies add to the pod's own node affinity: nodes that fail one do
    not count.  ``selects`` tells who selects a pod, so that only changes of pods that count wake somebody.
    """

    name: ClassVar[str] = "PolicySpread"
    reads: ClassVar[Reads] = Reads.CLUSTER

    rules: tuple[Rule, ...]
    within: tuple[Requirement, ...] = ()
    since: Callable[[Pod], float] = field(default=created, compare=False)
    selects: Callable[[Pod], Collection[PolicyRef]] | None = field(default=None, compare=False)
    _reasons: tuple[Reason, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        reasons: list[Reason] = []
        for ref, rule in self.rules:
            text = f'node(s) didn\'t match the spread of policy "{ref.key}" by {rule.topology_key}'
            reasons += (Reason(text), Reason(f"{text} (missing required label)", resolvable=False))
        object.__setattr__(self, "_reasons", tuple(reasons))

    def _now(self, pod: Pod, snapshot: Snapshot, *, hard: bool) -> list[int]:
        """The rules, by index, that are hard, or soft, for the pod at this instant."""
        waited = snapshot.now - self.since(pod)
        return [
            index
            for index, (_, rule) in enumerate(self.rules)
            if (rule.hard and (rule.hard_for is None or waited < rule.hard_for)) is hard
        ]

    def _keys(self, indices: Sequence[int]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.rules[index][1].topology_key for index in indices))

    def _node_rules(self, pod: Pod) -> NodeRules | None:
        own = NodeRules.of(pod.spec.node_selector, pod.spec.required, None)
        if not self.within:
            return own
        if own is None:
            return NodeRules(self.within)
        return NodeRules((*own.selector, *self.within), own.required)

    # -- Filter ----------------------------------------------------------------------------------

    def pre_filter(self, pod: Pod, snapshot: Snapshot) -> HardState | Skip:
        """Find the nodes and domains that count."""
        indices = self._now(pod, snapshot, hard=True)
        if not indices:
            return Skip.SKIP
        scope = snapshot.topology.scope(self._keys(indices), self._node_rules(pod))
        for index in indices:
            snapshot.selected.of(self.rules[index][0])  # says so at once if they are not counted
        domains = [snapshot.topology.domains(self.rules[index][1].topology_key) for index in indices]
        return HardState(tuple((index, d, scope) for index, d in zip(indices, domains, strict=True)))

    def filter(self, state: HardState, nodes: Nodes) -> Verdict:
        """The first rule that speaks against a node says why: a label that is missing, or too great a skew."""
        judged: list[tuple[int, Domains, Bools]] = []
        fits = ~nodes.false()
        for index, domains, scope in state.rules:
            ref, rule = self.rules[index]
            good = admitted(
                nodes.snapshot.selected.by_domain(ref, domains, scope, dying=False),
                scope.present(domains),
                max_skew=rule.max_skew,
                min_domains=rule.min_domains or 1,
                own=1,
            )
            judged.append((index, domains, good))
            fits &= good.take(nodes.ids(domains))

        def explain() -> Bools:
            failed = np.zeros((len(self._reasons), len(nodes)), dtype=np.bool_)
            undecided = np.ones(len(nodes), dtype=np.bool_)
            for index, domains, good in judged:
                ids = nodes.ids(domains)
                lacking = ids == domains.size
                failed[2 * index + 1] = undecided & lacking
                failed[2 * index] = undecided & ~lacking & ~good.take(ids)
                undecided &= good.take(ids)
            return failed

        return Verdict.lazy(self._reasons, fits, explain)

    # -- Score -----------------------------------------------------------------------------------

    def pre_score(self, pod: Pod, snapshot: Snapshot, nodes: Nodes) -> SoftState | Literal[Skip.SKIP]:
        """Weigh each soft rule by the number of domains among the nodes asked about."""
        indices = self._now(pod, snapshot, hard=False)
        if not indices:
            return Skip.SKIP
        topology, selected = snapshot.topology, snapshot.selected
        keys = self._keys(indices)
        scored = topology.scope(keys, None)
        rows = scored_rows(scored, nodes)
        scope = topology.scope(keys, self._node_rules(pod))
        weighed = []
        for index in indices:
            ref, rule = self.rules[index]
            domains = topology.domains(rule.topology_key)
            if rule.topology_key == HOSTNAME:
                counts = selected.of(ref)
                alive = counts.pods.counts - counts.dying.counts
                weighed.append(Weighed.of_rows(domains, rule.max_skew, rows, alive))
            else:
                values = selected.by_domain(ref, domains, scope, dying=False)
                weighed.append(Weighed.of_domains(domains, rule.max_skew, rows, values))
        return SoftState(tuple(weighed), scored)

    def score(self, state: SoftState, nodes: Nodes) -> Ints:
        """Selected pods nearby, weighed; fewer is better."""
        return state.score(nodes)

    def normalize(self, raw: Ints) -> Ints:
        """The fewer pods, the more points; nodes without the label get none."""
        return normalize(raw)

    # -- what may change -------------------------------------------------------------------------

    def changes_at(self, pod: Pod, snapshot: Snapshot) -> float | None:
        """When the next rule stops to be hard; None if none will."""
        since = self.since(pod)
        ends = [since + rule.hard_for for _, rule in self.rules if rule.hard and rule.hard_for is not None]
        return min((end for end in ends if end > snapshot.now), default=None)

    def wakes_on(self) -> Sequence[WakesOn]:
        """Pods that count come, go, begin to go or count differently; nodes come, go or change labels or taints."""
        hints = SelectedHints(frozenset(ref for ref, _ in self.rules), self.selects)
        pods = Action.ADD | Action.DELETE | Action.UPDATE_POD_DELETING
        nodes = Action.ADD | Action.DELETE | Action.UPDATE_NODE_LABEL
        return (
            WakesOn(Resource.ASSIGNED_POD, pods, concerns=hints.counted),
            WakesOn(Resource.ASSIGNED_POD, Action.UPDATE_POD_LABEL, concerns=hints.counted_otherwise),
            WakesOn(Resource.NODE, nodes, self._after_node),
        )

    def _after_node(self, pod: Pod, event: ClusterEvent) -> bool:
        """A node that has some topology key came or went, or one is elsewhere, or counts otherwise."""
        rules = self._node_rules(pod)

        def standing(node: Node | None) -> tuple[bool, list[str | None]]:
            if node is None:
                return False, [None for _ in self.rules]
            counts = rules is None or rules.admit(node)
            return counts, [node.labels.get(rule.topology_key) for _, rule in self.rules]

        return standing(event.old) != standing(event.new)
