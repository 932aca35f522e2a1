"""What affinity terms mean on the pod that carries them."""

import pytest

from moorage.core.model.affinity import PodAffinity, PodAffinityTerm, PodMatch, WeightedTerm
from moorage.core.model.selector import LabelSelector, Operator, Requirement
from tests.kit.models import label_in

WEB = LabelSelector((label_in("app", "web"),))
ALL = LabelSelector()


def test_the_own_namespace_is_meant_if_nothing_is_said():
    assert PodAffinityTerm("zone", WEB).meant("blue", {}) == PodMatch(frozenset(("blue",)), None, WEB)


@pytest.mark.parametrize(
    "fields", [{"namespaces": frozenset(("red",))}, {"namespace_selector": ALL}, {"namespace_selector": WEB}]
)
def test_what_is_said_of_namespaces_stands(fields):
    match = PodAffinityTerm("zone", WEB, **fields).meant("blue", {})
    assert match.namespaces == fields.get("namespaces", frozenset())
    assert match.namespace_selector == fields.get("namespace_selector")


def test_label_keys_are_merged_with_the_values_that_the_pod_has():
    term = PodAffinityTerm("zone", WEB, match_label_keys=("rev", "absent"), mismatch_label_keys=("tenant",))
    meant = term.meant("blue", {"rev": "2", "tenant": "t"})
    added = (label_in("rev", "2"), Requirement("tenant", Operator.NOT_IN, ("t",)))
    assert meant.selector == LabelSelector(WEB.requirements + added)


def test_a_missing_selector_stays_missing():
    assert PodAffinityTerm("zone", match_label_keys=("rev",)).meant("blue", {"rev": "2"}).selector is None


@pytest.mark.parametrize(
    ("match", "matched"),
    [
        (PodMatch(frozenset(("blue",)), None, WEB), True),
        (PodMatch(frozenset(("red",)), None, WEB), False),
        (PodMatch(frozenset(), ALL, WEB), True),
        (PodMatch(frozenset(), LabelSelector((label_in("team", "a"),)), WEB), True),
        (PodMatch(frozenset(), LabelSelector((label_in("team", "b"),)), WEB), False),
        (PodMatch(frozenset(("blue",)), LabelSelector((label_in("team", "b"),)), WEB), True),
        (PodMatch(frozenset(("blue",)), None, None), False),
        (PodMatch(frozenset(("blue",)), None, ALL), True),
        (PodMatch(frozenset(("blue",)), None, LabelSelector((label_in("app", "db"),))), False),
    ],
)
def test_which_pods_a_match_means(match, matched):
    assert match.matches("blue", {"app": "web"}, {"team": "a"}) is matched


def test_an_affinity_knows_the_labels_it_depends_on():
    affinity = PodAffinity(
        (PodAffinityTerm("zone", match_label_keys=("b",)),),
        (PodAffinityTerm("zone", mismatch_label_keys=("a", "b")),),
        preferred_anti=(WeightedTerm(1, PodAffinityTerm("zone", match_label_keys=("c",))),),
    )
    assert affinity.label_keys == ("a", "b", "c")
    assert PodAffinity((PodAffinityTerm("zone"),)).label_keys == ()
