"""How far a promise has come; the ways it can break have their scenes in tests/core/test_preparations.py."""

from dataclasses import replace

import pytest

from moorage.core.framework.interface import GivenUp, Progress
from moorage.core.framework.volume_progress import volume_progress
from moorage.core.model.csi_migration import GCE_PD, ZONE
from moorage.core.model.storage import InTreeSource, StorageKind
from moorage.core.snapshot.reservations import Binding, Reservation
from moorage.core.snapshot.storage import Storage
from tests.kit.models import make_node
from tests.kit.volume_models import bound, make_claim, make_csi_node, make_volume, on

NODE = make_node("a", labels={"topology.gke.io/zone": "z1"})
CLAIM = make_claim("c", storage_class="late")
SELECTED = replace(CLAIM, selected_node="a")


def progress(*objects, bindings=(), provisions=(), written=()):
    storage = Storage()
    for obj in objects:
        storage.apply(obj)
    promise = Reservation("pod", "a", tuple(bindings), tuple(provisions))
    promise.written = None if written is None else dict(written)
    return volume_progress(promise, NODE, storage)


def test_nothing_is_looked_at_before_it_is_written():
    assert progress(provisions=[CLAIM], written=None) is Progress.UNDER_WAY


@pytest.mark.parametrize(
    ("shown", "ours", "answer"),
    [
        ("9", "10", Progress.UNDER_WAY),
        ("10", "10", GivenUp('provisioning failed for PVC "c"')),
        ("11", "10", GivenUp('provisioning failed for PVC "c"')),
        ("abc", "abd", Progress.UNDER_WAY),
        ("abd", "abd", GivenUp('provisioning failed for PVC "c"')),
    ],
)
def test_versions_are_numbers_and_old_news_is_none(shown, ours, answer):
    written = [((StorageKind.CLAIM, "default/c"), ours)]
    assert progress(replace(CLAIM, resource_version=shown), provisions=[CLAIM], written=written) == answer


def test_what_needed_no_write_is_judged_as_it_is():
    assert progress(SELECTED, provisions=[CLAIM]) is Progress.UNDER_WAY
    done = bound(SELECTED, "v")
    assert progress(done, make_volume("v", claim=CLAIM), provisions=[CLAIM]) is Progress.DONE


def test_everything_must_be_done():
    local, volume = make_claim("local"), make_volume("v")
    binding = Binding(local, volume)
    mine = replace(volume, claim=local.ref)
    ready = [bound(SELECTED, "w"), make_volume("w", claim=CLAIM)]
    assert progress(mine, local, *ready, bindings=[binding], provisions=[CLAIM]) is Progress.UNDER_WAY
    assert progress(mine, bound(local, "v"), *ready, bindings=[binding], provisions=[CLAIM]) is Progress.DONE


def test_where_a_driver_took_over_its_labels_count():
    disk = make_volume("v", source=InTreeSource(GCE_PD, "d"), node_affinity=on(ZONE, "z1"), claim=CLAIM)
    objects = [bound(SELECTED, "v"), disk]
    assert isinstance(progress(*objects, provisions=[CLAIM]), GivenUp)
    assert progress(*objects, make_csi_node("a", [GCE_PD]), provisions=[CLAIM]) is Progress.DONE
