"""The four verbs: from a request's body to an answer's."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from moorage.adapters.extender.fields import Malformed
from moorage.adapters.extender_server import writing
from moorage.adapters.extender_server.reading import (
    NodesArgs,
    read_binding_args,
    read_nodes_args,
    read_preemption_args,
)
from moorage.adapters.kube.convert import Converter, MalformedObject
from moorage.core.model.extender import MOST_UNSEEN, Filtered, NoAnswer, Preempted, Prioritized
from moorage.core.model.node import Node
from moorage.core.model.pod import Pod, PodRef

logger = logging.getLogger(__name__)


class Service(Protocol):
    """Who knows the answers (``runtime.extender_service.ExtenderService``)."""

    def filter(self, pod: Pod, names: Sequence[str], unseen: Sequence[Node] = ()) -> Filtered | NoAnswer:
        """Which of these nodes may take the pod."""
        ...

    def prioritize(
        self, pod: Pod, names: Sequence[str], unseen: Sequence[Node] = ()
    ) -> Prioritized | NoAnswer:
        """How good they are, 0..10."""
        ...

    def preempt(
        self, pod: Pod, victims: Mapping[str, tuple[tuple[str, ...], int]], sent: Mapping[str, Pod]
    ) -> Preempted | NoAnswer:
        """Which of these evictions may be."""
        ...

    def knows_node(self, name: str) -> bool:
        """Whether a node need not be read from what was sent."""
        ...

    async def bind(self, ref: PodRef, node_name: str) -> str:
        """Bind a pod; "" or why not."""
        ...


@dataclass(frozen=True, slots=True)
class Answered:
    """An HTTP answer; ``outcome`` is what the metrics say of it."""

    status: int
    body: bytes
    outcome: str = "refused"


T = TypeVar("T")

Answer = Callable[[bytes], Awaitable[Answered]]


class Verbs:
    """Each takes a request's body; none raises for what is in it."""

    def __init__(self, service: Service, converter: Converter) -> None:
        self._service = service
        self._converter = converter
        #: The verbs by their names in paths.
        self.by_name: Mapping[str, Answer] = {
            "filter": self.filter,
            "prioritize": self.prioritize,
            "preempt": self.preempt,
            "bind": self.bind,
        }

    async def filter(self, content: bytes) -> Answered:
        """Which nodes may take the pod."""
        try:
            args = read_nodes_args(content)
            pod, unseen = self._pod(args.pod), self._unseen(args)
        except Malformed as error:
            return _malformed(error)
        answer = self._service.filter(pod, args.names, unseen)
        if isinstance(answer, NoAnswer):
            return Answered(200, writing.error(answer.message), "error")
        return Answered(200, writing.filter_result(answer, args.names, args.nodes), "success")

    async def prioritize(self, content: bytes) -> Answered:
        """How good nodes are.  The result has no field for an error, so one is a status."""
        try:
            args = read_nodes_args(content)
            pod, unseen = self._pod(args.pod), self._unseen(args)
        except Malformed as error:
            return _malformed(error)
        answer = self._service.prioritize(pod, args.names, unseen)
        if isinstance(answer, NoAnswer):
            return Answered(503, writing.error(answer.message), "error")
        return Answered(200, writing.priority_list(answer), "success")

    async def preempt(self, content: bytes) -> Answered:
        """Which evictions may be.  As for prioritize, an error is a status."""
        try:
            args = read_preemption_args(content)
            pod = self._pod(args.pod)
            sent = {victim.uid: victim for victim in map(self._pod, args.pods)}
        except Malformed as error:
            return _malformed(error)
        answer = self._service.preempt(pod, args.victims, sent)
        if isinstance(answer, NoAnswer):
            return Answered(503, writing.error(answer.message), "error")
        return Answered(200, writing.preemption_result(answer), "success")

    async def bind(self, content: bytes) -> Answered:
        """Bind a pod."""
        try:
            args = read_binding_args(content)
        except Malformed as error:
            return _malformed(error)
        said = await self._service.bind(args.ref, args.node)
        if said:
            logger.info("Pod %s is not bound to %s: %s", args.ref.key, args.node, said)
        return Answered(200, writing.error(said), "error" if said else "success")

    def _unseen(self, args: NodesArgs) -> list[Node]:
        if args.nodes is None:
            return []
        pairs = zip(args.names, args.nodes, strict=True)
        new = [obj for name, obj in pairs if not self._service.knows_node(name)]
        return [_read(self._converter.node, obj, "a node") for obj in new[:MOST_UNSEEN]]

    def _pod(self, obj: Mapping[str, Any]) -> Pod:
        return _read(self._converter.pod, obj, "Pod")


def _read(convert: Callable[[Mapping[str, Any]], T], obj: Mapping[str, Any], what: str) -> T:
    """An object.  Raises Malformed for everything that is wrong with it: an API server has seen none of it."""
    try:
        return convert(obj)
    except MalformedObject as error:
        raise Malformed(f"{what}: {error}") from error
    except Exception as error:
        logger.debug("%s cannot be read", what, exc_info=error)
        raise Malformed(f"{what} cannot be read") from error


def _malformed(error: Malformed) -> Answered:
    return Answered(400, writing.error(str(error)), "malformed")
