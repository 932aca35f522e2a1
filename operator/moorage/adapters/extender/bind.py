"""Bindings that an extender writes; all others go on to our own binder."""

from __future__ import annotations

import logging
from collections.abc import Callable

from moorage.adapters.extender.client import CallFailed, ExtenderClient
from moorage.adapters.extender.wire import BadResult, Refused
from moorage.core.model.events import BindFailed, BindFailure, BindSucceeded
from moorage.core.model.instructions import Placement
from moorage.runtime.ports import Binder, PodReader, PodReadError

logger = logging.getLogger(__name__)


class RoutedBinder:
    """Has each pod bound by whom its placement names.

    An extender is asked once.  If it fails the live pod is looked at, since it may be bound nevertheless; an ignorable
    extender's failure means that we bind the pod.  Annotations go only with bindings of our own.
    """

    def __init__(
        self, ours: Binder, extenders: ExtenderClient, reader: PodReader, *, holds: Callable[[], bool]
    ) -> None:
        self._ours = ours
        self._extenders = extenders
        self._reader = reader
        self._holds = holds

    async def bind(
        self,
        placement: Placement,
        annotations: tuple[tuple[str, str], ...],
        last_look: Callable[[], str | None],
    ) -> BindSucceeded | BindFailed:
        """Bind one pod; see ``runtime.ports.Binder``."""
        if not placement.bound_by:
            return await self._ours.bind(placement, annotations, last_look)
        ref, node_name = placement.ref, placement.node_name
        endpoint = self._extenders.binder(placement.bound_by)
        if endpoint is None:
            text = f"extender {placement.bound_by} is no longer configured"
            return BindFailed(ref, node_name, BindFailure.STALE, text)
        if not self._holds():
            return BindFailed(ref, node_name, BindFailure.NOT_LEADER, "the lease is not ours any more")
        unfit = last_look()
        if unfit is not None:
            return BindFailed(ref, node_name, BindFailure.STALE, unfit)
        try:
            await self._extenders.bind(endpoint, placement)
        except (CallFailed, Refused, BadResult) as error:
            ended = await self._look(placement)
            if ended is not None:
                return ended
            if endpoint.extender.ignorable:
                logger.warning(
                    "Extender %s does not bind %s, so we do: %s", placement.bound_by, ref.key, error
                )
                return await self._ours.bind(placement, annotations, last_look)
            return BindFailed(ref, node_name, BindFailure.EXTENDER, str(error))
        return BindSucceeded(ref, node_name)

    async def _look(self, placement: Placement) -> BindSucceeded | BindFailed | None:
        """What the live pod says about the binding, None if it is unbound, or nobody knows."""
        ref, node_name = placement.ref, placement.node_name
        try:
            live = await self._reader.fetch(ref)
        except PodReadError:
            return None
        if live is None or live.uid != ref.uid:
            return BindFailed(ref, node_name, BindFailure.GONE, "the pod is gone")
        if not live.node_name:
            return None
        if live.node_name == node_name:
            return BindSucceeded(ref, node_name)
        text = f"the pod is bound to {live.node_name}"
        return BindFailed(ref, node_name, BindFailure.BOUND_ELSEWHERE, text)
