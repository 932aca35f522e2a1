"""Pods that wait, as the stream and the lists show them."""

from dataclasses import replace
from typing import Any

import pytest

from moorage.core.model.events import (
    BindFailure,
    PendingListed,
    PodGone,
    PodLeftPending,
    PodPending,
)
from moorage.core.model.instructions import (
    Placement,
)
from moorage.core.model.taint import Toleration
from tests.core.driving import (
    bound_on_a,
    placed,
    plain,
)
from tests.kit.models import make_node, make_pod, make_spec, taint
from tests.kit.strategies import columns_of


@pytest.mark.parametrize("over", [{"deleting": True}, {"finished": True}], ids=["deleting", "finished"])
def test_pending_pods_that_are_over_are_not_tried(over: dict[str, Any]):
    driven = plain()
    driven.tell(make_node("a"), make_pod("web", **over))
    assert driven.run() == []
    pod = make_pod("other", cpu=5000)
    driven.tell(pod)
    driven.run()
    driven.tell(PodPending(replace(pod, **over)))
    assert driven.place_of(pod) == ""


def test_a_pending_pod_that_asks_for_less_is_tried_again():
    driven = plain()
    pod = make_pod("web", cpu=5000)
    driven.tell(make_node("a", cpu=1000), pod)
    driven.run()
    smaller = make_spec(cpu=500)
    driven.tell(replace(pod, spec=smaller, requests=smaller.requests))
    assert {"web": "a"} == driven.bound(seconds=1.0)


def test_a_toleration_added_to_the_pod_wakes_it():
    """Case B07."""
    driven = plain()
    pod = make_pod("web")
    driven.tell(make_node("a", taints=[taint("x")]), make_node("b", unschedulable=True), pod)
    assert driven.bound(seconds=20.0) == {}
    driven.tell(replace(pod, spec=make_spec(tolerations=(Toleration("x", "Exists"),))))
    assert {"web": "a"} == driven.bound()


def test_a_pod_deleted_while_it_is_being_bound():
    """DELETED on the narrowed stream says only that it left the selector: the bind's answer decides."""
    driven = plain()
    driven.tell(make_node("a", cpu=1000))
    pod = bound_on_a(driven, cpu=900)
    driven.tell(PodLeftPending(pod.ref))
    assert driven.run() == []
    assert driven.engine.stats()["assumed"] == 1
    driven.fail(pod, "a", BindFailure.GONE)
    assert driven.later(400.0) == []
    assert driven.engine.stats()["pods"] == 0
    driven.tell(make_pod("next", cpu=900))
    assert {"next": "a"} == driven.bound()


def test_leaving_the_narrowed_stream_in_flight_ends_nothing():
    """A successful bind looks like that, too: the room stays until the bound stream shows the pod."""
    driven = plain()
    driven.tell(make_node("a", cpu=1000))
    pod = bound_on_a(driven, cpu=900)
    driven.tell(PodLeftPending(pod.ref), make_pod("next", cpu=900))
    assert driven.bound() == {}
    driven.succeed(pod, "a")
    driven.tell(replace(pod, node_name="a"))
    assert driven.bound(seconds=30.0) == {}


def test_the_list_of_pending_pods_ends_what_a_broken_stream_left_behind():
    driven = plain()
    gone, here = make_pod("gone", cpu=5000), make_pod("here", cpu=5000)
    driven.tell(make_node("a"), gone, here)
    driven.run()
    driven.now += 10.0
    asked_at = driven.now
    driven.now += 1.0
    young = make_pod("young", cpu=5000)
    driven.tell(young, PendingListed(frozenset({here.uid}), asked_at))
    assert ["", "unschedulable", "active"] == [driven.place_of(p) for p in (gone, here, young)]


def test_a_name_used_again_with_a_new_uid():
    """The old pod's bind and the new pod's life are two things."""
    driven = plain()
    driven.tell(make_node("a", cpu=1000))
    old = bound_on_a(driven, cpu=400)
    new = make_pod("web", uid="uid-new", cpu=400)
    driven.tell(PodLeftPending(old.ref), new)
    assert [Placement(new.ref, "a")] == placed(driven.run())
    driven.fail(old, "a", BindFailure.GONE)
    driven.succeed(new, "a")
    driven.tell(PodGone(old.ref))
    assert columns_of(driven.engine.snapshot)["a"]["requested"]["cpu"] == 400
    driven.tell(replace(new, node_name="a"))
    assert driven.engine.stats()["pods"] == 1
