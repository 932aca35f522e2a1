"""The volumes of a pod that matter to scheduling, from JSON to ``PodVolumes``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from moorage.adapters.kube.fields import Reader
from moorage.core.model.csi_migration import AWS_EBS, AZURE_DISK, CINDER, GCE_PD, PORTWORX
from moorage.core.model.pod_volumes import NO_VOLUMES, ClaimUse, Disk, PodVolumes
from moorage.core.model.storage import InTreeSource

#: Sources of plugins that a CSI driver took over, and the field that names the disk; persistent volumes have the same.
IN_TREE_SOURCES: Final[Mapping[str, tuple[str, str]]] = {
    "gcePersistentDisk": (GCE_PD, "pdName"),
    "awsElasticBlockStore": (AWS_EBS, "volumeID"),
    "azureDisk": (AZURE_DISK, "diskURI"),
    "cinder": (CINDER, "volumeID"),
    "portworxVolume": (PORTWORX, "volumeID"),
}
_READ: Final = frozenset({"persistentVolumeClaim", "ephemeral", "iscsi", "rbd", *IN_TREE_SOURCES})


def read_pod_volumes(value: object, pod_name: str, reader: Reader) -> PodVolumes:
    """``spec.volumes`` of the pod of that name."""
    if not value:
        return NO_VOLUMES
    claims: list[ClaimUse] = []
    disks: list[Disk] = []
    in_tree: list[InTreeSource] = []
    for path, volume in reader.objects(value, "spec.volumes"):
        if _READ.isdisjoint(volume):
            continue
        if volume.get("persistentVolumeClaim") is not None:
            where = f"{path}.persistentVolumeClaim"
            claim = reader.mapping(volume["persistentVolumeClaim"], where)
            claims.append(ClaimUse(reader.text(claim.get("claimName"), f"{where}.claimName")))
        elif volume.get("ephemeral") is not None:
            name = reader.text(volume.get("name"), f"{path}.name")
            claims.append(ClaimUse(f"{pod_name}-{name}", ephemeral=True))
        disks += _disks(volume, path, reader)
        source = in_tree_source(volume, path, reader)
        if source is not None:
            in_tree.append(source)
    if not (claims or disks or in_tree):
        return NO_VOLUMES
    return PodVolumes(tuple(claims), tuple(disks), tuple(in_tree))


def in_tree_source(volume: Mapping[str, Any], path: str, reader: Reader) -> InTreeSource | None:
    """The disk of a plugin that a CSI driver took over, if the volume is one that the driver knows."""
    for source, (plugin, field) in IN_TREE_SOURCES.items():
        if volume.get(source) is not None:
            disk = reader.mapping(volume[source], f"{path}.{source}")
            kind = reader.text(disk.get("kind"), f"{path}.{source}.kind") if source == "azureDisk" else ""
            if kind.lower() not in ("", "managed"):
                return None
            return InTreeSource(plugin, reader.text(disk.get(field), f"{path}.{source}.{field}"))
    return None


def _disks(volume: Mapping[str, Any], path: str, reader: Reader) -> Iterator[Disk]:
    """Disks that the pods of a node cannot share, or only for reading."""
    for source, field, shareable in (
        ("gcePersistentDisk", "pdName", True),
        ("awsElasticBlockStore", "volumeID", False),
        ("iscsi", "iqn", True),
    ):
        if volume.get(source) is not None:
            where = f"{path}.{source}"
            disk = reader.mapping(volume[source], where)
            identity = (source, reader.text(disk.get(field), f"{where}.{field}"))
            read_only = reader.flag(disk.get("readOnly"), f"{where}.readOnly")
            yield Disk((identity,), shareable=shareable and read_only)
    if volume.get("rbd") is not None:
        where = f"{path}.rbd"
        disk = reader.mapping(volume["rbd"], where)
        pool = reader.text(disk.get("pool"), f"{where}.pool") or "rbd"
        image = reader.text(disk.get("image"), f"{where}.image")
        monitors = reader.texts(disk.get("monitors"), f"{where}.monitors")
        identities = tuple(("rbd", monitor, pool, image) for monitor in dict.fromkeys(monitors))
        yield Disk(identities, shareable=reader.flag(disk.get("readOnly"), f"{where}.readOnly"))
