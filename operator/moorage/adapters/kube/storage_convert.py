"""Storage objects, as raw JSON, to the core's.

What cannot be read is reported to the ``Reader`` and counts as absent; the caller decides whether an object with
problems is of any use.  Only an object without an identity raises ``MalformedObject``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from moorage.adapters.kube.convert import MalformedObject
from moorage.adapters.kube.fields import Reader, kind_of
from moorage.adapters.kube.pod_volumes import in_tree_source
from moorage.adapters.kube.selectors import read_label_selector, read_requirements
from moorage.core.model.quantity import Quantity, QuantityError, parse
from moorage.core.model.selector import NodeSelector, NodeSelectorTerm, Operator, Requirement
from moorage.core.model.storage import (
    ClaimRef,
    CSIDriver,
    CSINode,
    CSISource,
    CSIStorageCapacity,
    InTreeSource,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    StorageKind,
    StorageObject,
    VolumeAttachment,
)

BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
_OLD_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_MIGRATED: Final = "storage.alpha.kubernetes.io/migrated-plugins"

Obj = Mapping[str, Any]


def read_volume(obj: Obj, reader: Reader) -> PersistentVolume:
    """A PersistentVolume."""
    metadata, name = _identity(obj)
    spec = reader.mapping(obj.get("spec"), "spec")
    status = reader.mapping(obj.get("status"), "status")
    affinity = reader.mapping(spec.get("nodeAffinity"), "spec.nodeAffinity").get("required")
    annotations = reader.text_map(metadata.get("annotations"), "metadata.annotations")
    storage_class = annotations.get(_OLD_CLASS)
    if storage_class is None:
        storage_class = reader.text(spec.get("storageClassName"), "spec.storageClassName")
    return PersistentVolume(
        name=name,
        uid=reader.text(metadata.get("uid"), "metadata.uid"),
        resource_version=reader.text(metadata.get("resourceVersion"), "metadata.resourceVersion"),
        labels=reader.text_map(metadata.get("labels"), "metadata.labels"),
        storage_class=storage_class,
        capacity=_size(spec.get("capacity"), "spec.capacity", reader) or Quantity(0),
        access_modes=reader.texts(spec.get("accessModes"), "spec.accessModes"),
        volume_mode=reader.text(spec.get("volumeMode"), "spec.volumeMode") or "Filesystem",
        attributes_class=reader.text(spec.get("volumeAttributesClassName"), "spec.volumeAttributesClassName"),
        claim=_claim_ref(spec.get("claimRef"), reader),
        node_affinity=None if affinity is None else _node_selector(affinity, reader),
        phase=reader.text(status.get("phase"), "status.phase"),
        deleting=metadata.get("deletionTimestamp") is not None,
        source=_source(spec, reader),
    )


def read_claim(obj: Obj, reader: Reader) -> PersistentVolumeClaim:
    """A PersistentVolumeClaim."""
    metadata, name = _identity(obj)
    spec = reader.mapping(obj.get("spec"), "spec")
    status = reader.mapping(obj.get("status"), "status")
    annotations = reader.text_map(metadata.get("annotations"), "metadata.annotations")
    storage_class = annotations.get(_OLD_CLASS)
    if storage_class is None:
        storage_class = reader.text(spec.get("storageClassName"), "spec.storageClassName")
    resources = reader.mapping(spec.get("resources"), "spec.resources")
    return PersistentVolumeClaim(
        namespace=reader.text(metadata.get("namespace"), "metadata.namespace") or "default",
        name=name,
        uid=reader.text(metadata.get("uid"), "metadata.uid"),
        resource_version=reader.text(metadata.get("resourceVersion"), "metadata.resourceVersion"),
        storage_class=storage_class,
        request=_size(resources.get("requests"), "spec.resources.requests", reader),
        access_modes=reader.texts(spec.get("accessModes"), "spec.accessModes"),
        volume_mode=reader.text(spec.get("volumeMode"), "spec.volumeMode") or "Filesystem",
        attributes_class=reader.text(spec.get("volumeAttributesClassName"), "spec.volumeAttributesClassName"),
        selector=read_label_selector(spec.get("selector"), "spec.selector", reader),
        volume_name=reader.text(spec.get("volumeName"), "spec.volumeName"),
        bind_completed=BIND_COMPLETED in annotations,
        selected_node=annotations.get(SELECTED_NODE),
        phase=reader.text(status.get("phase"), "status.phase"),
        deleting=metadata.get("deletionTimestamp") is not None,
        owner=_controller(metadata.get("ownerReferences"), reader),
    )


def read_class(obj: Obj, reader: Reader) -> StorageClass:
    """A StorageClass; one that does not say binds at once, as the API server would write down."""
    _, name = _identity(obj)
    terms = tuple(
        NodeSelectorTerm(
            tuple(
                Requirement(
                    reader.text(item.get("key"), f"{at}.key"),
                    Operator.IN,
                    reader.texts(item.get("values"), f"{at}.values"),
                )
                for at, item in reader.objects(
                    term.get("matchLabelExpressions"), f"{path}.matchLabelExpressions"
                )
            )
        )
        for path, term in reader.objects(obj.get("allowedTopologies"), "allowedTopologies")
    )
    return StorageClass(
        name=name,
        provisioner=reader.text(obj.get("provisioner"), "provisioner"),
        waits_for_consumer=reader.text(obj.get("volumeBindingMode"), "volumeBindingMode")
        == "WaitForFirstConsumer",
        topologies=NodeSelector(terms) if terms else None,
    )


def read_csi_node(obj: Obj, reader: Reader) -> CSINode:
    """A CSINode."""
    metadata, name = _identity(obj)
    annotations = reader.text_map(metadata.get("annotations"), "metadata.annotations")
    spec = reader.mapping(obj.get("spec"), "spec")
    limits: dict[str, int | None] = {}
    for path, driver in reader.objects(spec.get("drivers"), "spec.drivers"):
        allocatable = reader.mapping(driver.get("allocatable"), f"{path}.allocatable")
        count = allocatable.get("count")
        limit = None if count is None else reader.whole(count, f"{path}.allocatable.count")
        limits[reader.text(driver.get("name"), f"{path}.name")] = limit
    migrated = annotations.get(_MIGRATED, "")
    return CSINode(name, limits, frozenset(migrated.split(",") if migrated else ()))


def read_csi_driver(obj: Obj, reader: Reader) -> CSIDriver:
    """A CSIDriver."""
    _, name = _identity(obj)
    spec = reader.mapping(obj.get("spec"), "spec")
    return CSIDriver(
        name,
        tracks_capacity=reader.flag(spec.get("storageCapacity"), "spec.storageCapacity"),
        needed_on_node=reader.flag(
            spec.get("preventPodSchedulingIfMissing"), "spec.preventPodSchedulingIfMissing"
        ),
    )


def read_capacity(obj: Obj, reader: Reader) -> CSIStorageCapacity:
    """A CSIStorageCapacity."""
    metadata, name = _identity(obj)
    return CSIStorageCapacity(
        namespace=reader.text(metadata.get("namespace"), "metadata.namespace") or "default",
        name=name,
        storage_class=reader.text(obj.get("storageClassName"), "storageClassName"),
        capacity=_quantity(obj.get("capacity"), "capacity", reader),
        largest_volume=_quantity(obj.get("maximumVolumeSize"), "maximumVolumeSize", reader),
        topology=read_label_selector(obj.get("nodeTopology"), "nodeTopology", reader),
    )


def read_attachment(obj: Obj, reader: Reader) -> VolumeAttachment:
    """A VolumeAttachment."""
    _, name = _identity(obj)
    spec = reader.mapping(obj.get("spec"), "spec")
    source = reader.mapping(spec.get("source"), "spec.source")
    return VolumeAttachment(
        name,
        attacher=reader.text(spec.get("attacher"), "spec.attacher"),
        node_name=reader.text(spec.get("nodeName"), "spec.nodeName"),
        volume_name=reader.text(source.get("persistentVolumeName"), "spec.source.persistentVolumeName"),
    )


@dataclass(frozen=True, slots=True)
class StorageResource:
    """How a kind of storage objects is listed, and read."""

    kind: StorageKind
    path: str
    read: Callable[[Obj, Reader], StorageObject]

    @property
    def resource(self) -> str:
        """The resource's name: ``persistentvolumes``."""
        return self.path.rpartition("/")[2]


#: Every kind, so that a front door needs no list of its own.
STORAGE_RESOURCES: Final[tuple[StorageResource, ...]] = (
    StorageResource(StorageKind.VOLUME, "/api/v1/persistentvolumes", read_volume),
    StorageResource(StorageKind.CLAIM, "/api/v1/persistentvolumeclaims", read_claim),
    StorageResource(StorageKind.CLASS, "/apis/storage.k8s.io/v1/storageclasses", read_class),
    StorageResource(StorageKind.CSI_NODE, "/apis/storage.k8s.io/v1/csinodes", read_csi_node),
    StorageResource(StorageKind.CSI_DRIVER, "/apis/storage.k8s.io/v1/csidrivers", read_csi_driver),
    StorageResource(StorageKind.CAPACITY, "/apis/storage.k8s.io/v1/csistoragecapacities", read_capacity),
    StorageResource(StorageKind.ATTACHMENT, "/apis/storage.k8s.io/v1/volumeattachments", read_attachment),
)
_READERS: Final = {resource.kind.value: resource.read for resource in STORAGE_RESOURCES}


def read_storage(kind: str, obj: Obj, reader: Reader) -> StorageObject | None:
    """A storage object of that kind, None if the kind is none of storage."""
    read = _READERS.get(kind)
    return None if read is None else read(obj, reader)


def _identity(obj: object) -> tuple[Mapping[str, Any], str]:
    metadata = obj.get("metadata") if isinstance(obj, Mapping) else None
    if not isinstance(metadata, Mapping):
        raise MalformedObject("metadata", f"must be an object, not {kind_of(metadata)}")
    name = metadata.get("name")
    if not isinstance(name, str) or not name:
        raise MalformedObject("metadata.name", "must be a string" if name else "is missing")
    return metadata, name


def _quantity(value: object, path: str, reader: Reader) -> Quantity | None:
    if value is None:
        return None
    try:
        return parse(value)
    except QuantityError as error:
        reader.report(path, str(error))
        return None


def _size(value: object, path: str, reader: Reader) -> Quantity | None:
    """The entry ``storage`` of a resource list, to which the API server allows thousandths of a byte."""
    size = _quantity(reader.mapping(value, path).get("storage"), f"{path}.storage", reader)
    return None if size is None else Quantity(size.millis * 10**6)


def _claim_ref(value: object, reader: Reader) -> ClaimRef | None:
    if value is None:
        return None
    ref = reader.mapping(value, "spec.claimRef")
    return ClaimRef(
        reader.text(ref.get("namespace"), "spec.claimRef.namespace"),
        reader.text(ref.get("name"), "spec.claimRef.name"),
        reader.text(ref.get("uid"), "spec.claimRef.uid"),
    )


def _node_selector(value: object, reader: Reader) -> NodeSelector:
    path = "spec.nodeAffinity.required.nodeSelectorTerms"
    terms = reader.mapping(value, "spec.nodeAffinity.required").get("nodeSelectorTerms")
    return NodeSelector(
        tuple(
            NodeSelectorTerm(
                tuple(read_requirements(term.get("matchExpressions"), f"{at}.matchExpressions", reader)),
                tuple(read_requirements(term.get("matchFields"), f"{at}.matchFields", reader)),
            )
            for at, term in reader.objects(terms, path)
        )
    )


def _source(spec: Obj, reader: Reader) -> CSISource | InTreeSource | None:
    if spec.get("csi") is None:
        return in_tree_source(spec, "spec", reader)
    csi = reader.mapping(spec["csi"], "spec.csi")
    return CSISource(
        reader.text(csi.get("driver"), "spec.csi.driver"),
        reader.text(csi.get("volumeHandle"), "spec.csi.volumeHandle"),
    )


def _controller(value: object, reader: Reader) -> str:
    """The UID of the controller among the owners."""
    for path, owner in reader.objects(value, "metadata.ownerReferences"):
        if owner.get("controller") is True:
            return reader.text(owner.get("uid"), f"{path}.uid")
    return ""
