"""Volumes of plugins once built into Kubernetes, as the CSI drivers see them that took those plugins over.

Source of the rules: the csi-translation-lib of Kubernetes 1.37.  What it cannot translate is left alone here:
such a volume counts as none of a CSI driver, where kube-scheduler fails the attempt.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urlsplit

from moorage.core.model.selector import NodeSelector, NodeSelectorTerm, Operator, Requirement
from moorage.core.model.storage import CSISource, InTreeSource, PersistentVolume

ZONE: Final = "topology.kubernetes.io/zone"
REGION: Final = "topology.kubernetes.io/region"
BETA_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION: Final = "failure-domain.beta.kubernetes.io/region"

#: Between zones in the label of a volume that is in several.
MULTI_ZONE_DELIMITER: Final = "__"

GCE_PD: Final = "kubernetes.io/gce-pd"
AWS_EBS: Final = "kubernetes.io/aws-ebs"
AZURE_DISK: Final = "kubernetes.io/azure-disk"
CINDER: Final = "kubernetes.io/cinder"
PORTWORX: Final = "kubernetes.io/portworx-volume"

_UNSPECIFIED: Final = "UNSPECIFIED"
_EBS_ID: Final = re.compile(r"vol-[^/]*")


@dataclass(frozen=True, slots=True)
class _Successor:
    """The driver that took a plugin over, and the label by which it knows zones ("": it keeps Kubernetes' own)."""

    driver: str
    zone_key: str = ""


_SUCCESSORS: Final[Mapping[str, _Successor]] = {
    GCE_PD: _Successor("pd.csi.storage.gke.io", "topology.gke.io/zone"),
    AWS_EBS: _Successor("ebs.csi.aws.com", "topology.ebs.csi.aws.com/zone"),
    AZURE_DISK: _Successor("disk.csi.azure.com"),
    CINDER: _Successor("cinder.csi.openstack.org", "topology.cinder.csi.openstack.org/zone"),
    PORTWORX: _Successor("pxd.portworx.com"),
}
#: Plugins that have a successor, too, whose volumes kube-scheduler does not count as the successor's.
_UNCOUNTED: Final = frozenset({"kubernetes.io/azure-file", "kubernetes.io/vsphere-volume"})


def is_in_tree(provisioner: str) -> bool:
    """Whether a class's provisioner is a plugin that a CSI driver took over."""
    return provisioner in _SUCCESSORS or provisioner in _UNCOUNTED


def driver_of(plugin: str) -> str | None:
    """The driver whose volumes those of an in-tree plugin count as, None if there is none."""
    successor = _SUCCESSORS.get(plugin)
    return None if successor is None else successor.driver


def inline_source(source: InTreeSource) -> CSISource | None:
    """A volume named in a pod, as its driver sees it."""
    return _translated(source, "")


def volume_source(volume: PersistentVolume) -> CSISource | None:
    """A volume, as the CSI driver that attaches it sees it; None if none does."""
    source = volume.source
    if not isinstance(source, InTreeSource):
        return source
    return _translated(source, volume.labels.get(BETA_ZONE) or volume.labels.get(ZONE, ""))


def _translated(source: InTreeSource, zones: str) -> CSISource | None:
    driver = driver_of(source.plugin)
    if driver is None:
        return None
    handle: str | None = source.disk
    if source.plugin == AWS_EBS:
        handle = _ebs_id(source.disk)
    elif source.plugin == GCE_PD:
        place = _gce_place(zones.split(MULTI_ZONE_DELIMITER))
        handle = None if place is None else f"projects/{_UNSPECIFIED}/{place}/disks/{source.disk}"
    return None if handle is None else CSISource(driver, handle)


def _ebs_id(disk: str) -> str | None:
    """``aws://zone/vol-1``, ``aws:///vol-1`` and ``vol-1`` are the same."""
    if not disk.startswith("aws://"):
        return disk
    try:
        found = urlsplit(disk).path.strip("/")
    except ValueError:
        return None
    return found if _EBS_ID.fullmatch(found) else None


def _gce_place(zones: list[str]) -> str | None:
    if zones == [""]:
        return f"zones/{_UNSPECIFIED}"
    if len(zones) == 1:
        return f"zones/{zones[0]}"
    parts = [zone.split("-") for zone in zones]
    regions = {"-".join(part[:2]) for part in parts if len(part) == 3}
    if len(regions) != 1 or any(len(part) != 3 for part in parts):
        return None
    return f"regions/{regions.pop()}"


def migrates_affinity(volume: PersistentVolume) -> bool:
    """Whether ``migrated_affinity`` may differ from the volume's own."""
    source = volume.source
    if not isinstance(source, InTreeSource):
        return False
    successor = _SUCCESSORS.get(source.plugin)
    return successor is not None and bool(successor.zone_key)


def migrated_affinity(volume: PersistentVolume) -> NodeSelector | None:
    """The volume's node affinity on nodes where the driver has taken over: with the driver's label for zones."""
    if not migrates_affinity(volume):
        return volume.node_affinity
    assert isinstance(volume.source, InTreeSource)
    new_key = _SUCCESSORS[volume.source.plugin].zone_key
    terms = volume.node_affinity.terms if volume.node_affinity is not None else ()
    zone_key, region_key = _topology_keys(terms, volume.labels)
    if _has_values(terms, zone_key):
        terms = _renamed(terms, zone_key, new_key)
    elif zone_key in volume.labels:
        zones = {zone.strip() for zone in volume.labels[zone_key].split(MULTI_ZONE_DELIMITER)} - {""}
        if zones:
            added = Requirement(new_key, Operator.IN, tuple(sorted(zones)))
            terms = tuple(
                replace(term, expressions=(*term.expressions, added))
                for term in terms or (NodeSelectorTerm(),)
            )
    if region_key == BETA_REGION and _has_values(terms, BETA_REGION):
        terms = _renamed(terms, BETA_REGION, REGION)
    return NodeSelector(terms) if terms or volume.node_affinity is not None else None


def _topology_keys(terms: Iterable[NodeSelectorTerm], labels: Mapping[str, str]) -> tuple[str, str]:
    """The labels for zone and region that the volume goes by: those of its affinity first, the newer ones first."""
    named = {requirement.key for term in terms for requirement in term.expressions}
    for known in (named, labels.keys()):
        if ZONE in known:
            return ZONE, REGION
        if BETA_ZONE in known:
            return BETA_ZONE, BETA_REGION
    return ZONE, REGION


def _has_values(terms: Iterable[NodeSelectorTerm], key: str) -> bool:
    return any(r.key == key and r.values for term in terms for r in term.expressions)


def _renamed(terms: Iterable[NodeSelectorTerm], old: str, new: str) -> tuple[NodeSelectorTerm, ...]:
    return tuple(
        replace(
            term,
            expressions=tuple(replace(r, key=new) if r.key == old else r for r in term.expressions),
        )
        for term in terms
    )
