"""Storage objects, from JSON."""

from typing import Any

import pytest

from moorage.adapters.kube.convert import MalformedObject
from moorage.adapters.kube.fields import Reader
from moorage.adapters.kube.storage_convert import STORAGE_RESOURCES, read_storage
from moorage.core.model.csi_migration import GCE_PD
from moorage.core.model.quantity import parse
from moorage.core.model.selector import LabelSelector, NodeSelector, NodeSelectorTerm, Operator, Requirement
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
    VolumeAttachment,
)

ZONE = Requirement("zone", Operator.IN, ("a",))
OLD_CLASS = "volume.beta.kubernetes.io/storage-class"


def read(kind, obj):
    """What the object is read as; nothing may be wrong with it."""
    reader = Reader()
    found = read_storage(kind, obj, reader)
    assert reader.problems == []
    return found


def meta(name="x", **fields):
    return {"name": name, "uid": f"uid-{name}", "resourceVersion": "7", **fields}


def test_a_whole_volume():
    term = {
        "matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}],
        "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}],
    }
    obj = {
        "metadata": meta(labels={"tier": "fast"}, deletionTimestamp="2026-01-01T00:00:00Z"),
        "spec": {
            "capacity": {"storage": "1500m"},
            "accessModes": ["ReadWriteOnce", "ReadOnlyMany"],
            "storageClassName": "local",
            "volumeMode": "Block",
            "volumeAttributesClassName": "gold",
            "claimRef": {"namespace": "default", "name": "c", "uid": "u"},
            "csi": {"driver": "disk.test", "volumeHandle": "h"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        },
        "status": {"phase": "Bound"},
    }
    found = read("PersistentVolume", obj)
    field = Requirement("metadata.name", Operator.IN, ("n",))
    assert found == PersistentVolume(
        "x",
        "uid-x",
        "7",
        {"tier": "fast"},
        "local",
        parse("1500m"),
        ("ReadWriteOnce", "ReadOnlyMany"),
        "Block",
        "gold",
        ClaimRef("default", "c", "u"),
        NodeSelector((NodeSelectorTerm((ZONE,), (field,)),)),
        "Bound",
        deleting=True,
        source=CSISource("disk.test", "h"),
    )
    assert found.resource_version == "7"


def test_a_terse_volume():
    found = read("PersistentVolume", {"metadata": {"name": "x"}, "spec": {"hostPath": {"path": "/mnt"}}})
    assert found == PersistentVolume("x")
    assert found.volume_mode == "Filesystem"


def test_a_volume_of_an_in_tree_plugin():
    found = read(
        "PersistentVolume", {"metadata": {"name": "x"}, "spec": {"gcePersistentDisk": {"pdName": "d"}}}
    )
    assert found.source == InTreeSource(GCE_PD, "d")


def test_affinity_without_terms_is_not_no_affinity():
    spec: Any = {"nodeAffinity": {"required": {"nodeSelectorTerms": []}}}
    assert read("PersistentVolume", {"metadata": {"name": "x"}, "spec": spec}).node_affinity == NodeSelector()
    spec = {"nodeAffinity": {}}
    assert read("PersistentVolume", {"metadata": {"name": "x"}, "spec": spec}).node_affinity is None


def test_a_whole_claim():
    obj = {
        "metadata": meta(
            namespace="team",
            annotations={"pv.kubernetes.io/bind-completed": "yes", "volume.kubernetes.io/selected-node": "n"},
            ownerReferences=[{"uid": "no"}, {"uid": "pod", "controller": True}],
        ),
        "spec": {
            "accessModes": ["ReadWriteOncePod"],
            "storageClassName": "late",
            "resources": {"requests": {"storage": "1Gi"}},
            "selector": {"matchLabels": {"zone": "a"}},
            "volumeName": "v",
        },
        "status": {"phase": "Bound"},
    }
    found = read("PersistentVolumeClaim", obj)
    assert found == PersistentVolumeClaim(
        "team",
        "x",
        "uid-x",
        "7",
        "late",
        parse("1Gi"),
        ("ReadWriteOncePod",),
        selector=LabelSelector((ZONE,)),
        volume_name="v",
        bind_completed=True,
        selected_node="n",
        phase="Bound",
        owner="pod",
    )


def test_a_terse_claim():
    found = read("PersistentVolumeClaim", {"metadata": {"name": "x"}})
    assert found == PersistentVolumeClaim("default", "x")
    assert found.request is None
    assert found.selected_node is None


@pytest.mark.parametrize("kind", ["PersistentVolume", "PersistentVolumeClaim"])
def test_the_older_annotation_of_a_class_counts_first(kind):
    metadata = {"name": "x", "annotations": {OLD_CLASS: "old"}}
    assert read(kind, {"metadata": metadata, "spec": {"storageClassName": "new"}}).storage_class == "old"
    metadata = {"name": "x", "annotations": {OLD_CLASS: ""}}
    assert read(kind, {"metadata": metadata, "spec": {"storageClassName": "new"}}).storage_class == ""


def test_sizes_are_whole_thousandths_as_the_api_server_keeps_them():
    spec = {"capacity": {"storage": "0.0001"}}
    assert read("PersistentVolume", {"metadata": {"name": "x"}, "spec": spec}).capacity == parse("1m")


def test_classes():
    obj = {
        "metadata": meta(),
        "provisioner": "disk.test",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowedTopologies": [{"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]}, {}],
    }
    topologies = NodeSelector((NodeSelectorTerm((ZONE,)), NodeSelectorTerm()))
    assert read("StorageClass", obj) == StorageClass(
        "x", "disk.test", waits_for_consumer=True, topologies=topologies
    )
    assert read("StorageClass", {"metadata": {"name": "x"}}) == StorageClass("x")
    assert read("StorageClass", {"metadata": {"name": "x"}, "allowedTopologies": []}).topologies is None


def test_csi_nodes():
    drivers = [
        {"name": "a", "allocatable": {"count": 3}},
        {"name": "b"},
        {"name": "c", "allocatable": {"count": 0}},
    ]
    annotations = {"storage.alpha.kubernetes.io/migrated-plugins": "p,q"}
    obj = {"metadata": meta(annotations=annotations), "spec": {"drivers": drivers}}
    assert read("CSINode", obj) == CSINode("x", {"a": 3, "b": None, "c": 0}, frozenset({"p", "q"}))
    assert read("CSINode", {"metadata": {"name": "x"}}) == CSINode("x")


def test_drivers():
    spec = {"storageCapacity": True, "preventPodSchedulingIfMissing": True}
    assert read("CSIDriver", {"metadata": {"name": "x"}, "spec": spec}) == CSIDriver("x", True, True)
    assert read("CSIDriver", {"metadata": {"name": "x"}}) == CSIDriver("x")


def test_capacities():
    obj = {
        "metadata": meta(namespace="kube-system"),
        "storageClassName": "late",
        "capacity": "4Gi",
        "maximumVolumeSize": "1Gi",
        "nodeTopology": {"matchLabels": {"zone": "a"}},
    }
    found = read("CSIStorageCapacity", obj)
    assert found == CSIStorageCapacity(
        "kube-system", "x", "late", parse("4Gi"), parse("1Gi"), LabelSelector((ZONE,))
    )
    terse = read("CSIStorageCapacity", {"metadata": {"name": "x"}, "nodeTopology": {}})
    assert terse == CSIStorageCapacity("default", "x", topology=LabelSelector())
    assert read("CSIStorageCapacity", {"metadata": {"name": "x"}}).topology is None


def test_attachments():
    spec = {"attacher": "d", "nodeName": "n", "source": {"persistentVolumeName": "v"}}
    assert read("VolumeAttachment", {"metadata": {"name": "x"}, "spec": spec}) == VolumeAttachment(
        "x", "d", "n", "v"
    )
    spec = {"attacher": "d", "nodeName": "n", "source": {"inlineVolumeSpec": {}}}
    assert read("VolumeAttachment", {"metadata": {"name": "x"}, "spec": spec}).volume_name == ""


def test_what_cannot_be_read_is_named():
    reader = Reader()
    terms = [{"matchExpressions": [{"operator": "Near"}]}]
    spec = {
        "capacity": {"storage": "much"},
        "accessModes": "all",
        "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
    }
    read_storage("PersistentVolume", {"metadata": {"name": "x", "labels": {"a": 1}}, "spec": spec}, reader)
    assert {path for path, _ in reader.problems} == {
        "metadata.labels.a",
        "spec.capacity.storage",
        "spec.accessModes",
        "spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].operator",
    }


@pytest.mark.parametrize("obj", [None, {}, {"metadata": []}, {"metadata": {}}, {"metadata": {"name": 1}}])
@pytest.mark.parametrize("kind", StorageKind)
def test_objects_without_an_identity(kind, obj):
    with pytest.raises(MalformedObject):
        read_storage(kind, obj, Reader())


def test_every_kind_has_a_reader_and_a_path():
    assert [resource.kind for resource in STORAGE_RESOURCES] == list(StorageKind)
    assert read_storage("Pod", {"metadata": {"name": "x"}}, Reader()) is None
    for resource in STORAGE_RESOURCES:
        assert read(resource.kind, {"metadata": {"name": "x"}}).kind is resource.kind
    assert [resource.resource for resource in STORAGE_RESOURCES][:3] == [
        "persistentvolumes",
        "persistentvolumeclaims",
        "storageclasses",
    ]
