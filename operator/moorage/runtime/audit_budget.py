"""How much time audits of policies may take: a share of what real decisions took, measured."""

from __future__ import annotations

import time
from collections.abc import Callable

#: Of the time of real decisions.
SHARE = 0.2
#: Seconds that may be saved up, and are there at the start: where little happens, every decision can be audited.
MOST = 0.25


class AuditBudget:
    """Implements ``core.audits.AuditBudget``: an audit may begin while there is credit, and is charged its time."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._credit = MOST
        self._began = self._audit_began = 0.0
        self._audited = 0.0  # within the present decision

    def decision_begins(self) -> None:
        """A real decision begins."""
        self._began, self._audited = self._clock(), 0.0

    def decision_ends(self) -> None:
        """It has been made."""
        taken = max(0.0, self._clock() - self._began - self._audited)
        self._credit = min(MOST, self._credit + SHARE * taken)

    def audit_begins(self) -> bool:
        """Whether there is time for an audit, which then begins."""
        if self._credit <= 0.0:
            return False
        self._audit_began = self._clock()
        return True

    def audit_ends(self) -> None:
        """It has been made."""
        taken = max(0.0, self._clock() - self._audit_began)
        self._audited += taken
        self._credit -= taken
