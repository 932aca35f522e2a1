"""Writes the status of policies: in batches, only what has changed, and only from the replica that leads.

What is new about a policy itself (a generation that is accepted or refused) is written at once.  The figures change
with every pod, so they are looked at about once a second, and only so many policies are written in a second:
pods are bound at the same time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from moorage.adapters.kube.client import KubeClient
from moorage.adapters.kube.errors import ApiError, Conflict, Forbidden, KubeError, NotFound
from moorage.adapters.kube.policy_conditions import Usage, merge_patch, status_of
from moorage.adapters.kube.policy_kinds import status_path
from moorage.adapters.kube.policy_register import KnownPolicy, PolicyRegister
from moorage.core.model.policy import PolicyRef
from moorage.core.model.policy_report import PolicyReport
from moorage.runtime.ports import Clock

logger = logging.getLogger(__name__)

_TIMEOUT = 10.0
#: Between two writes of one policy, and between two looks at the figures, in seconds.
_SPACING, _LOOK = 1.0, 1.0
#: How many policies are written for their figures in a second, and how many at the same time.
_RATE, _AT_ONCE = 10, 4
#: Taking the figures may take this share of the time.
_SHARE = 0.02
#: After a failure, and after a refusal for want of permission, which may be given meanwhile.
_RETRY, _OFF = 5.0, 60.0


@dataclass(slots=True)
class _Written:
    """Our last write of a policy: when it may be written next, what was sent, and what it became."""

    uid: str
    not_before: float = 0.0
    sent: Mapping[str, Any] = field(default_factory=dict)
    became: Mapping[str, Any] = field(default_factory=dict)


class PolicyStatusWriter:
    """``reports`` gives the engine's figures, ``failures`` those of an expression over pods.

    ``count`` is told how each write ended: written, dropped, failed.
    ``exact``: see ``status_of``.
    """

    def __init__(
        self,
        client: KubeClient,
        register: PolicyRegister,
        clock: Clock,
        *,
        reports: Callable[[], Sequence[PolicyReport]],
        usage: Callable[[], Usage],
        leading: Callable[[], bool],
        failures: Callable[[str], tuple[int, str]] = lambda _: (0, ""),
        count: Callable[[str], None] = lambda _: None,
        exact: bool = True,
    ) -> None:
        self._client = client
        self._register = register
        self._clock = clock
        self._reports = reports
        self._usage = usage
        self._leading = leading
        self._failures = failures
        self._count = count
        self._exact = exact
        self._latest: dict[PolicyRef, PolicyReport] = {}
        self._written: dict[PolicyRef, _Written] = {}
        self._settled: dict[PolicyRef, object] = {}  # what was looked at when there was nothing to write
        self._urgent: dict[PolicyRef, None] = {}
        self._wake = asyncio.Event()
        self._look_due = 0.0
        self._off_until = 0.0
        self._warned = False

    def changed(self, ref: PolicyRef) -> None:
        """The policy has another generation, or is gone."""
        self._urgent[ref] = None
        self._wake.set()

    async def run(self) -> None:
        """Write for ever."""
        while True:
            try:
                await asyncio.wait_for(self._wake.wait(), self._rest())
            except TimeoutError:
                pass
            self._wake.clear()
            if len(self._register) and self._leading() and _time() >= self._off_until:
                await self._round()

    def _rest(self) -> float:
        """Until the next look, or until an urgent policy may be written again."""
        now = _time()
        urgent = filter(None, map(self._register.get, self._urgent))
        due = [self._look_due, *(self._not_before(known) for known in urgent)]
        return max(0.05, min(_LOOK, *(at - now for at in due)))

    async def _round(self) -> None:
        """One batch: what is urgent, and of the rest those that were written longest ago."""
        now = _time()
        looked = now >= self._look_due
        if looked:
            self._look()
        urgent = [known for ref in self._urgent if (known := self._register.get(ref)) is not None]
        self._urgent = {known.ref: None for known in urgent if self._not_before(known) > now}
        batch = [work for known in urgent if (work := self._due(known, now)) is not None]
        if looked:
            chosen = {known.ref for known, _ in batch}
            rest = [k for k in self._register if k.ref not in chosen and self._not_before(k) <= now]
            rest.sort(key=self._not_before)
            left = _RATE
            for known in rest:
                untold = (
                    known.status.get("observedGeneration") != known.generation
                )  # a write of it has failed
                if left or untold:
                    work = self._due(known, now)
                    if work is not None:
                        batch.append(work)
                        left -= not untold
        slots = asyncio.Semaphore(_AT_ONCE)
        await asyncio.gather(*(self._write(known, status, slots) for known, status in batch))

    def _look(self) -> None:
        """Take the figures, and let the next look be so far away that all looks cost little."""
        started = _time()
        self._latest = {report.ref: report for report in self._reports()}
        for kept in (self._written, self._settled):
            for ref in [ref for ref in kept if self._register.get(ref) is None]:
                del kept[ref]
        now = _time()
        self._look_due = now + max(_LOOK, (now - started) / _SHARE)

    def _due(self, known: KnownPolicy, now: float) -> tuple[KnownPolicy, dict[str, Any]] | None:
        """The policy with the status to write, if there is anything to write and it is time."""
        if self._not_before(known) > now:
            return None
        report = self._latest.get(known.ref)
        if report is not None and (known.in_force is None or report.generation != known.in_force.generation):
            report = None  # of another generation; the next look brings this one's
        expression = known.in_force.selection.expression if known.in_force is not None else ""
        failures, usage = self._failures(expression), self._usage()
        seen = (
            known.uid,
            known.version,
            known.problems,
            known.in_force,
            known.waiting,
            report,
            failures,
            usage,
        )
        if self._settled.get(known.ref) == seen:
            return None  # as at the last look, which is the rule
        status = status_of(known, report, usage, self._clock.now(), failures, exact=self._exact)
        if status != known.status and not self._is_written(known, status):
            return known, status
        self._settled[known.ref] = seen
        return None

    def _is_written(self, known: KnownPolicy, status: dict[str, Any]) -> bool:
        """Whether the API server has it, if in a form of its own."""
        written = self._written.get(known.ref)
        if written is None or written.uid != known.uid:
            return False
        return written.sent == status and written.became == known.status

    async def _write(self, known: KnownPolicy, status: dict[str, Any], slots: asyncio.Semaphore) -> None:
        patch = {"metadata": {"uid": known.uid}, "status": merge_patch(known.status, status)}
        written = self._written.get(known.ref)
        if written is None or written.uid != known.uid:
            written = self._written[known.ref] = _Written(known.uid)
        async with slots:
            if _time() < self._off_until:
                return
            try:
                answer = await self._client.patch(status_path(known.ref), patch, timeout=_TIMEOUT)
            except KubeError as error:
                written.not_before = _time() + (_SPACING if isinstance(error, Conflict) else _RETRY)
                self._failed(known, error)
                return
        written.not_before = _time() + _SPACING
        written.sent = status
        if isinstance(answer, dict) and isinstance(answer.get("metadata"), dict):
            self._register.written(known.ref, answer)
            written.became = answer.get("status") or {}
        self._count("written")

    def _failed(self, known: KnownPolicy, error: KubeError) -> None:
        """What is not written differs still at the next look, and is written then."""
        if isinstance(error, NotFound):
            self._count("dropped")  # the stream tells of its end
            return
        self._count("failed")
        if isinstance(error, Forbidden):
            self._off_until = _time() + _OFF
            if not self._warned:
                self._warned = True
                logger.warning("The status of policies is not written: %s", error)
        elif isinstance(error, ApiError) and not isinstance(error, Conflict) and error.status < 500:
            logger.warning("The status of policy %s cannot be written: %s", known.ref.key, error)
        else:
            logger.debug("The status of policy %s cannot be written now: %s", known.ref.key, error)
            if not isinstance(error, Conflict):
                self._off_until = _time() + _RETRY  # the others need not wait for their time-outs

    def _not_before(self, known: KnownPolicy) -> float:
        written = self._written.get(known.ref)
        return 0.0 if written is None or written.uid != known.uid else written.not_before


def _time() -> float:
    """Seconds on the event loop's monotonic clock."""
    return asyncio.get_running_loop().time()
