"""Kopf's settings for a scheduler: it watches pods that wait for a node, and writes nothing anywhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import kopf


class NoDiffBase(kopf.DiffBaseStorage):
    """Keeps no last-seen state: building it would copy every pod, and storing it would write into users' pods."""

    def build(self, **_: Any) -> kopf.BodyEssence:
        """Nothing of the pod is essential."""
        return kopf.BodyEssence()

    def fetch(self, **_: Any) -> kopf.BodyEssence | None:
        """Nothing was kept."""
        return None

    def store(self, **_: Any) -> None:
        """Keep nothing."""


class NoProgress(kopf.ProgressStorage):
    """Keeps no progress of handlers: ours are done at once."""

    def fetch(self, **_: Any) -> Any:
        """Nothing was kept."""
        return None

    def store(self, **_: Any) -> None:
        """Keep nothing."""

    def purge(self, **_: Any) -> None:
        """There is nothing."""

    def touch(self, **_: Any) -> None:
        """There is nothing."""

    def clear(self, *, essence: kopf.BodyEssence) -> kopf.BodyEssence:
        """Nothing of ours is in it."""
        return essence


class Patience(Iterable[float]):
    """Pauses between tries, for ever: an API server that is away comes back, and restarting does not help."""

    def __init__(self, *pauses: float) -> None:
        self._pauses = pauses

    def __iter__(self) -> Iterator[float]:
        yield from self._pauses
        while True:
            yield self._pauses[-1]


def configure_kopf(settings: kopf.OperatorSettings, pending_selector: str, silence: float) -> None:
    """Set up Kopf for reading ``pending_selector`` pods fast, with nothing else on."""
    settings.posting.enabled = False
    settings.peering.standalone = True  # two equal peers would freeze each other; the lease decides
    settings.scanning.disabled = True  # no kinds of ours come and go
    settings.persistence.diffbase_storage = NoDiffBase()
    settings.persistence.progress_storage = NoProgress()
    settings.watching.field_selectors["", "v1", "pods"] = pending_selector
    settings.watching.chunk_size = 200  # a page is parsed in one go, and must not hold the loop for long
    settings.watching.connect_timeout = 10.0
    settings.watching.inactivity_timeout = silence
    settings.networking.request_timeout = 60.0
    settings.networking.error_backoffs = Patience(0.2, 0.5, 1.0, 2.0)
    settings.process.ultimate_exiting_timeout = 60.0
