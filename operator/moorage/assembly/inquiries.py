"""Explanations from a running scheduler: what its engine says of a pod, its place in the queue, what was tried."""

from __future__ import annotations

import asyncio
import ssl
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from moorage.adapters.inquiry.access import Gatekeeper
from moorage.adapters.inquiry.endpoint import InquiryEndpoint
from moorage.adapters.kube.client import KubeClient
from moorage.assembly.startup import StartupError
from moorage.core.engine import Engine
from moorage.core.inquiry.explanation import explain_in
from moorage.core.inquiry.privacy import seen_from
from moorage.core.inquiry.records import explanation_record, moment
from moorage.core.inquiry.remedies import Remedy, remedy_search
from moorage.core.inquiry.trial import as_pending
from moorage.core.model.events import BindFailed, BindSucceeded
from moorage.core.model.instructions import Attempted, Instruction
from moorage.core.model.pod import Pod, PodRef
from moorage.runtime.ports import Clock, Meter, PodReader
from moorage.runtime.settings import Settings

_PODS, _ATTEMPTS = 10_000, 10
_SEARCHES = 3


class AttemptLog:
    """Passes on what the loop reports, and keeps the last attempts of the last pods."""

    def __init__(self, meter: Meter, clock: Clock) -> None:
        self._meter = meter
        self._clock = clock
        self._attempts: OrderedDict[str, deque[dict[str, Any]]] = OrderedDict()

    def turn(self, seconds: float) -> None:
        """See ``Meter``."""
        self._meter.turn(seconds)

    def bound(self, result: BindSucceeded | BindFailed, seconds: float) -> None:
        """See ``Meter``."""
        self._meter.bound(result, seconds)

    def cycle(self, instructions: Sequence[Instruction], seconds: float) -> None:
        """See ``Meter``; notes attempts."""
        self._meter.cycle(instructions, seconds)
        for instruction in instructions:
            if isinstance(instruction, Attempted):
                self._note(instruction)

    def _note(self, attempted: Attempted) -> None:
        kept = self._attempts.setdefault(attempted.ref.uid, deque(maxlen=_ATTEMPTS))
        self._attempts.move_to_end(attempted.ref.uid)
        if len(self._attempts) > _PODS:
            self._attempts.popitem(last=False)
        kept.append(
            {
                "at": moment(self._clock.now()),
                "result": str(attempted.result),
                "number": attempted.attempts,
                "node": attempted.node_name or None,
                "feasibleNodes": attempted.feasible_nodes,
                "plugins": list(attempted.plugins),
                "message": attempted.message,
            }
        )

    def of(self, uid: str) -> list[dict[str, Any]]:
        """The last attempts of a pod, oldest first."""
        return list(self._attempts.get(uid, ()))


class Inquiries:
    """Answers from the engine between two turns of the loop, and changes nothing."""

    def __init__(
        self, engine: Engine, reader: PodReader, clock: Clock, log: AttemptLog, leading: Callable[[], bool]
    ) -> None:
        self._engine = engine
        self._reader = reader
        self._clock = clock
        self._log = log
        self._leading = leading

    async def explain(self, namespace: str, name: str, search: bool) -> dict[str, Any] | None:
        """The record of a pod; None if there is no such pod, or it has ended.  Raises PodReadError."""
        live = await self._reader.fetch(PodRef(namespace, name, ""))
        if live is None or live.finished:
            return None
        pod = self._known(live)
        found = explain_in(self._engine, pod, self._clock.now(), search=False)
        if search and not pod.node_name and found.decision.chosen is None:
            found = replace(found, remedies=tuple(await self._search(pod)))
        nodes = {node.name: node for node in self._engine.snapshot.nodes if node is not None}
        record = explanation_record(seen_from(found, namespace), nodes)
        return {**record, "leading": self._leading(), "attempts": self._log.of(pod.uid)}

    def _known(self, live: Pod) -> Pod:
        """The pod as the engine has it, which may be a moment ahead or behind."""
        queued = self._engine.queue.get(live.uid)
        if queued is not None:
            return queued.pod
        state = self._engine.cache.state(live.uid)
        return live if state is None else state.pod

    async def _search(self, pod: Pod) -> list[Remedy]:
        """Look for what would help, a step at a time; others go on in between."""
        for _ in range(_SEARCHES):
            search = remedy_search(self._engine, as_pending(pod), self._clock.now())
            try:
                while True:
                    next(search)
                    await asyncio.sleep(0)
            except StopIteration as end:
                found: list[Remedy] = end.value
                return found
            except LookupError:
                continue  # a pod that was to be deleted has gone by itself
        return []


def inquiry_endpoint(settings: Settings, client: KubeClient, inquiries: Inquiries) -> InquiryEndpoint:
    """The endpoint as set.  Raises ``StartupError`` if the certificate cannot be used."""
    tls = None
    if settings.explain_tls_cert is not None:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            tls.load_cert_chain(settings.explain_tls_cert, settings.explain_tls_key)
        except (OSError, ssl.SSLError) as error:
            raise StartupError(f"explain-tls-cert, explain-tls-key: cannot be used: {error}") from error
    return InquiryEndpoint(Gatekeeper(client), inquiries.explain, tls)
