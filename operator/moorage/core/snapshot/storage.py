"""Storage objects as the API server shows them, what is believed beyond that, and ways to find them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from moorage.core.model.selector import NodeSelector
from moorage.core.model.storage import (
    ClaimRef,
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    StorageKind,
    StorageObject,
    VolumeAttachment,
)
from moorage.core.snapshot.reservations import Reservations
from moorage.core.snapshot.topology_index import Alternatives, TopologyIndex

T = TypeVar("T")

#: Told of every change: the object before (None: new) and after (None: gone).
Listener = Callable[[StorageObject | None, StorageObject | None], None]

_NOTHING = TopologyIndex()


class Storage:
    """All storage objects.  The mappings are the API server's word; ``volume`` and ``claim`` are what to believe."""

    def __init__(self) -> None:
        self._listener: Listener = lambda before, after: None
        self._objects: dict[StorageKind, dict[str, Any]] = {kind: {} for kind in StorageKind}
        self.volumes: Mapping[str, PersistentVolume] = self._objects[StorageKind.VOLUME]
        self.claims: Mapping[str, PersistentVolumeClaim] = self._objects[StorageKind.CLAIM]
        self.classes: Mapping[str, StorageClass] = self._objects[StorageKind.CLASS]
        self.csi_nodes: Mapping[str, CSINode] = self._objects[StorageKind.CSI_NODE]
        self.csi_drivers: Mapping[str, CSIDriver] = self._objects[StorageKind.CSI_DRIVER]
        self.capacities: Mapping[str, CSIStorageCapacity] = self._objects[StorageKind.CAPACITY]
        self.attachments: Mapping[str, VolumeAttachment] = self._objects[StorageKind.ATTACHMENT]
        self.reservations = Reservations()
        self._epoch = 0
        self._shared: tuple[object, object] = (None, None)
        self._volumes_of_class: dict[str, TopologyIndex] = {}
        self._capacities_of_class: dict[str, TopologyIndex] = {}
        self._volumes_of_claim: dict[str, dict[str, None]] = {}
        self._claims_of_volume: dict[str, dict[str, None]] = {}
        self._attachments_on: dict[str, dict[str, None]] = {}
        self._attachments_of: dict[str, dict[str, None]] = {}

    def listen(self, listener: Listener) -> None:
        """Tell of every change from now on, after it was made."""
        self._listener = listener

    # -- changes ---------------------------------------------------------------------------------

    def apply(self, obj: StorageObject) -> StorageObject | None:
        """The object exists in this state; returns what it was before."""
        objects = self._objects[obj.kind]
        before: StorageObject | None = objects.get(obj.key)
        objects[obj.key] = obj
        self._epoch += 1
        if before != obj:
            self._unlink(before)
            self._link(obj)
            self._listener(before, obj)
        return before

    def drop(self, kind: StorageKind, key: str) -> StorageObject | None:
        """The object no longer exists; returns what it was."""
        before: StorageObject | None = self._objects[kind].pop(key, None)
        if before is not None:
            self._epoch += 1
            self._unlink(before)
            self._listener(before, None)
        return before

    def _link(self, obj: StorageObject) -> None:
        match obj:
            case PersistentVolume():
                index = self._volumes_of_class.setdefault(obj.storage_class, TopologyIndex())
                index.put(obj.name, _alternatives(obj.node_affinity))
                if obj.claim is not None:
                    self._volumes_of_claim.setdefault(obj.claim.key, {})[obj.name] = None
            case PersistentVolumeClaim():
                if obj.volume_name:
                    self._claims_of_volume.setdefault(obj.volume_name, {})[obj.key] = None
            case CSIStorageCapacity():
                if obj.topology is not None:
                    index = self._capacities_of_class.setdefault(obj.storage_class, TopologyIndex())
                    index.put(obj.key, (obj.topology.requirements,) if obj.topology.requirements else None)
            case VolumeAttachment():
                self._attachments_on.setdefault(obj.node_name, {})[obj.name] = None
                self._attachments_of.setdefault(obj.volume_name, {})[obj.name] = None
            case _:
                pass

    def _unlink(self, obj: StorageObject | None) -> None:
        match obj:
            case PersistentVolume():
                _take_out(self._volumes_of_class, obj.storage_class, obj.name)
                if obj.claim is not None:
                    _forget(self._volumes_of_claim, obj.claim.key, obj.name)
            case PersistentVolumeClaim():
                if obj.volume_name:
                    _forget(self._claims_of_volume, obj.volume_name, obj.key)
            case CSIStorageCapacity():
                _take_out(self._capacities_of_class, obj.storage_class, obj.key)
            case VolumeAttachment():
                _forget(self._attachments_on, obj.node_name, obj.name)
                _forget(self._attachments_of, obj.volume_name, obj.name)
            case _:
                pass

    @property
    def epoch(self) -> tuple[int, int]:
        """Changes whenever something changes that is shown or believed."""
        return self._epoch, self.reservations.epoch

    def shared(self, key: object, make: Callable[[], T]) -> T:
        """What was made under this key, if it was the last and nothing has changed since.

        For work that several steps of one cycle have in common; the caller sees to it that a key stands for one type.
        """
        moment = (key, self.epoch)
        if self._shared[0] != moment:
            self._shared = (moment, make())
        return self._shared[1]  # type: ignore[return-value]

    # -- looking ---------------------------------------------------------------------------------

    def volume(self, name: str) -> PersistentVolume | None:
        """A volume, reserved ones as if they were bound already."""
        shown = self.volumes.get(name)
        return None if shown is None else self.reservations.volume(shown)

    def claim(self, key: str) -> PersistentVolumeClaim | None:
        """A claim, reserved ones with the node that was selected."""
        shown = self.claims.get(key)
        return None if shown is None else self.reservations.claim(shown)

    def volumes_of_class(self, name: str) -> TopologyIndex:
        """The names of a class's volumes by where they can be reached."""
        return self._volumes_of_class.get(name, _NOTHING)

    def capacities_of_class(self, name: str) -> TopologyIndex:
        """The keys of a class's capacities that some node can use, by which."""
        return self._capacities_of_class.get(name, _NOTHING)

    def volumes_naming(self, claim: ClaimRef) -> Iterator[PersistentVolume]:
        """The volumes that name a claim, or were promised to it; whether they may is not checked."""
        names = {
            **self._volumes_of_claim.get(claim.key, {}),
            **dict.fromkeys(self.reservations.volumes_for(claim)),
        }
        for name in sorted(names):
            volume = self.volume(name)
            if volume is not None:
                yield volume

    def claims_of_volume(self, name: str) -> Iterable[str]:
        """The keys of the claims that name a volume."""
        return self._claims_of_volume.get(name, ())

    def attachments_on(self, node_name: str) -> Iterator[VolumeAttachment]:
        """What is attached to a node."""
        for name in self._attachments_on.get(node_name, ()):
            yield self.attachments[name]

    def attachments_of(self, volume_name: str) -> Iterator[VolumeAttachment]:
        """Where a volume is attached."""
        for name in self._attachments_of.get(volume_name, ()):
            yield self.attachments[name]

    def concerned_pods(self, obj: StorageObject) -> frozenset[str]:
        """The UIDs of pods with a reservation that a change of this object may complete or break."""
        if not len(self.reservations):
            return frozenset()
        found = self.reservations.concerned(obj.kind, obj.key)
        if isinstance(obj, PersistentVolume):
            for key in self.claims_of_volume(obj.name):
                found |= self.reservations.concerned(StorageKind.CLAIM, key)
        return found


def _alternatives(selector: NodeSelector | None) -> Alternatives:
    """A volume's node affinity, for which a node has labels and no fields."""
    if selector is None:
        return None
    return [term.expressions for term in selector.terms if term.expressions or term.fields]


def _take_out(indexes: dict[str, TopologyIndex], slot: str, name: str) -> None:
    index = indexes.get(slot)
    if index is not None:
        index.drop(name)
        if not len(index):
            del indexes[slot]


def _forget(slots: dict[str, dict[str, None]], slot: str, name: str) -> None:
    names = slots[slot]
    del names[name]
    if not names:
        del slots[slot]
