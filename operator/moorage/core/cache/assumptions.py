"""Placements on their way to the API server, and when to ask what became of each.

An assumption ends by the bound stream, by the bind's failure, or by a look-up.  The look-ups come
after ``confirm_after`` seconds and then ever more rarely; a look-up that finds the pod not bound
yet ends nothing, since the bind may still land.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

from moorage.core.model.pod import Pod, PodRef


@dataclass(slots=True)
class Assumption:
    """One placed pod; ``stamp`` is what its node was like when it was chosen (see ``Cache.stamp``)."""

    pod: Pod
    stamp: int
    check_at: float
    wait: float


class Assumptions:
    """All placements that no stream has confirmed yet; times are engine time in seconds."""

    def __init__(self, confirm_after: float, confirm_at_most: float) -> None:
        self._confirm_after = confirm_after
        self._confirm_at_most = confirm_at_most
        self._by_uid: dict[str, Assumption] = {}
        self._checks: list[tuple[float, str]] = []

    def __len__(self) -> int:
        return len(self._by_uid)

    def get(self, uid: str) -> Assumption | None:
        """The pod's assumption, None if it has none."""
        return self._by_uid.get(uid)

    def begin(self, pod: Pod, stamp: int, now: float) -> None:
        """The pod's binding is sent out now."""
        self._by_uid[pod.uid] = assumption = Assumption(pod, stamp, 0.0, self._confirm_after)
        self._schedule(assumption, now)

    def settled(self, uid: str, now: float) -> None:
        """The API server took the binding; only the bound stream is missing.

        The room stays assumed until that stream shows the pod: should the pod be deleted while the
        stream is broken, no delete will ever come, and only a look-up finds out.
        """
        assumption = self._by_uid.get(uid)
        if assumption is not None:
            assumption.wait = self._confirm_at_most
            self._schedule(assumption, now)

    def end(self, uid: str) -> Assumption | None:
        """Confirmed, failed or found gone; returns it if there was one."""
        return self._by_uid.pop(uid, None)

    def due(self, now: float) -> list[PodRef]:
        """The pods to look up now; each is due again later if it is still assumed then."""
        found = []
        while self._checks and self._checks[0][0] <= now:
            check_at, uid = heapq.heappop(self._checks)
            assumption = self._by_uid.get(uid)
            if assumption is not None and assumption.check_at == check_at:
                found.append(assumption.pod.ref)
                assumption.wait = min(assumption.wait * 2, self._confirm_at_most)
                self._schedule(assumption, now)
        return found

    def next_check(self) -> float | None:
        """When the next look-up is due, None if nothing is assumed."""
        while self._checks:
            check_at, uid = self._checks[0]
            assumption = self._by_uid.get(uid)
            if assumption is not None and assumption.check_at == check_at:
                return check_at
            heapq.heappop(self._checks)
        return None

    def _schedule(self, assumption: Assumption, now: float) -> None:
        assumption.check_at = now + assumption.wait
        heapq.heappush(self._checks, (assumption.check_at, assumption.pod.uid))
