"""Volumes of in-tree plugins as CSI drivers see them; the values are those of csi-translation-lib."""

import pytest

from moorage.core.model.csi_migration import (
    AWS_EBS,
    AZURE_DISK,
    BETA_REGION,
    BETA_ZONE,
    CINDER,
    GCE_PD,
    PORTWORX,
    REGION,
    ZONE,
    driver_of,
    inline_source,
    is_in_tree,
    migrated_affinity,
    migrates_affinity,
    volume_source,
)
from moorage.core.model.selector import NodeSelector, NodeSelectorTerm, Operator, Requirement
from moorage.core.model.storage import CSISource, InTreeSource
from tests.kit.volume_models import make_volume, on

EBS, GKE = "topology.ebs.csi.aws.com/zone", "topology.gke.io/zone"


def volume(plugin, disk="d", *, affinity=None, **labels):
    """A volume of an in-tree plugin."""
    names = {"zone": ZONE, "beta_zone": BETA_ZONE, "region": REGION, "beta_region": BETA_REGION}
    return make_volume(
        "v",
        source=InTreeSource(plugin, disk),
        labels={names[key]: value for key, value in labels.items()},
        node_affinity=affinity,
    )


@pytest.mark.parametrize(
    ("plugin", "driver"),
    [
        (GCE_PD, "pd.csi.storage.gke.io"),
        (AWS_EBS, "ebs.csi.aws.com"),
        (AZURE_DISK, "disk.csi.azure.com"),
        (CINDER, "cinder.csi.openstack.org"),
        (PORTWORX, "pxd.portworx.com"),
        ("kubernetes.io/azure-file", None),
        ("kubernetes.io/vsphere-volume", None),
    ],
)
def test_the_drivers_that_took_over(plugin, driver):
    assert is_in_tree(plugin)
    assert driver_of(plugin) == driver


def test_other_provisioners_are_no_in_tree_plugins():
    assert not is_in_tree("ebs.csi.aws.com")
    assert driver_of("ebs.csi.aws.com") is None


@pytest.mark.parametrize(
    ("disk", "handle"),
    [("vol-1", "vol-1"), ("anything", "anything"), ("aws://zone/vol-1", "vol-1"), ("aws:///vol-1", "vol-1")],
)
def test_ebs_volumes_go_by_their_id(disk, handle):
    assert inline_source(InTreeSource(AWS_EBS, disk)) == CSISource("ebs.csi.aws.com", handle)


@pytest.mark.parametrize("disk", ["aws://zone/x", "aws://zone/vol-1/more", "aws://[/vol-1"])
def test_what_is_no_ebs_volume_is_none_of_the_driver(disk):
    assert inline_source(InTreeSource(AWS_EBS, disk)) is None


@pytest.mark.parametrize(
    ("labels", "place"),
    [
        ({}, "zones/UNSPECIFIED"),
        ({"zone": "z1"}, "zones/z1"),
        ({"zone": "z1", "beta_zone": "z2"}, "zones/z2"),
        ({"zone": "eu-west-a__eu-west-b"}, "regions/eu-west"),
    ],
)
def test_gce_disks_are_named_with_their_place(labels, place):
    handle = f"projects/UNSPECIFIED/{place}/disks/d"
    assert volume_source(volume(GCE_PD, **labels)) == CSISource("pd.csi.storage.gke.io", handle)


@pytest.mark.parametrize("zones", ["a__b", "eu-west-a__us-east-b", "eu-west-a__"])
def test_a_gce_disk_in_several_regions_is_none(zones):
    assert volume_source(volume(GCE_PD, zone=zones)) is None


def test_a_gce_disk_in_a_pod_has_no_place():
    handle = "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d"
    assert inline_source(InTreeSource(GCE_PD, "d")) == CSISource("pd.csi.storage.gke.io", handle)


def test_csi_volumes_and_others_stay_what_they_are():
    source = CSISource("disk.test", "x")
    assert volume_source(make_volume("v", source=source)) == source
    assert volume_source(make_volume("v", source=None)) is None
    assert volume_source(volume("kubernetes.io/vsphere-volume")) is None


# -- where they can be reached -------------------------------------------------------------------


@pytest.mark.parametrize("key", [ZONE, BETA_ZONE])
def test_the_zone_goes_by_the_driver_s_label(key):
    assert migrated_affinity(volume(AWS_EBS, affinity=on(key, "z1"))) == on(EBS, "z1")


def test_the_newer_label_for_zones_counts_before_the_older():
    both = NodeSelector(
        (
            NodeSelectorTerm((Requirement(BETA_ZONE, Operator.IN, ("z1",)),)),
            NodeSelectorTerm((Requirement(ZONE, Operator.IN, ("z2",)),)),
        )
    )
    migrated = migrated_affinity(volume(GCE_PD, affinity=both))
    assert migrated is not None
    assert [term.expressions[0].key for term in migrated.terms] == [BETA_ZONE, GKE]


def test_without_a_zone_in_the_affinity_the_volume_s_labels_are_added():
    assert migrated_affinity(volume(GCE_PD, zone="b__a")) == on(GKE, "a", "b")
    hosts = on("host", "n1")
    added = migrated_affinity(volume(GCE_PD, affinity=hosts, beta_zone="a"))
    assert added is not None
    (term,) = added.terms
    assert term.expressions == (*hosts.terms[0].expressions, Requirement(GKE, Operator.IN, ("a",)))


def test_an_older_region_becomes_the_newer_one():
    term = NodeSelectorTerm(
        (Requirement(BETA_ZONE, Operator.IN, ("z1",)), Requirement(BETA_REGION, Operator.IN, ("r1",)))
    )
    migrated = migrated_affinity(volume(AWS_EBS, affinity=NodeSelector((term,))))
    assert migrated is not None
    assert [r.key for r in migrated.terms[0].expressions] == [EBS, REGION]


@pytest.mark.parametrize(
    "requirement", [Requirement(ZONE, Operator.EXISTS), Requirement("host", Operator.IN, ("a",))]
)
def test_without_values_and_labels_nothing_is_changed(requirement):
    affinity = NodeSelector((NodeSelectorTerm((requirement,)),))
    assert migrated_affinity(volume(AWS_EBS, affinity=affinity)) == affinity
    assert migrated_affinity(volume(AWS_EBS)) is None
    assert migrated_affinity(volume(AWS_EBS, zone="__")) is None


@pytest.mark.parametrize("plugin", [AZURE_DISK, PORTWORX, "kubernetes.io/vsphere-volume"])
def test_some_drivers_keep_kubernetes_labels(plugin):
    volume_there = volume(plugin, affinity=on(ZONE, "z1"))
    assert not migrates_affinity(volume_there)
    assert migrated_affinity(volume_there) == on(ZONE, "z1")


def test_csi_volumes_are_where_they_say():
    assert not migrates_affinity(make_volume("v", host="a"))
