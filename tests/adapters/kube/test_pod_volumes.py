"""The volumes of pods, from JSON."""

import pytest

from moorage.adapters.kube.fields import Reader
from moorage.adapters.kube.pod_volumes import read_pod_volumes
from moorage.core.model.csi_migration import AWS_EBS, AZURE_DISK, CINDER, GCE_PD, PORTWORX
from moorage.core.model.pod_volumes import NO_VOLUMES, ClaimUse, Disk, PodVolumes
from moorage.core.model.storage import InTreeSource


def read(*volumes):
    """What the volumes are read as; nothing may be wrong with them."""
    reader = Reader()
    found = read_pod_volumes([{"name": f"v{i}", **v} for i, v in enumerate(volumes)], "web-0", reader)
    assert reader.problems == []
    return found


def test_claims_come_in_the_order_of_the_volumes():
    found = read({"ephemeral": {}}, {"persistentVolumeClaim": {"claimName": "data"}}, {"emptyDir": {}})
    assert found.claims == (ClaimUse("web-0-v0", ephemeral=True), ClaimUse("data"))


@pytest.mark.parametrize(
    "volumes", [None, [], [{"name": "x", "configMap": {}}, {"name": "y", "csi": {"driver": "d"}}]]
)
def test_most_pods_have_none_that_matter(volumes):
    assert read_pod_volumes(volumes, "web-0", Reader()) is NO_VOLUMES


@pytest.mark.parametrize(
    ("volume", "disk"),
    [
        ({"gcePersistentDisk": {"pdName": "d"}}, Disk((("gcePersistentDisk", "d"),))),
        (
            {"gcePersistentDisk": {"pdName": "d", "readOnly": True}},
            Disk((("gcePersistentDisk", "d"),), shareable=True),
        ),
        (
            {"awsElasticBlockStore": {"volumeID": "d", "readOnly": True}},
            Disk((("awsElasticBlockStore", "d"),)),
        ),
        ({"iscsi": {"iqn": "i", "readOnly": True}}, Disk((("iscsi", "i"),), shareable=True)),
        (
            {"rbd": {"monitors": ["m", "n", "m"], "image": "i"}},
            Disk((("rbd", "m", "rbd", "i"), ("rbd", "n", "rbd", "i"))),
        ),
        (
            {"rbd": {"monitors": ["m"], "image": "i", "pool": "p", "readOnly": True}},
            Disk((("rbd", "m", "p", "i"),), shareable=True),
        ),
    ],
)
def test_disks_that_cannot_be_shared(volume, disk):
    assert read(volume).disks == (disk,)


@pytest.mark.parametrize(
    ("volume", "source"),
    [
        ({"gcePersistentDisk": {"pdName": "d"}}, InTreeSource(GCE_PD, "d")),
        ({"awsElasticBlockStore": {"volumeID": "d"}}, InTreeSource(AWS_EBS, "d")),
        ({"azureDisk": {"diskURI": "u"}}, InTreeSource(AZURE_DISK, "u")),
        ({"azureDisk": {"diskURI": "u", "kind": "Managed"}}, InTreeSource(AZURE_DISK, "u")),
        ({"cinder": {"volumeID": "d"}}, InTreeSource(CINDER, "d")),
        ({"portworxVolume": {"volumeID": "d"}}, InTreeSource(PORTWORX, "d")),
    ],
)
def test_disks_that_csi_drivers_attach(volume, source):
    assert read(volume).in_tree == (source,)


@pytest.mark.parametrize(
    "volume", [{"azureDisk": {"diskURI": "u", "kind": "Dedicated"}}, {"vsphereVolume": {}}]
)
def test_other_disks_of_old_are_nobody_s(volume):
    assert read(volume) is NO_VOLUMES


def test_what_cannot_be_read_is_named():
    reader = Reader()
    volumes = [
        {"name": "a", "persistentVolumeClaim": {"claimName": 7}},
        {"name": "b", "gcePersistentDisk": {"pdName": "d", "readOnly": "yes"}},
        {"name": "c", "rbd": []},
    ]
    found = read_pod_volumes(volumes, "p", reader)
    assert isinstance(found, PodVolumes)
    assert [path for path, _ in reader.problems] == [
        "spec.volumes[0].persistentVolumeClaim.claimName",
        "spec.volumes[1].gcePersistentDisk.readOnly",
        "spec.volumes[2].rbd",
    ]
