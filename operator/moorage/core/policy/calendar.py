"""When a policy's windows let pods go.

A local time that a change of the clocks skips is read with the offset from before the change, which moves it forward
by what was skipped; of one that comes twice the first is meant (RFC 5545, section 3.3.5, has the same rules).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta

from moorage.core.model.policy import Window

_DAY = 86_400.0
#: Days for which the spans are worked out at a time: two weeks, so that one odd week is no end.
_AHEAD = 15
#: A window opened up to so many days before may still be open: it lasts a day, and zones differ by more than one.
_BEFORE = 3


class Calendar:
    """The windows of one policy, as a line of instants at which the answer changes.

    A pod may go while no Hold window is open and, where there are Allow windows, one of them is.  A span includes
    its first instant and not its last.
    """

    def __init__(self, windows: Sequence[Window]) -> None:
        self._windows = tuple(windows)
        self._must_be_allowed = any(not window.hold for window in windows)
        self._from = self._until = 0.0  # what the line below is true for
        self._changes: list[float] = []
        self._admits: list[bool] = []  # before the first change, then from each of them on

    def admits(self, at: float) -> bool:
        """Whether pods may go at this instant (seconds since the epoch)."""
        self._look_at(at)
        return self._admits[bisect_right(self._changes, at)]

    def next_change(self, at: float) -> float | None:
        """The first instant after ``at`` at which ``admits`` answers otherwise; None if it never does."""
        self._look_at(at)
        index = bisect_right(self._changes, at)
        if index < len(self._changes):
            return self._changes[index]
        if not self._changes:
            return None  # not in two weeks, so never
        self._work_out(at)
        index = bisect_right(self._changes, at)
        return self._changes[index] if index < len(self._changes) else None

    def _look_at(self, at: float) -> None:
        if not self._from <= at < self._until:
            self._work_out(at)

    def _work_out(self, at: float) -> None:
        self._from, self._until = at, at + (_AHEAD - 1) * _DAY
        allowed = held = 0
        steps: list[tuple[float, int, int]] = []
        for start, end, hold in self._spans(at):
            if end <= at:
                continue
            more_allowed, more_held = (0, 1) if hold else (1, 0)
            if start <= at:
                allowed += more_allowed
                held += more_held
            else:
                steps.append((start, more_allowed, more_held))
            steps.append((end, -more_allowed, -more_held))
        self._changes, self._admits = [], [self._may_go(allowed, held)]
        steps.sort()
        for index, (instant, more_allowed, more_held) in enumerate(steps):
            allowed += more_allowed
            held += more_held
            last = index + 1 == len(steps) or steps[index + 1][0] > instant
            if last and instant < self._until and self._may_go(allowed, held) != self._admits[-1]:
                self._changes.append(instant)
                self._admits.append(self._may_go(allowed, held))

    def _may_go(self, allowed: int, held: int) -> bool:
        return not held and (bool(allowed) or not self._must_be_allowed)

    def _spans(self, at: float) -> Iterator[tuple[float, float, bool]]:
        """Start, end and kind of every opening of a window near that instant and in the time ahead."""
        today = datetime.fromtimestamp(at, UTC).date()
        for window in self._windows:
            for number in range(-_BEFORE, _AHEAD + 1):
                day = today + timedelta(days=number)
                if day.weekday() not in window.days:
                    continue
                last_day = day if window.end > window.start else day + timedelta(days=1)
                start, end = _instant(day, window.start, window), _instant(last_day, window.end, window)
                if start < end:  # an hour that is skipped may leave nothing of a short one
                    yield start, end, window.hold


def _instant(day: date, minutes: int, window: Window) -> float:
    """Seconds since the epoch of a time of day in the window's zone."""
    naive = datetime.combine(day, time()) + timedelta(minutes=minutes)
    return naive.replace(tzinfo=window.zone, fold=0).timestamp()
