"""The reflectors that feed the engine: nodes, and the pods that are on them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Protocol

from moorage.adapters.kube.client import KubeClient
from moorage.adapters.kube.convert import Converter
from moorage.adapters.kube.errors import KubeError
from moorage.adapters.kube.watch import Pace, Reflector, Target, Trouble
from moorage.core.model.events import Event, NodeApplied, NodeGone, PodBound, PodGone
from moorage.core.model.pod import PodRef

logger = logging.getLogger(__name__)

#: Finished pods hold nothing, and their end arrives as a DELETED of this selector.
_BOUND = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
#: Heard of nothing for so long although there is no trouble: the reflector itself is stuck.
_STUCK_SECONDS = 300.0


class StreamMeter(Protocol):
    """Counts what cannot be read."""

    def object_malformed(self, resource: str) -> None:
        """An object of this kind makes no sense."""
        ...


class ClusterState:
    """Keeps the engine told of the cluster.

    Usable for decisions once ``synced``; ``refresh`` makes sure that it is as new as the moment of the call.
    """

    def __init__(
        self,
        client: KubeClient,
        converter: Converter,
        submit: Callable[[Event], None],
        *,
        on_synced: Callable[[], None],
        meter: StreamMeter,
        pace: Pace | None = None,
    ) -> None:
        self._converter = converter
        self._submit = submit
        self._on_synced = on_synced
        self._meter = meter
        self.nodes: Reflector[str] = Reflector(
            client,
            Target("/api/v1/nodes"),
            apply=self._node_applied,
            delete=lambda name: submit(NodeGone(name)),
            on_synced=lambda: self._synced("nodes"),
            on_malformed=lambda key, error: self._malformed("nodes", key, error),
            on_trouble=lambda trouble, error: self._trouble("nodes", trouble, error),
            pace=pace,
        )
        self.pods: Reflector[PodRef] = Reflector(
            client,
            Target("/api/v1/pods", _BOUND),
            apply=self._pod_applied,
            delete=lambda ref: submit(PodGone(ref)),
            on_synced=lambda: self._synced("pods"),
            on_malformed=lambda key, error: self._malformed("pods", key, error),
            on_trouble=lambda trouble, error: self._trouble("pods", trouble, error),
            pace=pace,
        )

    @property
    def reflectors(self) -> dict[str, Reflector[Any]]:
        """The reflectors by the resource they watch."""
        return {"nodes": self.nodes, "pods": self.pods}

    @property
    def synced(self) -> bool:
        """Whether every list has been complete once."""
        return self.nodes.synced and self.pods.synced

    async def refresh(self) -> None:
        """Return when all that was true at this call is submitted.  Raises ``KubeError``."""
        for reflector in self.reflectors.values():
            await reflector.refresh()

    def stuck(self) -> str | None:
        """Which reflector has stopped working without knowing it, None if all is well."""
        for resource, reflector in self.reflectors.items():
            if reflector.trouble is Trouble.NONE and reflector.age > _STUCK_SECONDS:
                return f"nothing heard of {resource} for {reflector.age:.0f} s"
        return None

    def _node_applied(self, obj: dict[str, Any]) -> str:
        node = self._converter.node(obj)
        self._submit(NodeApplied(node))
        return node.name

    def _pod_applied(self, obj: dict[str, Any]) -> PodRef:
        pod = self._converter.pod(obj)
        self._submit(PodBound(pod))
        return pod.ref

    def _synced(self, resource: str) -> None:
        logger.info("Synced: %d %s", len(self.reflectors[resource]), resource)
        if self.synced:
            self._on_synced()

    def _malformed(self, resource: str, key: str, error: Exception) -> None:
        self._meter.object_malformed(resource)
        logger.warning("%s %s cannot be read and is left out: %s", resource, key, error)

    def _trouble(self, resource: str, trouble: Trouble, error: KubeError | None) -> None:
        if trouble is Trouble.NONE:
            logger.info("The watch of %s works again", resource)
        else:
            logger.warning("The watch of %s has stopped (%s): %s", resource, trouble.value, error)
