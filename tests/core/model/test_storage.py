"""What storage objects say about themselves."""

from dataclasses import replace

import pytest

from moorage.core.model.quantity import parse
from moorage.core.model.storage import (
    ClaimRef,
    CSIDriver,
    CSINode,
    StorageClass,
    StorageKind,
    VolumeAttachment,
)
from tests.kit.volume_models import make_capacity, make_claim, make_volume


@pytest.mark.parametrize(
    ("obj", "kind", "key"),
    [
        (make_volume("v"), StorageKind.VOLUME, "v"),
        (make_claim("c"), StorageKind.CLAIM, "default/c"),
        (StorageClass("s"), StorageKind.CLASS, "s"),
        (CSINode("n"), StorageKind.CSI_NODE, "n"),
        (CSIDriver("d"), StorageKind.CSI_DRIVER, "d"),
        (make_capacity("x", "1Gi"), StorageKind.CAPACITY, "default/x"),
        (VolumeAttachment("a"), StorageKind.ATTACHMENT, "a"),
    ],
)
def test_every_object_has_a_kind_and_a_key(obj, kind, key):
    assert (obj.kind, obj.key) == (kind, key)


def test_versions_are_no_difference():
    assert make_volume("v", version="1") == make_volume("v", version="2")
    assert make_claim("c", version="1") == make_claim("c", version="2")
    assert make_claim("c") != make_claim("c", request="2Gi")


@pytest.mark.parametrize(
    ("ref", "prebound"),
    [
        (None, False),
        (ClaimRef("default", "c", "uid-c"), True),
        (ClaimRef("default", "c"), True),
        (ClaimRef("default", "c", "another"), False),
        (ClaimRef("other", "c"), False),
        (ClaimRef("default", "d"), False),
    ],
)
def test_a_volume_is_for_a_claim_by_its_name_and_uid(ref, prebound):
    assert replace(make_volume("v"), claim=ref).prebound_to(make_claim("c")) is prebound


@pytest.mark.parametrize(
    ("volume", "completed", "bound"),
    [("v", True, True), ("v", False, False), ("", True, False), ("", False, False)],
)
def test_a_claim_is_bound_when_the_controller_says_so(volume, completed, bound):
    assert make_claim("c", volume=volume, bind_completed=completed).bound is bound


def test_the_largest_volume_counts_before_the_capacity():
    assert make_capacity("x", "4Gi").limit == 4 << 30
    assert make_capacity("x", "4Gi", largest_volume=parse("1Gi")).limit == 1 << 30
    assert make_capacity("x", None, largest_volume=parse("1Gi")).limit == 1 << 30
    assert make_capacity("x", None).limit is None


def test_references():
    claim = make_claim("c")
    assert claim.ref == ClaimRef("default", "c", "uid-c")
    assert claim.ref.key == claim.key
