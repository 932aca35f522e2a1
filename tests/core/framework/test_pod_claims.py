"""A pod's claims: what makes them unusable, and what is to be done about each."""

import pytest

from moorage.core.framework.pod_claims import claim_problem, claims_of
from moorage.core.snapshot.reservations import Reservation
from moorage.core.snapshot.storage import Storage
from tests.kit.volume_models import LATE, LOCAL, NOW, make_claim, with_claims


def store(*objects):
    storage = Storage()
    for obj in (LATE, LOCAL, NOW, *objects):
        storage.apply(obj)
    return storage


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        (None, 'persistentvolumeclaim "c" not found'),
        (
            make_claim("c", volume="v", phase="Lost"),
            'persistentvolumeclaim "c" bound to non-existent persistentvolume "v"',
        ),
        (make_claim("c", deleting=True), 'persistentvolumeclaim "c" is being deleted'),
        (make_claim("c"), ""),
        (make_claim("c", namespace="other"), 'persistentvolumeclaim "c" not found'),
    ],
)
def test_problems_of_claims(claim, text):
    assert claim_problem(with_claims("p", "c"), store(*([claim] if claim else []))) == text


@pytest.mark.parametrize(
    ("owner", "text"),
    [
        (None, 'waiting for ephemeral volume controller to create the persistentvolumeclaim "p-v"'),
        ("somebody", "PVC default/p-v was not created for pod default/p (pod is not owner)"),
        ("uid-p", ""),
    ],
)
def test_problems_of_ephemeral_claims(owner, text):
    objects = [] if owner is None else [make_claim("p-v", owner=owner)]
    assert claim_problem(with_claims("p", ephemeral=["p-v"]), store(*objects)) == text


def test_the_first_problem_counts():
    pod = with_claims("p", "good", "bad", "worse")
    assert claim_problem(pod, store(make_claim("good"), make_claim("bad", deleting=True))).endswith(
        "being deleted"
    )
    assert claim_problem(with_claims("p"), store()) == ""


@pytest.mark.parametrize(
    ("claim", "kind"),
    [
        (make_claim("c", volume="v"), "bound"),
        (make_claim("c", volume="v", bind_completed=False), "immediate"),
        (make_claim("c", storage_class="late"), "delayed"),
        (make_claim("c", storage_class="local"), "delayed"),
        (make_claim("c", storage_class="now"), "immediate"),
        (make_claim("c", storage_class=""), "immediate"),
        (make_claim("c", storage_class="gone"), "immediate"),
    ],
)
def test_what_is_to_be_done(claim, kind):
    claims = claims_of(with_claims("p", "c"), store(claim))
    assert {name: list(getattr(claims, name)) for name in ("bound", "delayed", "immediate")} == {
        "bound": [],
        "delayed": [],
        "immediate": [],
        kind: [claim],
    }


def test_what_was_promised_counts():
    claim = make_claim("c", storage_class="late")
    storage = store(claim)
    storage.reservations.begin(Reservation("somebody", "n", (), (claim,)))
    (found,) = claims_of(with_claims("p", "c"), storage).delayed
    assert found.selected_node == "n"
    assert claims_of(with_claims("p", "gone"), storage).delayed == ()
