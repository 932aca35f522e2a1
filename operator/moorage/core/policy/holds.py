"""What the hour of the day and a pod's age mean under its policies: windows and deadlines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo

from moorage.core.model.policy import Policy, PolicyRef
from moorage.core.policy.calendar import Calendar
from moorage.core.policy.merge import Merged

#: Gives each policy's calendar, which is worth keeping.
CalendarOf = Callable[[Policy], Calendar]

#: Looking for a moment at which several policies let a pod go ends after so many changes of any of them, or so late.
_CHANGES = 500
_FAR = 5 * 7 * 86_400.0


@dataclass(frozen=True, slots=True)
class Hold:
    """Why a pod may not go now: ``policies`` are in their order; it may at ``until`` (None: not in the next weeks).

    ``zone`` is the one in which the first of the policies thinks.
    """

    policies: tuple[PolicyRef, ...]
    until: float | None
    zone: tzinfo

    @property
    def message(self) -> str:
        """The text of the PodScheduled condition; the same for as long as the hold lasts."""
        names = ", ".join(f'"{ref.key}"' for ref in self.policies)
        whose = f"policy {names}" if len(self.policies) == 1 else f"policies {names}"
        if self.until is None:
            return f"held by {whose}: no time at which the pod may go is in sight"
        return f"held by {whose} until {_written(self.until, self.zone)}"


def hold_of(merged: Merged, since: float, now: float, calendar_of: CalendarOf) -> Hold | None:
    """What keeps a pod that waits ``since`` then from going ``now``, None if nothing does."""
    closed = [policy for policy in merged.timed if not _may_go(policy, since, now, calendar_of)]
    if not closed:
        return None
    until = next_flip(merged, since, now, calendar_of)
    return Hold(tuple(policy.ref for policy in closed), until, closed[0].windows[0].zone)


def deadline_of(merged: Merged, since: float) -> float | None:
    """When the pod has been pending for too long, None if no policy says."""
    return None if merged.pending_deadline is None else since + merged.pending_deadline[1]


def _may_go(policy: Policy, since: float, at: float, calendar_of: CalendarOf) -> bool:
    lifted = policy.max_delay is not None and at >= since + policy.max_delay
    return lifted or calendar_of(policy).admits(at)


def next_flip(merged: Merged, since: float, now: float, calendar_of: CalendarOf) -> float | None:
    """The first instant after ``now`` at which the pod may go if it may not now, or the other way round."""
    timed = merged.timed
    before = all(_may_go(policy, since, now, calendar_of) for policy in timed)
    at = now
    for _ in range(_CHANGES):
        changes = [_next_change(policy, since, at, calendar_of) for policy in timed]
        at = min((change for change in changes if change is not None), default=now)
        if at == now or at > now + _FAR:
            return None
        if all(_may_go(policy, since, at, calendar_of) for policy in timed) != before:
            return at
    return None


def _next_change(policy: Policy, since: float, at: float, calendar_of: CalendarOf) -> float | None:
    lifted = None if policy.max_delay is None else since + policy.max_delay
    if lifted is not None and at >= lifted:
        return None
    change = calendar_of(policy).next_change(at)
    if lifted is None:
        return change
    return lifted if change is None else min(change, lifted)


def _written(instant: float, zone: tzinfo) -> str:
    """RFC 3339 in UTC, and the local time beside it."""
    utc = datetime.fromtimestamp(instant, UTC)
    local = datetime.fromtimestamp(instant, zone)
    name = getattr(zone, "key", None) or local.tzname() or "local"
    return f"{utc:%Y-%m-%dT%H:%M:%SZ} ({local:%Y-%m-%d %H:%M} {name})"
