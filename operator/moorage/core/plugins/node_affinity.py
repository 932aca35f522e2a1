"""NodeAffinity: ``nodeSelector`` and ``affinity.nodeAffinity``, required and preferred."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from moorage.core.framework.interface import (
    Ints,
    Narrowed,
    Reads,
    Reason,
    Rejected,
    Skip,
    Verdict,
    normalize_by_max,
)
from moorage.core.model.cluster_event import Action, ClusterEvent, Resource, WakesOn
from moorage.core.model.decision import Code
from moorage.core.model.node import Node
from moorage.core.model.pod import Pod
from moorage.core.model.selector import NodeSelector, Operator, PreferredTerm, Requirement
from moorage.core.snapshot.snapshot import Snapshot
from moorage.core.snapshot.view import Nodes

_MISMATCH = Reason("node(s) didn't match Pod's node affinity/selector", resolvable=False)
_NOT_ENFORCED = Reason("node(s) didn't match scheduler-enforced node affinity", resolvable=False)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Both must hold: the plain selector's requirements and one of the affinity's terms (None: no affinity)."""

    selector: tuple[Requirement, ...]
    required: NodeSelector | None

    def matches(self, node: Node) -> bool:
        """Whether the node satisfies both."""
        return all(r.admits(node.labels.get(r.key)) for r in self.selector) and (
            self.required is None or self.required.matches(node.name, node.labels)
        )


def _wanted(pod: Pod) -> Wanted:
    selector = tuple(Requirement(key, Operator.IN, (value,)) for key, value in pod.spec.node_selector.items())
    return Wanted(selector, pod.spec.required)


@dataclass(frozen=True, slots=True)
class NodeAffinity:
    """``added_*`` is the configuration's ``addedAffinity``, which holds for every pod of the profile."""

    name: ClassVar[str] = "NodeAffinity"
    reads: ClassVar[Reads] = Reads.NODE

    added_required: NodeSelector | None = None
    added_preferred: tuple[PreferredTerm, ...] = ()

    def pre_filter(self, pod: Pod, snapshot: Snapshot) -> Wanted | Skip | Rejected | Narrowed[Wanted]:
        """Narrows to the named nodes if every term asks for names (``matchFields`` In)."""
        spec = pod.spec
        if spec.required is None and not spec.node_selector and self.added_required is None:
            return Skip.SKIP
        wanted = _wanted(pod)
        if spec.required is None or not spec.required.terms:
            return wanted
        names: set[str] = set()
        for term in spec.required.terms:
            of_term: set[str] | None = None
            for field in term.fields:
                if field.key == "metadata.name" and field.operator is Operator.IN:
                    of_term = set(field.values) if of_term is None else of_term & set(field.values)
            if of_term is None:  # terms are alternatives, and this one is open to every name
                return wanted
            names |= of_term
        if not names:
            return Rejected(("pod affinity terms conflict",), Code.UNRESOLVABLE)
        return Narrowed(wanted, frozenset(names))

    def filter(self, state: Wanted, nodes: Nodes) -> Verdict:
        """Nodes outside the enforced affinity fail with that reason only, else those the pod does not want."""
        matched = ~nodes.false()
        for requirement in state.selector:
            matched &= nodes.satisfying(requirement)
        if state.required is not None:
            matched &= nodes.matching(state.required)
        if self.added_required is None:
            return Verdict((_MISMATCH,), ~matched[None, :])
        enforced = nodes.matching(self.added_required)
        return Verdict((_NOT_ENFORCED, _MISMATCH), np.stack((~enforced, enforced & ~matched)))

    def pre_score(
        self, pod: Pod, snapshot: Snapshot, nodes: Nodes
    ) -> tuple[PreferredTerm, ...] | Literal[Skip.SKIP]:
        """The preferred terms, those of the configuration first."""
        terms = self.added_preferred + pod.spec.preferred
        return terms or Skip.SKIP

    def score(self, state: tuple[PreferredTerm, ...], nodes: Nodes) -> Ints:
        """The weights of the terms that match, added up."""
        total = np.zeros(len(nodes), dtype=np.int64)
        for preferred in state:
            total += np.int64(preferred.weight) * nodes.matching_term(preferred.term)
        return total

    def normalize(self, raw: Ints) -> Ints:
        """The node with the largest sum gets most."""
        return normalize_by_max(raw)

    def wakes_on(self) -> Sequence[WakesOn]:
        """A node that matches appears, or a node's labels come to match."""
        return (WakesOn(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL, self._comes_to_match),)

    def _comes_to_match(self, pod: Pod, event: ClusterEvent) -> bool:
        wanted = _wanted(pod)

        def matches(node: Node) -> bool:
            enforced = self.added_required is None or self.added_required.matches(node.name, node.labels)
            return enforced and wanted.matches(node)

        return matches(event.new) and (event.old is None or not matches(event.old))
