"""What the volume controller does to volumes and claims, for clusters that exist in files only.

A volume that does not say so is available.  A claim that says it is bound is bound in full: its volume names it, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from moorage.core.model.storage import PersistentVolume, PersistentVolumeClaim, StorageObject

_AVAILABLE, _BOUND = "Available", "Bound"


def complete_storage(objects: Iterable[StorageObject]) -> list[StorageObject]:
    """The objects as they would be found in a cluster, in the same order."""
    result: list[StorageObject] = []
    volumes: dict[str, int] = {}  # places in the result
    claims: list[int] = []
    for obj in objects:
        if isinstance(obj, PersistentVolume):
            volumes[obj.name] = len(result)
            obj = replace(obj, phase=obj.phase or _AVAILABLE)
        elif isinstance(obj, PersistentVolumeClaim) and obj.phase == _BOUND and obj.volume_name:
            claims.append(len(result))
            obj = replace(obj, bind_completed=True)
        result.append(obj)
    for place in claims:
        claim = result[place]
        assert isinstance(claim, PersistentVolumeClaim), "only claims were noted"
        at = volumes.get(claim.volume_name)
        if at is not None:
            volume = result[at]
            assert isinstance(volume, PersistentVolume), "only volumes were noted"
            result[at] = _bound(volume, claim)
    return result


def _bound(volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume:
    if volume.claim is None or volume.prebound_to(claim):
        volume = replace(volume, claim=claim.ref)
    return replace(volume, phase=_BOUND) if volume.phase == _AVAILABLE else volume
