"""Whole API objects as JSON text, for extenders that want to see them; the core keeps none.

Only what the configured extenders need is kept while streams show it: pods that wait, for any of them; nodes, and pods
that are bound, for those without a cache of their own.  What is not at hand is read from the API server.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from moorage.adapters.kube.client import KubeClient
from moorage.adapters.kube.errors import KubeError
from moorage.core.model.pod import PodRef


class RawObjects:
    """Implements ``adapters.extender.client.ObjectSource``."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._keep_pending = self._keep_nodes = self._keep_bound = False
        self._pending: dict[str, bytes] = {}
        self._bound: dict[str, bytes] = {}
        self._nodes: dict[str, bytes] = {}

    def keep(self, *, pending: bool, nodes: bool, bound: bool) -> None:
        """What to keep from now on; the rest is dropped."""
        self._keep_pending, self._keep_nodes, self._keep_bound = pending, nodes, bound
        for wanted, kept in ((pending, self._pending), (nodes, self._nodes), (bound, self._bound)):
            if not wanted:
                kept.clear()

    # -- from the streams ------------------------------------------------------------------------

    def pending_pod(self, obj: Mapping[str, Any]) -> None:
        """A pod waits for a node."""
        if self._keep_pending:
            self._pending[obj["metadata"]["uid"]] = _text(obj)

    def left_pending(self, uid: str) -> None:
        """It waits no longer."""
        self._pending.pop(uid, None)

    def bound_pod(self, obj: Mapping[str, Any]) -> None:
        """A pod is on a node."""
        if self._keep_bound:
            self._bound[obj["metadata"]["uid"]] = _text(obj)

    def pod_gone(self, uid: str) -> None:
        """It is there no longer."""
        self._bound.pop(uid, None)

    def node(self, obj: Mapping[str, Any]) -> None:
        """A node is there."""
        if self._keep_nodes:
            self._nodes[obj["metadata"]["name"]] = _text(obj)

    def node_gone(self, name: str) -> None:
        """It is there no longer."""
        self._nodes.pop(name, None)

    # -- for extenders ---------------------------------------------------------------------------

    async def pod(self, ref: PodRef) -> bytes:
        """A pod.  Raises LookupError."""
        known = self._pending.get(ref.uid) or self._bound.get(ref.uid)
        if known is not None:
            return known
        obj = await self._get(f"/api/v1/namespaces/{ref.namespace}/pods/{ref.name}", f"pod {ref.key}")
        if obj["metadata"].get("uid") != ref.uid:
            raise LookupError(f"pod {ref.key} is gone")
        return _text(obj)

    async def nodes(self, names: Sequence[str]) -> list[bytes]:
        """Nodes, in this order.  Raises LookupError."""
        if any(name not in self._nodes for name in names):
            listed = await self._get("/api/v1/nodes", "the list of nodes")
            for obj in listed.get("items") or ():
                self._nodes.setdefault(obj["metadata"]["name"], _text(obj))
        missing = [name for name in names if name not in self._nodes]
        if missing:
            raise LookupError(f"node {missing[0]} is gone")
        return [self._nodes[name] for name in names]

    async def _get(self, path: str, what: str) -> Any:
        try:
            return await self._client.get(path)
        except KubeError as error:
            raise LookupError(f"{what} cannot be read: {error}") from error


def _text(obj: Mapping[str, Any]) -> bytes:
    """Without what only the API server's bookkeeping needs, as kube-scheduler's cache has it."""
    metadata = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
    plain = {key: value for key, value in obj.items() if key not in ("apiVersion", "kind")}
    return orjson.dumps({**plain, "metadata": metadata})
