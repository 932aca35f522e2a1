"""The volumes of a pod, as much of them as scheduling reads.

They belong to the pod and not to its template: the pods of a StatefulSet differ in nothing but the names of
their claims, and are to stay alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from moorage.core.model.storage import InTreeSource


@dataclass(frozen=True, slots=True)
class ClaimUse:
    """A volume that is a claim of the pod's namespace; an ``ephemeral`` one was made for this pod, which owns it."""

    name: str
    ephemeral: bool = False


@dataclass(frozen=True, slots=True)
class Disk:
    """A disk named in the pod itself, of a kind that the pods of a node cannot freely share.

    Two are the same if they have one of their ``identities`` in common.  ``shareable``: with others that are, too.
    """

    identities: tuple[tuple[str, ...], ...]
    shareable: bool = False

    def conflicts(self, other: Disk) -> bool:
        """Whether the two cannot be on one node."""
        if self.shareable and other.shareable:
            return False
        return not set(self.identities).isdisjoint(other.identities)


@dataclass(frozen=True, slots=True)
class PodVolumes:
    """``claims`` in the order of the pod's volumes; ``in_tree`` are volumes named in it that CSI drivers attach."""

    claims: tuple[ClaimUse, ...] = ()
    disks: tuple[Disk, ...] = ()
    in_tree: tuple[InTreeSource, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.claims or self.disks or self.in_tree)


NO_VOLUMES: Final = PodVolumes()
