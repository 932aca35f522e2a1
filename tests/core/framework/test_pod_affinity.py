"""A pod's own terms, worked out once for alike pods."""

from hypothesis import given

from moorage.core.framework.pod_affinity import NO_TERMS, conjunction, own_terms
from moorage.core.model.affinity import PodAffinity, PodAffinityTerm, WeightedTerm
from moorage.core.model.pod_query import PodQuery
from moorage.core.model.selector import LabelSelector
from moorage.core.model.workload import Namespace
from moorage.core.snapshot.namespaces import Namespaces
from tests.kit.models import label_in, make_pod, make_spec
from tests.kit.peers import World, peer_pods, term_means

WEB, FRONT, TEAM = (
    LabelSelector((label_in(*pair),)) for pair in (("app", "web"), ("tier", "f"), ("team", "a"))
)


def pod_with(name="p", namespace="default", labels=None, **terms):
    return make_pod(name, namespace=namespace, labels=labels or {}, pod_affinity=PodAffinity(**terms))


def known(*namespaces):
    found = Namespaces()
    for namespace in namespaces:
        found.apply(namespace)
    return found


def test_a_pod_without_affinity_has_no_terms():
    assert own_terms(make_pod("p")) is NO_TERMS


def test_alike_pods_share_the_work_and_others_do_not():
    spec = make_spec(pod_affinity=PodAffinity((PodAffinityTerm("zone", WEB, match_label_keys=("rev",)),)))

    def of(namespace, rev):
        return own_terms(make_pod("p", spec=spec, namespace=namespace, labels={"rev": rev, "unique": "p"}))

    assert of("a", "1") is of("a", "1")
    assert of("a", "1") is not of("a", "2")
    assert of("a", "1") is not of("b", "1")
    assert of("b", "2").required[0].query == PodQuery(
        frozenset(("b",)), LabelSelector((*WEB.requirements, label_in("rev", "2")))
    )


def test_anti_preferences_weigh_against():
    own = own_terms(
        pod_with(
            preferred=(WeightedTerm(3, PodAffinityTerm("z")),),
            preferred_anti=(WeightedTerm(4, PodAffinityTerm("z")),),
        )
    )
    assert [term.weight for term in own.preferred] == [3, -4]


def test_required_terms_are_asked_for_together():
    own = own_terms(
        pod_with(
            required=(PodAffinityTerm("z", WEB), PodAffinityTerm("z", FRONT, frozenset(("default", "b"))))
        )
    )
    both = LabelSelector(WEB.requirements + FRONT.requirements)
    assert own.ask_together(known()) == PodQuery(frozenset(("default",)), both)


def test_a_term_without_selector_makes_the_conjunction_empty():
    own = own_terms(pod_with(required=(PodAffinityTerm("z"), PodAffinityTerm("z", WEB))))
    assert own.ask_together(known()).namespaces == frozenset()


def test_all_namespaces_and_selected_ones():
    everywhere = own_terms(
        pod_with(required_anti=(PodAffinityTerm("z", WEB, namespace_selector=LabelSelector()),))
    )
    assert everywhere.required_anti[0].ask(known()).namespaces is None
    pod = pod_with(required=(PodAffinityTerm("z", WEB, frozenset(("b",)), TEAM),))
    spaces = known(Namespace("a", {"team": "a"}), Namespace("b"), Namespace("c"))
    assert own_terms(pod).required[0].ask(spaces).namespaces == frozenset("ab")
    assert own_terms(pod).ask_together(spaces).namespaces == frozenset("ab")
    spaces.apply(Namespace("c", {"team": "a"}))
    assert own_terms(pod).ask_together(spaces).namespaces == frozenset("abc")


def test_a_conjunction_of_nothing_asks_for_everything():
    assert conjunction(()) == PodQuery(None, LabelSelector())


def test_unknown_namespace_labels_count_as_a_match():
    (term,) = own_terms(pod_with(required=(PodAffinityTerm("z", WEB, namespace_selector=TEAM),))).required
    web = make_pod("w", namespace="b", labels={"app": "web"})
    assert term.means(web, None)
    assert term.means(web, known(Namespace("b", {"team": "a"})).labels)
    assert not term.means(web, known(Namespace("b", {"team": "b"})).labels)
    assert not term.means(make_pod("w", namespace="b"), None)


@given(peer_pods("asking"), peer_pods("other"))
def test_terms_mean_what_the_reference_says(pod, other):
    world = World(namespaces=(Namespace("red", {"team": "a"}), Namespace("blue")))
    spaces = known(*world.namespaces)
    affinity = pod.spec.pod_affinity
    if affinity is None:
        return
    own = own_terms(pod)
    for term, ours in zip(
        affinity.required + affinity.required_anti, own.required + own.required_anti, strict=True
    ):
        expected = term_means(term, pod, other, world, incoming=True)
        assert ours.ask(spaces).matches(other.namespace, other.labels) is expected
        assert ours.means(other, spaces.labels) is expected
