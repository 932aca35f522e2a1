"""Things that can be reached from some nodes only, found by a node's labels.

Local volumes and the capacities of local storage are as many as nodes, and each is reachable from one of them.
So they are kept under a label and value that a node must have, and a node is compared with few of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from moorage.core.model.selector import Operator, Requirement

#: Alternatives, each of which is requirements that must all hold; None: everywhere.
Alternatives = Iterable[tuple[Requirement, ...]] | None


class TopologyIndex:
    """Names of things by what their topology asks of a node's labels."""

    def __init__(self) -> None:
        self._slots: dict[str, tuple[tuple[str, str], ...] | None] = {}  # by name; None: everywhere
        self._read: dict[str, tuple[str, ...]] = {}  # label keys by name
        self._buckets: dict[tuple[str, str], dict[str, None]] = {}
        self._bucket_keys: Counter[str] = Counter()
        self._read_keys: Counter[str] = Counter()
        self._everywhere: dict[str, None] = {}
        self._others: dict[str, None] = {}

    def __len__(self) -> int:
        return len(self._slots)

    def __iter__(self) -> Iterator[str]:
        return iter(self._slots)

    @property
    def keys(self) -> frozenset[str]:
        """The labels on which the answers depend."""
        return frozenset(self._read_keys)

    @property
    def everywhere(self) -> Iterable[str]:
        """What can be reached from all nodes."""
        return self._everywhere

    def put(self, name: str, alternatives: Alternatives) -> None:
        """Add a thing, or change where it can be reached."""
        self.drop(name)
        if alternatives is None:
            self._slots[name] = None
            self._everywhere[name] = None
            return
        terms = tuple(alternatives)
        self._read[name] = read = tuple({requirement.key for term in terms for requirement in term})
        self._read_keys.update(read)
        slots: list[tuple[str, str]] = []
        for term in terms:
            anchor = next((r for r in term if r.operator is Operator.IN), None)
            if anchor is None:
                self._slots[name] = ()
                self._others[name] = None
                return
            slots += [(anchor.key, value) for value in anchor.values]
        self._slots[name] = tuple(dict.fromkeys(slots))
        for slot in self._slots[name] or ():
            self._buckets.setdefault(slot, {})[name] = None
            self._bucket_keys[slot[0]] += 1

    def drop(self, name: str) -> None:
        """Take a thing out, if it is here."""
        if name not in self._slots:
            return
        self._everywhere.pop(name, None)
        self._others.pop(name, None)
        for slot in self._slots.pop(name) or ():
            bucket = self._buckets[slot]
            del bucket[name]
            if not bucket:
                del self._buckets[slot]
            _lower(self._bucket_keys, slot[0])
        for key in self._read.pop(name, ()):
            _lower(self._read_keys, key)

    def near(self, labels: Mapping[str, str]) -> Iterator[str]:
        """What a node with these labels may reach, besides what is ``everywhere``.

        The requirements remain to be checked, and a thing can come up more than once.
        """
        for key in self._bucket_keys:
            value = labels.get(key)
            if value is not None:
                yield from self._buckets.get((key, value), ())
        yield from self._others


def _lower(counter: Counter[str], key: str) -> None:
    counter[key] -= 1
    if not counter[key]:
        del counter[key]
