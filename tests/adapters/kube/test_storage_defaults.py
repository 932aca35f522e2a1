"""What the volume controller would have done to the objects of a file."""

from dataclasses import replace
from typing import Any

import pytest

from moorage.adapters.kube.storage_defaults import complete_storage
from moorage.core.model.storage import ClaimRef
from tests.kit.volume_models import LATE, make_claim, make_volume


def complete(objects) -> Any:
    """The completed objects, whatever each of them is."""
    return complete_storage(objects)


CLAIM = replace(make_claim("c", volume="v"), bind_completed=False)


def test_a_volume_that_does_not_say_so_is_available():
    volumes = [make_volume("v", phase=""), make_volume("w", phase="Released")]
    assert [volume.phase for volume in complete(volumes)] == ["Available", "Released"]


@pytest.mark.parametrize("ref", [None, ClaimRef("default", "c"), ClaimRef("default", "c", "uid-c")])
@pytest.mark.parametrize("turned", [False, True])
def test_a_claim_that_says_it_is_bound_is_bound_on_both_sides(ref, turned):
    objects: list[Any] = [LATE, CLAIM, replace(make_volume("v", phase=""), claim=ref)]
    if turned:
        objects.reverse()
    done = complete(objects)
    assert [obj.key for obj in done] == [obj.key for obj in objects]
    by_name = {obj.name: obj for obj in done}
    assert by_name["c"].bound
    assert (by_name["v"].claim, by_name["v"].phase) == (CLAIM.ref, "Bound")


def test_what_is_another_s_stays_another_s():
    other = replace(make_volume("v", phase=""), claim=ClaimRef("default", "other"))
    _, volume = complete([CLAIM, other])
    assert (volume.claim, volume.phase) == (ClaimRef("default", "other"), "Bound")


def test_a_claim_that_is_not_bound_is_left_alone():
    pending = replace(CLAIM, phase="Pending")
    claim, volume = complete([pending, make_volume("v", phase="")])
    assert claim == pending
    assert volume.claim is None
    assert complete([CLAIM])[0].bound
