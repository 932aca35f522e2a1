"""What nodes offer: existing volumes first, the smallest that will do; else room to make one."""

from dataclasses import replace

import pytest

from moorage.core.framework.pod_claims import PodClaims
from moorage.core.framework.volume_matching import Offer, Provision, VolumeFinder, reachable
from moorage.core.model.csi_migration import GCE_PD, ZONE
from moorage.core.model.selector import LabelSelector, NodeSelector, NodeSelectorTerm, Operator, Requirement
from moorage.core.model.storage import ClaimRef, CSIDriver, InTreeSource, StorageClass
from moorage.core.snapshot.reservations import Reservation
from moorage.core.snapshot.storage import Storage
from tests.kit.volume_models import (
    HOST,
    LATE,
    LOCAL,
    label_selector,
    make_capacity,
    make_claim,
    make_volume,
    on,
)

HERE = {HOST: "a"}
NOBODY: frozenset[str] = frozenset()


def finder(*objects, bound=(), delayed=()):
    storage = Storage()
    for obj in (LATE, LOCAL, *objects, *bound, *delayed):
        storage.apply(obj)
    return VolumeFinder(PodClaims(tuple(bound), tuple(delayed)), storage)


def offer(*objects, labels=HERE, is_selected=False, migrated=NOBODY, **claims):
    return finder(*objects, **claims).offer(labels, migrated, is_selected=is_selected)


def chosen(made):
    return [(binding.claim.name, binding.volume.name) for binding in made.bindings]


# -- bound claims --------------------------------------------------------------------------------


def test_bound_volumes_must_be_there_and_within_reach():
    claim = make_claim("c", volume="v")
    assert offer(make_volume("v", host="a"), bound=[claim]) == Offer()
    assert offer(make_volume("v", host="b"), bound=[claim]) == Offer(unreachable=True)
    assert offer(bound=[claim]) == Offer(missing=True)


def test_of_several_the_first_that_will_not_do_counts():
    one, two = make_claim("one", volume="v"), make_claim("two", volume="gone")
    assert offer(make_volume("v", host="b"), bound=[one, two]) == Offer(unreachable=True)
    assert offer(make_volume("v", host="b"), bound=[two, one]) == Offer(missing=True)


def test_where_a_driver_took_over_its_labels_count():
    claim = make_claim("c", volume="v")
    volume = make_volume("v", source=InTreeSource(GCE_PD, "d"), node_affinity=on(ZONE, "z1"))
    labels = {"topology.gke.io/zone": "z1"}
    assert finder(volume, bound=[claim]).plugins == (GCE_PD,)
    assert offer(volume, bound=[claim], labels=labels, migrated=frozenset({GCE_PD})) == Offer()
    assert offer(volume, bound=[claim], labels=labels) == Offer(unreachable=True)
    assert finder(volume, bound=[claim]).keys == ("topology.gke.io/zone", ZONE)


# -- existing volumes ----------------------------------------------------------------------------


def test_the_smallest_volume_that_will_do_is_taken():
    volumes = [
        make_volume("big", capacity="3Gi"),
        make_volume("small"),
        make_volume("local", capacity="2Gi", host="a"),
    ]
    assert chosen(offer(*volumes, delayed=[make_claim("c", request="2Gi")])) == [("c", "local")]
    assert chosen(offer(*volumes, delayed=[make_claim("c")])) == [("c", "small")]
    assert chosen(offer(*volumes, labels={}, delayed=[make_claim("c", request="2Gi")])) == [("c", "big")]


def test_among_equals_the_name_decides():
    volumes = [make_volume("b"), make_volume("a", host="a"), make_volume("c")]
    assert chosen(offer(*volumes, delayed=[make_claim("c")])) == [("c", "a")]


@pytest.mark.parametrize(
    "fields",
    [
        {"capacity": "512Mi"},
        {"storage_class": "late"},
        {"access_modes": ("ReadOnlyMany",)},
        {"volume_mode": "Block"},
        {"attributes_class": "gold"},
        {"deleting": True},
        {"phase": "Released"},
        {"host": "b"},
        {"claim": make_claim("another")},
    ],
)
def test_volumes_that_will_not_do(fields):
    made = offer(make_volume("v", **fields), delayed=[make_claim("c")])
    assert made == Offer(unmatched=True)


def test_a_selector_is_about_the_volume_s_labels():
    claim = make_claim("c", selector=LabelSelector((Requirement("tier", Operator.IN, ("fast",)),)))
    assert chosen(offer(make_volume("v", labels={"tier": "fast"}), delayed=[claim])) == [("c", "v")]
    assert offer(make_volume("v", labels={"tier": "slow"}), delayed=[claim]) == Offer(unmatched=True)


def test_claims_are_served_from_the_smallest_on_and_no_volume_twice():
    claims = [make_claim("large", request="2Gi"), make_claim("small")]
    volumes = [make_volume("v1", capacity="2Gi"), make_volume("v2", capacity="3Gi")]
    assert chosen(offer(*volumes, delayed=claims)) == [("small", "v1"), ("large", "v2")]
    assert offer(volumes[0], delayed=claims) == Offer(
        unmatched=True, bindings=offer(volumes[0], delayed=claims).bindings
    )


@pytest.mark.parametrize("uid", ["", "uid-c"])
def test_a_volume_that_names_the_claim_comes_first_whatever_else_there_is(uid):
    named = replace(
        make_volume("named", capacity="9Gi", phase="Released"), claim=ClaimRef("default", "c", uid)
    )
    assert chosen(offer(named, make_volume("small"), delayed=[make_claim("c")])) == [("c", "named")]


def test_a_volume_that_names_the_claim_and_is_elsewhere_leaves_no_other():
    named = replace(make_volume("named", host="b"), claim=ClaimRef("default", "c"))
    assert offer(named, make_volume("small"), delayed=[make_claim("c")]) == Offer(unmatched=True)


def test_a_volume_that_names_the_claim_and_will_not_do_is_passed_over():
    named = replace(make_volume("named", volume_mode="Block"), claim=ClaimRef("default", "c"))
    assert chosen(offer(named, make_volume("small"), delayed=[make_claim("c")])) == [("c", "small")]


def test_what_was_promised_to_another_pod_is_taken():
    claim, rival = make_claim("c"), make_claim("rival")
    storage = Storage()
    for obj in (LOCAL, claim, rival, make_volume("v")):
        storage.apply(obj)
    made = VolumeFinder(PodClaims((), (rival,)), storage).offer(HERE, NOBODY, is_selected=False)
    storage.reservations.begin(Reservation("somebody", "n", made.bindings))
    again = VolumeFinder(PodClaims((), (claim,)), storage).offer(HERE, NOBODY, is_selected=False)
    assert again == Offer(unmatched=True)
    same = VolumeFinder(PodClaims((), (rival,)), storage).offer(HERE, NOBODY, is_selected=False)
    assert chosen(same) == [("rival", "v")]


# -- new volumes ---------------------------------------------------------------------------------

CLAIM = make_claim("c", storage_class="late")
TRACKING = CSIDriver("disk.test", tracks_capacity=True)


def test_what_cannot_be_bound_is_provisioned():
    assert offer(delayed=[CLAIM]) == Offer(provisions=(Provision(CLAIM),))
    assert offer(delayed=[make_claim("c")]) == Offer(unmatched=True)
    nameless = StorageClass("nameless", waits_for_consumer=True)
    assert offer(nameless, delayed=[make_claim("c", storage_class="nameless")]) == Offer(unmatched=True)


def test_some_are_bound_and_some_provisioned():
    local = make_claim("local")
    made = offer(make_volume("v"), delayed=[CLAIM, local])
    assert chosen(made) == [("local", "v")]
    assert made.provisions == (Provision(CLAIM),)


@pytest.mark.parametrize(("host", "fits"), [("a", True), ("b", False)])
def test_a_class_can_be_limited_to_some_nodes(host, fits):
    limited = replace(LATE, topologies=on(HOST, host))
    made = offer(limited, delayed=[CLAIM])
    assert made == (Offer(provisions=(Provision(CLAIM),)) if fits else Offer(unmatched=True))
    assert HOST in finder(limited, delayed=[CLAIM]).keys


@pytest.mark.parametrize(("is_selected", "fits"), [(True, True), (False, False)])
def test_a_node_selected_before_is_the_only_one(is_selected, fits):
    claim = replace(CLAIM, selected_node="a")
    assert finder(delayed=[claim]).selected_nodes == {"a"}
    made = offer(make_volume("v", storage_class="late"), delayed=[claim], is_selected=is_selected)
    assert made == (Offer(provisions=(Provision(claim),)) if fits else Offer(unmatched=True))


def test_selected_claims_are_provisioned_first():
    """Where both are lacking something, it is the selected claim's lack that is told."""
    selected = make_claim("selected", selected_node="a", request="9Gi")
    made = offer(TRACKING, delayed=[CLAIM, selected], is_selected=True)
    assert made == Offer(unmatched=True)
    assert offer(TRACKING, delayed=[CLAIM, make_claim("plain")]) == Offer(too_small=True)


@pytest.mark.parametrize(
    ("capacity", "fits"),
    [
        (make_capacity("x", "1Gi", host="a"), True),
        (make_capacity("x", "1Gi", topology=LabelSelector()), True),
        (make_capacity("x", "1Gi", topology=label_selector(Requirement(HOST, Operator.EXISTS))), True),
        (make_capacity("x", "1023Mi", host="a"), False),
        (make_capacity("x", "1Gi", host="b"), False),
        (make_capacity("x", "1Gi"), False),
        (make_capacity("x", None, host="a"), False),
        (make_capacity("x", "1Gi", host="a", storage_class="other"), False),
        (
            make_capacity("x", "9Gi", host="a", largest_volume=make_volume("v", capacity="1Mi").capacity),
            False,
        ),
    ],
)
def test_where_capacity_is_tracked_there_must_be_enough(capacity, fits):
    made = offer(TRACKING, capacity, delayed=[CLAIM])
    assert made == (Offer(provisions=(Provision(CLAIM, capacity),)) if fits else Offer(too_small=True))
    assert offer(CSIDriver("disk.test"), capacity, delayed=[CLAIM]) == Offer(provisions=(Provision(CLAIM),))


def test_of_several_capacities_the_first_by_name_that_is_enough():
    small = make_capacity("a", "1Mi", host="a")
    some = [make_capacity(name, "1Gi", topology=LabelSelector()) for name in "cd"]
    near = make_capacity("b", "1Gi", host="a")
    (provision,) = offer(TRACKING, small, *some, near, delayed=[CLAIM]).provisions
    assert provision.capacity == near


def test_a_claim_of_no_size_needs_no_room():
    claim = replace(CLAIM, request=None)
    assert offer(TRACKING, delayed=[claim]) == Offer(provisions=(Provision(claim),))
    assert chosen(offer(make_volume("v", storage_class="late", capacity="1"), delayed=[claim])) == [
        ("c", "v")
    ]


# -- where volumes are ---------------------------------------------------------------------------


def test_of_an_affinity_only_labels_count():
    named = NodeSelectorTerm((), (Requirement("metadata.name", Operator.IN, ("b",)),))
    assert reachable(make_volume("v", node_affinity=NodeSelector((named,))), HERE)
    both = replace(named, expressions=on(HOST, "b").terms[0].expressions)
    assert not reachable(make_volume("v", node_affinity=NodeSelector((both,))), HERE)
    assert not reachable(make_volume("v", node_affinity=NodeSelector((NodeSelectorTerm(),))), HERE)
    assert not reachable(make_volume("v", node_affinity=NodeSelector()), HERE)
    assert reachable(make_volume("v"), {})


def test_the_labels_that_matter():
    claim = make_claim("bound", volume="w")
    objects = [
        make_volume("v", storage_class="late", node_affinity=on("one", "x")),
        make_volume("w", node_affinity=on("two", "x")),
        make_capacity("x", "1Gi", topology=label_selector(Requirement("three", Operator.EXISTS))),
        make_volume("other", node_affinity=on("four", "x")),
    ]
    assert finder(*objects, bound=[claim], delayed=[CLAIM]).keys == ("one", "three", "two")
