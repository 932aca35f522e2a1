"""Reads one live pod, when what the streams have told is not enough to know."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from moorage.adapters.kube.client import KubeClient
from moorage.adapters.kube.errors import KubeError, NotFound
from moorage.core.model.pod import Pod, PodRef
from moorage.runtime.ports import PodReadError

#: A read is cheap to repeat, so it need not wait for long.
_TIMEOUT = 5.0


class KubePodReader:
    """GETs pods.  Without a resourceVersion, so the answer is as of now and not from a stale cache."""

    def __init__(self, client: KubeClient, convert: Callable[[Mapping[str, Any]], Pod]) -> None:
        self._client = client
        self._convert = convert

    async def fetch(self, ref: PodRef) -> Pod | None:
        """The live pod of that name, perhaps with another UID; None if there is none."""
        try:
            found = await self._client.get(
                f"/api/v1/namespaces/{ref.namespace}/pods/{ref.name}", timeout=_TIMEOUT
            )
        except NotFound:
            return None
        except KubeError as error:
            raise PodReadError(str(error)) from error
        return self._convert(found)
