"""Which host ports are taken on which rows.

Indexed by protocol and port, so that a pod's ports are compared only with the few nodes on which
the same port is taken at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from moorage.core.model.pod import HostPort

WILDCARD = "0.0.0.0"  # noqa: S104  (an address in a rule, nothing listens on it)


def conflicts(wanted: HostPort, ip: str) -> bool:
    """Whether a port on ``ip`` (same protocol and number) excludes ``wanted``: the wildcard meets every address."""
    return WILDCARD in (wanted.ip, ip) or wanted.ip == ip


class HostPorts:
    """Counts of pods by (protocol, port), row and address."""

    def __init__(self) -> None:
        self._taken: dict[tuple[str, int], dict[int, Counter[str]]] = {}

    def add(self, row: int, ports: Iterable[HostPort]) -> None:
        """A pod with these ports is now on that row."""
        for port in ports:
            rows = self._taken.setdefault((port.protocol, port.port), {})
            rows.setdefault(row, Counter())[port.ip] += 1

    def remove(self, row: int, ports: Iterable[HostPort]) -> None:
        """The pod is gone; a port that another pod still holds stays taken."""
        for port in ports:
            key = (port.protocol, port.port)
            rows = self._taken[key]
            counter = rows[row]
            counter[port.ip] -= 1
            if counter[port.ip] <= 0:
                del counter[port.ip]
            if not counter:
                del rows[row]
            if not rows:
                del self._taken[key]

    def clear_row(self, row: int) -> None:
        """Nothing is on that row any more."""
        for key in list(self._taken):
            rows = self._taken[key]
            rows.pop(row, None)
            if not rows:
                del self._taken[key]

    def rows_in_conflict(self, wanted: Iterable[HostPort]) -> set[int]:
        """The rows on which at least one of the wanted ports is taken."""
        found: set[int] = set()
        for port in wanted:
            for row, counter in self._taken.get((port.protocol, port.port), {}).items():
                if row not in found and any(conflicts(port, ip) for ip in counter):
                    found.add(row)
        return found

    def times_in_conflict(self, wanted: Iterable[HostPort]) -> dict[int, int]:
        """How often a wanted port meets one that is taken, by row; rows where none does are left out."""
        found: dict[int, int] = {}
        for port in wanted:
            for row, counter in self._taken.get((port.protocol, port.port), {}).items():
                times = sum(number for ip, number in counter.items() if conflicts(port, ip))
                if times:
                    found[row] = found.get(row, 0) + times
        return found


def meetings(wanted: Iterable[HostPort], held: Iterable[HostPort]) -> int:
    """How often a wanted port meets one of those that one pod holds."""
    return sum(
        (mine.protocol, mine.port) == (theirs.protocol, theirs.port) and conflicts(mine, theirs.ip)
        for mine in wanted
        for theirs in held
    )
