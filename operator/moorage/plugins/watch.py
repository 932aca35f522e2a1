"""Looks at how long users' functions take, and tells the log of slow and of failing ones, by name and not too often."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field

logger = logging.getLogger("moorage.plugins")

#: A call that takes longer stalls everything else: no turn of the event loop should take more.
SLOW = 0.05
#: The same is not told again for so long.
PAUSE = 60.0


@dataclass
class Watch:
    """``clock`` gives seconds; each plugin's slow calls, and its failures, are logged once a minute."""

    clock: Callable[[], float] = time.perf_counter
    slow: float = SLOW
    _told: dict[tuple[str, str], tuple[float | None, int]] = field(default_factory=dict)

    def took(self, plugin: str, what: str, seconds: float) -> None:
        """A call has ended after so long."""
        if seconds > self.slow and (more := self._due(plugin, "slow")) is not None:
            logger.warning(
                "Plugin %s: %s took %.0f ms, which holds up all pods (more than %.0f ms)%s",
                *(plugin, what, seconds * 1e3, self.slow * 1e3, more),
            )

    def failed(self, plugin: str, text: str, error: BaseException | None) -> None:
        """A call has raised, or its answer cannot be used."""
        if (more := self._due(plugin, "failed")) is not None:
            logger.error("Plugin %s: %s%s", plugin, text, more, exc_info=error)

    def stale(self, plugin: str, text: str) -> None:
        """A refresh came to nothing."""
        if (more := self._due(plugin, "stale")) is not None:
            logger.warning("Plugin %s: %s; what was known before stays in use%s", plugin, text, more)

    def _due(self, plugin: str, kind: str) -> str | None:
        """None if it was told lately; else what to add about the times it was not told."""
        now = self.clock()
        last, silent = self._told.get((plugin, kind), (None, 0))
        if last is not None and now - last < PAUSE:
            self._told[plugin, kind] = (last, silent + 1)
            return None
        self._told[plugin, kind] = (now, 0)
        return f" ({silent} more times since it was last told)" if silent else ""
