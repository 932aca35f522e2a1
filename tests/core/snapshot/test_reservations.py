"""Promises: who relies on what, and what is believed because of it."""

from dataclasses import replace

from moorage.core.model.storage import StorageKind
from moorage.core.snapshot.reservations import Binding, Reservation, Reservations
from tests.kit.volume_models import make_claim, make_volume

CLAIM, VOLUME = make_claim("c"), make_volume("v")
LATE = make_claim("late", storage_class="late")


def kept(reservations):
    """Everything that is remembered but how often it changed."""
    return {name: value for name, value in vars(reservations).items() if name != "epoch"}


def test_a_promise_is_kept_until_it_ends():
    reservations = Reservations()
    promise = Reservation("pod", "n", (Binding(CLAIM, VOLUME),), (LATE,))
    reservations.begin(promise)
    assert reservations.get("pod") is promise
    assert len(reservations) == 1
    assert reservations.volume(VOLUME).claim == CLAIM.ref
    assert reservations.claim(LATE).selected_node == "n"
    assert reservations.volumes_for(CLAIM.ref) == {"v"}
    assert reservations.concerned(StorageKind.VOLUME, "v") == {"pod"}
    reservations.end("pod")
    reservations.end("pod")
    assert reservations.volume(VOLUME) is VOLUME
    assert reservations.claim(LATE) is LATE
    assert kept(reservations) == kept(Reservations())


def test_a_new_promise_takes_the_place_of_the_old_one():
    reservations = Reservations()
    reservations.begin(Reservation("pod", "n", (), (LATE,)))
    reservations.begin(Reservation("pod", "m", (), (LATE,)))
    assert reservations.claim(LATE).selected_node == "m"
    reservations.end("pod")
    assert kept(reservations) == kept(Reservations())


def test_what_two_pods_rely_on_lasts_as_long_as_one_of_them_does():
    reservations = Reservations()
    reservations.begin(Reservation("one", "n", (Binding(CLAIM, VOLUME),), (LATE,)))
    believed = reservations.volume(VOLUME)
    reservations.begin(Reservation("two", "n", (Binding(CLAIM, believed),), (reservations.claim(LATE),)))
    reservations.end("one")
    assert reservations.volume(VOLUME).claim == CLAIM.ref
    assert reservations.claim(LATE).selected_node == "n"
    assert reservations.volumes_for(CLAIM.ref) == {"v"}
    reservations.end("two")
    assert kept(reservations) == kept(Reservations())


def test_a_promise_is_about_one_version():
    reservations = Reservations()
    reservations.begin(Reservation("one", "n", (Binding(CLAIM, VOLUME),)))
    newer = replace(VOLUME, resource_version="2")
    assert reservations.volume(newer) is newer
    reservations.begin(Reservation("two", "n", (Binding(CLAIM, newer),)))
    assert reservations.volume(newer).claim == CLAIM.ref
    reservations.end("two")
    reservations.end("one")
    assert kept(reservations) == kept(Reservations())


def test_what_a_promise_is_about():
    promise = Reservation("pod", "n", (Binding(CLAIM, VOLUME),), (LATE,))
    assert list(promise.objects()) == [
        (StorageKind.VOLUME, "v"),
        (StorageKind.CLAIM, "default/c"),
        (StorageKind.CLAIM, "default/late"),
    ]
