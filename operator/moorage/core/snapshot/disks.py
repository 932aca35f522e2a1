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
