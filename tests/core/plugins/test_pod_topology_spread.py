"""PodTopologySpread against the scalar reference, and the rules that people get wrong one by one."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.core.framework.interface import Skip
from moorage.core.framework.trials import NOBODY, Bench, PodsOnNodes, Trial
from moorage.core.model.node import Node
from moorage.core.model.selector import LabelSelector, Operator, Requirement
from moorage.core.model.spread import HOSTNAME, SYSTEM_DEFAULTS, ZONE, SpreadConstraint, SpreadDefaults
from moorage.core.model.taint import Taint
from moorage.core.model.workload import Workload, WorkloadKind
from moorage.core.plugins.pod_topology_spread import PodTopologySpread
from moorage.core.snapshot.view import Nodes
from tests.kit.models import label_in, make_pod
from tests.kit.peers import (
    World,
    peer_pods,
    spread_changed,
    spread_defaults,
    spread_scores,
    spread_state,
    spread_verdict,
    worlds,
)

SKEW = "node(s) didn't match pod topology spread constraints"
WEB = LabelSelector((label_in("app", "web"),))


def verdicts(plugin, pod, snapshot, state=None):
    """Reason and resolvability by node, None where nothing is against it; None if the plugin skips."""
    state = plugin.pre_filter(pod, snapshot) if state is None else state
    if state is Skip.SKIP:
        return None
    rows = np.flatnonzero(snapshot.alive)
    verdict = plugin.filter(state, Nodes(snapshot, rows))
    found = {}
    for index, row in enumerate(rows):
        against = [r for r, failed in zip(verdict.reasons, verdict.failed[:, index], strict=True) if failed]
        assert bool(against) is not bool(verdict.fits[index])
        assert len(against) <= 1
        found[snapshot.name_at(int(row))] = (against[0].text, against[0].resolvable) if against else None
    return found


def scores(plugin, pod, snapshot, names=None):
    """Raw and normalised scores by node; None if the plugin skips."""
    rows = np.flatnonzero(snapshot.alive)
    if names is not None:
        rows = np.array([row for row in rows if snapshot.name_at(int(row)) in names], dtype=np.int64)
    nodes = Nodes(snapshot, rows)
    state = plugin.pre_score(pod, snapshot, nodes)
    if state is Skip.SKIP:
        return None
    raw = plugin.score(state, nodes)
    named = [snapshot.name_at(int(row)) for row in rows]
    return dict(zip(named, raw.tolist(), strict=True)), dict(
        zip(named, plugin.normalize(raw).tolist(), strict=True)
    )


# -- against the reference -----------------------------------------------------------------------


@given(worlds(), peer_pods("asking"), spread_defaults)
def test_filter_is_the_reference_s(world, pod, defaults):
    state = spread_state(defaults, pod, world)
    expected = None if state is None else {n.name: spread_verdict(state, pod, n) for n in world.nodes}
    assert expected == verdicts(PodTopologySpread(defaults), pod, world.snapshot())


@given(worlds(), peer_pods("asking"), spread_defaults, st.data())
def test_scores_are_the_reference_s(world, pod, defaults, data):
    names = data.draw(st.sets(st.sampled_from([node.name for node in world.nodes]), min_size=1))
    expected = spread_scores(defaults, pod, world, names)
    assert expected == scores(PodTopologySpread(defaults), pod, world.snapshot(), names)


@given(worlds(), peer_pods("asking"), peer_pods("promised"), spread_defaults, st.data())
def test_a_dry_run_counts_as_kube_scheduler_does(world, pod, promised, defaults, data):
    """Pods taken off a node and one promised to it; dying pods and empty selectors count in their own way."""
    node = data.draw(st.sampled_from(world.nodes))
    here = world.on(node)
    removed = data.draw(st.lists(st.sampled_from(here), unique_by=id)) if here else []
    added = data.draw(st.sampled_from(([], [promised])))
    snapshot, plugin = world.snapshot(), PodTopologySpread(defaults)
    expected = spread_state(defaults, pod, world)
    state = plugin.pre_filter(pod, snapshot)
    if expected is None or isinstance(state, Skip):
        assert expected is None
        assert state is Skip.SKIP
        return
    before = verdicts(plugin, pod, snapshot, state)
    row = snapshot.row_of(node.name)
    for other in removed:
        snapshot.remove_pod(row, other)
        spread_changed(expected, pod, node, other, -1)
    for other in added:
        snapshot.add_pod(row, other)
        spread_changed(expected, pod, node, other, 1)
    adjusted = plugin.with_pods(state, row, added, removed, snapshot)
    assert {n.name: spread_verdict(expected, pod, n) for n in world.nodes} == verdicts(
        plugin, pod, snapshot, adjusted
    )
    for other in added:
        snapshot.remove_pod(row, other)
    for other in removed:
        snapshot.add_pod(row, other)
    assert before == verdicts(plugin, pod, snapshot, state)


# -- rule by rule --------------------------------------------------------------------------------


def zoned(name, zone, **labels):
    return Node(name, labels={HOSTNAME: name, ZONE: zone, **labels})


def web(name, node="", **fields):
    return make_pod(name, node=node, labels=fields.pop("labels", {"app": "web"}), **fields)


def by_zone(**fields):
    return (SpreadConstraint(ZONE, selector=WEB, **fields),)


TWO_ZONES = (zoned("a", "1"), zoned("b", "2"))


def test_the_emptier_zone_takes_the_pod():
    world = World(TWO_ZONES, (web("p", "a"),))
    assert {"a": (SKEW, True), "b": None} == verdicts(
        PodTopologySpread(), web("new", spread=by_zone()), world.snapshot()
    )


def test_a_pod_that_its_own_selector_does_not_match_adds_nothing():
    world = World(TWO_ZONES, (web("p", "a"),))
    pod = web("new", labels={"app": "other"}, spread=by_zone())
    assert {"a": None, "b": None} == verdicts(PodTopologySpread(), pod, world.snapshot())


def test_fewer_domains_than_wanted_make_the_minimum_zero():
    world = World(TWO_ZONES, (web("p", "a"), web("q", "b")))
    pod = web("new", spread=by_zone(min_domains=3))
    assert {"a": (SKEW, True), "b": (SKEW, True)} == verdicts(PodTopologySpread(), pod, world.snapshot())


def test_a_node_that_lacks_one_key_counts_for_no_constraint_and_takes_nothing():
    half = Node("half", labels={ZONE: "1"})
    world = World(
        (zoned("a", "1", rack="r"), zoned("b", "2", rack="s"), half),
        (web("p", "half"), web("q", "half"), web("r", "b")),
    )
    pod = web("new", spread=(*by_zone(), SpreadConstraint("rack", selector=WEB)))
    missing = (f"{SKEW} (missing required label)", False)
    assert {"a": None, "b": (SKEW, True), "half": missing} == verdicts(
        PodTopologySpread(), pod, world.snapshot()
    )


@pytest.mark.parametrize("honor", [False, True])
def test_an_empty_tainted_domain_counts_unless_taints_are_honoured(honor):
    tainted = replace(zoned("c", "3"), taints=(Taint("t"),))
    world = World((*TWO_ZONES, tainted), (web("p", "a"), web("q", "b")))
    found = verdicts(PodTopologySpread(), web("new", spread=by_zone(honor_taints=honor)), world.snapshot())
    assert (None if honor else (SKEW, True)) == found["a"]


@pytest.mark.parametrize("honor", [False, True])
def test_a_domain_that_node_affinity_closes_counts_if_affinity_is_ignored(honor):
    world = World((*TWO_ZONES, zoned("c", "3", pool="other")), (web("p", "a"), web("q", "b")))
    nodes = [replace(n, labels={**n.labels, "pool": n.labels.get("pool", "mine")}) for n in world.nodes]
    pod = web("new", spread=by_zone(honor_affinity=honor), node_selector={"pool": "mine"})
    found = verdicts(PodTopologySpread(), pod, replace(world, nodes=tuple(nodes)).snapshot())
    assert (None if honor else (SKEW, True)) == found["a"]


def test_dying_pods_are_not_counted():
    world = World(TWO_ZONES, (web("p", "a", deleting=True), web("q", "a"), web("r", "b"), web("s", "b")))
    assert {"a": None, "b": (SKEW, True)} == verdicts(
        PodTopologySpread(), web("new", spread=by_zone()), world.snapshot()
    )


def test_pods_of_other_namespaces_are_not_counted():
    world = World(TWO_ZONES, (web("p", "a", namespace="other"),))
    assert {"a": None, "b": None} == verdicts(
        PodTopologySpread(), web("new", spread=by_zone()), world.snapshot()
    )


def test_an_empty_selector_counts_nobody_but_the_pod_itself():
    world = World(TWO_ZONES, tuple(web(f"p{i}", "a") for i in range(3)))
    spread = (SpreadConstraint(ZONE, selector=LabelSelector()),)
    assert {"a": None, "b": None} == verdicts(
        PodTopologySpread(), web("new", spread=spread), world.snapshot()
    )


def test_a_missing_selector_matches_nothing():
    world = World(TWO_ZONES, (web("p", "a"),))
    assert {"a": None, "b": None} == verdicts(
        PodTopologySpread(), web("new", spread=(SpreadConstraint(ZONE),)), world.snapshot()
    )


def test_only_pods_of_the_same_revision_count():
    old = {"app": "web", "rev": "1"}
    world = World(TWO_ZONES, (web("p", "a", labels=old), web("q", "a", labels=old)))
    spread = by_zone(match_label_keys=("rev", "absent"))
    pod = web("new", labels={"app": "web", "rev": "2"}, spread=spread)
    assert {"a": None, "b": None} == verdicts(PodTopologySpread(), pod, world.snapshot())
    assert {"a": (SKEW, True), "b": None} == verdicts(
        PodTopologySpread(), replace(pod, labels=old), world.snapshot()
    )


def test_pods_without_constraints_are_skipped():
    snapshot = World(TWO_ZONES, (web("p", "a"),)).snapshot()
    assert verdicts(PodTopologySpread(), web("new"), snapshot) is None
    assert scores(PodTopologySpread(), web("new"), snapshot) is None
    assert scores(PodTopologySpread(), web("new", spread=by_zone()), snapshot) is None


SERVICE = Workload(WorkloadKind.SERVICE, "default", "web", {"app": "web"})


def test_pods_of_a_service_are_spread_softly_over_hosts_and_zones():
    world = World(TWO_ZONES, (web("p", "a"),), workloads=(SERVICE,))
    raw, normal = scores(PodTopologySpread(), web("new"), world.snapshot())
    assert {"a": 9, "b": 6} == raw  # 1 * ln(4) + 2 and 1 * ln(4) + 4; 0 + 2 and 0 + 4
    assert {"a": 66, "b": 100} == normal
    assert verdicts(PodTopologySpread(), web("new"), world.snapshot()) is None


def test_nodes_without_a_zone_still_get_the_host_s_share_of_the_system_defaults():
    world = World((*TWO_ZONES, Node("c", labels={HOSTNAME: "c"})), (web("p", "c"),), workloads=(SERVICE,))
    raw, _ = scores(PodTopologySpread(), web("new"), world.snapshot())
    assert {"a": 6, "b": 6, "c": 4} == raw  # c: 1 * ln(5) + 2
    listed = SpreadDefaults(SYSTEM_DEFAULTS.constraints)
    raw, normal = scores(PodTopologySpread(listed), web("new"), world.snapshot())
    assert -1 == raw["c"]
    assert 0 == normal["c"]


def test_configured_defaults_can_be_hard():
    world = World(TWO_ZONES, (web("p", "a"),), workloads=(SERVICE,))
    plugin = PodTopologySpread(SpreadDefaults((SpreadConstraint(ZONE),)))
    assert {"a": (SKEW, True), "b": None} == verdicts(plugin, web("new"), world.snapshot())
    own = web("new", spread=(SpreadConstraint(ZONE, 5, selector=WEB),))
    assert {"a": None, "b": None} == verdicts(plugin, own, world.snapshot())


def test_all_equal_scores_are_the_best_there_is():
    assert [100, 100] == PodTopologySpread().normalize(np.zeros(2, dtype=np.int64)).tolist()
    assert [0, 0] == PodTopologySpread().normalize(np.full(2, -1)).tolist()
    assert [0, 100] == PodTopologySpread().normalize(np.array([-1, 0])).tolist()


def test_a_pod_bound_or_gone_between_two_pods_is_seen():
    world = World(TWO_ZONES)
    snapshot, plugin, pod = world.snapshot(), PodTopologySpread(), web("new", spread=by_zone())
    assert {"a": None, "b": None} == verdicts(plugin, pod, snapshot)
    placed, row = web("p", "a"), 0
    snapshot.add_pod(row, placed)
    assert {"a": (SKEW, True), "b": None} == verdicts(plugin, pod, snapshot)
    snapshot.set_node(zoned("a", "2"))
    assert {"a": None, "b": None} == verdicts(plugin, pod, snapshot)
    snapshot.remove_pod(row, placed)
    assert {"a": None, "b": None} == verdicts(plugin, pod, snapshot)


def test_expressions_are_understood():
    absent = LabelSelector((Requirement("app", Operator.DOES_NOT_EXIST),))
    world = World(TWO_ZONES, (web("p", "a", labels={}), web("q", "b")))
    pod = web("new", labels={}, spread=(SpreadConstraint(ZONE, selector=absent),))
    assert {"a": (SKEW, True), "b": None} == verdicts(PodTopologySpread(), pod, world.snapshot())


# -- where a dry run counts otherwise than a fresh look --------------------------------------------


def dry_run(world, pod, node, *, removed=(), added=()):
    """Verdicts with some pods taken off the node, and others put there."""
    snapshot, plugin = world.snapshot(), PodTopologySpread()
    state = plugin.pre_filter(pod, snapshot)
    assert not isinstance(state, Skip)
    row = snapshot.row_of(node)
    assert row is not None
    for other in removed:
        snapshot.remove_pod(row, other)
    for other in added:
        snapshot.add_pod(row, other)
    return verdicts(plugin, pod, snapshot, plugin.with_pods(state, row, added, removed, snapshot))


def test_a_dying_pod_that_goes_is_taken_away_although_it_was_not_counted():
    """kube-scheduler ends with -1 there, so that the other zone is the fuller one."""
    dying = web("p", "a", deleting=True)
    world = World(TWO_ZONES, (dying, web("q", "b")))
    pod = web("new", spread=by_zone(max_skew=2))
    assert {"a": None, "b": None} == verdicts(PodTopologySpread(), pod, world.snapshot())
    assert {"a": None, "b": (SKEW, True)} == dry_run(world, pod, "a", removed=[dying])


def test_a_dying_pod_that_was_promised_the_node_counts():
    pod = web("new", spread=by_zone())
    promised = web("p", deleting=True)
    assert {"a": (SKEW, True), "b": None} == dry_run(World(TWO_ZONES), pod, "a", added=[promised])
    assert {"a": None, "b": None} == dry_run(
        World(TWO_ZONES), pod, "a", added=[replace(promised, namespace="x")]
    )


def test_pods_that_come_and_go_count_for_an_empty_selector():
    pod = web("new", spread=(SpreadConstraint(ZONE, selector=LabelSelector()),))
    placed = web("p", "a")
    world = World(TWO_ZONES, (placed,))
    assert {"a": (SKEW, True), "b": None} == dry_run(world, pod, "a", added=[web("q")])
    assert {"a": None, "b": (SKEW, True)} == dry_run(world, pod, "a", removed=[placed])


def test_a_node_that_does_not_count_changes_nothing():
    half = Node("half", labels={ZONE: "1"})
    pod = web(
        "new",
        spread=(SpreadConstraint(ZONE, selector=LabelSelector()), SpreadConstraint("rack", selector=WEB)),
    )
    world = World((zoned("a", "1", rack="r"), zoned("b", "2", rack="r"), half))
    assert dry_run(world, pod, "half", added=[web("q")])["a"] is None


# -- a label without a value -----------------------------------------------------------------------


def test_no_zone_and_a_zone_without_a_name_are_one_zone_to_the_system_s_defaults():
    """Go reads a missing label as the empty string."""
    nodes = (zoned("a", "1"), zoned("b", ""), Node("c", labels={HOSTNAME: "c"}))
    world = World(nodes, (web("p", "c"), web("q", "c")), workloads=(SERVICE,))
    raw, _ = scores(PodTopologySpread(), web("new"), world.snapshot())
    # Hosts: n * ln(5) + 2, zones: n * ln(4) + 4, where b's zone has the two pods of c.
    assert {"a": 6, "b": 9, "c": 5} == raw


def test_on_trial_a_node_s_domain_may_stop_being_the_emptiest():
    """Pods that come count in their domain, unless the node itself does not count."""
    nodes = (
        Node("n0", labels={ZONE: "a", "rack": "1"}),
        Node("n1", labels={ZONE: "b", "rack": "1"}),
        Node("n2", labels={ZONE: "a"}),
    )
    there = make_pod("there", labels={"app": "web"}, node="n1")
    snapshot = World(nodes, (there,)).snapshot()
    spread = SpreadConstraint(ZONE, 1, selector=WEB)
    pod = make_pod("p", labels={"app": "web"}, spread=(spread,), node_selector={"rack": "1"})
    plugin = PodTopologySpread()
    coming = PodsOnNodes([make_pod(f"c{n}", labels={"app": "web"}) for n in range(3)], np.arange(3))
    active: object = [(plugin, plugin.pre_filter(pod, snapshot))]
    bench = Bench(active, Trial(snapshot, np.arange(3), NOBODY, coming))  # type: ignore[arg-type]
    assert bench.coming.tolist() == [[1, 1, 0]]
    # With one more there, zone a has as many as zone b; with one more in zone b the skew is 2 and 3 with the pod.
    assert bench.fit(np.zeros((1, 3), dtype=np.int64), np.arange(3)).tolist() == [True, False, True]
