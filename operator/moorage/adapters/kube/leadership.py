"""Whether this replica may decide: the lease is ours, and what we know is at least as new as it.

A standby keeps its caches warm, but its streams may lag behind what the leader before it has bound.  So a
new leader looks again before it decides; one that led before it took its first list need not.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from moorage.adapters.kube.client import KubeClient
from moorage.adapters.kube.errors import KubeError
from moorage.adapters.kube.lease import LeaderElector, LeaseSettings

logger = logging.getLogger(__name__)

#: Until the lease's holder is known, so long is waited with the first list.
_HOLDER_KNOWN = 2.0


class LeaseLost(Exception):
    """Another replica may lead now.  As kube-scheduler does, this one ends, and starts afresh as a standby."""


class Leadership:
    """Leads without asking anyone when ``lease`` is None.

    ``refresh`` returns when the caches are as new as its call; ``wake`` is called when ``allowed`` becomes
    true; ``on_lost`` when the lease is lost, which is not when it is released.
    """

    def __init__(
        self,
        client: KubeClient,
        lease: LeaseSettings | None,
        *,
        refresh: Callable[[], Awaitable[None]],
        wake: Callable[[], None],
        on_lost: Callable[[LeaseLost], None],
        retry: float = 1.0,
    ) -> None:
        self._refresh = refresh
        self._wake = wake
        self._on_lost = on_lost
        self._retry = retry
        self._known = asyncio.Event()  # who holds the lease
        self._led = asyncio.Event()  # we have begun to lead
        self._listing = False  # the first lists have begun
        self._fresh = lease is None
        self._stepping_down = False
        self._elector = None
        if lease is not None:
            self._elector = LeaderElector(
                client,
                lease,
                on_started_leading=self._started,
                on_stopped_leading=self._stopped,
                on_new_leader=lambda _: self._known.set(),
            )

    def holds(self) -> bool:
        """Whether the lease is ours at this very moment.  Cheap: ask right before each write."""
        return self._elector is None or self._elector.holds()

    @property
    def terms(self) -> int:
        """How often we began to lead."""
        return 0 if self._elector is None else self._elector.terms

    @property
    def holder(self) -> str:
        """Who leads, as far as is known; "" if it is not."""
        return "" if self._elector is None else self._elector.leader

    @property
    def valid_for(self) -> float:
        """For how many seconds the lease is surely ours; 0 for a standby, and without a lease."""
        return 0.0 if self._elector is None else self._elector.valid_for

    @property
    def allowed(self) -> bool:
        """Whether we may decide."""
        return self._fresh and self.holds()

    async def before_first_list(self) -> None:
        """Wait until it is known who leads: a list taken after the lease needs no second look."""
        if self._elector is not None:
            try:
                await asyncio.wait_for(self._known.wait(), _HOLDER_KNOWN)
            except TimeoutError:
                logger.info("Who leads is not known yet")
            if self._elector.holds():
                self._fresh = True
        self._listing = True

    async def run(self) -> None:
        """Campaign and lead; cancel it to step down and release the lease."""
        if self._elector is None:
            await asyncio.Event().wait()
            return
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._elector.run(), name="moorage lease renewal")
                tasks.create_task(self._catch_up(), name="moorage catching up")
        finally:
            self._stepping_down = True

    def step_down(self) -> None:
        """Losing the lease is no failure from now on."""
        self._stepping_down = True

    def _started(self) -> None:
        self._known.set()
        self._led.set()

    def _stopped(self) -> None:
        self._fresh = False
        if not self._stepping_down:
            self._on_lost(LeaseLost("the lease is lost: another replica may lead now"))

    async def _catch_up(self) -> None:
        await self._led.wait()
        while not self._fresh and self.holds():
            if not self._listing:
                await asyncio.sleep(0.01)  # ``before_first_list`` is about to find that we lead
                continue
            try:
                await self._refresh()
            except KubeError as error:
                logger.warning("The cluster's state cannot be refreshed yet: %s", error)
                await asyncio.sleep(self._retry)
            else:
                self._fresh = self.holds()
                self._wake()
