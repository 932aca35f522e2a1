"""Drives an engine that answers another scheduler's questions, and binds for it where that is wanted.

No pod waits here: the one who asks has the queue.  Events are taken in at once, so an answer is by all that the streams
have told.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence

from moorage.core.engine import Engine
from moorage.core.model.decision import Rejection
from moorage.core.model.events import BindSucceeded, Event, PodFetched
from moorage.core.model.extender import Filtered, NoAnswer, Preempted, Prioritized
from moorage.core.model.instructions import Bind, FetchPod, Placement
from moorage.core.model.node import Node
from moorage.core.model.pod import Pod, PodRef
from moorage.core.respondent import Respondent
from moorage.runtime.ports import Binder, Clock, PodReader, PodReadError

logger = logging.getLogger(__name__)

#: Between two looks at what is due (assumptions to be looked up).
_LOOK = 0.5


class ExtenderService:
    """Answers and binds.  ``binder`` None: it never binds.  ``unready`` tells why there is no answer yet.

    ``names`` are the scheduler names whose pods it binds; it is asked about all pods.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        reader: PodReader,
        binder: Binder | None,
        clock: Clock,
        names: frozenset[str],
        unready: Callable[[], str | None],
    ) -> None:
        self._engine = engine
        self._respondent = Respondent(engine)
        self._reader = reader
        self._binder = binder
        self._clock = clock
        self._names = names
        self._unready = unready
        self._binding: dict[str, tuple[str, asyncio.Task[str]]] = {}  # by UID, with the node

    def handle(self, event: Event) -> None:
        """Something happened in the cluster."""
        self._engine.handle(event, self._clock.now())

    async def run(self) -> None:
        """Look after bindings that no stream confirms, for ever."""
        while True:
            await asyncio.sleep(_LOOK)
            for instruction in self._engine.step(self._clock.now()):
                if isinstance(instruction, FetchPod):
                    await self._look_up(instruction.ref)
                # Whatever else follows (records of bindings, for one) is told by whom we answer.

    async def _look_up(self, ref: PodRef) -> None:
        try:
            live = await self._reader.fetch(ref)
        except PodReadError as error:
            logger.info("Pod %s cannot be looked up now: %s", ref.key, error)
        else:
            self.handle(PodFetched(ref, live))

    # -- answers ---------------------------------------------------------------------------------

    def filter(self, pod: Pod, names: Sequence[str], unseen: Sequence[Node] = ()) -> Filtered | NoAnswer:
        """See ``Respondent.filter``."""
        reason = self._unready()
        if reason is not None:
            return NoAnswer(reason)
        return self._respondent.filter(pod, names, self._clock.now(), unseen)

    def prioritize(
        self, pod: Pod, names: Sequence[str], unseen: Sequence[Node] = ()
    ) -> Prioritized | NoAnswer:
        """See ``Respondent.prioritize``."""
        reason = self._unready()
        if reason is not None:
            return NoAnswer(reason)
        return self._respondent.prioritize(pod, names, self._clock.now(), unseen)

    def preempt(
        self, pod: Pod, victims: Mapping[str, tuple[tuple[str, ...], int]], sent: Mapping[str, Pod]
    ) -> Preempted | NoAnswer:
        """See ``Respondent.preempt``."""
        reason = self._unready()
        if reason is not None:
            return NoAnswer(reason)
        return self._respondent.preempt(pod, victims, self._clock.now(), sent)

    def knows_node(self, name: str) -> bool:
        """Whether a stream has shown the node."""
        return self._engine.snapshot.row_of(name) is not None

    # -- bindings --------------------------------------------------------------------------------

    async def bind(self, ref: PodRef, node_name: str) -> str:
        """Bind a pod for the other scheduler; "" if it is bound there now, else why not.

        Once begun it goes on when the caller gives up; asked again meanwhile, it tells how the first one ends.
        """
        if self._binder is None:
            return "this extender does not bind: it was started without --enable-bind"
        reason = self._unready()
        if reason is not None:
            return reason
        under_way = self._binding.get(ref.uid)
        if under_way is None:
            task = asyncio.get_running_loop().create_task(
                self._bind(self._binder, ref, node_name), name=f"moorage binding of {ref.key}"
            )
            self._binding[ref.uid] = under_way = node_name, task
            task.add_done_callback(lambda _: self._binding.pop(ref.uid, None))
        elsewhere, task = under_way
        if elsewhere != node_name:
            return f"the pod is being bound to node {elsewhere}"
        return await asyncio.shield(task)

    @property
    def binding(self) -> int:
        """Bindings under way."""
        return len(self._binding)

    async def finish(self, patience: float) -> None:
        """Wait for the bindings under way, and give up the rest."""
        tasks = [task for _, task in self._binding.values()]
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=patience)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)

    async def _bind(self, binder: Binder, ref: PodRef, node_name: str) -> str:
        try:
            live = await self._reader.fetch(ref)
        except PodReadError as error:
            return f"the pod cannot be read: {error}"
        if live is None or live.uid != ref.uid:
            return "the pod is gone"
        if live.node_name == node_name:
            return ""
        against = self._unbindable(live)
        if against:
            return against
        # Nothing is awaited from here to the booking, so the next question is judged with this pod in its place.
        claimed = self._respondent.claim(live, node_name, self._clock.now())
        if isinstance(claimed, Rejection):
            return ", ".join(claimed.reasons)
        return await self._write(binder, claimed, claimed.placements[0])

    async def _write(self, binder: Binder, claimed: Bind, placement: Placement) -> str:
        result = await binder.bind(placement, claimed.annotations, lambda: self._engine.last_look(placement))
        self.handle(result)
        return "" if isinstance(result, BindSucceeded) else result.message

    def _unbindable(self, pod: Pod) -> str:
        if pod.node_name:
            return f"the pod is bound to node {pod.node_name} already"
        if pod.deleting or pod.finished:
            return "the pod is not pending any more"
        if pod.gates:
            return "the pod has scheduling gates"
        if pod.spec.scheduler_name not in self._names:
            served = ", ".join(sorted(self._names))
            return f"the pod is of scheduler {pod.spec.scheduler_name}, and pods are bound for {served} only"
        return ""
