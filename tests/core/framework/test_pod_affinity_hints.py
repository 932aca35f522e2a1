"""What may help a pod that inter-pod affinity kept off a node."""

from dataclasses import replace

import pytest

from moorage.core.framework.pod_affinity_hints import after_namespace, after_node, labels_of, terms_of
from moorage.core.model.affinity import PodAffinity, PodAffinityTerm
from moorage.core.model.cluster_event import Action, ClusterEvent, Resource
from moorage.core.model.node import Node
from moorage.core.model.selector import LabelSelector
from moorage.core.model.workload import Namespace
from moorage.core.plugins.inter_pod_affinity import InterPodAffinity
from tests.kit.models import label_in, make_pod, make_spec

WEB, DB, TEAM = (LabelSelector((label_in(*pair),)) for pair in (("app", "web"), ("app", "db"), ("team", "a")))


def near(selector, **fields):
    return PodAffinity(required=(PodAffinityTerm("zone", selector, **fields),))


def away(selector, **fields):
    return PodAffinity(required_anti=(PodAffinityTerm("zone", selector, **fields),))


def waiting(affinity=None, app="web"):
    return make_pod("w", labels={"app": app}, pod_affinity=affinity)


def placed(app="db", affinity=None, namespace="default"):
    return make_pod("p", node="a", labels={"app": app}, pod_affinity=affinity, namespace=namespace)


def helps(pod, old, new, labels=None):
    """What the plugin's interests in placed pods come to."""
    action = Action.ADD if old is None else Action.DELETE if new is None else Action.UPDATE_POD_LABEL
    event = ClusterEvent(Resource.ASSIGNED_POD, action, old, new, labels)
    return any(
        interest.hint is None or interest.hint(pod, event)
        for interest in InterPodAffinity().wakes_on()
        if interest.resource is event.resource
        and interest.action & action
        and (interest.concerns is None or interest.concerns(event))
    )


@pytest.mark.parametrize(
    ("affinity", "old", "new", "expected"),
    [
        (near(DB), None, placed(), True),
        (near(DB), None, placed("other"), False),
        (near(DB), None, placed(namespace="other"), False),
        (near(DB), placed(), None, False),
        (near(DB), placed("other"), placed(), True),
        (near(DB), placed(), placed("other"), False),
        (away(DB), None, placed(), False),
        (away(DB), placed(), None, True),
        (away(DB), placed("other"), None, False),
        (away(DB), placed(), placed("other"), True),
        (away(DB), placed("other"), placed(), False),
        (None, placed(affinity=away(WEB)), None, True),
        (None, placed(affinity=away(DB)), None, False),
        (None, placed(affinity=near(WEB)), None, False),
        (None, None, placed(affinity=away(WEB)), False),
    ],
)
def test_placed_pods(affinity, old, new, expected):
    assert helps(waiting(affinity), old, new) is expected


def test_all_required_terms_must_be_satisfied_by_the_one_pod():
    both = PodAffinity(
        (PodAffinityTerm("zone", DB), PodAffinityTerm("zone", LabelSelector((label_in("tier", "b"),))))
    )
    assert not helps(waiting(both), None, placed())
    assert helps(waiting(both), None, replace(placed(), labels={"app": "db", "tier": "b"}))


def test_when_the_last_of_its_kind_goes_the_pod_may_be_the_first():
    """kube-scheduler leaves such a pod to the periodic flush."""
    self_affine = waiting(near(WEB))
    assert helps(self_affine, placed("web"), None)
    assert helps(self_affine, placed("web"), placed("other"))
    assert not helps(waiting(near(WEB), app="other"), placed("web"), None)


def test_namespaces_selected_by_labels():
    """kube-scheduler's hints never match these."""
    teams = {"blue": {"team": "a"}, "red": {"team": "b"}}
    pod = waiting(near(DB, namespace_selector=TEAM))
    assert helps(pod, None, placed(namespace="blue"), teams.__getitem__)
    assert not helps(pod, None, placed(namespace="red"), teams.__getitem__)
    assert helps(pod, None, placed(namespace="red"))  # nobody knows: better once too often
    carrier = placed(affinity=away(WEB, namespace_selector=TEAM), namespace="red")
    assert helps(replace(waiting(), namespace="blue"), carrier, None, teams.__getitem__)
    assert not helps(replace(waiting(), namespace="red"), carrier, None, teams.__getitem__)


def node(**labels):
    return Node("a", labels=labels)


@pytest.mark.parametrize(
    ("affinity", "old", "new", "expected"),
    [
        (near(DB), None, node(zone="1"), True),
        (near(DB), None, node(), False),
        (away(DB), None, node(), True),
        (None, None, node(), True),
        (near(DB), node(), node(zone="1"), True),
        (near(DB), node(zone="1"), node(zone="2"), True),
        (near(DB), node(zone="1"), node(zone="1", new="label"), False),
        (away(DB), node(zone="1"), node(), True),
        (away(DB), node(), node(zone="1"), False),
        (away(DB), node(zone="1"), node(zone="2"), True),
        (None, node(other="1"), node(other="2"), True),  # a term of another pod may be about that key
        (None, node(), node(other="1"), False),
        (None, node(zone="1"), None, True),
    ],
)
def test_nodes(affinity, old, new, expected):
    assert after_node(waiting(affinity), ClusterEvent(Resource.NODE, Action.ADD, old, new)) is expected


@pytest.mark.parametrize(
    ("affinity", "old", "new", "expected"),
    [
        (near(DB, namespace_selector=TEAM), {}, {"team": "a"}, True),
        (near(DB, namespace_selector=TEAM), None, {"team": "a"}, True),
        (away(DB, namespace_selector=TEAM), {"team": "a"}, {}, True),
        (near(DB, namespace_selector=TEAM), {}, {"team": "b"}, False),
        (near(DB, namespace_selector=LabelSelector()), {}, {"team": "a"}, False),
        (near(DB), {}, {"team": "a"}, False),
        (None, {}, {"team": "a"}, False),
    ],
)
def test_namespaces(affinity, old, new, expected):
    event = ClusterEvent(
        Resource.NAMESPACE,
        Action.UPDATE_OTHER,
        None if old is None else Namespace("blue", old),
        Namespace("blue", new),
    )
    assert after_namespace(waiting(affinity), event) is expected
    assert after_namespace(replace(waiting(affinity), namespace="blue"), event)


def test_labels_of_their_own_do_not_make_pods_differ():
    spec = make_spec(pod_affinity=PodAffinity((PodAffinityTerm("zone", WEB, match_label_keys=("rev",)),)))

    def key(**labels):
        return terms_of(make_pod("w", spec=spec, labels=labels))

    assert key(rev="1", unique="a") == key(rev="1", unique="b")
    assert len({key(rev="1"), key(rev="2"), key(rev="1", app="web")}) == 3
    shared = {"app": "web"}
    one, other = (make_pod(name, labels=shared) for name in "ab")
    assert labels_of(one) == labels_of(other) != labels_of(replace(one, namespace="blue"))
