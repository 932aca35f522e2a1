"""Questions about bound pods that can be counted: how many of these are where?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from moorage.core.model.selector import LabelSelector


@dataclass(frozen=True, slots=True)
class PodQuery:
    """The pods of these namespaces (None: of all) whose labels the selector matches.

    With ``terminating``, those that are being deleted count, too.  Equal queries are counted once, and looked up
    often, hence the stored hash.
    """

    namespaces: frozenset[str] | None
    selector: LabelSelector
    terminating: bool = True
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.namespaces, self.selector, self.terminating)))

    def __hash__(self) -> int:
        return self._hash

    def matches(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Whether it means a pod of that namespace with those labels; dying or not is the caller's to compare."""
        return (self.namespaces is None or namespace in self.namespaces) and self.selector.matches(labels)
