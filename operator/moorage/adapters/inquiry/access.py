"""Who asks, and may they? Both are left to the API server, by TokenReview and SubjectAccessReview."""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Callable
from enum import Enum, auto
from typing import Any, Final

from moorage.adapters.kube.client import KubeClient

_TOKENS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"
_ACCESS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
#: A caller may go on for so many seconds after the API server has changed its mind.
_TRUSTED: Final = 10.0
_KEPT: Final = 256


class Access(Enum):
    """What the API server says about a caller."""

    ALLOWED = auto()
    FORBIDDEN = auto()
    UNKNOWN = auto()  # not somebody it knows


class Gatekeeper:
    """Lets those see a pod's explanation who may get pods in its namespace.

    Tokens are kept as hashes only, with the answers of the last ten seconds.  ``clock`` gives seconds.
    """

    def __init__(self, client: KubeClient, clock: Callable[[], float] | None = None) -> None:
        self._client = client
        self._clock = clock or (lambda: asyncio.get_running_loop().time())
        self._known: OrderedDict[tuple[bytes, str, str], tuple[float, Access]] = OrderedDict()

    async def may_see(self, token: str, namespace: str, pod: str) -> Access:
        """Whether the bearer of the token may get the pod.  Raises ``KubeError`` if nobody can say."""
        key = hashlib.sha256(token.encode()).digest(), namespace, pod
        known = self._known.get(key)
        if known is not None and known[0] > self._clock():
            return known[1]
        access = await self._ask(token, namespace, pod)
        self._known[key] = self._clock() + _TRUSTED, access
        self._known.move_to_end(key)
        if len(self._known) > _KEPT:
            self._known.popitem(last=False)
        return access

    async def _ask(self, token: str, namespace: str, pod: str) -> Access:
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        status = _status(await self._client.post(_TOKENS, review))
        user = status.get("user")
        if status.get("authenticated") is not True or not isinstance(user, dict) or not user.get("username"):
            return Access.UNKNOWN
        spec = {
            "user": user["username"],
            "uid": user.get("uid", ""),
            "groups": user.get("groups") or [],
            "extra": user.get("extra") or {},
            "resourceAttributes": {"namespace": namespace, "verb": "get", "resource": "pods", "name": pod},
        }
        access = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        allowed = _status(await self._client.post(_ACCESS, access)).get("allowed") is True
        return Access.ALLOWED if allowed else Access.FORBIDDEN


def _status(answer: Any) -> dict[str, Any]:
    status = (answer or {}).get("status")
    return status if isinstance(status, dict) else {}
