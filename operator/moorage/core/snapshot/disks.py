"""Which disks named in pods are mounted on which rows."""

from __future__ import annotations

from collections.abc import Iterable

from moorage.core.model.pod_volumes import Disk


class Disks:
    """Counts of pods by disk identity and row; ``[0]`` those that share the disk, ``[1]`` those that do not."""

    def __init__(self) -> None:
        self._mounted: dict[tuple[str, ...], dict[int, list[int]]] = {}

    def add(self, row: int, disks: Iterable[Disk]) -> None:
        """A pod with these disks is now on that row."""
        for disk in disks:
            for identity in disk.identities:
                rows = self._mounted.setdefault(identity, {})
                rows.setdefault(row, [0, 0])[not disk.shareable] += 1

    def remove(self, row: int, disks: Iterable[Disk]) -> None:
        """The pod is gone."""
        for disk in disks:
            for identity in disk.identities:
                rows = self._mounted[identity]
                counts = rows[row]
                counts[not disk.shareable] -= 1
                if not any(counts):
                    del rows[row]
                if not rows:
                    del self._mounted[identity]

    def rows_in_conflict(self, disks: Iterable[Disk]) -> set[int]:
        """The rows on which one of these disks cannot be mounted as things are."""
        found: set[int] = set()
        for disk in disks:
            for identity in disk.identities:
                for row, counts in self._mounted.get(identity, {}).items():
                    if counts[1] or not disk.shareable:
                        found.add(row)
        return found

    def times_in_conflict(self, disks: Iterable[Disk]) -> dict[int, int]:
        """How often one of these disks meets one that it cannot be mounted beside, by row."""
        found: dict[int, int] = {}
        for disk in disks:
            for identity in disk.identities:
                for row, counts in self._mounted.get(identity, {}).items():
                    times = counts[1] if disk.shareable else sum(counts)
                    if times:
                        found[row] = found.get(row, 0) + times
        return found


def meetings(wanted: Iterable[Disk], mounted: Iterable[Disk]) -> int:
    """How often a wanted disk meets one of those that one pod has and that it cannot be mounted beside."""
    return sum(
        theirs.identities.count(identity)
        for mine in wanted
        for theirs in mounted
        if not (mine.shareable and theirs.shareable)
        for identity in mine.identities
    )
