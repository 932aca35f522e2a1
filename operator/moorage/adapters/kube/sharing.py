"""One object for equal values, within bounds: what 150,000 pods have in common is kept once."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
H = TypeVar("H", bound=Hashable)


class Recent(Generic[K, V]):
    """A map that forgets what was not asked for lately.

    Two generations: a full young one becomes the old one, whose forgotten entries go at the next turn.  This
    keeps the ``capacity`` most recently used entries, and at most twice as many, at the price of a dict look-up.
    """

    __slots__ = ("_capacity", "_old", "_young")

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._young: dict[K, V] = {}
        self._old: dict[K, V] = {}

    def get(self, key: K) -> V | None:
        """The value kept under the key, or None."""
        found = self._young.get(key)
        if found is None:
            found = self._old.get(key)
            if found is not None:
                self.put(key, found)
        return found

    def put(self, key: K, value: V) -> V:
        """Keep the value."""
        if len(self._young) >= self._capacity:
            self._old = self._young
            self._young = {}
        self._young[key] = value
        return value

    def __len__(self) -> int:
        return len(self._young.keys() | self._old.keys())


class Sharing:
    """Gives back the first of equal values that it was shown and still remembers."""

    __slots__ = ("_kept",)

    def __init__(self, capacity: int) -> None:
        self._kept: Recent[Hashable, object] = Recent(capacity)

    def value(self, value: H) -> H:
        """A hashable value."""
        return self.under((type(value), value), lambda: value)

    def under(self, key: Hashable, make: Callable[[], V]) -> V:
        """What was made under this key; the caller sees to it that a key stands for one type."""
        found = self._kept.get(key)
        if found is None:
            found = self._kept.put(key, make())
        return found  # type: ignore[return-value]
