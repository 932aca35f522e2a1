"""Compares what we believe with what the API server has, as kube-scheduler does at SIGUSR2.

Streams lag a little, so a difference counts only if a second look a moment later finds it again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from moorage.adapters.kube.client import KubeClient
from moorage.adapters.kube.errors import Gone
from moorage.adapters.kube.pending import list_pending

_METADATA_ONLY = {"Accept": "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"}
_BOUND = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
_PAGE = 500
#: How long after the first look the second one is had.
_SETTLED = 2.0


@dataclass(frozen=True, slots=True)
class Belief:
    """Nodes by name; pods that take room by UID, with key and node; those of them that are only assumed; who waits."""

    nodes: frozenset[str]
    pods: Mapping[str, tuple[str, str]]
    assumed: frozenset[str]
    pending: Mapping[str, str]


@dataclass(frozen=True, slots=True, order=True)
class Difference:
    """``what`` is a node or pod; ``ours`` and ``theirs`` tell what we and the API server have of it."""

    kind: str
    what: str
    ours: str
    theirs: str


class Comparison:
    """``believe`` tells what is believed now, ``names`` the scheduler names whose pending pods are ours."""

    def __init__(
        self,
        client: KubeClient,
        believe: Callable[[], Belief],
        names: Callable[[], Sequence[str]],
        *,
        settled: float = _SETTLED,
    ) -> None:
        self._client = client
        self._believe = believe
        self._names = names
        self._settled = settled

    async def carry_out(self) -> list[Difference]:
        """The differences that stay.  Raises ``KubeError``."""
        found = await self._look()
        if found:
            await asyncio.sleep(self._settled)
            found &= await self._look()
        return sorted(found)

    async def _look(self) -> set[Difference]:
        nodes = {name async for name in self._node_names()}
        bound = {uid: pod async for uid, pod in self._bound_pods()}
        pending: dict[str, str] = {}
        for name in self._names():
            for obj in await list_pending(self._client, name):
                pending[obj["metadata"]["uid"]] = _key(obj)
        believed = self._believe()
        return {
            *(Difference("node", name, "unknown", "there") for name in nodes - believed.nodes),
            *(Difference("node", name, "there", "gone") for name in believed.nodes - nodes),
            *_bound_differences(believed, bound),
            *_pending_differences(believed, pending, bound),
        }

    async def _node_names(self) -> AsyncIterator[str]:
        async for obj in self._items("/api/v1/nodes", headers=_METADATA_ONLY):
            yield obj["metadata"]["name"]

    async def _bound_pods(self) -> AsyncIterator[tuple[str, tuple[str, str]]]:
        async for obj in self._items("/api/v1/pods", selector=_BOUND):
            yield obj["metadata"]["uid"], (_key(obj), obj["spec"]["nodeName"])

    async def _items(
        self, path: str, *, selector: str = "", headers: Mapping[str, str] | None = None
    ) -> AsyncIterator[Mapping[str, Any]]:
        """All objects, in pages; should a page be too old to go on from, some come twice, which does no harm."""
        first: dict[str, str | int | bool] = {
            "limit": _PAGE,
            **({"fieldSelector": selector} if selector else {}),
        }
        params = first
        while True:
            try:
                page = await self._client.request("GET", path, params=params, headers=headers)
            except Gone:
                params = first
                continue
            for obj in page.get("items") or ():
                yield obj
            token = (page.get("metadata") or {}).get("continue")
            if not token:
                return
            params = {**first, "continue": token}


def _bound_differences(believed: Belief, bound: Mapping[str, tuple[str, str]]) -> set[Difference]:
    found = set()
    for uid, (key, node_name) in bound.items():
        ours = believed.pods.get(uid)
        if ours is None:
            found.add(Difference("pod", key, "unknown", f"on {node_name}"))
        elif ours[1] != node_name:
            found.add(Difference("pod", key, f"on {ours[1]}", f"on {node_name}"))
    for uid, (key, node_name) in believed.pods.items():
        if uid not in bound and uid not in believed.assumed:
            found.add(Difference("pod", key, f"on {node_name}", "gone"))
    return found


def _pending_differences(
    believed: Belief, pending: Mapping[str, str], bound: Mapping[str, tuple[str, str]]
) -> set[Difference]:
    unknown = {
        uid: key for uid, key in pending.items() if uid not in believed.pending and uid not in believed.pods
    }
    gone = {uid: key for uid, key in believed.pending.items() if uid not in pending and uid not in bound}
    return {
        *(Difference("pending pod", key, "unknown", "waits") for key in unknown.values()),
        *(Difference("pending pod", key, "waits", "gone") for key in gone.values()),
    }


def _key(obj: Mapping[str, Any]) -> str:
    return f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"
