"""Lists policies now and then, and finds out whether the API server has them at all.

The stream of Kopf is quick; the list makes sure: it tells what vanished while no stream was open.  Policies are few,
so they are listed as a whole.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from moorage.adapters.kube.client import KubeClient
from moorage.adapters.kube.errors import Forbidden, Gone, KubeError, NotFound
from moorage.adapters.kube.policy_kinds import POLICY_KINDS, PolicyKind
from moorage.adapters.kube.policy_register import PolicyRegister
from moorage.runtime.ports import Clock

logger = logging.getLogger(__name__)

_PAGE = 100
_TIMEOUT = 30.0


class Presence(StrEnum):
    """What came of the last list of a kind."""

    UNKNOWN = "unknown"
    SERVED = "served"
    ABSENT = "absent"
    FORBIDDEN = "forbidden"


class PolicyLister:
    """Tells a register of all policies every ``interval`` seconds; of kinds that are not served, it asks more often."""

    def __init__(
        self,
        client: KubeClient,
        register: PolicyRegister,
        clock: Clock,
        *,
        interval: float = 30.0,
        interval_absent: float = 5.0,
    ) -> None:
        self._client = client
        self._register = register
        self._clock = clock
        self._interval = interval
        self._interval_absent = interval_absent
        self.presence = dict.fromkeys(POLICY_KINDS, Presence.UNKNOWN)

    async def run(self) -> None:
        """List for ever.  A list that fails is left out: the next one tells the same."""
        while True:
            served = all(presence is Presence.SERVED for presence in self.presence.values())
            await asyncio.sleep(self._interval if served else self._interval_absent)
            try:
                await self.list_once()
            except KubeError as error:
                logger.info("Policies cannot be listed now: %s", error)

    async def first(self, patience: float) -> None:
        """Learn which policies there are, before anything is decided without them.

        After ``patience`` seconds of failures it goes on without, and says so.
        """
        deadline = asyncio.get_running_loop().time() + patience
        while True:
            try:
                await self.list_once()
            except KubeError as error:
                if asyncio.get_running_loop().time() >= deadline:
                    logger.warning("Policies are not known yet, and pods are placed without them: %s", error)
                    return
                await asyncio.sleep(0.5)
            else:
                return

    async def list_once(self) -> None:
        """Tell the register of all there are.  Raises ``KubeError``."""
        before = dict(self.presence)
        for kind in POLICY_KINDS:
            self.presence[kind] = await self._list(kind)
        if self.presence != before:
            self._announce()

    async def _list(self, kind: PolicyKind) -> Presence:
        while True:
            listed_at = self._clock.now()
            try:
                objs = await self._objects(kind)
            except Gone:
                continue  # it took too long
            except NotFound:
                self._register.listed(kind, (), listed_at)  # policies go with their definition
                return Presence.ABSENT
            except Forbidden:
                return Presence.FORBIDDEN  # nothing is known: those in force stay
            for obj in objs:
                self._register.event(None, obj)
                await asyncio.sleep(0)  # compiling one is long enough for one turn
            self._register.listed(kind, {obj["metadata"]["uid"] for obj in objs}, listed_at)
            return Presence.SERVED

    async def _objects(self, kind: PolicyKind) -> list[Mapping[str, Any]]:
        params: dict[str, str | int | bool] = {"limit": _PAGE}
        objs: list[Mapping[str, Any]] = []
        while True:
            page = await self._client.get(kind.path, params=params, timeout=_TIMEOUT)
            objs += page.get("items") or []
            token = (page.get("metadata") or {}).get("continue")
            if not token:
                return objs
            params["continue"] = token

    def _announce(self) -> None:
        absent = [kind.plural for kind, found in self.presence.items() if found is Presence.ABSENT]
        forbidden = [kind.plural for kind, found in self.presence.items() if found is Presence.FORBIDDEN]
        if absent:
            logger.warning(
                "Policies are off: the API server does not serve %s. `moorage crds | kubectl apply -f -` "
                "brings them, and they are used as soon as they are there",
                " and ".join(absent),
            )
        if forbidden:
            logger.info("Policies are off: the scheduler may not list %s", " and ".join(forbidden))
        if not (absent or forbidden):
            logger.info("Policies are on: there are %d", len(self._register))
