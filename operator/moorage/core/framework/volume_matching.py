"""Which volumes a node offers a pod: those it has, those that could be bound to its claims, those that could be made.

Source of the rules: the volume binder of kube-scheduler v1.37 (``volumebinding/binder.go``) and ``FindMatchingVolume``.
A node is nothing but its labels here, and whether it is the node that was selected for a claim before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto

from moorage.core.framework.pod_claims import PodClaims
from moorage.core.model.csi_migration import migrated_affinity, migrates_affinity
from moorage.core.model.quantity import Quantity
from moorage.core.model.selector import NodeSelector
from moorage.core.model.storage import (
    NO_PROVISIONER,
    CSIStorageCapacity,
    InTreeSource,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from moorage.core.snapshot.reservations import Binding
from moorage.core.snapshot.storage import Storage

_AVAILABLE = "Available"


@dataclass(frozen=True, slots=True)
class Provision:
    """A claim for which a volume is to be made; ``capacity`` is where the room for it was found, if that is tracked."""

    claim: PersistentVolumeClaim
    capacity: CSIStorageCapacity | None = None


class _Lack(Enum):
    """Why a claim cannot be provisioned for a node."""

    WAY = auto()  # not for this class, or not there
    ROOM = auto()


@dataclass(frozen=True, slots=True)
class Offer:
    """What a node offers; it will not do if one of the first four is set."""

    unreachable: bool = False  # a bound volume cannot be reached from the node
    unmatched: bool = False  # a claim can neither be bound nor provisioned
    too_small: bool = False  # not enough room is left to provision
    missing: bool = False  # a bound volume does not exist
    bindings: tuple[Binding, ...] = ()
    provisions: tuple[Provision, ...] = ()


class VolumeFinder:
    """Looks for a pod's volumes, node by node; valid for as long as no storage object changes."""

    def __init__(self, claims: PodClaims, storage: Storage) -> None:
        self._storage = storage
        self._bound = [storage.volume(claim.volume_name) for claim in claims.bound]
        self._delayed = claims.delayed
        to_bind = [claim for claim in claims.delayed if claim.selected_node is None]
        self._to_bind = sorted(to_bind, key=_size)
        self._selected = [claim for claim in claims.delayed if claim.selected_node is not None]
        self._seekers = {claim.key: _Seeker(claim, storage) for claim in to_bind}
        self.plugins = tuple(_migrating(self._bound))
        self.keys = tuple(sorted(self._keys()))

    @property
    def selected_nodes(self) -> frozenset[str]:
        """The nodes that were selected for some of the claims: only one that is all of them will do."""
        return frozenset(claim.selected_node or "" for claim in self._selected)

    def _keys(self) -> set[str]:
        """The labels that matter."""
        keys: set[str] = set()
        for volume in self._bound:
            if volume is not None:
                keys |= _keys_of(volume.node_affinity)
                if migrates_affinity(volume):
                    keys |= _keys_of(migrated_affinity(volume))
        for claim in self._delayed:
            keys |= self._storage.volumes_of_class(claim.storage_class).keys
            keys |= self._storage.capacities_of_class(claim.storage_class).keys
            storage_class = self._storage.classes.get(claim.storage_class)
            keys |= _keys_of(None if storage_class is None else storage_class.topologies)
        return keys

    def offer(self, labels: Mapping[str, str], migrated: frozenset[str], *, is_selected: bool) -> Offer:
        """What a node with these labels offers.

        ``migrated``: the in-tree plugins whose volumes a driver handles there; ``is_selected``: it is the one
        node among ``selected_nodes``.
        """
        unreachable, missing = self._check_bound(labels, migrated)
        if not self._delayed:
            return Offer(unreachable=unreachable, missing=missing)
        if self._selected and not is_selected:
            return Offer(unreachable=unreachable, missing=missing, unmatched=True)
        bindings: list[Binding] = []
        to_provision = list(self._selected)
        taken: set[str] = set()
        for claim in self._to_bind:
            volume = self._seekers[claim.key].seek(labels, taken)
            if volume is None:
                to_provision.append(claim)
            else:
                taken.add(volume.name)
                bindings.append(Binding(claim, volume))
        provisions: list[Provision] = []
        unmatched = too_small = False
        for claim in to_provision:
            provision = self._provision(claim, labels)
            if isinstance(provision, _Lack):
                unmatched, too_small = provision is _Lack.WAY, provision is _Lack.ROOM
                break
            provisions.append(provision)
        return Offer(unreachable, unmatched, too_small, missing, tuple(bindings), tuple(provisions))

    def _check_bound(self, labels: Mapping[str, str], migrated: frozenset[str]) -> tuple[bool, bool]:
        """(unreachable, missing): only the first volume that will not do counts."""
        for volume in self._bound:
            if volume is None:
                return False, True
            if not reachable(volume, labels, migrated):
                return True, False
        return False, False

    def _provision(self, claim: PersistentVolumeClaim, labels: Mapping[str, str]) -> Provision | _Lack:
        """How the claim can be provisioned for such a node, or what is lacking."""
        storage_class = self._storage.classes.get(claim.storage_class)
        if storage_class is None or storage_class.provisioner in ("", NO_PROVISIONER):
            return _Lack.WAY
        if storage_class.topologies is not None and not storage_class.topologies.matches("", labels):
            return _Lack.WAY
        if claim.request is None or not self._tracks_capacity(storage_class):
            return Provision(claim)
        capacity = self._room(claim, claim.request.value(), labels)
        return _Lack.ROOM if capacity is None else Provision(claim, capacity)

    def _tracks_capacity(self, storage_class: StorageClass) -> bool:
        driver = self._storage.csi_drivers.get(storage_class.provisioner)
        return driver is not None and driver.tracks_capacity

    def _room(
        self, claim: PersistentVolumeClaim, size: int, labels: Mapping[str, str]
    ) -> CSIStorageCapacity | None:
        """The first capacity, by its key, that is large enough and within reach."""
        index = self._storage.capacities_of_class(claim.storage_class)
        best: CSIStorageCapacity | None = None
        for names in (index.everywhere, index.near(labels)):
            for name in names:
                if best is not None and name >= best.key:
                    continue
                capacity = self._storage.capacities[name]
                enough = capacity.limit is not None and capacity.limit >= size
                if enough and capacity.topology is not None and capacity.topology.matches(labels):
                    best = capacity
        return best


@dataclass(slots=True)
class _Seeker:
    """Finds an existing volume for one claim: the one that names it, or else the smallest that will do."""

    claim: PersistentVolumeClaim
    storage: Storage
    _prebound: list[PersistentVolume] = field(init=False)
    _everywhere: list[PersistentVolume] = field(init=False)  # free ones that every node reaches, best first
    _known: dict[str, PersistentVolume | None] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        claim, storage = self.claim, self.storage
        self._prebound = [
            volume
            for volume in storage.volumes_naming(claim.ref)
            if volume.prebound_to(claim)
            and volume.storage_class == claim.storage_class
            and _suits(volume, claim)
        ]
        free = (self._free(name) for name in storage.volumes_of_class(claim.storage_class).everywhere)
        self._everywhere = sorted((volume for volume in free if volume is not None), key=_rank)

    def seek(self, labels: Mapping[str, str], taken: set[str]) -> PersistentVolume | None:
        """The volume for a node with these labels; ``taken`` are those chosen for other claims of the pod."""
        for volume in self._prebound:
            if volume.name not in taken:
                return volume if reachable(volume, labels) else None
        best = next((volume for volume in self._everywhere if volume.name not in taken), None)
        for name in self.storage.volumes_of_class(self.claim.storage_class).near(labels):
            candidate = self._free(name)
            if (
                candidate is not None
                and (best is None or _rank(candidate) < _rank(best))
                and name not in taken
                and reachable(candidate, labels)
            ):
                best = candidate
        return best

    def _free(self, name: str) -> PersistentVolume | None:
        """The volume if it is free and suits the claim, wherever it is."""
        if name not in self._known:
            volume = self.storage.volume(name)
            self._known[name] = volume if volume is not None and _is_free(volume, self.claim) else None
        return self._known[name]


def _suits(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    return (
        volume.capacity >= _size(claim)
        and volume.volume_mode == claim.volume_mode
        and volume.attributes_class == claim.attributes_class
        and not volume.deleting
    )


def _is_free(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    return (
        volume.claim is None
        and volume.phase == _AVAILABLE
        and _suits(volume, claim)
        and (claim.selector is None or claim.selector.matches(volume.labels))
        and set(claim.access_modes) <= set(volume.access_modes)
    )


def _size(claim: PersistentVolumeClaim) -> Quantity:
    return claim.request or Quantity(0)


def _rank(volume: PersistentVolume) -> tuple[Quantity, str]:
    """Smaller is better; among equals the name decides, where kube-scheduler leaves it to chance."""
    return volume.capacity, volume.name


def reachable(
    volume: PersistentVolume, labels: Mapping[str, str], migrated: frozenset[str] = frozenset()
) -> bool:
    """Whether a node with these labels reaches the volume; ``migrated`` as for ``VolumeFinder.offer``."""
    affinity = volume.node_affinity
    if isinstance(volume.source, InTreeSource) and volume.source.plugin in migrated:
        affinity = migrated_affinity(volume)
    return affinity is None or any(
        all(r.admits(labels.get(r.key)) for r in term.expressions)
        for term in affinity.terms
        if term.expressions or term.fields  # of a volume's affinity, what is said of fields is not looked at
    )


def _migrating(volumes: Iterable[PersistentVolume | None]) -> Iterable[str]:
    """The plugins of volumes that are reached by other labels where a driver has taken over."""
    plugins = {
        volume.source.plugin
        for volume in volumes
        if volume is not None and isinstance(volume.source, InTreeSource) and migrates_affinity(volume)
    }
    return sorted(plugins)


def _keys_of(selector: NodeSelector | None) -> set[str]:
    if selector is None:
        return set()
    return {requirement.key for term in selector.terms for requirement in term.expressions}
