"""Which pods belong together, by Services and controllers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.core.model.pod import OwnerRef
from moorage.core.model.pod_query import PodQuery
from moorage.core.model.selector import LabelSelector, Operator, Requirement
from moorage.core.model.workload import Workload, WorkloadKind
from moorage.core.snapshot.workloads import Workloads
from tests.kit.models import label_in, make_pod
from tests.kit.peers import World, default_selector, peer_pods, workloads

SERVICE, RC, RS, STS = WorkloadKind


def of(*known):
    found = Workloads()
    for workload in known:
        found.apply(workload)
    return found


def web(owner=None, **labels):
    return make_pod("p", labels={"app": "web", **labels}, owner=owner)


def asks(*requirements):
    return PodQuery(frozenset(("default",)), LabelSelector(requirements), terminating=False)


@given(st.lists(workloads(), max_size=5), peer_pods("p"))
def test_the_selector_is_the_reference_s(known, pod):
    last = {(w.kind, w.namespace, w.name): w for w in known}
    expected = default_selector(pod, World(workloads=tuple(last.values())))
    query = of(*known).peers(pod)
    found = LabelSelector() if query is None else query.selector
    assert {(r.key, r.operator, r.values) for r in expected.requirements} == {
        (r.key, r.operator, r.values) for r in found.requirements
    }
    assert query is None or (query.namespaces, query.terminating) == ({pod.namespace}, False)


def test_all_services_of_the_pod_count():
    known = of(
        Workload(SERVICE, "default", "web", {"app": "web"}),
        Workload(SERVICE, "default", "front", {"tier": "f"}),
        Workload(SERVICE, "default", "other", {"app": "other"}),
        Workload(SERVICE, "blue", "web", {"zone": "z"}),
    )
    assert known.peers(web(tier="f", zone="z")) == asks(label_in("app", "web"), label_in("tier", "f"))
    assert known.peers(web()) == asks(label_in("app", "web"))
    assert known.peers(make_pod("p")) is None


def test_a_service_without_a_selector_has_no_pods():
    assert of(Workload(SERVICE, "default", "web")).peers(web()) is None


def test_a_controller_s_expressions_are_added():
    expression = Requirement("rev", Operator.EXISTS)
    known = of(
        Workload(SERVICE, "default", "web", {"app": "web"}),
        Workload(RS, "default", "web-1", selector=LabelSelector((label_in("app", "web"), expression))),
    )
    owner = OwnerRef("ReplicaSet", "web-1", "", "apps/v1")
    assert known.peers(web(owner)) == asks(label_in("app", "web"), label_in("app", "web"), expression)


@pytest.mark.parametrize(
    ("kind", "version", "known"),
    [
        ("ReplicaSet", "apps/v1", True),
        ("StatefulSet", "apps/v1", True),
        ("StatefulSet", "", True),
        ("StatefulSet", "apps.kruise.io/v1beta1", False),
        ("ReplicationController", "v1", True),
        ("ReplicationController", "apps/v1", False),
        ("Job", "batch/v1", False),
    ],
)
def test_the_owner_must_be_of_kubernetes_own_kind(kind, version, known):
    selector = LabelSelector((label_in("app", "web"),))
    sets = of(
        Workload(RS, "default", "it", selector=selector),
        Workload(STS, "default", "it", selector=selector),
        Workload(RC, "default", "it", {"app": "web"}),
    )
    assert (sets.peers(web(OwnerRef(kind, "it", "", version))) is not None) is known


def test_an_unknown_owner_adds_nothing():
    known = of(Workload(RS, "default", "web-1", selector=LabelSelector((label_in("app", "web"),))))
    assert known.peers(web(OwnerRef("ReplicaSet", "web-2"))) is None


def test_answers_follow_changes_of_services_and_controllers():
    pod = web(OwnerRef("ReplicaSet", "web-1"))
    known = Workloads()
    assert known.peers(pod) is None
    assert known.apply(Workload(SERVICE, "default", "web", {"app": "web"}))
    assert known.peers(pod) == asks(label_in("app", "web"))
    assert not known.apply(Workload(SERVICE, "default", "web", {"app": "web"}))
    assert known.apply(Workload(SERVICE, "default", "web", {"app": "other"}))
    assert known.peers(pod) is None
    controller = Workload(RS, "default", "web-1", selector=LabelSelector((label_in("a", "b"),)))
    assert known.apply(controller)
    assert known.peers(pod) == asks(label_in("a", "b"))
    assert not known.apply(controller)
    assert len(known) == 2
    assert known.remove(RS, "default", "web-1") == controller
    assert known.peers(pod) is None
    assert known.remove(RS, "default", "web-1") is None
    assert known.remove(SERVICE, "default", "web") == Workload(SERVICE, "default", "web", {"app": "other"})
    assert known.remove(SERVICE, "default", "web") is None
    assert len(known) == 0


def test_remembered_answers_are_bounded_and_tell_label_sets_apart(monkeypatch):
    monkeypatch.setattr(Workloads, "_KEPT", 2)
    known = of(Workload(SERVICE, "default", "web", {"app": "web"}))
    pods = [web(n=str(n)) if n % 2 else make_pod("q", labels={"n": str(n)}) for n in range(6)]
    assert [known.peers(pod) is not None for pod in pods] == [False, True] * 3
    assert len(known._answers) <= 2
