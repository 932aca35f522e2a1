"""DefaultBinder: binds through the ``pods/binding`` subresource."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from moorage.core.model.cluster_event import WakesOn
from moorage.core.model.pod import Pod


class DefaultBinder:
    """Takes every pod."""

    name: ClassVar[str] = "DefaultBinder"

    def binds(self, pod: Pod) -> bool:
        """Always."""
        return True

    def wakes_on(self) -> Sequence[WakesOn]:
        """It rejects nothing."""
        return ()
