"""All that writes to the API server, and the connections it has for that."""

from __future__ import annotations

import socket
from collections.abc import Callable, Collection

from moorage.adapters.extender.bind import RoutedBinder
from moorage.adapters.extender.client import ExtenderClient
from moorage.adapters.kube.bind import KubeBinder
from moorage.adapters.kube.client import KubeClient
from moorage.adapters.kube.preempt import KubeEvictor
from moorage.adapters.kube.read import KubePodReader
from moorage.adapters.kube.record import KubeRecorder
from moorage.adapters.kube.status import KubeStatusWriter
from moorage.adapters.kube.volumes import KubeVolumeWriter
from moorage.adapters.kube.writes import Writer
from moorage.adapters.telemetry.metrics import Metrics
from moorage.runtime.ports import Clock

#: Connections for events and conditions.
_WRITES = 16


class Writers:
    """Binds, evictions, volumes, conditions, events; ``holds`` tells whether we (still) lead."""

    def __init__(
        self,
        client: KubeClient,
        reader: KubePodReader,
        clock: Clock,
        metrics: Metrics,
        extenders: ExtenderClient,
        *,
        holds: Callable[[], bool],
        max_binds: int,
        controller: str,
        off: Collection[str],
    ) -> None:
        self._binds = Writer(client, limit=max_binds)
        self._others = Writer(client, limit=_WRITES)
        binder = KubeBinder(self._binds, reader, holds=holds, late=metrics.late)
        self.binder = RoutedBinder(binder, extenders, reader, holds=holds)
        self.volumes = KubeVolumeWriter(client, holds=holds)
        self.status = KubeStatusWriter(self._others, reader, clock, count=metrics.condition_written)
        self.recorder = KubeRecorder(
            self._others,
            clock,
            metrics,
            controller=controller,
            instance=f"{controller}-{socket.gethostname()}",
            enabled="events" not in off,
        )
        self.evictor = KubeEvictor(client, reader, clock, record=self.recorder.record, holds=holds)

    async def flush(self) -> None:
        """Write what still waits, for a few seconds at the most."""
        await self.recorder.flush(3.0)
        await self.status.flush(2.0)

    async def close(self) -> None:
        """Close the connections."""
        await self._binds.close()
        await self._others.close()
