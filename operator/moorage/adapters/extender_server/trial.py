"""Calls a running extender as kube-scheduler would, and says of each verb what is wrong."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import aiohttp
import orjson

from moorage.adapters.extender import wire
from moorage.core.model.extender import Victims
from moorage.core.model.pod import PodRef

#: No pod of any cluster has this UID.
_REF = PodRef("default", "moorage-extender-check", "moorage-extender-check")
_POD: dict[str, Any] = {
    "metadata": {"name": _REF.name, "namespace": _REF.namespace, "uid": _REF.uid, "creationTimestamp": None},
    "spec": {"schedulerName": "default-scheduler", "containers": [{"name": "main", "image": "none"}]},
    "status": {"phase": "Pending"},
}
_UNKNOWN_NODE = "moorage-extender-check"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report; ``milliseconds`` None where nothing was measured."""

    subject: str
    ok: bool
    text: str
    milliseconds: float | None = None


class _Wrong(Exception):
    """The answer is not what kube-scheduler could use; the text says why."""


class Trial:
    """All calls to one extender."""

    def __init__(self, url: str, *, tls: ssl.SSLContext | None = None, timeout: float = 5.0) -> None:
        self._url = url.rstrip("/")
        self._tls = tls
        self._timeout = timeout

    async def run(self, nodes: Sequence[dict[str, Any]]) -> list[Finding]:
        """Every verb, in both cache modes, about these nodes (whole objects); none: about one that does not exist."""
        objects = list(nodes) or [
            {"metadata": {"name": _UNKNOWN_NODE}, "status": {"allocatable": {"pods": "1"}}}
        ]
        names = [node["metadata"]["name"] for node in objects]
        pod, raw = orjson.dumps(_POD), [orjson.dumps(node) for node in objects]
        by_name, whole = wire.node_args(pod, None, names), wire.node_args(pod, raw, ())
        preemption = wire.preemption_args(
            pod, {names[0]: Victims((PodRef("default", "none", "none"),))}, None
        )
        connector = aiohttp.TCPConnector(ssl=True if self._tls is None else self._tls)
        limit = aiohttp.ClientTimeout(total=self._timeout, ceil_threshold=1e9)
        async with aiohttp.ClientSession(connector=connector, timeout=limit) as self._session:
            return [
                await self._ready(),
                await self._verb(
                    "filter", "filter, names", by_name, lambda c: _filtered(c, names, whole=False)
                ),
                await self._verb(
                    "filter", "filter, whole nodes", whole, lambda c: _filtered(c, names, whole=True)
                ),
                await self._verb(
                    "prioritize", "prioritize, names", by_name, lambda c: _prioritized(c, names)
                ),
                await self._verb(
                    "prioritize", "prioritize, whole nodes", whole, lambda c: _prioritized(c, names)
                ),
                await self._verb("preempt", "preempt", preemption, lambda c: _preempted(c, names[:1])),
                await self._bind(names[0]),
            ]

    async def _ready(self) -> Finding:
        parts = urlsplit(self._url)
        url = urlunsplit((parts.scheme, parts.netloc, "/readyz", "", ""))
        began = time.perf_counter()
        try:
            async with self._session.get(url) as response:
                text = (await response.text(errors="replace")).strip()[:200]
                return Finding("ready", response.status == 200, text, _since(began))
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return Finding("ready", ok=False, text=_words(error))

    async def _verb(self, verb: str, subject: str, args: bytes, judge: Callable[[bytes], str]) -> Finding:
        began = time.perf_counter()
        try:
            content = await self._post(verb, args)
            taken = _since(began)
            return Finding(subject, ok=True, text=judge(content), milliseconds=taken)
        except (_Wrong, wire.BadResult, wire.Refused) as error:
            return Finding(subject, ok=False, text=str(error), milliseconds=_since(began))
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return Finding(subject, ok=False, text=_words(error))

    async def _bind(self, node: str) -> Finding:
        """A pod that does not exist must be refused, in words: a bind verb that says yes to it binds nothing."""
        began = time.perf_counter()
        try:
            content = await self._post("bind", wire.binding_args(_REF, node))
            wire.read_bound(content)
        except wire.Refused as error:
            off = "--enable-bind" in str(error)
            text = "off" if off else f"on; refuses a pod that is not there: {error}"
            return Finding("bind", ok=True, text=text, milliseconds=_since(began))
        except (_Wrong, wire.BadResult) as error:
            return Finding("bind", ok=False, text=str(error), milliseconds=_since(began))
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return Finding("bind", ok=False, text=_words(error))
        text = "says that it has bound a pod that does not exist"
        return Finding("bind", ok=False, text=text, milliseconds=_since(began))

    async def _post(self, verb: str, args: bytes) -> bytes:
        headers = {"Content-Type": "application/json"}
        async with self._session.post(f"{self._url}/{verb}", data=args, headers=headers) as response:
            content = await response.read()
            if response.status != 200:
                said = content.decode(errors="replace").strip()[:200]
                hint = " (does the URL end with the extender's prefix?)" if response.status == 404 else ""
                raise _Wrong(f"HTTP {response.status}{hint}: {said}")
            return content


def _filtered(content: bytes, names: Sequence[str], *, whole: bool) -> str:
    found = wire.read_filtered(content, node_cache_capable=not whole)
    foreign = set(found.passed) - set(names)
    if foreign:
        raise _Wrong(f"answers with node {min(foreign)}, which was not asked about")
    told = set(found.passed) | set(found.failed) | set(found.unresolvable)
    silent = set(names) - told
    if silent:
        raise _Wrong(f"says nothing of node {min(silent)}")
    return f"{len(found.passed)} of {len(names)} nodes pass"


def _prioritized(content: bytes, names: Sequence[str]) -> str:
    scores = dict(wire.read_prioritized(content).scores)
    if scores.keys() != set(names):
        raise _Wrong("does not score just the nodes that it was asked about")
    if not all(0 <= score <= 10 for score in scores.values()):
        raise _Wrong("gives a score outside 0..10")
    return f"scores {min(scores.values(), default=0)} to {max(scores.values(), default=0)}"


def _preempted(content: bytes, names: Sequence[str]) -> str:
    found = wire.read_preempted(content).victims
    if not found.keys() <= set(names):
        raise _Wrong("answers with nodes that it was not asked about")
    return "answers"


def _since(began: float) -> float:
    return (time.perf_counter() - began) * 1000


def _words(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return str(error) or type(error).__name__
