"""PolicyLimits: at most so many of a policy's pods in one domain of a node label.

The pods of the policy in all its namespaces count, those that are being deleted too; a node without the label is out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from moorage.core.framework.interface import Bools, Ints, Reads, Reason, Skip, Verdict
from moorage.core.framework.selected_hints import SelectedHints
from moorage.core.model.cluster_event import Action, ClusterEvent, Resource, WakesOn
from moorage.core.model.pod import Pod
from moorage.core.model.policy import LimitRule, PolicyRef
from moorage.core.snapshot.snapshot import Snapshot
from moorage.core.snapshot.topology import Domains
from moorage.core.snapshot.view import Nodes

Rule = tuple[PolicyRef, LimitRule]

#: For each rule its domains and the pods in them, shape (size + 1,), which are live, and the most there may be.
State = tuple[tuple[Domains, Ints, int], ...]


@dataclass(frozen=True, slots=True)
class PolicyLimits:
    """``selects`` tells who selects a pod, so that only changes of pods that count wake somebody."""

    name: ClassVar[str] = "PolicyLimits"
    reads: ClassVar[Reads] = Reads.CLUSTER

    rules: tuple[Rule, ...]
    selects: Callable[[Pod], Collection[PolicyRef]] | None = field(default=None, compare=False)
    _reasons: tuple[Reason, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_reasons", _reasons(self.rules))

    def pre_filter(self, pod: Pod, snapshot: Snapshot) -> State | Skip:
        """Look the counts up."""
        if not self.rules:
            return Skip.SKIP
        everywhere = snapshot.topology.scope((), None)
        found = []
        for ref, rule in self.rules:
            domains = snapshot.topology.domains(rule.topology_key)
            counts = snapshot.selected.by_domain(ref, domains, everywhere, dying=True)
            found.append((domains, counts, rule.max_pods))
        return tuple(found)

    def filter(self, state: State, nodes: Nodes) -> Verdict:
        """Full domains, and nodes that are in none, for each rule."""
        room: list[tuple[Domains, Bools]] = []
        fits = ~nodes.false()
        for domains, counts, most in state:
            below: Bools = counts < most
            below[-1] = False
            room.append((domains, below))
            fits &= below.take(nodes.ids(domains))

        def explain() -> Bools:
            failed: list[Bools] = []
            for domains, below in room:
                ids = nodes.ids(domains)
                lacking = ids == domains.size
                failed += (~lacking & ~below.take(ids), lacking)
            return np.stack(failed)

        return Verdict.lazy(self._reasons, fits, explain)

    def wakes_on(self) -> Sequence[WakesOn]:
        """A pod that counts goes, or does not count any more; nodes come, go with their pods, or move."""
        hints = SelectedHints(frozenset(ref for ref, _ in self.rules), self.selects)
        nodes = Action.ADD | Action.DELETE | Action.UPDATE_NODE_LABEL
        return (
            WakesOn(Resource.ASSIGNED_POD, Action.DELETE, concerns=hints.counted),
            WakesOn(Resource.ASSIGNED_POD, Action.UPDATE_POD_LABEL, concerns=hints.counted_otherwise),
            WakesOn(Resource.NODE, nodes, concerns=self._moves),
        )

    def _moves(self, event: ClusterEvent) -> bool:
        """The node is in another domain of some key, or was in one that it leaves, or is in one that it joins."""

        def places(node: object) -> list[str | None]:
            labels = {} if node is None else node.labels  # type: ignore[attr-defined]  # events carry objects
            return [labels.get(rule.topology_key) for _, rule in self.rules]

        return places(event.old) != places(event.new)


def _reasons(rules: tuple[Rule, ...]) -> tuple[Reason, ...]:
    found: list[Reason] = []
    for ref, rule in rules:
        found += (
            Reason(f'node(s) reached the limit of policy "{ref.key}" by {rule.topology_key}'),
            Reason(
                f'node(s) lacked the label {rule.topology_key} that policy "{ref.key}" limits by',
                resolvable=False,
            ),
        )
    return tuple(found)
