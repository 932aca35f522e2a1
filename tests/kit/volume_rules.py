"""The plugins about volumes once more, one node at a time, in plain Python: slow, and easy to hold against the rules.

Written from kube-scheduler v1.37.2 (``volumerestrictions``, ``nodevolumelimits``, ``volumebinding``, ``volumezone``),
not from our plugins.  Ties are broken by name.  Disks of in-tree plugins are not translated here: what becomes of them
has tests of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from moorage.core.model.decision import Code, Rejection
from moorage.core.model.node import Node
from moorage.core.model.pod import Pod
from moorage.core.model.pod_volumes import Disk
from moorage.core.model.quantity import Quantity
from moorage.core.model.selector import NodeSelector
from moorage.core.model.storage import (
    CSIDriver,
    CSINode,
    CSISource,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from tests.kit.scalar import admits
from tests.kit.strategies import Cluster

Reasons = list[tuple[str, bool]]

CONFLICT = "node(s) didn't match PersistentVolume's node affinity"
NO_MATCH = "node(s) didn't find available persistent volumes to bind"
NO_SPACE = "node(s) did not have enough free storage"
NO_VOLUME = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
ZONES = (
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
)


class World:
    """A cluster's storage, to be asked by name."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        of = {kind: {o.key: o for o in cluster.storage if isinstance(o, kind)} for kind in _KINDS}
        self.volumes: dict[str, PersistentVolume] = of[PersistentVolume]
        self.claims: dict[str, PersistentVolumeClaim] = of[PersistentVolumeClaim]
        self.classes: dict[str, StorageClass] = of[StorageClass]
        self.csi_nodes: dict[str, CSINode] = of[CSINode]
        self.drivers: dict[str, CSIDriver] = of[CSIDriver]
        self.capacities: dict[str, CSIStorageCapacity] = of[CSIStorageCapacity]
        self.attachments: dict[str, VolumeAttachment] = of[VolumeAttachment]


_KINDS: tuple[Any, ...] = (
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    CSINode,
    CSIDriver,
    CSIStorageCapacity,
    VolumeAttachment,
)


@dataclass(frozen=True)
class Rules:
    """As ``scalar.Rules``, for plugins whose PreFilter looks at the cluster."""

    whole: Callable[[Pod, World], Rejection | None]
    node: Callable[[Pod, Node, World], Reasons]
    score: Callable[[Pod, Node, World], int] | None = None


def refused(plugin: str, text: str) -> Rejection:
    """PreFilter's UnschedulableAndUnresolvable."""
    return Rejection(plugin, (text,), Code.UNRESOLVABLE)


# -- VolumeRestrictions --------------------------------------------------------------------------


def restrictions_whole(pod: Pod, world: World) -> Rejection | None:
    """``readWriteOncePodPVCsForPod``."""
    for use in pod.volumes.claims:
        if not use.ephemeral and f"{pod.namespace}/{use.name}" not in world.claims:
            return refused("VolumeRestrictions", f'persistentvolumeclaim "{use.name}" not found')
    return None


def restrictions_node(pod: Pod, node: Node, world: World) -> Reasons:
    """``satisfyVolumeConflicts`` and ``satisfyReadWriteOncePod``."""
    for mine in pod.volumes.disks:
        for other in world.cluster.on(node.name):
            if any(same_disk(mine, theirs) for theirs in other.volumes.disks):
                return [("node(s) had no available disk", True)]
    for use in pod.volumes.claims:
        key = f"{pod.namespace}/{use.name}"
        single = not use.ephemeral and "ReadWriteOncePod" in world.claims[key].access_modes
        if single and any(key in direct_claims(other) for other in counted(world)):
            text = (
                "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already "
                "in-use by another pod"
            )
            return [(text, True)]
    return []


def same_disk(a: Disk, b: Disk) -> bool:
    """``isVolumeConflict``."""
    shared = any(x == y for x in a.identities for y in b.identities)
    return shared and not (a.shareable and b.shareable)


def direct_claims(pod: Pod) -> set[str]:
    """The claims that a pod names."""
    return {f"{pod.namespace}/{use.name}" for use in pod.volumes.claims if not use.ephemeral}


def counted(world: World) -> Iterator[Pod]:
    """The pods on nodes."""
    for node in world.cluster.nodes:
        yield from world.cluster.on(node.name)


# -- NodeVolumeLimits ----------------------------------------------------------------------------


def limits_whole(pod: Pod, world: World) -> Rejection | None:
    """It rejects no pod as a whole."""
    return None


def limits_node(pod: Pod, node: Node, world: World) -> Reasons:
    """``CSILimits.Filter``."""
    csi_node = world.csi_nodes.get(node.name)
    new: dict[tuple[str, str], str] = {}
    for use in pod.volumes.claims:
        key = f"{pod.namespace}/{use.name}"
        if key not in world.claims:
            return [(f'looking up PVC {key}: persistentvolumeclaim "{use.name}" not found', False)]
        if use.ephemeral and world.claims[key].owner != pod.uid:
            return [(f"PVC {key} was not created for pod {pod.key} (pod is not owner)", False)]
        add_attachable(world.claims[key], world, new)
    for driver in sorted(set(new.values())):
        known = world.drivers.get(driver)
        missing = csi_node is None or driver not in csi_node.limits
        if known is not None and known.needed_on_node and missing:
            return [(f"{driver} CSI driver is not installed on the node", True)]
    limits = {} if csi_node is None else {d: n for d, n in csi_node.limits.items() if n is not None}
    attached: dict[tuple[str, str], str] = {}
    for other in world.cluster.on(node.name):
        for use in other.volumes.claims:
            claim = world.claims.get(f"{other.namespace}/{use.name}")
            if claim is not None and not (use.ephemeral and claim.owner != other.uid):
                add_attachable(claim, world, attached)
    for name in attached:
        new.pop(name, None)
    for attachment in world.attachments.values():
        volume = world.volumes.get(attachment.volume_name)
        if attachment.node_name == node.name and volume is not None and isinstance(volume.source, CSISource):
            attached.setdefault((attachment.attacher, volume.source.handle), attachment.attacher)
    for driver in set(new.values()):
        total = list(attached.values()).count(driver) + list(new.values()).count(driver)
        if driver in limits and total > limits[driver]:
            return [("node(s) exceed max volume count", True)]
    return []


def add_attachable(claim: PersistentVolumeClaim, world: World, found: dict[tuple[str, str], str]) -> None:
    """``getCSIDriverInfo``: the volume as its driver knows it, or a stand-in by the class."""
    volume = world.volumes.get(claim.volume_name)
    if volume is not None:
        if isinstance(volume.source, CSISource):
            found[volume.source.driver, volume.source.handle] = volume.source.driver
        return
    storage_class = world.classes.get(claim.storage_class)
    if storage_class is not None and storage_class.provisioner:
        found[storage_class.provisioner, f"claim {claim.key}"] = storage_class.provisioner


# -- VolumeBinding -------------------------------------------------------------------------------


def binding_whole(pod: Pod, world: World) -> Rejection | None:
    """``podHasPVCs``, and claims that should be bound."""
    for use in pod.volumes.claims:
        claim = world.claims.get(f"{pod.namespace}/{use.name}")
        text = ""
        if claim is None:
            text = f'persistentvolumeclaim "{use.name}" not found'
            if use.ephemeral:
                text = f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{use.name}"'
        elif claim.phase == "Lost":
            text = f'persistentvolumeclaim "{use.name}" bound to non-existent persistentvolume "{claim.volume_name}"'
        elif claim.deleting:
            text = f'persistentvolumeclaim "{use.name}" is being deleted'
        elif use.ephemeral and claim.owner != pod.uid:
            text = f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)"
        if text:
            return refused("VolumeBinding", text)
    for claim in claims_of(pod, world):
        if not is_bound(claim) and not is_delayed(claim, world):
            return refused("VolumeBinding", "pod has unbound immediate PersistentVolumeClaims")
    return None


def claims_of(pod: Pod, world: World) -> list[PersistentVolumeClaim]:
    """The pod's claims."""
    return [world.claims[f"{pod.namespace}/{use.name}"] for use in pod.volumes.claims]


def is_bound(claim: PersistentVolumeClaim) -> bool:
    """``isPVCFullyBound``."""
    return claim.volume_name != "" and claim.bind_completed


def is_delayed(claim: PersistentVolumeClaim, world: World) -> bool:
    """``IsDelayBindingMode``, and not prebound."""
    storage_class = world.classes.get(claim.storage_class)
    return storage_class is not None and storage_class.waits_for_consumer and claim.volume_name == ""


def affine(selector: NodeSelector | None, node: Node) -> bool:
    """``CheckNodeAffinity``: by labels alone."""
    if selector is None:
        return True
    return any(
        all(admits(r, node.labels.get(r.key)) for r in term.expressions)
        for term in selector.terms
        if term.expressions or term.fields
    )


@dataclass
class Found:
    """``PodVolumes`` and what speaks against the node."""

    reasons: list[str]
    bindings: list[tuple[PersistentVolumeClaim, PersistentVolume]]
    provisions: list[tuple[PersistentVolumeClaim, CSIStorageCapacity | None]]


def find(pod: Pod, node: Node, world: World) -> Found:
    """``FindPodVolumes``."""
    conflict = missing = False
    for claim in claims_of(pod, world):
        if is_bound(claim):
            volume = world.volumes.get(claim.volume_name)
            missing = volume is None
            conflict = volume is not None and not affine(volume.node_affinity, node)
            if missing or conflict:
                break
    found = Found([], [], [])
    matched = enough = True
    delayed = [claim for claim in claims_of(pod, world) if not is_bound(claim)]
    if any(claim.selected_node not in (None, node.name) for claim in delayed):
        matched = False
    else:
        rest = [claim for claim in delayed if claim.selected_node is not None]
        open_claims = [claim for claim in delayed if claim.selected_node is None]
        for claim in sorted(open_claims, key=lambda c: c.request or Quantity(0)):
            chosen = matching_volume(claim, node, world, [volume.name for _, volume in found.bindings])
            if chosen is None:
                rest.append(claim)
            else:
                found.bindings.append((claim, chosen))
        for claim in rest:
            answer = provision(claim, node, world)
            if isinstance(answer, str):
                matched, enough = answer != NO_MATCH, answer != NO_SPACE
                break
            found.provisions.append((claim, answer[0]))
    found.reasons = [
        text
        for text, holds in (
            (CONFLICT, conflict),
            (NO_MATCH, not matched),
            (NO_SPACE, not enough),
            (NO_VOLUME, missing),
        )
        if holds
    ]
    return found


def matching_volume(
    claim: PersistentVolumeClaim, node: Node, world: World, taken: list[str]
) -> PersistentVolume | None:
    """``FindMatchingVolume``."""
    best: PersistentVolume | None = None
    for name in sorted(world.volumes):
        volume = world.volumes[name]
        if volume.storage_class != claim.storage_class or name in taken:
            continue
        ref = volume.claim
        prebound = ref is not None and (ref.namespace, ref.name) == (claim.namespace, claim.name)
        prebound = prebound and ref is not None and ref.uid in ("", claim.uid)
        if ref is not None and not prebound:
            continue
        if volume.capacity < (claim.request or Quantity(0)) or volume.volume_mode != claim.volume_mode:
            continue
        if volume.attributes_class != claim.attributes_class or volume.deleting:
            continue
        if prebound:
            return volume if affine(volume.node_affinity, node) else None
        if volume.phase != "Available" or not affine(volume.node_affinity, node):
            continue
        if claim.selector is not None and not all(
            admits(r, volume.labels.get(r.key)) for r in claim.selector.requirements
        ):
            continue
        if any(mode not in volume.access_modes for mode in claim.access_modes):
            continue
        if best is None or volume.capacity < best.capacity:
            best = volume
    return best


def provision(
    claim: PersistentVolumeClaim, node: Node, world: World
) -> str | tuple[CSIStorageCapacity | None]:
    """``checkVolumeProvisions`` for one claim."""
    storage_class = world.classes[claim.storage_class]
    if storage_class.provisioner in ("", "kubernetes.io/no-provisioner"):
        return NO_MATCH
    if storage_class.topologies is not None and not affine(storage_class.topologies, node):
        return NO_MATCH
    driver = world.drivers.get(storage_class.provisioner)
    if claim.request is None or driver is None or not driver.tracks_capacity:
        return (None,)
    for name in sorted(world.capacities):
        capacity = world.capacities[name]
        limit = capacity.capacity if capacity.largest_volume is None else capacity.largest_volume
        if (
            capacity.storage_class != claim.storage_class
            or limit is None
            or limit.value() < claim.request.value()
        ):
            continue
        topology = capacity.topology
        if topology is not None and all(admits(r, node.labels.get(r.key)) for r in topology.requirements):
            return (capacity,)
    return NO_SPACE


def binding_node(pod: Pod, node: Node, world: World) -> Reasons:
    """``VolumeBinding.Filter``."""
    return [(text, False) for text in find(pod, node, world).reasons]


def binding_score(pod: Pod, node: Node, world: World) -> int:
    """``VolumeBinding.Score`` with the default shape: from 100 at 0 % down to 0 at 100 %."""
    if not pod.volumes.claims or binding_whole(pod, world) is not None:
        return 0
    found = find(pod, node, world)
    classes: dict[str, list[int]] = {}
    if found.bindings:
        for claim, volume in found.bindings:
            entry = classes.setdefault(volume.storage_class, [0, 0])
            entry[0] += (claim.request or Quantity(0)).value()
            entry[1] += volume.capacity.value()
    else:
        for claim, capacity in found.provisions:
            if capacity is not None and claim.request is not None:
                entry = classes.setdefault(claim.storage_class, [0, 0])
                entry[0] += claim.request.value()
                entry[1] = 0 if capacity.capacity is None else capacity.capacity.value()
    if not classes:
        return 0
    total = 0
    for requested, room in classes.values():
        used = 100 if room == 0 or requested > room else requested * 100 // room
        total += 100 - used
    return math.floor(total / len(classes) + 0.5)


# -- VolumeZone ----------------------------------------------------------------------------------


def zone_whole(pod: Pod, world: World) -> Rejection | None:
    """``getPVbyPod``."""
    for use in pod.volumes.claims:
        if use.ephemeral:
            continue
        claim = world.claims.get(f"{pod.namespace}/{use.name}")
        text = ""
        if claim is None:
            text = f'persistentvolumeclaim "{use.name}" not found'
        elif claim.volume_name:
            if claim.volume_name not in world.volumes:
                text = f'persistentvolume "{claim.volume_name}" not found'
        elif not claim.storage_class:
            text = "PersistentVolumeClaim had no pv name and storageClass name"
        elif claim.storage_class not in world.classes:
            text = f'storageclass.storage.k8s.io "{claim.storage_class}" not found'
        elif not world.classes[claim.storage_class].waits_for_consumer:
            text = "PersistentVolume had no name"
        if text:
            return refused("VolumeZone", text)
    return None


def zone_node(pod: Pod, node: Node, world: World) -> Reasons:
    """``VolumeZone.Filter``."""
    if not any(key in node.labels for key in ZONES):
        return []
    for use in pod.volumes.claims:
        claim = world.claims[f"{pod.namespace}/{use.name}"]
        if use.ephemeral or not claim.volume_name:
            continue
        volume = world.volumes[claim.volume_name]
        for key in ZONES:
            if key not in volume.labels:
                continue
            values = [zone.strip() for zone in volume.labels[key].split("__")]
            if "" in values:
                continue
            newer = key.replace("failure-domain.beta", "topology")
            if node.labels.get(key, node.labels.get(newer)) not in values:
                return [("node(s) had no available volume zone", False)]
    return []


VOLUME_RULES: dict[str, Rules] = {
    "VolumeRestrictions": Rules(restrictions_whole, restrictions_node),
    "NodeVolumeLimits": Rules(limits_whole, limits_node),
    "VolumeBinding": Rules(binding_whole, binding_node, binding_score),
    "VolumeZone": Rules(zone_whole, zone_node),
}
