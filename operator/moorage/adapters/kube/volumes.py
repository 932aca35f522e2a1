"""Writes what VolumeBinding promised a pod: the claim into the volume, or the node into the claim.

Each write is guarded by the resource version on which the choice was made, so that nobody's later word is
overwritten.  A write whose answer was lost, or that somebody else made already, is found by a look.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from moorage.adapters.kube.client import KubeClient
from moorage.adapters.kube.errors import (
    ApiError,
    Conflict,
    Forbidden,
    KubeError,
    NotFound,
    ServerError,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from moorage.adapters.kube.storage_convert import BOUND_BY_CONTROLLER, SELECTED_NODE
from moorage.core.model.events import BindFailure, VolumesNotPrepared, VolumesPrepared
from moorage.core.model.instructions import BindVolume, PrepareVolumes, VolumeStep

_TIMEOUT = 10.0
#: Pauses before another try of one write; after them the engine's own backoff takes over.
_PAUSES = (0.2, 1.0, 3.0)
_LONGEST_RETRY_AFTER = 5.0


class KubeVolumeWriter:
    """Carries out ``PrepareVolumes``, at most ``slots`` pods at a time; ``holds`` tells whether the lease is ours."""

    def __init__(self, client: KubeClient, *, holds: Callable[[], bool], slots: int = 32) -> None:
        self._client = client
        self._holds = holds
        self._slots = asyncio.Semaphore(slots)

    async def prepare(self, order: PrepareVolumes) -> VolumesPrepared | VolumesNotPrepared:
        """Write every step; see ``runtime.ports.VolumeWriter``."""
        versions = []
        async with self._slots:
            for step in order.steps:
                version = await self._write(_request(step))
                if isinstance(version, _Failed):
                    failure, message, retry_after = version.failure, version.message, version.retry_after
                    return VolumesNotPrepared(order.ref, order.ticket, failure, message, retry_after)
                versions.append(version)
        return VolumesPrepared(order.ref, order.ticket, tuple(versions))

    async def _write(self, request: _Request) -> str | _Failed:
        """The resource version that the object has by this write, or why there is none."""
        pauses = iter(_PAUSES)
        while True:
            if not self._holds():
                return _Failed(BindFailure.NOT_LEADER, "the lease is not ours any more")
            try:
                return _version(await self._client.patch(request.path, request.patch, timeout=_TIMEOUT))
            except Conflict as error:
                return await self._after_conflict(request, error)
            except NotFound as error:
                return _Failed(BindFailure.GONE, str(error))
            except (Unreachable, ServerError, TooManyRequests, Unauthorized) as error:
                asked = error.retry_after if isinstance(error, ApiError) else 0.0
                pause = next(pauses, None)
                if pause is None or asked > _LONGEST_RETRY_AFTER:
                    return _Failed(BindFailure.UNAVAILABLE, str(error), asked)
                await asyncio.sleep(max(asked, pause * random.uniform(0.8, 1.2)))
            except Forbidden as error:
                return _Failed(BindFailure.FORBIDDEN, _forbidden(error))
            except KubeError as error:
                return _Failed(BindFailure.INVALID, str(error))

    async def _after_conflict(self, request: _Request, conflict: Conflict) -> str | _Failed:
        """Another version: perhaps by our own write, whose answer was lost, or by one of the same content."""
        try:
            live = await self._client.get(request.path, timeout=_TIMEOUT)
        except NotFound as error:
            return _Failed(BindFailure.GONE, str(error))
        except KubeError:
            return _Failed(BindFailure.CONFLICT, str(conflict))
        if isinstance(live, Mapping) and request.holds_for(live):
            return _version(live)
        return _Failed(BindFailure.CONFLICT, str(conflict))


@dataclass(frozen=True, slots=True)
class _Failed:
    failure: BindFailure
    message: str
    retry_after: float = 0.0


@dataclass(frozen=True, slots=True)
class _Request:
    """One guarded write; ``holds_for`` tells whether an object is as if it had been made."""

    path: str
    patch: Mapping[str, Any]
    holds_for: Callable[[Mapping[str, Any]], bool]


def _request(step: VolumeStep) -> _Request:
    claim = step.claim
    metadata: dict[str, Any] = {"resourceVersion": step.resource_version}
    if isinstance(step, BindVolume):
        if not step.prebound:
            metadata["annotations"] = {BOUND_BY_CONTROLLER: "yes"}
        ref = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": claim.namespace,
            "name": claim.name,
            "uid": claim.uid,
        }

        def names_claim(live: Mapping[str, Any]) -> bool:
            return bool(_at(live, "spec", "claimRef", "uid") == claim.uid)

        patch = {"metadata": metadata, "spec": {"claimRef": ref}}
        return _Request(f"/api/v1/persistentvolumes/{step.volume}", patch, names_claim)
    node_name = step.node_name
    metadata["annotations"] = {SELECTED_NODE: node_name}

    def names_node(live: Mapping[str, Any]) -> bool:
        same = _at(live, "metadata", "uid") == claim.uid
        return bool(same and _at(live, "metadata", "annotations", SELECTED_NODE) == node_name)

    path = f"/api/v1/namespaces/{claim.namespace}/persistentvolumeclaims/{claim.name}"
    return _Request(path, {"metadata": metadata}, names_node)


def _at(obj: object, *keys: str) -> object:
    for key in keys:
        obj = obj.get(key) if isinstance(obj, Mapping) else None
    return obj


def _version(obj: object) -> str:
    version = _at(obj, "metadata", "resourceVersion")
    return version if isinstance(version, str) else ""


def _forbidden(error: Forbidden) -> str:
    """The server's words, and for a missing role what to do about it."""
    if "cannot patch resource" in error.message:
        return f"{error}; `moorage check` shows what the scheduler is not allowed to do"
    return str(error)
