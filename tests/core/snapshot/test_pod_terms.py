"""The affinity terms of pods that are placed, and whom they are about."""

from dataclasses import replace

import pytest

from moorage.core.model.affinity import PodAffinity, PodAffinityTerm, WeightedTerm
from moorage.core.model.node import Node
from moorage.core.model.selector import LabelSelector, Operator, Requirement
from moorage.core.model.workload import Namespace
from moorage.core.snapshot.pod_terms import PodTerms, TermKind
from moorage.core.snapshot.snapshot import Snapshot
from tests.kit.models import label_in, make_pod, make_spec

WEB, DB = (LabelSelector((label_in("app", app),)) for app in ("web", "db"))


@pytest.fixture
def snapshot():
    made = Snapshot()
    for row in range(4):
        made.set_node(Node(f"n{row}", labels={"zone": str(row % 2)}))
    return made


def away(selector, key="zone", **fields):
    return PodAffinity(required_anti=(PodAffinityTerm(key, selector, **fields),))


def carrier(name, affinity, **fields):
    return make_pod(name, pod_affinity=affinity, **fields)


def about(snapshot, labels=None, namespace="default", kind=TermKind.REPELS):
    labels = {"app": "web"} if labels is None else labels
    return snapshot.pod_terms.about(kind, namespace, labels, snapshot.namespaces)


def test_pods_without_terms_leave_no_trace(snapshot):
    snapshot.add_pod(0, make_pod("p"))
    assert len(snapshot.pod_terms) == 0


def test_a_term_is_kept_once_for_all_pods_that_carry_it(snapshot):
    shared = away(WEB)
    for row in range(3):
        snapshot.add_pod(row, carrier(f"p{row}", shared))
    snapshot.add_pod(0, carrier("equal", away(WEB)))
    (term,) = about(snapshot)
    assert term.rows == {0: 2, 1: 1, 2: 1}
    assert len(snapshot.pod_terms) == 1


def test_terms_are_about_those_they_mean(snapshot):
    snapshot.add_pod(0, carrier("p", away(WEB)))
    snapshot.add_pod(1, carrier("q", away(LabelSelector())))
    snapshot.add_pod(2, carrier("r", away(None)))
    snapshot.add_pod(3, carrier("s", away(LabelSelector((Requirement("app", Operator.EXISTS),)))))
    rows = lambda **asked: sorted(row for term in about(snapshot, **asked) for row in term.rows)  # noqa: E731
    assert rows() == [0, 1, 3]
    assert rows(labels={"app": "db"}) == [1, 3]
    assert rows(labels={}) == [1]
    assert rows(namespace="other") == []


def test_namespaces_may_be_selected_by_their_labels(snapshot):
    selected = LabelSelector((label_in("team", "a"),))
    snapshot.add_pod(0, carrier("p", away(WEB, namespace_selector=selected)))
    assert about(snapshot, namespace="blue") == []
    snapshot.namespaces.apply(Namespace("blue", {"team": "a"}))
    assert len(about(snapshot, namespace="blue")) == 1
    assert about(snapshot) == []


def test_kinds_and_weights(snapshot):
    near = PodAffinityTerm("zone", WEB)
    affinity = PodAffinity((near,), (near,), (WeightedTerm(5, near),), (WeightedTerm(7, near),))
    snapshot.add_pod(0, carrier("p", affinity))
    assert [len(about(snapshot, kind=kind)) for kind in TermKind] == [1, 1, 2]
    assert sorted(term.weight for term in about(snapshot, kind=TermKind.PREFERS)) == [-7, 5]


def test_label_keys_make_carriers_of_one_template_differ(snapshot):
    spec = make_spec(pod_affinity=away(WEB, match_label_keys=("rev",)))
    for row, rev in enumerate("112"):
        snapshot.add_pod(row, make_pod(f"p{row}", spec=spec, labels={"rev": rev}))
    (term,) = about(snapshot, {"app": "web", "rev": "1"})
    assert term.rows == {0: 1, 1: 1}


def test_domains_follow_the_carriers(snapshot):
    affinity = away(WEB)
    pods = [carrier(f"p{row}", affinity) for row in range(3)]
    snapshot.add_pod(0, pods[0])
    (term,) = about(snapshot)
    counts = snapshot.pod_terms.by_domain(term, snapshot.topology)
    assert counts.values.tolist() == [1, 0, 0]
    snapshot.add_pod(1, pods[1])
    snapshot.add_pod(2, pods[2])
    assert snapshot.pod_terms.by_domain(term, snapshot.topology) is counts
    assert counts.values.tolist() == [2, 1, 0]
    snapshot.remove_pod(0, pods[0])
    assert counts.values.tolist() == [1, 1, 0]
    snapshot.set_node(Node("n1", labels={"zone": "0"}))
    assert snapshot.pod_terms.by_domain(term, snapshot.topology).values.tolist() == [2, 0, 0]


def test_without_carriers_a_term_is_about_nobody(snapshot):
    pod = carrier("p", away(WEB))
    snapshot.add_pod(0, pod)
    snapshot.remove_pod(0, pod)
    assert about(snapshot) == []
    snapshot.add_pod(1, pod)
    assert [term.rows for term in about(snapshot)] == [{1: 1}]


def test_terms_change_with_the_labels_of_their_carrier(snapshot):
    pod = carrier("p", away(WEB, match_label_keys=("rev",)), labels={"rev": "1"})
    snapshot.add_pod(0, pod)
    changed = replace(pod, labels={"rev": "2"})
    snapshot.refresh_pod(0, changed)
    assert about(snapshot, {"app": "web", "rev": "1"}) == []
    assert len(about(snapshot, {"app": "web", "rev": "2"})) == 1
    snapshot.remove_pod(0, changed)
    assert about(snapshot, {"app": "web", "rev": "2"}) == []


def test_terms_change_with_the_template_of_their_carrier(snapshot):
    pod = carrier("p", away(WEB))
    snapshot.add_pod(0, pod)
    changed = replace(pod, spec=make_spec(pod_affinity=away(DB)))
    snapshot.refresh_pod(0, changed)
    assert (len(about(snapshot)), len(about(snapshot, {"app": "db"}))) == (0, 1)


def test_idle_terms_are_forgotten_the_oldest_first(snapshot, monkeypatch):
    monkeypatch.setattr(PodTerms, "IDLE", 2)
    pods = [carrier(f"p{n}", away(LabelSelector((label_in("app", f"app-{n}"),)))) for n in range(5)]
    for pod in pods:
        snapshot.add_pod(0, pod)
    for pod in pods:
        snapshot.remove_pod(0, pod)
    assert len(snapshot.pod_terms) == 2
    snapshot.add_pod(0, pods[3])
    snapshot.add_pod(0, pods[0])
    snapshot.remove_pod(0, pods[0])
    assert [bool(about(snapshot, {"app": f"app-{n}"})) for n in range(5)] == [
        False,
        False,
        False,
        True,
        False,
    ]


def test_vectors_are_bounded_but_counts_stay_right(snapshot, monkeypatch):
    monkeypatch.setattr(PodTerms, "LIMIT", 100)
    monkeypatch.setattr(PodTerms, "KEEP", 1)
    pods = [carrier(f"p{n}", away(LabelSelector((label_in("app", f"app-{n}"),)))) for n in range(8)]
    for number, pod in enumerate(pods):
        snapshot.add_pod(number % 4, pod)
    for _ in range(2):
        for number in range(8):
            (term,) = about(snapshot, {"app": f"app-{number}"})
            counts = snapshot.pod_terms.by_domain(term, snapshot.topology)
            assert counts.values[number % 2] == 1
    assert snapshot.pod_terms._bytes <= 100
    assert sum(term.nbytes for term in snapshot.pod_terms.of_kind(TermKind.REPELS)) <= 100
