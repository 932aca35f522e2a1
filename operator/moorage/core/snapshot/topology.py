"""Topology: which domain of a node label each row is in, and which nodes count for a question.

Everything here is derived from node labels and taints and holds until one of these changes (``layout``).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from moorage.core.model.node import Node
from moorage.core.model.selector import NodeSelector, Operator, Requirement
from moorage.core.model.taint import NO_EXECUTE, NO_SCHEDULE, Taint, Toleration, tolerated

if TYPE_CHECKING:
    from moorage.core.snapshot.snapshot import Snapshot

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Ids = npt.NDArray[np.intp]


class Domains:
    """The domains of one topology key: the distinct values of that label.

    ``ids[row]`` is the row's domain, ``size`` where the node does not have the label (or there is no node), so
    that vectors by domain have the shape (size + 1,) and their last element stands for *no domain*.
    """

    __slots__ = ("blank", "complete", "ids", "key", "size", "stale")

    def __init__(self, key: str, snapshot: Snapshot) -> None:
        column = snapshot.label(key)
        self.key = key
        self.size = len(column.values)
        self.ids: Ids = column.ids.astype(np.intp)
        self.ids[self.ids < 0] = self.size
        self.ids.flags.writeable = False
        self.complete = int(np.count_nonzero(self.ids < self.size)) == snapshot.node_count
        self.blank = column.id_of("")  # the domain of the empty value, -1 if no node has it
        self.stale = False  # the layout has changed since

    def zeros(self) -> Ints:
        """A vector by domain, shape (size + 1,)."""
        return np.zeros(self.size + 1, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class NodeRules:
    """What a node must satisfy to count: the pod's node affinity, and taints that it tolerates (None: any taints)."""

    selector: tuple[Requirement, ...] = ()
    required: NodeSelector | None = None
    tolerations: tuple[Toleration, ...] | None = None
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.selector, self.required, self.tolerations)))

    def __hash__(self) -> int:
        return self._hash

    def admit(self, node: Node) -> bool:
        """Whether the node counts."""
        return (
            all(requirement.admits(node.labels.get(requirement.key)) for requirement in self.selector)
            and (self.required is None or self.required.matches(node.name, node.labels))
            and (self.tolerations is None or not _closed(node.taints, self.tolerations))
        )

    @classmethod
    def of(
        cls,
        node_selector: Mapping[str, str],
        required: NodeSelector | None,
        tolerations: tuple[Toleration, ...] | None,
    ) -> NodeRules | None:
        """The rules with ``nodeSelector`` as a mapping; None if they let every node count."""
        if not node_selector and required is None and tolerations is None:
            return None
        selector = tuple(Requirement(k, Operator.IN, (v,)) for k, v in sorted(node_selector.items()))
        return cls(selector, required, tolerations)


class Scope:
    """The nodes that count for a question: those with all of its topology keys that satisfy its rules."""

    __slots__ = ("_present", "dropped", "everywhere", "mask")

    def __init__(self, mask: Bools, snapshot: Snapshot) -> None:
        self.mask = mask
        self.everywhere = int(np.count_nonzero(mask)) == snapshot.node_count
        self.dropped = False
        self._present: dict[str, Ids] = {}

    def present(self, domains: Domains) -> Ids:
        """The domains in which some node counts, ascending."""
        found = self._present.get(domains.key)
        if found is None:
            marked = np.zeros(domains.size + 1, dtype=np.bool_)
            marked[domains.ids[self.mask]] = True
            found = np.flatnonzero(marked[:-1])
            self._present[domains.key] = found
        return found


class Topology:
    """Domains and scopes of one snapshot, made when first asked for and kept until the layout changes.

    ``layout`` counts the changes of node labels, taints and of the set of nodes.
    """

    #: Scopes kept; more than any pod needs by far, so that those of the pod at hand stay valid.
    KEPT = 512

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self.layout = 0
        self._domains: dict[str, Domains] = {}
        self._scopes: OrderedDict[tuple[tuple[str, ...], NodeRules | None], Scope] = OrderedDict()

    def changed(self) -> None:
        """Labels or taints of a node, or the nodes themselves, are not what they were."""
        self.layout += 1
        if self._domains:
            for domains in self._domains.values():
                domains.stale = True
            self._domains.clear()
        if self._scopes:
            self._scopes.clear()

    def domains(self, key: str) -> Domains:
        """The domains of a topology key."""
        found = self._domains.get(key)
        if found is None:
            found = self._domains[key] = Domains(key, self._snapshot)
        return found

    def scope(self, keys: tuple[str, ...], rules: NodeRules | None) -> Scope:
        """The nodes that have labels of all these keys and satisfy the rules."""
        key = (keys, rules)
        found = self._scopes.get(key)
        if found is None:
            found = self._scopes[key] = Scope(self._mask(keys, rules), self._snapshot)
            if len(self._scopes) > self.KEPT:
                _, oldest = self._scopes.popitem(last=False)
                oldest.dropped = True
        else:
            self._scopes.move_to_end(key)
        return found

    def _mask(self, keys: tuple[str, ...], rules: NodeRules | None) -> Bools:
        snapshot = self._snapshot
        mask = snapshot.alive.copy()
        for key in keys:
            domains = self.domains(key)
            mask &= domains.ids < domains.size
        if rules is not None:
            for requirement in rules.selector:
                mask &= snapshot.requirement_mask(requirement)
            if rules.required is not None:
                mask &= snapshot.selector_mask(rules.required)
            if rules.tolerations is not None:
                by_set = snapshot.taints.measure(_closed, rules.tolerations)
                mask &= by_set[snapshot.taints.ids] == 0
        return mask


def _closed(taints: tuple[Taint, ...], tolerations: tuple[Toleration, ...]) -> int:
    """1 if a taint of effect NoSchedule or NoExecute is not tolerated, else 0."""
    return int(any(t.effect in (NO_SCHEDULE, NO_EXECUTE) and not tolerated(t, tolerations) for t in taints))
