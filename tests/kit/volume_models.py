"""Builders of storage objects and of the volumes of pods."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from moorage.core.model.pod import Pod
from moorage.core.model.pod_volumes import ClaimUse, Disk, PodVolumes
from moorage.core.model.quantity import Quantity, parse
from moorage.core.model.selector import LabelSelector, NodeSelector, NodeSelectorTerm, Operator, Requirement
from moorage.core.model.storage import (
    CSINode,
    CSISource,
    CSIStorageCapacity,
    InTreeSource,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from tests.kit.models import make_pod

HOST = "kubernetes.io/hostname"
LATE = StorageClass("late", "disk.test", waits_for_consumer=True)
LOCAL = StorageClass("local", "kubernetes.io/no-provisioner", waits_for_consumer=True)
NOW = StorageClass("now", "disk.test")


def size(amount: str | None) -> Quantity | None:
    """``"1Gi"`` as a quantity."""
    return None if amount is None else parse(amount)


def on(key: str, *values: str) -> NodeSelector:
    """A volume's node affinity: one term with one label."""
    return NodeSelector((NodeSelectorTerm((Requirement(key, Operator.IN, values),)),))


def make_volume(
    name: str,
    *,
    capacity: str = "1Gi",
    storage_class: str = "local",
    host: str = "",
    claim: PersistentVolumeClaim | None = None,
    version: str = "1",
    **fields: Any,
) -> PersistentVolume:
    """An available volume, or the one of a claim; ``host`` is the only node that reaches it."""
    if host:
        fields["node_affinity"] = on(HOST, host)
    return PersistentVolume(
        name,
        uid=f"uid-{name}",
        resource_version=version,
        storage_class=storage_class,
        capacity=parse(capacity),
        access_modes=fields.pop("access_modes", ("ReadWriteOnce",)),
        claim=None if claim is None else claim.ref,
        phase=fields.pop("phase", "Available" if claim is None else "Bound"),
        source=fields.pop("source", CSISource("disk.test", name)),
        **fields,
    )


def make_claim(
    name: str,
    *,
    request: str | None = "1Gi",
    storage_class: str = "local",
    volume: str = "",
    version: str = "1",
    namespace: str = "default",
    **fields: Any,
) -> PersistentVolumeClaim:
    """A pending claim, or one that is bound to ``volume``."""
    return PersistentVolumeClaim(
        namespace,
        name,
        uid=fields.pop("uid", f"uid-{name}"),
        resource_version=version,
        storage_class=storage_class,
        request=size(request),
        access_modes=fields.pop("access_modes", ("ReadWriteOnce",)),
        volume_name=volume,
        bind_completed=fields.pop("bind_completed", bool(volume)),
        phase=fields.pop("phase", "Bound" if volume else "Pending"),
        **fields,
    )


def bound(claim: PersistentVolumeClaim, volume: str, version: str = "9") -> PersistentVolumeClaim:
    """The claim as the volume controller leaves it."""
    return replace(claim, volume_name=volume, bind_completed=True, phase="Bound", resource_version=version)


def make_capacity(name: str, capacity: str | None, *, host: str = "", **fields: Any) -> CSIStorageCapacity:
    """What is left of the class ``late`` (unless told otherwise) on a host."""
    topology = fields.pop("topology", None)
    if host:
        topology = label_selector(Requirement(HOST, Operator.IN, (host,)))
    return CSIStorageCapacity(
        "default",
        name,
        storage_class=fields.pop("storage_class", "late"),
        capacity=size(capacity),
        topology=topology,
        **fields,
    )


def label_selector(*requirements: Requirement) -> LabelSelector:
    """A label selector."""
    return LabelSelector(requirements)


def make_csi_node(name: str, migrated: Iterable[str] = (), **limits: int | None) -> CSINode:
    """A CSINode; drivers are written with ``_`` for the dot."""
    return CSINode(
        name, {driver.replace("_", "."): limit for driver, limit in limits.items()}, frozenset(migrated)
    )


def with_claims(
    name: str,
    *claims: str,
    node: str = "",
    ephemeral: Iterable[str] = (),
    disks: Iterable[Disk] = (),
    in_tree: Iterable[InTreeSource] = (),
    **fields: Any,
) -> Pod:
    """A pod that uses these claims."""
    uses = (*(ClaimUse(claim) for claim in claims), *(ClaimUse(claim, ephemeral=True) for claim in ephemeral))
    pod = make_pod(name, node=node, **fields)
    return replace(pod, volumes=PodVolumes(uses, tuple(disks), tuple(in_tree)))
