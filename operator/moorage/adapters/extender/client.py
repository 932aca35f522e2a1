"""Calls extenders.  Whatever they do comes back as an answer; nothing is raised."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from typing import Protocol
from urllib.parse import urlsplit

import aiohttp

from moorage.adapters.extender import wire
from moorage.adapters.extender.endpoint import ExtenderEndpoint
from moorage.core.model.extender import Answer, NoAnswer, Question, Verb
from moorage.core.model.instructions import Placement
from moorage.core.model.pod import PodRef

logger = logging.getLogger(__name__)

BIND = "bind"


class ObjectSource(Protocol):
    """Whole API objects as JSON text, which extenders want to see and the core does not keep.

    Raises ``LookupError`` for one that cannot be had.
    """

    async def pod(self, ref: PodRef) -> wire.RawObject:
        """A pod."""
        ...

    async def nodes(self, names: Sequence[str]) -> list[wire.RawObject]:
        """Nodes, in this order."""
        ...


class ExtenderMeter(Protocol):
    """Counts calls."""

    def extender_called(self, extender: str, verb: str, outcome: str, seconds: float) -> None:
        """A call ended with ``success`` or ``error``."""
        ...


class CallFailed(Exception):
    """There is no answer of use; ``sent`` tells whether the extender may have acted."""

    def __init__(self, message: str, *, sent: bool = True) -> None:
        super().__init__(message)
        self.sent = sent


class ExtenderClient:
    """Speaks to all extenders of a configuration; ``configure`` exchanges them."""

    def __init__(
        self,
        objects: ObjectSource,
        endpoints: Sequence[ExtenderEndpoint] = (),
        meter: ExtenderMeter | None = None,
    ) -> None:
        self._objects = objects
        self._meter = meter
        self._endpoints = list(endpoints)
        self._before: list[ExtenderEndpoint] = []
        self._sessions: dict[int, aiohttp.ClientSession] = {}  # by id of the endpoint

    async def configure(self, endpoints: Sequence[ExtenderEndpoint]) -> None:
        """Speak to these from now on, and to those before as long as anybody asks; two changes later that ends."""
        gone, self._before, self._endpoints = self._before, self._endpoints, list(endpoints)
        for endpoint in gone:
            session = self._sessions.pop(id(endpoint), None)
            if session is not None:
                await session.close()

    async def close(self) -> None:
        """Close all connections."""
        sessions, self._sessions = list(self._sessions.values()), {}
        for session in sessions:
            await session.close()

    @property
    def _known(self) -> list[ExtenderEndpoint]:
        return [*self._endpoints, *self._before]

    async def ask(self, question: Question) -> Answer:
        """What the extender says; see ``runtime.ports.ExtenderCaller``."""
        endpoint = next((e for e in self._known if e.extender == question.extender), None)
        if endpoint is None:
            return NoAnswer(f"extender {question.extender.name} is no longer configured")
        verb = question.verb
        try:
            content = await self._call(
                endpoint, verb, endpoint.paths[verb], await self._args(endpoint, question)
            )
            return _read(verb, content, endpoint)
        except (CallFailed, wire.Refused) as error:
            message = str(error)
        except wire.BadResult as error:
            path = endpoint.paths[verb]
            message = f"failed {path} with extender at URL {endpoint.url(path)}: {error}"
        except LookupError as error:
            message = f"extender {endpoint.extender.name} cannot be asked: {error}"
        logger.warning(
            "Extender %s, %s of pod %s: %s", endpoint.extender.name, verb, question.pod.key, message
        )
        return NoAnswer(message)

    def binder(self, name: str) -> ExtenderEndpoint | None:
        """The extender of that name that writes bindings."""
        return next((e for e in self._known if e.extender.name == name and e.bind_path), None)

    async def bind(self, endpoint: ExtenderEndpoint, placement: Placement) -> None:
        """Have the extender bind a pod.  Raises CallFailed, Refused, BadResult."""
        args = wire.binding_args(placement.ref, placement.node_name)
        wire.read_bound(await self._call(endpoint, BIND, endpoint.bind_path, args))

    async def _args(self, endpoint: ExtenderEndpoint, question: Question) -> bytes:
        pod = await self._objects.pod(question.pod)
        if question.verb is Verb.PREEMPT:
            return wire.preemption_args(pod, question.victims, await self._victims(endpoint, question))
        if endpoint.node_cache_capable:
            return wire.node_args(pod, None, question.node_names)
        return wire.node_args(pod, await self._objects.nodes(question.node_names), ())

    async def _victims(
        self, endpoint: ExtenderEndpoint, question: Question
    ) -> Mapping[str, wire.RawObject] | None:
        if endpoint.node_cache_capable:
            return None
        refs = [ref for victims in question.victims.values() for ref in victims.pods]
        pods = await asyncio.gather(*(self._objects.pod(ref) for ref in refs))
        return {ref.uid: pod for ref, pod in zip(refs, pods, strict=True)}

    async def _call(self, endpoint: ExtenderEndpoint, verb: str, path: str, args: bytes) -> bytes:
        url, began, outcome = endpoint.url(path), time.perf_counter(), "error"
        server_name = endpoint.tls.server_name if endpoint.tls is not None else ""
        headers = {"Content-Type": "application/json"}
        try:
            async with self._session(endpoint).post(
                url, data=args, headers=headers, server_hostname=server_name or None
            ) as response:
                content = await response.read()
                if response.status != 200:
                    raise CallFailed(f"failed {path} with extender at URL {url}, code {response.status}")
                outcome = "success"
                return content
        except TimeoutError as error:
            text = f"failed {path} with extender at URL {url}: no answer within {endpoint.timeout:g} s"
            raise CallFailed(text) from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            sent = not isinstance(error, aiohttp.ClientConnectorError | ValueError)
            raise CallFailed(f"failed {path} with extender at URL {url}: {error}", sent=sent) from error
        finally:
            if self._meter is not None:
                self._meter.extender_called(
                    endpoint.extender.name, verb, outcome, time.perf_counter() - began
                )

    def _session(self, endpoint: ExtenderEndpoint) -> aiohttp.ClientSession:
        number = id(endpoint)
        if number not in self._sessions:
            secure = urlsplit(endpoint.extender.name).scheme == "https"
            host = urlsplit(endpoint.extender.name).hostname or ""
            self._sessions[number] = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(ssl=endpoint.ssl_context() if secure else True),
                timeout=aiohttp.ClientTimeout(total=endpoint.timeout, ceil_threshold=1e9),
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=host not in ("localhost", "::1") and not host.startswith("127."),
            )
        return self._sessions[number]


def _read(verb: Verb, content: bytes, endpoint: ExtenderEndpoint) -> Answer:
    match verb:
        case Verb.FILTER:
            return wire.read_filtered(content, node_cache_capable=endpoint.node_cache_capable)
        case Verb.PRIORITIZE:
            return wire.read_prioritized(content)
        case Verb.PREEMPT:
            return wire.read_preempted(content)
