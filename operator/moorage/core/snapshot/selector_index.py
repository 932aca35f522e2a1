"""Finds the selectors that match a set of labels without trying every one of them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Generic, TypeVar

from moorage.core.model.selector import LabelSelector, Operator

T = TypeVar("T", bound=Hashable)

#: A label that must be there, or (with None for the value) a key that must be.
_Place = tuple[str, str | None]


class SelectorIndex(Generic[T]):
    """Things with a selector each, filed under one label that their pods must have.

    Most selectors ask for the value of a label (``app In (web)``), so a set of labels leads straight to the few
    that can match.  Those that ask for nothing of the kind are candidates for every set.
    """

    __slots__ = ("_filed", "_keys", "_places", "_rest")

    def __init__(self) -> None:
        self._filed: dict[_Place, dict[T, None]] = {}
        self._places: dict[T, tuple[_Place, ...]] = {}
        self._rest: dict[T, None] = {}
        self._keys = 0  # places that ask for a key only

    def __len__(self) -> int:
        return len(self._places)

    def add(self, thing: T, selector: LabelSelector) -> None:
        """File a thing under the requirement that the fewest others are filed under."""
        best: tuple[_Place, ...] = ()
        cost = -1
        for requirement in selector.requirements:
            places: tuple[_Place, ...]
            if requirement.operator is Operator.IN:
                places = tuple((requirement.key, value) for value in dict.fromkeys(requirement.values))
            elif requirement.operator is Operator.EXISTS:
                places = ((requirement.key, None),)
            else:
                continue
            others = sum(len(self._filed.get(place, ())) for place in places)
            if places and (cost < 0 or others < cost):
                best, cost = places, others
        self._places[thing] = best
        for place in best:
            self._filed.setdefault(place, {})[thing] = None
            self._keys += place[1] is None
        if not best:
            self._rest[thing] = None

    def discard(self, thing: T) -> None:
        """Forget a thing; nothing happens if it is not here."""
        for place in self._places.pop(thing, ()):
            filed = self._filed[place]
            del filed[thing]
            if not filed:
                del self._filed[place]
            self._keys -= place[1] is None
        self._rest.pop(thing, None)

    def candidates(self, labels: Mapping[str, str]) -> Iterator[T]:
        """The things whose selector may match, each once; the caller checks."""
        filed = self._filed
        if filed:
            for item in labels.items():
                found = filed.get(item)
                if found is not None:
                    yield from found
            if self._keys:
                for key in labels:
                    yield from filed.get((key, None), ())
        yield from self._rest
