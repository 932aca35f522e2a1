"""Holds decisions back at the start until the pods that wait are known.

The stream of unscheduled pods brings them one by one, in the order of their names.  Decided upon as
they come, an unimportant pod would go before an important one, and take room that was promised to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable


class FirstSight:
    """Open once every pod that was pending at the start has been seen, or ``patience`` seconds have passed.

    A pod that is deleted in these moments is never seen, hence the patience; it begins when ``is_open`` is
    first asked for.
    """

    def __init__(self, clock: Callable[[], float], patience: float = 5.0) -> None:
        self._clock = clock
        self._patience = patience
        self._expected: set[str] | None = None
        self._seen: set[str] | None = set()  # before it is known what to expect; None once open
        self._deadline: float | None = None

    def expect(self, uids: Iterable[str]) -> None:
        """These pods are pending."""
        if self._seen is not None:
            self._expected = set(uids) - self._seen

    def saw(self, uid: str) -> None:
        """A stream shows the pod, pending or bound."""
        if self._seen is None:
            return
        if self._expected is None:
            self._seen.add(uid)
        else:
            self._expected.discard(uid)

    def is_open(self) -> bool:
        """Whether decisions may be made; once open it stays so."""
        if self._seen is None:
            return True
        if self._deadline is None:
            self._deadline = self._clock() + self._patience
        if self._expected == set() or self._clock() >= self._deadline:
            self._seen = self._expected = None
            return True
        return False
