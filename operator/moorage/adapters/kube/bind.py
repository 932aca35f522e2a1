"""Writes bindings, and finds out what became of them.

A Binding has no fields to compare afterwards, and its answer can be lost, late or misleading, so
the rule is: say that it failed only when no write of ours can take effect any more.  The UID as a
precondition makes a repeated POST harmless: the API server binds a pod once.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable

from moorage.adapters.kube.errors import (
    ApiError,
    Conflict,
    Forbidden,
    NotFound,
    ServerError,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from moorage.adapters.kube.writes import Writer
from moorage.core.model.events import BindFailed, BindFailure, BindSucceeded
from moorage.core.model.instructions import Placement
from moorage.runtime.ports import PodReader, PodReadError

logger = logging.getLogger(__name__)

#: How long an answer is waited for before the pod itself is asked.
_ANSWER_TIMEOUT = 30.0
#: The API server gives a request up after 60 s (--request-timeout); an unanswered one may land until then.
_UNANSWERED_LANDS = 65.0
#: An answered 5xx was at most a slow commit in etcd.
_REFUSED_LANDS = 3.0
#: Pauses before the next of a few writes; the engine's own backoff takes over after them.
_PAUSES = (0.1, 0.3, 1.0, 2.0)
_LONGEST_RETRY_AFTER = 5.0
_FIRST_LOOK, _LAST_LOOK = 0.05, 2.0

_Outcome = BindSucceeded | BindFailed


class KubeBinder:
    """POSTs to ``pods/binding``.

    ``holds`` tells whether the lease is ours at this moment; it is asked right before every write.
    ``late`` is called when a binding took effect although the lease was lost while it was written.
    """

    def __init__(
        self,
        writer: Writer,
        reader: PodReader,
        *,
        holds: Callable[[], bool],
        late: Callable[[], None] = lambda: None,
    ) -> None:
        self._writer = writer
        self._reader = reader
        self._holds = holds
        self._late = late

    async def bind(
        self,
        placement: Placement,
        annotations: tuple[tuple[str, str], ...],
        last_look: Callable[[], str | None],
    ) -> _Outcome:
        """Bind one pod; see ``runtime.ports.Binder``."""
        return await _Binding(self, placement, annotations, last_look).carry_out()

    async def post(
        self, placement: Placement, annotations: tuple[tuple[str, str], ...], check: Callable[[], None]
    ) -> None:
        """The one request.  kubernetes_asyncio's own call raises on the answer, though the pod is bound."""
        ref = placement.ref
        metadata: dict[str, object] = {"name": ref.name, "namespace": ref.namespace, "uid": ref.uid}
        if annotations:
            metadata["annotations"] = dict(annotations)
        await self._writer.write(
            "POST",
            f"/api/v1/namespaces/{ref.namespace}/pods/{ref.name}/binding",
            {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": metadata,
                "target": {"apiVersion": "v1", "kind": "Node", "name": placement.node_name},
            },
            timeout=_ANSWER_TIMEOUT,
            check=check,
        )
        if not self._holds():
            self._late()
            where = {"pod": ref.key, "node": placement.node_name}
            logger.warning("Bound %s to %s while the lease was lost", *where.values(), extra=where)

    def holds(self) -> bool:
        """Whether we may write now."""
        return self._holds()

    async def look(self, placement: Placement) -> _Outcome | None:
        """What the live pod says about the binding, None while it is unbound; asks until there is an answer."""
        pause = _FIRST_LOOK
        while True:
            try:
                pod = await self._reader.fetch(placement.ref)
            except PodReadError:
                await asyncio.sleep(pause * random.uniform(0.8, 1.2))
                pause = min(_LAST_LOOK, pause * 2)
            else:
                break
        if pod is None:
            return _failed(placement, BindFailure.GONE, "the pod does not exist any more")
        if pod.uid != placement.ref.uid:
            return _failed(placement, BindFailure.GONE, "another pod has taken the name")
        if not pod.node_name:
            # The API server binds no pod that is being deleted, so no write of ours can land any more.
            return _failed(placement, BindFailure.GONE, "the pod is being deleted") if pod.deleting else None
        if pod.node_name == placement.node_name:
            return BindSucceeded(placement.ref, placement.node_name)
        text = f"the pod is bound to {pod.node_name} already"
        return _failed(placement, BindFailure.BOUND_ELSEWHERE, text)


class _Withheld(Exception):
    """Nothing was sent, and for good reason."""

    def __init__(self, failure: BindFailure, message: str) -> None:
        super().__init__(message)
        self.failure = failure


class _Binding:
    """One placement on its way: the writes so far, and until when one of them may still land."""

    def __init__(
        self,
        binder: KubeBinder,
        placement: Placement,
        annotations: tuple[tuple[str, str], ...],
        last_look: Callable[[], str | None],
    ) -> None:
        self._binder = binder
        self._placement = placement
        self._annotations = annotations
        self._last_look = last_look
        self._lands_until = 0.0
        self._pauses = iter(_PAUSES)

    async def carry_out(self) -> _Outcome:
        """Write until it is settled."""
        while True:
            try:
                await self._binder.post(self._placement, self._annotations, self._check)
            except _Withheld as reason:
                return await self._certain(reason.failure, str(reason))
            except Unreachable as error:
                outcome = await self._after_silence(error)
            except ApiError as error:
                outcome = await self._after_answer(error)
            else:
                return BindSucceeded(self._placement.ref, self._placement.node_name)
            if outcome is not None:
                return outcome

    def _check(self) -> None:
        """Called with the connection in hand; nothing is awaited between this and the write."""
        if not self._binder.holds():
            raise _Withheld(BindFailure.NOT_LEADER, "the lease is not ours any more")
        unfit = self._last_look()
        if unfit is not None:
            raise _Withheld(BindFailure.STALE, unfit)

    async def _after_silence(self, error: Unreachable) -> _Outcome | None:
        """No answer came: None to write again."""
        if error.sent:
            self._may_land(_UNANSWERED_LANDS)
            known = await self._binder.look(self._placement)
            if known is not None:
                return known
        return await self._again(BindFailure.UNAVAILABLE, str(error))

    async def _after_answer(self, error: ApiError) -> _Outcome | None:
        """The API server said no: None to write again."""
        match error:
            case Conflict():
                known = await self._binder.look(self._placement)
                return known or await self._certain(BindFailure.CONFLICT, str(error))
            case NotFound():
                # The API server does not look at the node, so it is the pod that is missing.
                return _failed(self._placement, BindFailure.GONE, str(error))
            case Forbidden() if not _terminating(error):
                # A starting API server forbids everything until it has read its roles.
                return await self._again(BindFailure.FORBIDDEN, _forbidden(error))
            case Forbidden():
                return await self._certain(BindFailure.FORBIDDEN, str(error))
            case TooManyRequests() | Unauthorized():
                return await self._again(BindFailure.UNAVAILABLE, str(error), error.retry_after)
            case ServerError() | ApiError(status=408):
                self._may_land(_REFUSED_LANDS)
                known = await self._binder.look(self._placement)
                return known or await self._again(BindFailure.UNAVAILABLE, str(error), error.retry_after)
            case _:
                return await self._certain(BindFailure.INVALID, str(error))

    async def _again(self, failure: BindFailure, message: str, retry_after: float = 0.0) -> _Outcome | None:
        """Pause before the next write (None), or give up if there were enough."""
        pause = next(self._pauses, None)
        if pause is None or retry_after > _LONGEST_RETRY_AFTER:
            return await self._certain(failure, message, retry_after)
        await asyncio.sleep(max(retry_after, pause * random.uniform(0.8, 1.2)))
        return None

    async def _certain(self, failure: BindFailure, message: str, retry_after: float = 0.0) -> _Outcome:
        """This failure, once no earlier write can change it any more."""
        pause = _FIRST_LOOK
        while self._lands_until:
            over = _time() >= self._lands_until
            known = await self._binder.look(self._placement)
            if known is not None:
                return known
            if over:
                break
            await asyncio.sleep(pause)
            pause = min(_LAST_LOOK, pause * 2)
        return _failed(self._placement, failure, message, retry_after)

    def _may_land(self, seconds: float) -> None:
        self._lands_until = max(self._lands_until, _time() + seconds)


def _time() -> float:
    """Seconds on the event loop's monotonic clock."""
    return asyncio.get_running_loop().time()


def _failed(placement: Placement, failure: BindFailure, message: str, retry_after: float = 0.0) -> BindFailed:
    return BindFailed(placement.ref, placement.node_name, failure, message, retry_after)


def _terminating(error: Forbidden) -> bool:
    causes = error.details.get("causes")
    return isinstance(causes, list) and any(
        isinstance(cause, dict) and cause.get("reason") == "NamespaceTerminating" for cause in causes
    )


def _forbidden(error: Forbidden) -> str:
    """The server's words, and for a missing role what to do about it (a quota's or webhook's are enough)."""
    if "cannot create resource" in error.message:
        return f"{error}; `moorage check` shows what the scheduler is not allowed to do"
    return str(error)
