"""Disks that cannot be shared, and pods without volumes."""

import pytest

from moorage.core.model.pod_volumes import NO_VOLUMES, ClaimUse, Disk, PodVolumes
from moorage.core.model.storage import InTreeSource

ONE, TWO = ("iscsi", "one"), ("iscsi", "two")


@pytest.mark.parametrize(
    ("a", "b", "conflict"),
    [
        (Disk((ONE,)), Disk((ONE,)), True),
        (Disk((ONE,)), Disk((TWO,)), False),
        (Disk((ONE,), shareable=True), Disk((ONE,)), True),
        (Disk((ONE,), shareable=True), Disk((ONE,), shareable=True), False),
        (Disk((ONE, TWO)), Disk((TWO,)), True),
    ],
)
def test_conflicts(a, b, conflict):
    assert a.conflicts(b) is conflict
    assert b.conflicts(a) is conflict


def test_only_a_pod_without_any_has_no_volumes():
    assert not NO_VOLUMES
    assert PodVolumes((ClaimUse("c"),))
    assert PodVolumes(disks=(Disk((ONE,)),))
    assert PodVolumes(in_tree=(InTreeSource("p", "d"),))
