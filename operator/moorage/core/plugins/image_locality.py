"""ImageLocality: prefer nodes that already have the pod's images, the larger the better."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np

from moorage.core.framework.interface import MAX_NODE_SCORE, Ints, Reads, Skip, no_change
from moorage.core.model.cluster_event import WakesOn
from moorage.core.model.pod import Pod
from moorage.core.snapshot.snapshot import Snapshot
from moorage.core.snapshot.view import Nodes

_MIB = 1024 * 1024
_MIN_THRESHOLD = 23 * _MIB
_MAX_THRESHOLD_PER_CONTAINER = 1000 * _MIB
_ENOUGH = 1 << 50  # far beyond the maximum for any number of containers, and no sum of such can wrap


class ImageLocality:
    """Sums image sizes, each scaled by the share of nodes that have the image (against node heating)."""

    name: ClassVar[str] = "ImageLocality"
    reads: ClassVar[Reads] = Reads.NODE | Reads.CLUSTER

    def pre_score(
        self, pod: Pod, snapshot: Snapshot, nodes: Nodes
    ) -> tuple[tuple[str, ...], int] | Literal[Skip.SKIP]:
        """The images' normalised names, one entry a container, and how many there are."""
        return pod.spec.images, len(pod.spec.images)

    def score(self, state: tuple[tuple[str, ...], int], nodes: Nodes) -> Ints:
        """0 to 100 between 23 MiB and 1000 MiB per container."""
        images, count = state
        total = np.zeros(len(nodes), dtype=np.int64)
        found = False
        for image in images:
            present, size, having = nodes.image(image)
            if having:
                found = True
                scaled = min(int(float(size) * (having / nodes.snapshot.node_count)), _ENOUGH)
                total += np.int64(scaled) * present
        if not found or not count:
            return total
        most = _MAX_THRESHOLD_PER_CONTAINER * count
        clipped = np.clip(total, _MIN_THRESHOLD, most)
        return MAX_NODE_SCORE * (clipped - _MIN_THRESHOLD) // (most - _MIN_THRESHOLD)

    def normalize(self, raw: Ints) -> Ints:
        """Raw scores are in range already."""
        return no_change(raw)

    def wakes_on(self) -> Sequence[WakesOn]:
        """It rejects nothing."""
        return ()
