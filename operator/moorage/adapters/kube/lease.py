"""Which replica leads: a ``coordination.k8s.io/v1`` Lease, by the rules of client-go's leader election.

What keeps two leaders apart:

- The holder counts its lease from the moment the renewal was *sent*, and gives up after
  ``renew_deadline``; the others count from the moment they *saw* the record change, which is later, and
  wait ``lease_duration``, which is longer.
- Both use a local clock that never jumps and goes on while the process or the machine sleeps.  The times
  in the record are for people to read.
- Whether we lead is computed from that clock whenever someone asks (``holds``), so that a process that
  was stopped for a while knows it lost before it has done anything else.
- Every write carries the resource version that was read, so of two only one succeeds.
"""

from __future__ import annotations

import asyncio
import datetime
import logging
import math
import random
import socket
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from moorage.adapters.kube.errors import ApiError, Conflict, KubeError, NotFound

logger = logging.getLogger(__name__)

_NEVER = float("-inf")


class Requests(Protocol):
    """The part of ``KubeClient`` that a lease needs."""

    async def get(self, path: str, *, timeout: float | None) -> Any:
        """GET."""

    async def post(self, path: str, body: Any, *, timeout: float | None) -> Any:
        """POST."""

    async def put(self, path: str, body: Any, *, timeout: float | None) -> Any:
        """PUT."""


@dataclass(frozen=True, slots=True)
class LeaseSettings:
    """Which lease, and its times in seconds (client-go's defaults)."""

    name: str = "moorage"
    namespace: str = "kube-system"
    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0

    def __post_init__(self) -> None:
        if not self.lease_duration > self.renew_deadline > self.retry_period * 1.2:
            raise ValueError(
                f"a lease needs lease_duration > renew_deadline > 1.2 x retry_period, "
                f"not {self.lease_duration}, {self.renew_deadline}, {self.retry_period}"
            )


def boot_time() -> float:
    """Seconds that also pass while the machine sleeps, where the system can tell."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


def new_identity() -> str:
    """A name of our own: the host to read, and a part that no other process, not even our next, has."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


class LeaderElector:
    """One candidate.  ``run`` it as a task; cancel that to step down."""

    def __init__(
        self,
        client: Requests,
        settings: LeaseSettings | None = None,
        *,
        identity: str | None = None,
        on_started_leading: Callable[[], None] = lambda: None,
        on_stopped_leading: Callable[[], None] = lambda: None,
        on_new_leader: Callable[[str], None] = lambda _identity: None,
        clock: Callable[[], float] = boot_time,
        rng: random.Random | None = None,
    ) -> None:
        """``client`` should have connections of its own (``KubeClient.separate``); it is not closed here.

        ``on_stopped_leading`` is called after each ``on_started_leading``, also when ``run`` is cancelled
        (then before the lease is released).  ``on_new_leader`` is told each holder seen, us included.
        """
        self._client = client
        self.settings = settings or LeaseSettings()
        self.identity = identity or new_identity()
        self._on_started_leading = on_started_leading
        self._on_stopped_leading = on_stopped_leading
        self._on_new_leader = on_new_leader
        self._clock = clock
        self._rng = rng or random.Random()
        path = f"/apis/coordination.k8s.io/v1/namespaces/{self.settings.namespace}/leases"
        self._collection, self._path = path, f"{path}/{self.settings.name}"
        self._observed: dict[str, Any] | None = None  # the Lease as last read or written
        self._observed_at = _NEVER  # when its spec was last seen to change
        self._fresh = False  # whether the server may still have just that version
        self._unsure = False  # whether a write of ours is without an answer
        self._complaint = ""  # the failure logged last, so that it is logged once
        self._leading = False  # between the two callbacks
        self.valid_until = _NEVER  # by the clock: until then nobody else can lead
        self.leader = ""  # the holder last seen
        self.terms = 0  # how often we began to lead

    @property
    def is_leader(self) -> bool:
        """Whether we lead at this very moment."""
        return self.holds()

    def holds(self, margin: float = 0.0) -> bool:
        """Whether we lead now and for ``margin`` seconds more.  Cheap: ask right before each write."""
        return self._clock() + margin < self.valid_until

    @property
    def valid_for(self) -> float:
        """For how many seconds the lease is surely ours; 0 if it is not."""
        return max(0.0, self.valid_until - self._clock())

    async def run(self) -> None:
        """Campaign, lead, campaign again, until cancelled; then release the lease."""
        try:
            while True:
                await self._campaign()
                self._start()
                await self._stay()
                self._stop()
        finally:
            try:
                await self._resign()
            except KubeError as error:
                logger.warning("Lease %s could not be released: %s", self._path, error)

    # --- The two states ---

    async def _campaign(self) -> None:
        """Return once we hold the lease.

        Looks more often than a leader renews: a lease that was released is to be taken within half a second or so.
        """
        while not await self._attempt(self.settings.renew_deadline):
            await asyncio.sleep(self.settings.retry_period * self._rng.uniform(0.2, 0.25))

    async def _stay(self) -> None:
        """Renew, and return when the lease is lost; never later than it runs out."""
        began = self.valid_until - self.settings.renew_deadline
        while (left := self.valid_until - self._clock()) > 0:
            # From attempt to attempt, not from answer to attempt: a slow server must not cost the lease.
            pause = max(began + self.settings.retry_period - self._clock(), self.settings.retry_period / 20)
            await asyncio.sleep(min(left, pause))
            began = self._clock()
            left = self.valid_until - began
            if left > 0 and not await self._attempt(left) and self.leader != self.identity:
                self.valid_until = _NEVER  # someone else has it: our clocks disagree, and theirs counts
                return

    def _start(self) -> None:
        self._leading = True
        self.terms += 1
        logger.info("Leading: %s holds lease %s", self.identity, self._path)
        self._on_started_leading()

    def _stop(self) -> None:
        self.valid_until = _NEVER
        if self._leading:
            self._leading = False
            logger.info("No longer leading: %s gives up lease %s", self.identity, self._path)
            self._on_stopped_leading()

    async def _resign(self) -> None:
        """Step down, and let the next one begin at once instead of after the lease's duration."""
        perhaps_ours = self.holds() or self._unsure
        self._stop()
        if not perhaps_ours:
            return
        limit = min(2.0, self.settings.renew_deadline)
        now = _timestamp()
        free = {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": now, "acquireTime": now}
        for last in (False, True):
            try:
                if not self._fresh:  # the cancellation cut off a write, which may have succeeded
                    self._observe(await self._client.get(self._path, timeout=limit))
                if self.leader == self.identity:
                    await self._write(free, limit)
                    logger.info("Lease %s is released", self._path)
                return
            except Conflict:
                if last:
                    raise
                self._fresh = False

    # --- The record ---

    async def _attempt(self, patience: float) -> bool:
        """Acquire or renew once; failures are logged, and mean no."""
        # A request that hangs must leave time for another one.
        limit = min(patience, max(self.settings.renew_deadline / 2, self.settings.retry_period))
        try:
            held = await self._acquire_or_renew(limit)
        except KubeError as error:
            self._unsure = self._unsure and not isinstance(error, ApiError)
            if str(error) != self._complaint:
                self._complaint = str(error)
                logger.warning("Lease %s: %s", self._path, error)
            return False
        self._complaint = ""
        return held

    async def _acquire_or_renew(self, limit: float) -> bool:
        """One attempt, all its requests within ``limit`` seconds."""
        began = self._clock()
        if not (self.holds() and self._fresh):
            try:
                self._observe(await self._client.get(self._path, timeout=limit))
            except NotFound:
                return await self._create(limit)
        sent = self._clock()
        observed = self._observed
        assert observed is not None
        spec: Mapping[str, Any] = observed.get("spec") or {}
        holder = str(spec.get("holderIdentity") or "")
        if holder not in {"", self.identity} and sent < self._observed_at + self._duration(spec):
            return False
        now = _timestamp()
        changes: dict[str, Any] = {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": self._seconds(),
            "renewTime": now,
        }
        if holder != self.identity:
            changes["acquireTime"] = now
            changes["leaseTransitions"] = int(spec.get("leaseTransitions") or 0) + 1
        await self._write(changes, max(0.05, limit - (sent - began)))
        return self._hold(sent)

    async def _create(self, limit: float) -> bool:
        now = _timestamp()
        sent = self._clock()
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self.settings.name, "namespace": self.settings.namespace},
            "spec": {
                "holderIdentity": self.identity,
                "leaseDurationSeconds": self._seconds(),
                "acquireTime": now,
                "renewTime": now,
                "leaseTransitions": 0,
            },
        }
        self._unsure = True
        self._observe(await self._client.post(self._collection, lease, timeout=limit))
        return self._hold(sent)

    async def _write(self, changes: Mapping[str, Any], limit: float) -> None:
        """Change the record that was observed; whatever else is in it stays."""
        observed = self._observed
        assert observed is not None
        # Until the answer: if it is a conflict, someone else wrote; if none comes, perhaps we did.
        self._fresh, self._unsure = False, True
        lease = {**observed, "spec": {**(observed.get("spec") or {}), **changes}}
        self._observe(await self._client.put(self._path, lease, timeout=limit))

    def _hold(self, sent: float) -> bool:
        """We are in the record by a request sent then; an answer that took too long has given nothing."""
        self.valid_until = max(self.valid_until, sent + self.settings.renew_deadline)
        return self.holds()

    def _observe(self, lease: dict[str, Any]) -> None:
        spec = lease.get("spec") or {}
        if self._observed is None or (self._observed.get("spec") or {}) != spec:
            self._observed_at = self._clock()
        self._observed = lease
        self._fresh, self._unsure = True, False
        holder = str(spec.get("holderIdentity") or "")
        if holder != self.leader:
            self.leader = holder
            if holder:
                logger.info("Lease %s is held by %s", self._path, holder)
                self._on_new_leader(holder)

    def _duration(self, spec: Mapping[str, Any]) -> float:
        """How long the holder may be silent, in its own words."""
        seconds = spec.get("leaseDurationSeconds")
        return float(seconds) if isinstance(seconds, int) and seconds > 0 else self.settings.lease_duration

    def _seconds(self) -> int:
        """The lease's duration as the record has it, in whole seconds; rounded up, to be safe."""
        return max(1, math.ceil(self.settings.lease_duration))


def _timestamp() -> str:
    """Now as a MicroTime of the API: UTC, with microseconds."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
