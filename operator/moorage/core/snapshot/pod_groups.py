"""Bound pods of one namespace, grouped by the labels that selectors in use ask for.

Pods of StatefulSets and Jobs carry labels of their own, so whole label sets would be as many as pods.  Seen through
just the keys that somebody asks for, a few groups remain, and a selector is compared with groups, not with pods.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from moorage.core.model.pod import Pod
from moorage.core.model.selector import LabelSelector, Operator
from moorage.core.snapshot.tallies import Tally, TallyBook

if TYPE_CHECKING:
    from moorage.core.snapshot.regrouping import Regrouping

#: The values of the keys in question, None where the pod has no such label; of many keys, the labels that are there.
_Seen = tuple[str | None, ...] | frozenset[tuple[str, str]]


class PodGroup:
    """Pods that no selector in use can tell apart, and how many of them are on each row (rows with none left out)."""

    __slots__ = ("labels", "place", "rows", "tallies", "terminating")

    def __init__(self, labels: Mapping[str, str], place: tuple[bool, _Seen]) -> None:
        self.labels = labels
        self.place = place
        self.terminating = place[0]
        self.rows: dict[int, int] = {}
        self.tallies: list[Tally] = []


class NamespacePods:
    """The groups of one namespace; ``keys`` are the label keys that tell pods apart here."""

    __slots__ = ("_by_label", "_common", "_few", "_groups", "_idle", "book", "keys", "name", "regrouping")

    #: Groups without pods that are kept, since in a dry run the pods come back at once.
    IDLE = 256
    #: Up to so many keys it is faster to ask for each than to look through a pod's labels.
    FEW = 12

    def __init__(self, name: str, common: TallyBook) -> None:
        self.name = name
        self.keys: frozenset[str] = frozenset()
        self.book = TallyBook()  # tallies that name this namespace
        #: Set while the pods are grouped anew: the groups are complete only for some rows, unlike the tallies.
        self.regrouping: Regrouping | None = None
        self._few: tuple[str, ...] | None = ()
        self._common = common  # tallies of all namespaces
        self._groups: dict[tuple[bool, _Seen], PodGroup] = {}
        self._by_label: dict[tuple[str, str], dict[PodGroup, None]] = {}
        self._idle: dict[PodGroup, None] = {}

    @property
    def groups(self) -> Collection[PodGroup]:
        """All groups, those that have no pod at the moment included."""
        return self._groups.values()

    def tell_apart(self, keys: Collection[str]) -> None:
        """Group pods by these label keys, too; all pods must be counted anew, while the tallies keep their counts."""
        self.keys = self.keys.union(keys)
        self._few = tuple(self.keys) if len(self.keys) <= self.FEW else None
        for group in self._groups.values():
            for tally in group.tallies:
                tally.groups.pop(group, None)
        for kept in (self._groups, self._by_label, self._idle):
            kept.clear()

    def place(self, row: int, pod: Pod) -> None:
        """After ``tell_apart``: a pod on that row, which all tallies that mean it have counted already."""
        group = self._group_of(pod)
        rows = group.rows
        if not rows:
            self._idle.pop(group, None)
        rows[row] = rows.get(row, 0) + 1

    def _displace(self, row: int, pod: Pod) -> None:
        group = self._group_of(pod)
        rows = group.rows
        left = rows[row] - 1
        if left:
            rows[row] = left
        else:
            del rows[row]
            if not rows:
                self._rest(group)

    def count(self, row: int, pod: Pod) -> None:
        """A pod is on that row now."""
        if self.regrouping is not None:
            if row < self.regrouping.row:
                self.place(row, pod)
            self._tell(row, pod, 1)
            return
        group = self._group_of(pod)
        rows = group.rows
        if not rows:
            self._idle.pop(group, None)
        rows[row] = rows.get(row, 0) + 1
        for tally in group.tallies:
            tally.add(row, 1)

    def discount(self, row: int, pod: Pod) -> None:
        """The pod is gone from that row."""
        if self.regrouping is not None:
            if row < self.regrouping.row:
                self._displace(row, pod)
            self._tell(row, pod, -1)
            return
        tallies = self._group_of(pod).tallies
        self._displace(row, pod)
        for tally in tallies:
            tally.add(row, -1)

    def _tell(self, row: int, pod: Pod, change: int) -> None:
        """The tallies of a pod, found without a group."""
        for book in (self.book, self._common):
            if book:
                for tally in book.meaning(self.name, pod.labels, terminating=pod.deleting):
                    tally.add(row, change)

    def join(self, tally: Tally) -> None:
        """Let a new tally count the pods that are here, and those to come.

        While the pods are grouped anew, those that are here must be counted by other means.
        """
        for group in self._candidates(tally.query.selector):
            if (tally.query.terminating or not group.terminating) and tally.query.selector.matches(
                group.labels
            ):
                group.tallies.append(tally)
                tally.groups[group] = None
                if self.regrouping is None:
                    tally.add_rows(group.rows)

    def _group_of(self, pod: Pod) -> PodGroup:
        labels = pod.labels
        seen: _Seen
        if self._few is not None:
            seen = tuple(map(labels.get, self._few))
        else:
            keys = self.keys
            seen = frozenset([item for item in labels.items() if item[0] in keys])
        group = self._groups.get((pod.deleting, seen))
        return self._new((pod.deleting, seen), labels) if group is None else group

    def _new(self, place: tuple[bool, _Seen], labels: Mapping[str, str]) -> PodGroup:
        keys = self.keys
        shown = {key: value for key, value in labels.items() if key in keys}
        group = self._groups[place] = PodGroup(shown, place)
        for item in shown.items():
            self._by_label.setdefault(item, {})[group] = None
        for book in (self.book, self._common):
            if book:
                group.tallies += book.meaning(self.name, shown, terminating=group.terminating)
        for tally in group.tallies:
            tally.groups[group] = None
        return group

    def _rest(self, group: PodGroup) -> None:
        """The group has no pods; of such groups the one that rests longest goes when they are too many."""
        self._idle[group] = None
        if len(self._idle) > self.IDLE:
            oldest = next(iter(self._idle))
            del self._idle[oldest]
            del self._groups[oldest.place]
            for item in oldest.labels.items():
                groups = self._by_label[item]
                del groups[oldest]
                if not groups:
                    del self._by_label[item]
            for tally in oldest.tallies:
                tally.groups.pop(oldest, None)

    def _candidates(self, selector: LabelSelector) -> Collection[PodGroup]:
        """The groups that have one of the values which the selector asks for, by its most telling requirement."""
        best: Collection[PodGroup] = self._groups.values()
        for requirement in selector.requirements:
            if requirement.operator is Operator.IN:
                found = [
                    self._by_label.get((requirement.key, v), {}) for v in dict.fromkeys(requirement.values)
                ]
                if sum(map(len, found)) < len(best):
                    best = found[0] if len(found) == 1 else [group for groups in found for group in groups]
        return best
