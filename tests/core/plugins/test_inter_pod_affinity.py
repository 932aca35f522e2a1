"""InterPodAffinity against the scalar reference, and the rules that people get wrong one by one."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.core.framework.interface import Skip
from moorage.core.model.affinity import PodAffinity, PodAffinityTerm, WeightedTerm
from moorage.core.model.node import Node
from moorage.core.model.selector import LabelSelector
from moorage.core.model.spread import HOSTNAME, ZONE
from moorage.core.model.workload import Namespace
from moorage.core.plugins.inter_pod_affinity import InterPodAffinity
from tests.core.plugins.test_pod_topology_spread import scores, verdicts, zoned
from tests.kit.models import label_in, make_pod
from tests.kit.peers import (
    World,
    affinity_changed,
    affinity_scores,
    affinity_state,
    affinity_verdict,
    peer_pods,
    worlds,
)

AFFINITY = ("node(s) didn't match pod affinity rules", False)
OWN = ("node(s) didn't match pod anti-affinity rules", True)
OTHERS = ("node(s) didn't satisfy existing pods anti-affinity rules", True)
X, Y = (LabelSelector((label_in("app", name),)) for name in "xy")


# -- against the reference -----------------------------------------------------------------------


@given(worlds(), peer_pods("asking"))
def test_filter_is_the_reference_s(world, pod):
    state = affinity_state(pod, world)
    expected = (
        None if state is None else {n.name: affinity_verdict(state, pod, n, world) for n in world.nodes}
    )
    assert expected == verdicts(InterPodAffinity(), pod, world.snapshot())


@given(worlds(), peer_pods("asking"), st.sampled_from((0, 1, 5)), st.booleans(), st.data())
def test_scores_are_the_reference_s(world, pod, weight, ignore, data):
    names = data.draw(st.sets(st.sampled_from([node.name for node in world.nodes]), min_size=1))
    expected = affinity_scores(pod, world, names, hard_weight=weight, ignore_existing=ignore)
    assert expected == scores(InterPodAffinity(weight, ignore), pod, world.snapshot(), names)


@given(worlds(), peer_pods("asking"), peer_pods("promised"), st.data())
def test_a_dry_run_counts_as_kube_scheduler_does(world, pod, promised, data):
    node = data.draw(st.sampled_from(world.nodes))
    here = world.on(node)
    removed = data.draw(st.lists(st.sampled_from(here), unique_by=id)) if here else []
    added = data.draw(st.sampled_from(([], [promised])))
    snapshot, plugin = world.snapshot(), InterPodAffinity()
    expected = affinity_state(pod, world)
    state = plugin.pre_filter(pod, snapshot)
    if expected is None or isinstance(state, Skip):
        assert expected is None
        assert state is Skip.SKIP
        return
    before = verdicts(plugin, pod, snapshot, state)
    row = snapshot.row_of(node.name)
    for other in removed:
        snapshot.remove_pod(row, other)
        affinity_changed(expected, pod, node, other, -1, world)
    for other in added:
        snapshot.add_pod(row, other)
        affinity_changed(expected, pod, node, other, 1, world)
    adjusted = plugin.with_pods(state, row, added, removed, snapshot)
    wanted = {n.name: affinity_verdict(expected, pod, n, world) for n in world.nodes}
    assert wanted == verdicts(plugin, pod, snapshot, adjusted)
    for other in added:
        snapshot.remove_pod(row, other)
    for other in removed:
        snapshot.add_pod(row, other)
    assert before == verdicts(plugin, pod, snapshot, state)


# -- rule by rule --------------------------------------------------------------------------------

ROOMY = (zoned("a", "1"), zoned("b", "1"), zoned("c", "2"), Node("bare"))


def pod_of(name, app, node="", **terms):
    return make_pod(
        name, node=node, labels={"app": app}, pod_affinity=PodAffinity(**terms) if terms else None
    )


def near(key, selector, **fields):
    return {"required": (PodAffinityTerm(key, selector, **fields),)}


def away(key, selector, **fields):
    return {"required_anti": (PodAffinityTerm(key, selector, **fields),)}


def told(pod, *placed, nodes=ROOMY, namespaces=()):
    return verdicts(InterPodAffinity(), pod, World(nodes, placed, namespaces).snapshot())


def test_near_to_a_pod_means_in_its_domain():
    pod = pod_of("new", "y", **near(ZONE, X))
    assert {"a": None, "b": None, "c": AFFINITY, "bare": AFFINITY} == told(pod, pod_of("p", "x", "a"))


def test_away_from_a_pod_means_out_of_its_domain_and_nodes_without_domain_are_open():
    pod = pod_of("new", "y", **away(ZONE, X))
    assert {"a": OWN, "b": OWN, "c": None, "bare": None} == told(pod, pod_of("p", "x", "a"))


def test_pods_placed_before_keep_others_away_too():
    placed = pod_of("p", "x", "a", **away(HOSTNAME, Y))
    assert {"a": OTHERS, "b": None, "c": None, "bare": None} == told(pod_of("new", "y"), placed)
    assert told(pod_of("new", "z"), placed) is None


def test_all_terms_must_be_met_by_one_pod():
    both = (
        PodAffinityTerm(HOSTNAME, X),
        PodAffinityTerm(HOSTNAME, LabelSelector((label_in("tier", "f"),))),
    )
    pod = make_pod("new", pod_affinity=PodAffinity(both))
    apart = (make_pod("p", node="a", labels={"app": "x"}), make_pod("q", node="a", labels={"tier": "f"}))
    one = make_pod("r", node="b", labels={"app": "x", "tier": "f"})
    assert {"a": AFFINITY, "b": None, "c": AFFINITY, "bare": AFFINITY} == told(pod, *apart, one)


def test_each_term_must_be_met_in_its_own_domain():
    """The same pod satisfies both terms: in the zone of two nodes, on the host of one."""
    terms = PodAffinityTerm(ZONE, X), PodAffinityTerm(HOSTNAME, X)
    nodes = tuple(Node(n, labels={ZONE: z, HOSTNAME: n}) for n, z in (("a", "1"), ("b", "1"), ("c", "2")))
    found = told(pod_of("new", "y", required=terms), pod_of("p", "x", "a"), nodes=nodes)
    assert found == {"a": None, "b": AFFINITY, "c": AFFINITY}


def test_a_node_is_refused_for_the_first_reason_only():
    """Affinity before the pod's own anti-affinity, and that before the anti-affinity of others."""
    repelling = pod_of("r", "y", "c", **away(ZONE, Y))
    pod = pod_of("new", "y", **near(ZONE, X), **away(ZONE, Y))
    assert told(pod, pod_of("p", "x", "a"), repelling)["c"] == AFFINITY
    assert told(pod, pod_of("p", "x", "c"), repelling)["c"] == OWN
    assert told(replace(pod, spec=pod_of("q", "y").spec), repelling)["c"] == OTHERS


def test_the_first_pod_of_a_group_may_go_anywhere_that_has_the_key():
    pod = pod_of("new", "x", **near(ZONE, X))
    assert {"a": None, "b": None, "c": None, "bare": AFFINITY} == told(pod)
    assert {"a": AFFINITY, "b": AFFINITY, "c": AFFINITY, "bare": AFFINITY} == told(
        pod_of("new", "y", **near(ZONE, X))
    )
    assert AFFINITY == told(pod, pod_of("p", "x", "c"))["a"]


def test_a_pod_of_the_group_on_a_node_without_the_key_does_not_count():
    assert told(pod_of("new", "x", **near(ZONE, X)), pod_of("p", "x", "bare"))["a"] is None


def test_dying_pods_still_count():
    dying = replace(pod_of("p", "x", "a"), deleting=True)
    assert OWN == told(pod_of("new", "y", **away(ZONE, X)), dying)["a"]


@pytest.mark.parametrize(
    ("fields", "repelled"),
    [
        ({}, False),
        ({"namespaces": frozenset(("blue",))}, True),
        ({"namespace_selector": LabelSelector()}, True),
        ({"namespace_selector": LabelSelector((label_in("team", "a"),))}, True),
        ({"namespace_selector": LabelSelector((label_in("team", "b"),))}, False),
        (
            {
                "namespaces": frozenset(("red",)),
                "namespace_selector": LabelSelector((label_in("team", "b"),)),
            },
            False,
        ),
    ],
)
def test_which_namespaces_are_meant(fields, repelled):
    """Own namespace if nothing is said; an empty selector is every namespace; names and selected ones add up."""
    other = replace(pod_of("p", "x", "a"), namespace="blue")
    named = (Namespace("blue", {"team": "a"}), Namespace("default"))
    assert (OWN if repelled else None) == told(
        pod_of("new", "y", **away(ZONE, X, **fields)), other, namespaces=named
    )["a"]
    carrier = pod_of("p", "x", "a", **away(ZONE, Y, **fields))
    asking = replace(pod_of("new", "y"), namespace="blue")
    found = told(asking, carrier, namespaces=named)
    assert (OTHERS if repelled else None) == (found and found["a"])


def test_a_namespace_that_changes_its_labels_is_meant_from_then_on():
    snapshot = World(
        ROOMY, (replace(pod_of("p", "x", "a"), namespace="blue"),), (Namespace("blue"),)
    ).snapshot()
    pod = pod_of("new", "y", **away(ZONE, X, namespace_selector=LabelSelector((label_in("team", "a"),))))
    assert verdicts(InterPodAffinity(), pod, snapshot)["a"] is None
    snapshot.namespaces.apply(Namespace("blue", {"team": "a"}))
    assert OWN == verdicts(InterPodAffinity(), pod, snapshot)["a"]


def test_label_keys_narrow_and_widen():
    fields = {"match_label_keys": ("rev",), "mismatch_label_keys": ("tenant",)}
    pod = make_pod(
        "new", labels={"rev": "2", "tenant": "t"}, pod_affinity=PodAffinity(**away(HOSTNAME, X, **fields))
    )
    placed = [
        make_pod(f"p{i}", node=node, labels={"app": "x", **labels})
        for i, (node, labels) in enumerate(
            [
                ("a", {"rev": "2", "tenant": "u"}),
                ("b", {"rev": "1", "tenant": "u"}),
                ("c", {"rev": "2", "tenant": "t"}),
            ]
        )
    ]
    assert {"a": OWN, "b": None, "c": None, "bare": None} == told(pod, *placed)


def test_preferences_of_both_sides_add_up_and_are_scaled_between_least_and_most():
    prefers = WeightedTerm(10, PodAffinityTerm(ZONE, X))
    shuns = WeightedTerm(30, PodAffinityTerm(HOSTNAME, Y))
    placed = (
        pod_of("p", "x", "a"),
        pod_of("q", "q", "c", preferred_anti=(shuns,)),
        pod_of("r", "r", "b", **near(HOSTNAME, Y)),
    )
    pod = pod_of("new", "y", preferred=(prefers,))
    raw, normal = scores(InterPodAffinity(hard_weight=5), pod, World(ROOMY, placed).snapshot())
    assert {"a": 10, "b": 15, "c": -30, "bare": 0} == raw
    assert {"a": 88, "b": 100, "c": 0, "bare": 66} == normal
    raw, _ = scores(InterPodAffinity(hard_weight=0), pod, World(ROOMY, placed).snapshot())
    assert 10 == raw["b"]


def test_pods_on_nodes_without_the_label_draw_nobody():
    placed = pod_of("p", "x", "c"), pod_of("q", "x", "bare"), pod_of("r", "x", "bare")
    pod = pod_of("new", "y", preferred=(WeightedTerm(10, PodAffinityTerm(ZONE, X)),))
    raw, _ = scores(InterPodAffinity(), pod, World(ROOMY, placed).snapshot())
    assert raw == {"a": 0, "b": 0, "c": 10, "bare": 0}


def test_all_equal_sums_are_worth_nothing():
    assert [0, 0, 0] == InterPodAffinity().normalize(np.full(3, -7)).tolist()


def test_preferences_that_cancel_out_are_no_reason_to_skip():
    terms = (WeightedTerm(10, PodAffinityTerm(ZONE, X)),)
    pod = pod_of("new", "y", preferred=terms, preferred_anti=terms)
    assert ({n.name: 0 for n in ROOMY}, {n.name: 0 for n in ROOMY}) == scores(
        InterPodAffinity(), pod, World(ROOMY, (pod_of("p", "x", "a"),)).snapshot()
    )
    assert scores(InterPodAffinity(), pod, World(ROOMY).snapshot()) is None


def test_preferences_of_placed_pods_can_be_ignored_unless_the_pod_has_its_own():
    placed = pod_of("p", "x", "a", preferred=(WeightedTerm(10, PodAffinityTerm(ZONE, Y)),))
    snapshot = World(ROOMY, (placed,)).snapshot()
    plugin = InterPodAffinity(ignore_preferred_of_existing=True)
    assert scores(plugin, pod_of("new", "y"), snapshot) is None
    own = pod_of("new", "y", preferred=(WeightedTerm(1, PodAffinityTerm(HOSTNAME, X)),))
    raw, _ = scores(plugin, own, snapshot)
    assert {"a": 11, "b": 10, "c": 0, "bare": 0} == raw


def test_a_promised_pod_may_bring_a_term_that_no_placed_pod_has():
    snapshot = World(ROOMY, (pod_of("p", "x", "c", **away(HOSTNAME, Y)),)).snapshot()
    plugin, pod, promised = InterPodAffinity(), pod_of("new", "y"), pod_of("q", "x", **away(ZONE, Y))
    state = plugin.pre_filter(pod, snapshot)
    assert not isinstance(state, Skip)
    snapshot.add_pod(0, promised)
    adjusted = plugin.with_pods(state, 0, [promised], [], snapshot)
    assert {"a": OTHERS, "b": OTHERS, "c": OTHERS, "bare": None} == verdicts(plugin, pod, snapshot, adjusted)
    snapshot.remove_pod(0, promised)
    assert {"a": None, "b": None, "c": OTHERS, "bare": None} == verdicts(plugin, pod, snapshot, state)
