"""The share of owners a canary applies to; the vectors were computed with sha256sum and a shell, not with this code."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.core.model.pod import OwnerRef
from moorage.core.model.policy import Policy, PolicyRef
from moorage.core.policy.canary import owner_key, place_of, takes_part
from tests.kit.models import make_pod

POLICY = Policy(PolicyRef("", "batch"), uid="11111111-2222-3333-4444-555555555555")


@pytest.mark.parametrize(
    ("owner", "place"),
    [
        ("team-a/ReplicaSet/web", 93),
        ("team-a/StatefulSet/db", 34),
        ("team-b/Job/nightly", 64),
        ("default/Pod/uid-1", 37),
    ],
)
def test_places_computed_by_hand(owner, place):
    assert place_of(POLICY, owner) == place


def test_a_policy_from_a_file_has_its_name_in_place_of_a_uid():
    cluster, tenant = Policy(PolicyRef("", "batch")), Policy(PolicyRef("team-a", "batch"))
    assert place_of(cluster, "x/Job/y") == 53
    assert place_of(tenant, "x/Job/y") == 77


def test_a_replica_set_counts_without_the_hash_of_its_template():
    owner = OwnerRef("ReplicaSet", "web-6d4cf56db6")
    labels = {"pod-template-hash": "6d4cf56db6"}
    assert (
        owner_key(make_pod("web-1", namespace="team-a", owner=owner, labels=labels))
        == "team-a/ReplicaSet/web"
    )
    other = OwnerRef("ReplicaSet", "web-77f9c")
    labels = {"pod-template-hash": "77f9c"}
    assert (
        owner_key(make_pod("web-2", namespace="team-a", owner=other, labels=labels))
        == "team-a/ReplicaSet/web"
    )


def test_only_a_replica_set_loses_the_hash():
    labels = {"pod-template-hash": "abc"}
    job = make_pod("j-1", owner=OwnerRef("Job", "nightly-abc"), labels=labels)
    bare = make_pod("w-1", owner=OwnerRef("ReplicaSet", "web-abc"))
    assert owner_key(job) == "default/Job/nightly-abc"
    assert owner_key(bare) == "default/ReplicaSet/web-abc"


def test_a_pod_without_an_owner_counts_by_itself():
    assert owner_key(make_pod("a", uid="uid-1")) == "default/Pod/uid-1"
    assert owner_key(make_pod("a", uid="")) == "default/Pod/Pod/default/a"


def test_without_a_percentage_all_take_part():
    assert takes_part(POLICY, "team-a/ReplicaSet/web")


@given(st.text(max_size=20), st.integers(0, 100), st.integers(0, 100))
def test_more_percent_only_add_owners(owner, fewer, more):
    fewer, more = min(fewer, more), max(fewer, more)
    canaries = [Policy(POLICY.ref, uid=POLICY.uid, canary_percent=percent) for percent in (fewer, more)]
    assert takes_part(canaries[0], owner) <= takes_part(canaries[1], owner)


def test_the_share_is_about_the_percentage():
    policy = Policy(POLICY.ref, uid=POLICY.uid, canary_percent=25)
    share = sum(takes_part(policy, f"ns/Job/{number}") for number in range(4000))
    assert 880 <= share <= 1120


def test_none_and_all():
    none, all_of_them = (Policy(POLICY.ref, uid="u", canary_percent=percent) for percent in (0, 100))
    for number in range(300):
        assert not takes_part(none, f"ns/Job/{number}")
        assert takes_part(all_of_them, f"ns/Job/{number}")


def test_the_digest_is_read_as_the_text_says():
    digest = hashlib.sha256(b"u/ns/Job/x").hexdigest()
    assert place_of(Policy(POLICY.ref, uid="u"), "ns/Job/x") == int(digest[:8], 16) % 100
