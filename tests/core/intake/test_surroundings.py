"""The engine where pods matter to pods: events that only matter to them, and who is woken by what."""

from dataclasses import replace

import pytest

from moorage.core.model.affinity import PodAffinity, PodAffinityTerm
from moorage.core.model.events import (
    BindSucceeded,
    NamespaceApplied,
    NamespaceGone,
    PodGone,
    WorkloadApplied,
    WorkloadGone,
)
from moorage.core.model.instructions import Bind
from moorage.core.model.selector import LabelSelector
from moorage.core.model.spread import HOSTNAME, ZONE, SpreadConstraint, SpreadDefaults
from moorage.core.model.workload import Namespace, Workload, WorkloadKind
from moorage.core.plugins.pod_topology_spread import PodTopologySpread
from tests.core.driving import Driven
from tests.kit.models import label_in, make_node, make_pod

WEB, DB = (LabelSelector((label_in("app", app),)) for app in ("web", "db"))
SERVICE = Workload(WorkloadKind.SERVICE, "default", "web", {"app": "web"})


def zoned(name, zone):
    return make_node(name, labels={HOSTNAME: name, ZONE: zone})


def pod(name, app="web", **fields):
    return make_pod(name, labels={"app": app}, **fields)


def near(selector=WEB, key=ZONE, **fields):
    return PodAffinity(required=(PodAffinityTerm(key, selector, **fields),))


def away(selector=WEB, key=ZONE, **fields):
    return PodAffinity(required_anti=(PodAffinityTerm(key, selector, **fields),))


def bound(told):
    return {p.ref.name: p.node_name for i in told if isinstance(i, Bind) for p in i.placements}


@pytest.fixture
def driven():
    made = Driven()
    made.tell(zoned("a", "1"), zoned("b", "2"))
    return made


def test_pods_decided_one_after_the_other_see_each_other(driven):
    for number in range(3):
        driven.tell(pod(f"p{number}", pod_affinity=away()))
    assert sorted(bound(driven.run()).values()) == ["a", "b"]


def test_a_pod_waits_for_its_partner_and_is_woken_when_the_partner_is_seen_bound(driven):
    follower = pod("follower", pod_affinity=near(DB, HOSTNAME))
    driven.tell(follower)
    assert bound(driven.run()) == {}
    partner = pod("partner", "db")
    driven.tell(partner)
    placed = bound(driven.run())
    driven.tell(replace(partner, node_name=placed["partner"]))
    assert bound(driven.later(15)) == {"follower": placed["partner"]}


def test_a_pod_is_woken_when_the_one_that_repels_it_goes(driven):
    guard = pod("guard", "db", node="a", pod_affinity=away(WEB, ZONE))
    other = replace(guard, uid="other", name="other", node_name="b")
    driven.tell(guard, other, pod("asking"))
    assert bound(driven.run()) == {}
    driven.tell(PodGone(other.ref))
    assert bound(driven.later(15)) == {"asking": "b"}


def test_namespace_labels_count_from_the_moment_they_are_seen(driven):
    team = LabelSelector((label_in("team", "a"),))
    driven.tell(NamespaceApplied(Namespace("blue")), NamespaceApplied(Namespace("default")))
    driven.tell(pod("partner", "db", node="b", namespace="blue"))
    driven.tell(pod("asking", pod_affinity=near(DB, namespace_selector=team)))
    assert bound(driven.run()) == {}
    driven.tell(NamespaceApplied(Namespace("blue", {"team": "b"})))
    assert bound(driven.later(15)) == {}
    driven.tell(NamespaceApplied(Namespace("blue", {"team": "a"})))
    assert bound(driven.later(15)) == {"asking": "b"}
    driven.tell(NamespaceGone("blue"), pod("late", pod_affinity=near(DB, namespace_selector=team)))
    assert bound(driven.run()) == {}


def test_unchanged_namespaces_and_workloads_wake_nobody(driven):
    driven.tell(NamespaceApplied(Namespace("default", {"a": "b"})), WorkloadApplied(SERVICE))
    driven.tell(pod("asking", pod_affinity=near(DB)))
    driven.run()
    driven.tell(NamespaceApplied(Namespace("default", {"a": "b"})), WorkloadApplied(SERVICE))
    assert driven.later(15) == []
    driven.tell(WorkloadGone(WorkloadKind.SERVICE, "default", "none"), NamespaceGone("none"))
    assert driven.later(15) == []


@pytest.mark.parametrize(("known", "placed"), [((), "bbbb"), ((WorkloadApplied(SERVICE),), "aabb")])
def test_pods_of_a_service_are_spread_by_default(driven, known, placed):
    """Without the Service the roomier node takes them all."""
    driven.tell(make_node("b", cpu=640_000, labels={HOSTNAME: "b", ZONE: "2"}), *known)
    for number in range(4):
        driven.tell(pod(f"p{number}", cpu=500))
    assert sorted(bound(driven.run()).values()) == list(placed)


def test_configured_defaults_hold_a_pod_back_until_its_service_is_gone():
    plugin = PodTopologySpread(SpreadDefaults((SpreadConstraint(ZONE),)))
    driven = Driven(plugin, without=["PodTopologySpread"])
    driven.tell(
        zoned("a", "1"), make_node("b", cpu=10, labels={HOSTNAME: "b", ZONE: "2"}), WorkloadApplied(SERVICE)
    )
    for number in range(3):
        driven.tell(pod(f"p{number}", cpu=500))
    assert bound(driven.run()) == {"p0": "a"}
    driven.tell(WorkloadGone(WorkloadKind.SERVICE, "default", "web"))
    assert set(bound(driven.later(30))) == {"p1", "p2"}


def test_a_pod_that_changes_its_labels_is_counted_as_it_is_now(driven):
    placed = pod("p", node="a")
    driven.tell(placed, pod("asking", pod_affinity=away(WEB, ZONE)))
    assert bound(driven.run()) == {"asking": "b"}
    driven.tell(pod("second", pod_affinity=away(WEB, ZONE)))
    assert bound(driven.run()) == {}
    driven.tell(replace(placed, labels={"app": "other"}))
    assert bound(driven.later(15)) == {"second": "a"}


def test_a_failed_bind_takes_the_pod_out_of_the_counts(driven):
    first = pod("p0", pod_affinity=away())
    driven.tell(first)
    node = bound(driven.run())["p0"]
    driven.tell(BindSucceeded(first.ref, node), PodGone(first.ref))
    for number in (1, 2):
        driven.tell(pod(f"p{number}", pod_affinity=away()))
    assert sorted(bound(driven.run()).values()) == ["a", "b"]


def test_a_pod_that_is_asked_to_go_makes_room_in_the_spread_at_once(driven):
    spread = (SpreadConstraint(ZONE, selector=WEB),)
    first, second = pod("p0", node="a"), pod("p1", node="b", cpu=3900)
    driven.tell(first, second, pod("asking", cpu=500, spread=spread))
    assert bound(driven.run()) == {"asking": "a"}
    driven.tell(pod("late", cpu=500, spread=spread))
    assert bound(driven.run()) == {}  # zone 1 has two, and node b no room
    driven.tell(replace(first, deleting=True))
    assert bound(driven.later(15)) == {"late": "a"}
