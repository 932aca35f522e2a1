"""Evicts the victims of a preemption.

Not by the Eviction subresource: preemption only tries to respect disruption budgets (Kubernetes
documentation, "Pod Priority and Preemption"), and the core has weighed them already.  Each victim
first gets a DisruptionTarget condition, so that Jobs can tell preemption from failure, and is then
deleted with its UID as precondition, so that a successor of the same name is never hit.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from moorage.adapters.kube.client import STRATEGIC_PATCH, KubeClient
from moorage.adapters.kube.errors import (
    ApiError,
    Conflict,
    KubeError,
    NotFound,
    ServerError,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from moorage.core.model.events import EvictionFinished
from moorage.core.model.instructions import Evict, Record, RecordType
from moorage.core.model.pod import PodRef
from moorage.runtime.ports import Clock, PodReader, PodReadError

_TIMEOUT = 10.0
_PAUSES = (0.2, 1.0, 3.0)


class KubeEvictor:
    """Carries out ``Evict``, at most ``slots`` victims at a time; ``record`` writes the victims' events."""

    def __init__(
        self,
        client: KubeClient,
        reader: PodReader,
        clock: Clock,
        *,
        record: Callable[[Record], None],
        holds: Callable[[], bool],
        slots: int = 16,
    ) -> None:
        self._client = client
        self._reader = reader
        self._clock = clock
        self._record = record
        self._holds = holds
        self._slots = asyncio.Semaphore(slots)

    async def evict(self, eviction: Evict) -> EvictionFinished:
        """Ask every victim to go; never raises for anything the API server can do."""
        preemptor = eviction.preemptor
        try:
            live = await self._reader.fetch(preemptor)
        except PodReadError as error:
            return EvictionFinished(preemptor, f"the preemptor cannot be read: {error}")
        if live is None or live.uid != preemptor.uid or live.node_name or live.deleting:
            return EvictionFinished(preemptor, "the pod does not wait for a node any more")
        ends = await asyncio.gather(*(self._evict_one(eviction, victim) for victim in eviction.victims))
        return EvictionFinished(preemptor, "; ".join(end for end in ends if end))

    async def _evict_one(self, eviction: Evict, victim: PodRef) -> str:
        """Evict one victim; returns why it was not, "" if it was or is gone."""
        async with self._slots:
            pauses = iter(_PAUSES)
            while True:
                if not self._holds():
                    return "the lease is not ours any more"
                try:
                    await self._mark(eviction, victim)
                    await self._delete(victim)
                except (NotFound, Conflict):
                    return ""  # gone, or another pod has its name: the room is free either way
                except (Unreachable, ServerError, TooManyRequests, Unauthorized) as error:
                    pause = next(pauses, None)
                    if pause is None:
                        return f"{victim.key}: {error}"
                    asked = error.retry_after if isinstance(error, ApiError) else 0.0
                    await asyncio.sleep(max(asked, pause * random.uniform(0.8, 1.2)))
                except KubeError as error:
                    return f"{victim.key}: {error}"
                else:
                    text = f"Preempted by pod {eviction.preemptor.uid} on node {eviction.node_name}"
                    name = eviction.scheduler_name
                    self._record(Record(victim, RecordType.NORMAL, "Preempted", text, "Preempting", name))
                    return ""

    async def _mark(self, eviction: Evict, victim: PodRef) -> None:
        now = datetime.fromtimestamp(self._clock.now(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        condition: dict[str, Any] = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": f"{eviction.scheduler_name}: preempting to accommodate a higher priority pod",
            "lastTransitionTime": now,
        }
        generation = eviction.generations.get(victim.uid)
        if generation:
            condition["observedGeneration"] = generation
        await self._client.patch(
            f"/api/v1/namespaces/{victim.namespace}/pods/{victim.name}/status",
            {"metadata": {"uid": victim.uid}, "status": {"conditions": [condition]}},
            content_type=STRATEGIC_PATCH,
            timeout=_TIMEOUT,
        )

    async def _delete(self, victim: PodRef) -> None:
        await self._client.request(
            "DELETE",
            f"/api/v1/namespaces/{victim.namespace}/pods/{victim.name}",
            body={
                "apiVersion": "v1",
                "kind": "DeleteOptions",
                "preconditions": {"uid": victim.uid},
            },
            timeout=_TIMEOUT,
        )
