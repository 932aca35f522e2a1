"""Why nodes were refused, kept as columns until somebody asks for words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from moorage.core.framework.answers import rejection_at
from moorage.core.framework.interface import Verdict
from moorage.core.model.decision import Code, Rejection
from moorage.core.snapshot.snapshot import Snapshot

Bools = npt.NDArray[np.bool_]

NO_NODES = "no nodes available to schedule pods"


@dataclass(slots=True)
class Diagnosis:
    """The outcome of PreFilter and Filter for one pod.

    ``prefilter`` is set when the pod was rejected as a whole, by ``rejectors``; then no node was looked at.
    ``owners[row]`` is the index in ``verdicts`` of the first plugin to reject the node, -1 for none;
    ``excluded`` are the nodes that ``narrowed_by`` left out before Filter.  ``overrides`` hold
    the rejections of nodes judged with nominated pods on them, and those by ``extenders``, who may also have left out
    nodes without a word.
    """

    snapshot: Snapshot
    prefilter: Rejection | None = None
    rejectors: frozenset[str] = frozenset()
    verdicts: list[tuple[str, Verdict]] = field(default_factory=list)
    owners: npt.NDArray[np.int16] = field(default_factory=lambda: np.zeros(0, dtype=np.int16))
    excluded: Bools = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    narrowed_by: tuple[str, ...] = ()
    overrides: dict[int, Rejection] = field(default_factory=dict)
    extenders: frozenset[str] = frozenset()

    @property
    def plugins(self) -> frozenset[str]:
        """The plugins that rejected at least one node: what the pod waits for."""
        if self.prefilter is not None:
            return self.rejectors
        names = {self.verdicts[owner][0] for owner in np.unique(self._counted_owners()) if owner >= 0}
        names.update(rejection.plugin for rejection in self.overrides.values())
        return frozenset(names | set(self.narrowed_by) | self.extenders)

    def _counted_owners(self) -> npt.NDArray[np.int16]:
        owners = self.owners.copy()
        owners[list(self.overrides)] = -1
        return owners

    def rejections(self) -> dict[str, Rejection]:
        """Every refused node by name, with the plugin that refused it first."""
        if self.prefilter is not None:
            return {}
        found: dict[str, Rejection] = {}
        snapshot = self.snapshot
        for row in np.flatnonzero(self.excluded):
            found[snapshot.name_at(int(row))] = Rejection(
                ", ".join(self.narrowed_by), (self._narrowed_text(),), Code.UNRESOLVABLE
            )
        for row in np.flatnonzero(self._counted_owners() >= 0):
            name, verdict = self.verdicts[self.owners[row]]
            rejection = rejection_at(name, verdict, int(row))
            if rejection is not None:
                found[snapshot.name_at(int(row))] = rejection
        for overridden, words in self.overrides.items():
            found[snapshot.name_at(overridden)] = words
        return found

    def reasons(self) -> frozenset[tuple[str, str]]:
        """Every plugin that refused a node, or the pod as a whole, with its words."""
        if self.prefilter is not None:
            return frozenset((self.prefilter.plugin, text) for text in self.prefilter.reasons)
        found = {(r.plugin, text) for r in self.overrides.values() for text in r.reasons}
        owners = self._counted_owners()
        for index, (name, verdict) in enumerate(self.verdicts):
            owned = owners == index
            if owned.any():
                spoke = (verdict.failed & owned).any(axis=1)
                found.update((name, r.text) for r, did in zip(verdict.reasons, spoke, strict=True) if did)
        if self.excluded.any():
            found.add((", ".join(self.narrowed_by), self._narrowed_text()))
        return frozenset(found)

    def _narrowed_text(self) -> str:
        return f"node(s) didn't satisfy plugin(s) [{' '.join(self.narrowed_by)}]"

    def resolvable(self) -> Bools:
        """Refused nodes on which removing pods could help, shape (capacity,)."""
        if self.prefilter is not None:
            return self.snapshot.alive & (self.prefilter.code is Code.UNSCHEDULABLE)
        mask = self.owners >= 0
        for index, (_, verdict) in enumerate(self.verdicts):
            final = [k for k, reason in enumerate(verdict.reasons) if not reason.resolvable]
            if final:
                mask &= ~((self.owners == index) & verdict.failed[final].any(axis=0))
        for row, rejection in self.overrides.items():
            mask[row] = rejection.code is Code.UNSCHEDULABLE
        return mask

    def message(self, postfilter: str = "") -> str:
        """The text of the PodScheduled condition, as kube-scheduler words it (``FitError``)."""
        total = self.snapshot.node_count
        if total == 0:
            return NO_NODES
        text = f"0/{total} nodes are available:"
        if self.prefilter is not None:
            text += f" {', '.join(self.prefilter.reasons)}."
        else:
            counts = sorted(f"{count} {reason}" for reason, count in self.reason_counts().items())
            if counts:
                text += f" {', '.join(counts)}."
        return f"{text} {postfilter}" if postfilter else text

    def reason_counts(self) -> Mapping[str, int]:
        """How many nodes each reason speaks against."""
        counts: Counter[str] = Counter()
        owners = self._counted_owners()
        for index, (_, verdict) in enumerate(self.verdicts):
            owned = owners == index
            for reason, failed in zip(verdict.reasons, verdict.failed, strict=True):
                number = int(np.count_nonzero(failed & owned))
                if number:
                    counts[reason.text] += number
        for rejection in self.overrides.values():
            counts.update(rejection.reasons)
        left_out = int(np.count_nonzero(self.excluded))
        if left_out:
            counts[self._narrowed_text()] += left_out
        return counts
