"""Inter-pod affinity as JSON."""

from hypothesis import given

from moorage.adapters.kube.fields import Reader
from moorage.adapters.kube.pod_affinity import read_pod_affinity
from moorage.core.model.affinity import PodAffinity, PodAffinityTerm, WeightedTerm
from moorage.core.model.selector import LabelSelector, Operator, Requirement
from tests.adapters.kube.test_fields import anything
from tests.kit.models import label_in

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
WEB = {"matchLabels": {"app": "web"}}


def read(**affinity):
    reader = Reader()
    return read_pod_affinity(affinity, "spec.affinity", reader), reader.problems


def one(**term):
    affinity, problems = read(podAffinity={REQUIRED: [term]})
    assert problems == []
    (found,) = affinity.required
    return found


def test_nothing_is_none():
    assert read() == (None, [])
    assert read(podAffinity=None, podAntiAffinity={REQUIRED: [], PREFERRED: None}) == (None, [])


def test_each_term_in_its_place():
    affinity, problems = read(
        podAffinity={
            REQUIRED: [{"topologyKey": "a"}],
            PREFERRED: [{"weight": 1, "podAffinityTerm": {"topologyKey": "b"}}],
        },
        podAntiAffinity={
            REQUIRED: [{"topologyKey": "c"}],
            PREFERRED: [{"weight": 100, "podAffinityTerm": {"topologyKey": "d"}}],
        },
    )
    assert problems == []
    assert affinity == PodAffinity(
        (PodAffinityTerm("a"),),
        (PodAffinityTerm("c"),),
        (WeightedTerm(1, PodAffinityTerm("b")),),
        (WeightedTerm(100, PodAffinityTerm("d")),),
    )


def test_a_whole_term():
    found = one(topologyKey="zone", labelSelector=WEB, namespaces=["b", "a"], namespaceSelector={})
    assert found == PodAffinityTerm(
        "zone", LabelSelector((label_in("app", "web"),)), frozenset("ab"), LabelSelector()
    )


def test_null_is_not_empty():
    assert (one().selector, one(labelSelector={}).selector) == (None, LabelSelector())
    assert (one().namespace_selector, one(namespaceSelector={}).namespace_selector) == (None, LabelSelector())
    assert one(namespaces=[]).namespaces == one().namespaces == frozenset()


def test_label_keys_that_were_not_merged_yet():
    found = one(labelSelector=WEB, matchLabelKeys=["rev"], mismatchLabelKeys=["tenant"])
    assert (found.match_label_keys, found.mismatch_label_keys) == (("rev",), ("tenant",))
    assert one(matchLabelKeys=["rev"]).match_label_keys == ()  # without a selector nothing is meant anyway


def test_label_keys_that_the_api_server_has_merged():
    selector = {
        **WEB,
        "matchExpressions": [
            {"key": "rev", "operator": "In", "values": ["2"]},
            {"key": "tenant", "operator": "NotIn", "values": ["t"]},
        ],
    }
    found = one(labelSelector=selector, matchLabelKeys=["rev", "absent"], mismatchLabelKeys=["tenant"])
    assert (found.match_label_keys, found.mismatch_label_keys) == (("absent",), ())
    assert found.selector.requirements[1:] == (
        label_in("rev", "2"),
        Requirement("tenant", Operator.NOT_IN, ("t",)),
    )


def test_problems_name_the_field():
    _, problems = read(
        podAffinity={PREFERRED: [{"weight": "1", "podAffinityTerm": {"topologyKey": 1, "namespaces": "a"}}]},
        podAntiAffinity=[],
    )
    at = f"spec.affinity.podAffinity.{PREFERRED}[0]"
    assert [path for path, _ in problems] == [
        "spec.affinity.podAntiAffinity",
        f"{at}.weight",
        f"{at}.podAffinityTerm.topologyKey",
        f"{at}.podAffinityTerm.namespaces",
    ]


@given(anything, anything)
def test_whatever_comes_it_does_not_raise(near, away):
    hash(read(podAffinity=near, podAntiAffinity=away)[0])
    hash(read(podAffinity={REQUIRED: [near], PREFERRED: [away]})[0])
