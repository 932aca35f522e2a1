"""Tentative placements: place and evict pods, look, and undo or keep all of it.

A cycle works on one transaction, so that a decision about several pods, or one that evicts others,
is either kept as a whole or leaves no trace.
"""

from __future__ import annotations

from typing import Self

from moorage.core.cache.cache import Cache, PodState
from moorage.core.model.pod import Pod


class Transaction:
    """A list of changes to the cache that can be undone in reverse.

    Assumptions made here become real by ``commit``; without it, leaving the ``with`` block undoes them.
    Evictions are for looking only: a real eviction happens in the API server and comes back as an event,
    so ``commit`` refuses to keep one.
    """

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._done: list[Pod | PodState] = []  # a placed pod, or the state of an evicted one

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.rollback()

    @property
    def placements(self) -> tuple[Pod, ...]:
        """The pods placed so far, each with its node's name."""
        return tuple(done for done in self._done if isinstance(done, Pod))

    def place(self, pod: Pod, node_name: str) -> Pod:
        """Assume the pod on a node; raises ValueError if it takes room already."""
        placed = self._cache.assume(pod, node_name)
        self._done.append(placed)
        return placed

    def evict(self, uid: str) -> None:
        """Take a pod off its node for the time being; raises LookupError if it takes no room."""
        state = self._cache.take_out(uid)
        if state is None:
            raise LookupError(f"no pod with uid {uid} takes room")
        self._done.append(state)

    def commit(self) -> tuple[Pod, ...]:
        """Keep the placements and return them; raises ValueError if something was evicted."""
        if any(isinstance(done, PodState) for done in self._done):
            raise ValueError("evictions cannot be committed; they happen in the API server")
        kept = self.placements
        self._done.clear()
        return kept

    def rollback(self) -> None:
        """Undo everything that was not committed, last change first."""
        while self._done:
            done = self._done.pop()
            if isinstance(done, Pod):
                self._cache.forget(done.uid)
            else:
                self._cache.put_back(done)
