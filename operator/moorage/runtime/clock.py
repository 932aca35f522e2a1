"""The engine's time."""

from __future__ import annotations

import time


class SteadyClock:
    """Wall-clock time that is read once and then only advanced by the monotonic clock.

    Deadlines inside the engine survive an administrator (or NTP) setting the clock, and times that
    users read are right to within the drift since the process started.
    """

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()

    def now(self) -> float:
        """Seconds since the epoch; never goes backwards."""
        return self._offset + time.monotonic()
