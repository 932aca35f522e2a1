"""How long to wait before trying again."""

from __future__ import annotations

import random


class Backoff:
    """Doubling delays with jitter, so that many clients do not come back at the same moment."""

    def __init__(self, first: float = 0.25, longest: float = 30.0, rng: random.Random | None = None) -> None:
        self._first = first
        self._longest = longest
        self._rng = rng or random.Random()
        self._next = first

    def reset(self) -> None:
        """It worked: the next delay is the first one again."""
        self._next = self._first

    def delay(self) -> float:
        """Seconds to wait now: between half of the present step and all of it; the next step is double."""
        step = self._next
        self._next = min(self._longest, step * 2)
        return step * self._rng.uniform(0.5, 1.0)
