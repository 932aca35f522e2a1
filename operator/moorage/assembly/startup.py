"""What is found out before anything is built."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Iterable

from moorage.adapters.kube.client import KubeClient
from moorage.adapters.kube.credentials import own_namespace
from moorage.adapters.kube.device_classes import DEVICE_CLASSES, serves_device_classes
from moorage.adapters.kube.errors import KubeError
from moorage.adapters.kube.lease import LeaseSettings
from moorage.adapters.kube.permissions import Permission, check, needed
from moorage.runtime.settings import Settings

logger = logging.getLogger(__name__)

#: How long an API server that does not answer is waited for at the start.
_PATIENCE = 60.0


class StartupError(Exception):
    """Moorage cannot run like this; the text says what to do."""


def tune_collector() -> None:
    """Have the garbage collector look at what is young, and seldom: JSON and arrays make no cycles.

    The defaults cost a tenth of the time on the way of a pod.  What is imported stays for ever.
    """
    gc.freeze()
    gc.set_threshold(10_000, 20, 100)


def lease_settings(settings: Settings) -> LeaseSettings:
    """The lease as set; in the pod's own namespace, else kube-system, where none is set."""
    return LeaseSettings(
        name=settings.lease_name,
        namespace=settings.lease_namespace or own_namespace() or "kube-system",
        lease_duration=settings.lease_duration,
        renew_deadline=settings.renew_deadline,
        retry_period=settings.retry_period,
    )


async def missing_features(client: KubeClient, settings: Settings) -> frozenset[str]:
    """The features that are off for want of permission, or of an API.

    Raises ``StartupError`` if a required permission is missing, or the API server does not say.
    """
    lease = lease_settings(settings)
    permissions = needed(leader_elect=settings.leader_elect, explain=settings.explain_listen is not None)
    return await missing_among(client, permissions, lease_namespace=lease.namespace, lease_name=lease.name)


async def missing_among(
    client: KubeClient, permissions: Iterable[Permission], **lease: str
) -> frozenset[str]:
    """As ``missing_features``, for these permissions."""
    permissions = tuple(permissions)
    deadline = asyncio.get_running_loop().time() + _PATIENCE
    while True:
        try:
            findings = await check(client, permissions, **lease)
            off = {finding.permission.feature for finding in findings if not finding.ok}
            wanted = any(permission.feature == DEVICE_CLASSES for permission in permissions)
            if wanted and DEVICE_CLASSES not in off and not await serves_device_classes(client):
                off.add(DEVICE_CLASSES)
            break
        except KubeError as error:
            if asyncio.get_running_loop().time() > deadline:
                raise StartupError(f"the API server cannot be asked for permissions: {error}") from error
            logger.warning("The API server cannot be asked for permissions yet: %s", error)
            await asyncio.sleep(1.0)
    blocking = [finding.text() for finding in findings if finding.blocking]
    if blocking:
        raise StartupError("\n".join(blocking))
    for finding in findings:
        if not finding.ok:
            logger.warning("%s", finding.text())
    return frozenset(off)
