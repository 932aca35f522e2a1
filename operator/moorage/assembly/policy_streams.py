"""Policies by watches of our own, where no Kopf watches them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any

from moorage.adapters.kube.client import KubeClient
from moorage.adapters.kube.errors import KubeError
from moorage.adapters.kube.policy_kinds import POLICY_KINDS, PolicyKind
from moorage.adapters.kube.watch import Pace, Reflector, Target, Trouble
from moorage.adapters.telemetry.metrics import Metrics

logger = logging.getLogger(__name__)

Obj = Mapping[str, Any]


class PolicyStreams:
    """Passes on what they show, as Kopf would: ``event`` gets a kind (``DELETED`` or None) and the object.

    A kind that is not served is asked for ever more rarely; the list of policies, which comes every few seconds then,
    is what notices when it is.
    """

    def __init__(self, client: KubeClient, event: Callable[[str | None, Obj], None], meter: Metrics) -> None:
        self._event = event
        self._meter = meter
        self._reflectors = {kind: self._reflector(client, kind) for kind in POLICY_KINDS}

    def start(self, tasks: asyncio.TaskGroup) -> None:
        """Follow both kinds, for ever."""
        for kind, reflector in self._reflectors.items():
            tasks.create_task(reflector.run(), name=f"moorage watch of {kind.plural}")

    def _reflector(self, client: KubeClient, kind: PolicyKind) -> Reflector[Obj]:
        def apply(obj: dict[str, Any]) -> Obj:
            self._event(None, obj)
            return {"metadata": {key: obj["metadata"].get(key) for key in ("namespace", "name", "uid")}}

        def trouble(found: Trouble, error: KubeError | None) -> None:
            if found is not Trouble.NONE:
                logger.info("The watch of %s has stopped (%s): %s", kind.plural, found.value, error)

        return Reflector(
            client,
            Target(kind.path),
            apply=apply,
            delete=lambda obj: self._event("DELETED", obj),
            on_malformed=lambda *_: self._meter.object_malformed(kind.plural),
            on_trouble=trouble,
            pace=Pace(longest_delay=10.0),
        )
