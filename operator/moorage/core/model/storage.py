"""Storage objects of the API, as much of them as scheduling reads.

``resource_version`` is left out of comparisons: two states that differ in nothing else are the same to scheduling.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import ClassVar

from moorage.core.model.quantity import Quantity
from moorage.core.model.selector import LabelSelector, NodeSelector

_EMPTY: Mapping[str, str] = MappingProxyType({})

_NOTHING = Quantity(0)

#: The provisioner of classes whose volumes are made by hand.
NO_PROVISIONER = "kubernetes.io/no-provisioner"
READ_WRITE_ONCE_POD = "ReadWriteOncePod"


def _no_strings() -> Mapping[str, str]:
    """The one empty mapping all objects share."""
    return _EMPTY


class StorageKind(StrEnum):
    """The kinds of storage objects."""

    VOLUME = "PersistentVolume"
    CLAIM = "PersistentVolumeClaim"
    CLASS = "StorageClass"
    CSI_NODE = "CSINode"
    CSI_DRIVER = "CSIDriver"
    CAPACITY = "CSIStorageCapacity"
    ATTACHMENT = "VolumeAttachment"


@dataclass(frozen=True, slots=True)
class ClaimRef:
    """Which claim a volume belongs to; without a UID somebody wants it to, and nobody has seen to it yet."""

    namespace: str
    name: str
    uid: str = ""

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class CSISource:
    """A volume that a CSI driver knows under this handle."""

    driver: str
    handle: str


@dataclass(frozen=True, slots=True)
class InTreeSource:
    """A volume of one of the plugins once built into Kubernetes, which CSI drivers have taken over.

    ``disk`` is the name under which the plugin knows it.
    """

    plugin: str
    disk: str


@dataclass(frozen=True, slots=True)
class PersistentVolume:
    """A volume.  ``storage_class`` is "" for none; ``source`` is None for kinds that nobody attaches."""

    kind: ClassVar[StorageKind] = StorageKind.VOLUME

    name: str
    uid: str = ""
    resource_version: str = field(default="", compare=False)
    labels: Mapping[str, str] = field(default_factory=_no_strings)
    storage_class: str = ""
    capacity: Quantity = _NOTHING
    access_modes: tuple[str, ...] = ()
    volume_mode: str = "Filesystem"
    attributes_class: str = ""
    claim: ClaimRef | None = None
    node_affinity: NodeSelector | None = None
    phase: str = ""
    deleting: bool = False
    source: CSISource | InTreeSource | None = None

    @property
    def key(self) -> str:
        """The name."""
        return self.name

    def prebound_to(self, claim: PersistentVolumeClaim) -> bool:
        """Whether the volume names this very claim (or one of its name, without a UID)."""
        ref = self.claim
        return (
            ref is not None
            and (ref.namespace, ref.name) == (claim.namespace, claim.name)
            and ref.uid in ("", claim.uid)
        )


@dataclass(frozen=True, slots=True)
class PersistentVolumeClaim:
    """A claim.  ``owner`` is the UID of its controller; ``request`` None: it names no size.

    ``selected_node`` None means that no scheduler has chosen a node for it.
    """

    kind: ClassVar[StorageKind] = StorageKind.CLAIM

    namespace: str
    name: str
    uid: str = ""
    resource_version: str = field(default="", compare=False)
    storage_class: str = ""
    request: Quantity | None = None
    access_modes: tuple[str, ...] = ()
    volume_mode: str = "Filesystem"
    attributes_class: str = ""
    selector: LabelSelector | None = None
    volume_name: str = ""
    bind_completed: bool = False
    selected_node: str | None = None
    phase: str = ""
    deleting: bool = False
    owner: str = ""

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"

    @property
    def ref(self) -> ClaimRef:
        """How a volume refers to this claim."""
        return ClaimRef(self.namespace, self.name, self.uid)

    @property
    def bound(self) -> bool:
        """Whether the volume controller has finished binding it: a volume's name alone does not say so."""
        return bool(self.volume_name) and self.bind_completed


@dataclass(frozen=True, slots=True)
class StorageClass:
    """How volumes of the class come about; ``topologies`` (None: anywhere) are labels of the nodes that reach them."""

    kind: ClassVar[StorageKind] = StorageKind.CLASS

    name: str
    provisioner: str = ""
    waits_for_consumer: bool = False
    topologies: NodeSelector | None = None

    @property
    def key(self) -> str:
        """The name."""
        return self.name


@dataclass(frozen=True, slots=True)
class CSINode:
    """The CSI drivers on the node of this name, each with how many volumes it can attach (None: any number)."""

    kind: ClassVar[StorageKind] = StorageKind.CSI_NODE

    name: str
    limits: Mapping[str, int | None] = field(default_factory=dict)
    migrated: frozenset[str] = frozenset()  # in-tree plugins whose volumes CSI drivers handle there

    @property
    def key(self) -> str:
        """The node's name."""
        return self.name


@dataclass(frozen=True, slots=True)
class CSIDriver:
    """What a driver asks of schedulers."""

    kind: ClassVar[StorageKind] = StorageKind.CSI_DRIVER

    name: str
    tracks_capacity: bool = False
    needed_on_node: bool = False  # spec.preventPodSchedulingIfMissing

    @property
    def key(self) -> str:
        """The driver's name."""
        return self.name


@dataclass(frozen=True, slots=True)
class CSIStorageCapacity:
    """What a driver can still provision of a class for nodes with these labels (None: for no node)."""

    kind: ClassVar[StorageKind] = StorageKind.CAPACITY

    namespace: str
    name: str
    storage_class: str = ""
    capacity: Quantity | None = None
    largest_volume: Quantity | None = None
    topology: LabelSelector | None = None

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"

    @property
    def limit(self) -> int | None:
        """The size in bytes of the largest volume that can be provisioned, None if that is not known."""
        limit = self.capacity if self.largest_volume is None else self.largest_volume
        return None if limit is None else limit.value()


@dataclass(frozen=True, slots=True)
class VolumeAttachment:
    """A volume that is attached to a node, or about to be."""

    kind: ClassVar[StorageKind] = StorageKind.ATTACHMENT

    name: str
    attacher: str = ""
    node_name: str = ""
    volume_name: str = ""

    @property
    def key(self) -> str:
        """The name."""
        return self.name


StorageObject = (
    PersistentVolume
    | PersistentVolumeClaim
    | StorageClass
    | CSINode
    | CSIDriver
    | CSIStorageCapacity
    | VolumeAttachment
)
