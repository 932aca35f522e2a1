"""What may help a pod that spread kept off a node."""

from dataclasses import replace

import pytest

from moorage.core.framework.spread_hints import SpreadHints
from moorage.core.model.cluster_event import Action, ClusterEvent, Resource
from moorage.core.model.node import Node
from moorage.core.model.selector import LabelSelector
from moorage.core.model.spread import SYSTEM_DEFAULTS, SpreadConstraint, SpreadDefaults
from moorage.core.model.taint import Taint, Toleration
from moorage.core.model.workload import Workload, WorkloadKind
from tests.kit.models import label_in, make_pod, make_spec

WEB = LabelSelector((label_in("app", "web"),))
HINTS = SpreadHints(SYSTEM_DEFAULTS)
LISTED = SpreadHints(SpreadDefaults((SpreadConstraint("zone"),)))


def waiting(*constraints, **fields):
    spread = constraints or (SpreadConstraint("zone", selector=WEB), SpreadConstraint("rack", hard=False))
    return make_pod("w", labels=fields.pop("labels", {"app": "web"}), spec=make_spec(spread=spread, **fields))


def placed(app="web", **fields):
    return make_pod("p", node="a", labels={"app": app}, **fields)


def pod_event(old, new):
    return ClusterEvent(Resource.ASSIGNED_POD, Action.ADD, old, new)


@pytest.mark.parametrize(
    ("old", "new", "helps"),
    [
        (None, placed(), True),
        (None, placed("db"), False),
        (None, placed(namespace="other"), False),
        (placed(), None, True),
        (placed("db"), None, False),
        (placed("db"), placed(), True),
        (placed(), placed("db"), True),
        (placed("db"), placed("cache"), False),
        (placed(), placed(), False),
        (placed(), replace(placed(), labels={"app": "web", "other": "label"}), False),
    ],
)
def test_placed_pods_that_a_constraint_counts(old, new, helps):
    assert HINTS.after_assigned_pod(waiting(), pod_event(old, new)) is helps


def test_the_pod_itself():
    pod = waiting()
    event = ClusterEvent(Resource.PENDING_POD, Action.UPDATE_POD_LABEL, replace(pod, labels={}), pod)
    assert HINTS.after_own_change(pod, event)
    event = ClusterEvent(
        Resource.PENDING_POD, Action.UPDATE_POD_LABEL, replace(pod, labels={"app": "web", "x": ""}), pod
    )
    assert not HINTS.after_own_change(pod, event)


@pytest.mark.parametrize("honor", [False, True])
def test_tolerations_matter_where_taints_do(honor):
    constraint = SpreadConstraint("zone", selector=WEB, honor_taints=honor)
    old, new = waiting(constraint), waiting(constraint, tolerations=(Toleration("t"),))
    event = ClusterEvent(Resource.PENDING_POD, Action.UPDATE_POD_TOLERATIONS, old, new)
    assert HINTS.after_own_change(new, event) is honor
    same = ClusterEvent(Resource.PENDING_POD, Action.UPDATE_POD_OTHER, new, new)
    assert not HINTS.after_own_change(new, same)


def zoned(zone=None, *, taints=(), **labels):
    return Node("a", labels={**({"zone": zone} if zone else {}), **labels}, taints=taints)


@pytest.mark.parametrize(
    ("old", "new", "helps"),
    [
        (None, zoned("1"), True),
        (None, zoned(rack="1"), False),
        (zoned("1"), None, True),
        (zoned(), None, False),
        (zoned(), zoned("1"), True),
        (zoned("1"), zoned(), True),
        (zoned("1"), zoned("2"), True),
        (zoned("1"), zoned("1", rack="2"), False),
        (zoned("1"), zoned("1", taints=(Taint("t"),)), False),
        (zoned(), zoned(taints=(Taint("t"),)), False),
    ],
)
def test_nodes_that_have_every_key(old, new, helps):
    event = ClusterEvent(Resource.NODE, Action.ADD, old, new)
    assert HINTS.after_node(waiting(), event) is helps
    assert LISTED.after_node(make_pod("plain"), event) is helps


def test_a_node_must_have_the_keys_of_all_hard_constraints():
    pod = waiting(SpreadConstraint("zone", selector=WEB), SpreadConstraint("rack", selector=WEB))
    for node, helps in ((zoned("1"), False), (zoned(rack="1"), False), (zoned("1", rack="1"), True)):
        assert HINTS.after_node(pod, ClusterEvent(Resource.NODE, Action.ADD, None, node)) is helps


@pytest.mark.parametrize("honor", [False, True])
def test_a_node_that_begins_or_ceases_to_count(honor):
    """kube-scheduler overlooks labels other than the topology keys."""
    constraint = SpreadConstraint("zone", selector=WEB, honor_taints=honor, honor_affinity=honor)
    pod = waiting(constraint, node_selector={"pool": "mine"})
    mine, other = zoned("1", pool="mine"), zoned("1", pool="other")
    tainted = replace(mine, taints=(Taint("t"),))
    for old, new in ((mine, other), (other, mine), (mine, tainted), (tainted, mine)):
        assert HINTS.after_node(pod, ClusterEvent(Resource.NODE, Action.ADD, old, new)) is honor


@pytest.mark.parametrize(("app", "helps"), [("web", True), ("db", False)])
def test_a_pod_that_is_asked_to_go_counts_no_longer(app, helps):
    """kube-scheduler waits until it is gone."""
    old = placed(app)
    event = ClusterEvent(Resource.ASSIGNED_POD, Action.UPDATE_POD_DELETING, old, replace(old, deleting=True))
    assert HINTS.after_assigned_pod(waiting(), event) is helps


def test_other_values_of_match_label_keys_count_other_pods():
    """kube-scheduler looks at whether the pod counts itself only."""
    pod = waiting(SpreadConstraint("zone", selector=WEB, match_label_keys=("rev",)), labels={"rev": "1"})
    event = ClusterEvent(
        Resource.PENDING_POD, Action.UPDATE_POD_LABEL, pod, replace(pod, labels={"rev": "2"})
    )
    assert HINTS.after_own_change(event.new, event)


def test_pods_held_back_by_configured_defaults_wait_for_their_namespace():
    plain = make_pod("plain")
    assert LISTED.after_assigned_pod(plain, pod_event(None, placed("any")))
    assert not LISTED.after_assigned_pod(plain, pod_event(None, placed(namespace="other")))
    assert LISTED.after_own_change(
        plain, ClusterEvent(Resource.PENDING_POD, Action.UPDATE_POD_LABEL, plain, plain)
    )
    service = Workload(WorkloadKind.SERVICE, "default", "s")
    event = ClusterEvent(Resource.WORKLOAD, Action.UPDATE_OTHER, None, service)
    assert LISTED.after_workload(plain, event)
    assert not LISTED.after_workload(waiting(), event)
    assert not LISTED.after_workload(replace(plain, namespace="other"), event)
    gone = ClusterEvent(Resource.WORKLOAD, Action.DELETE, service, None)
    assert LISTED.after_workload(plain, gone)


def test_workloads_matter_only_where_defaults_can_reject():
    assert Resource.WORKLOAD not in {wakes.resource for wakes in HINTS.wakes_on()}
    assert Resource.WORKLOAD in {wakes.resource for wakes in LISTED.wakes_on()}
