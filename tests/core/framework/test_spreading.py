"""A pod's own spread constraints, worked out once for alike pods."""

from moorage.core.framework.spreading import default_spreads, own_spreads
from moorage.core.model.pod_query import PodQuery
from moorage.core.model.selector import LabelSelector, NodeSelector, NodeSelectorTerm
from moorage.core.model.spread import SYSTEM_DEFAULTS, SpreadConstraint
from moorage.core.model.taint import Toleration
from moorage.core.snapshot.topology import NodeRules
from tests.kit.models import label_in, make_pod, make_spec

WEB = LabelSelector((label_in("app", "web"),))


def pod_with(*constraints, **fields):
    labels = fields.pop("labels", {"app": "web"})
    return make_pod("p", labels=labels, namespace="blue", spec=make_spec(spread=constraints, **fields))


def test_hard_and_soft_are_told_apart_each_with_its_own_keys():
    pod = pod_with(SpreadConstraint("zone", selector=WEB), SpreadConstraint("host", hard=False, selector=WEB))
    hard, soft = own_spreads(pod, hard=True), own_spreads(pod, hard=False)
    assert (hard.keys, soft.keys) == (("zone",), ("host",))
    assert hard.items[0].query == PodQuery(frozenset(("blue",)), WEB, terminating=False)


def test_alike_pods_share_the_work_and_others_do_not():
    spec = make_spec(spread=(SpreadConstraint("zone", selector=WEB, match_label_keys=("rev",)),))

    def of(namespace, rev):
        pod = make_pod("p", spec=spec, namespace=namespace, labels={"rev": rev, "unique": "p"})
        return own_spreads(pod, hard=True)

    assert of("a", "1") is of("a", "1")
    assert of("a", "1") is not of("a", "2")
    assert of("a", "1") is not of("b", "1")
    assert of("a", "2").items[0].selector == LabelSelector((*WEB.requirements, label_in("rev", "2")))


def test_empty_and_missing_selectors_count_nobody():
    empty, missing = own_spreads(
        pod_with(SpreadConstraint("a", selector=LabelSelector()), SpreadConstraint("b")), hard=True
    ).items
    assert empty.query.namespaces == missing.query.namespaces == frozenset()
    assert (empty.uncounted, missing.uncounted) == (True, False)
    assert (empty.means(make_pod("x")), missing.means(make_pod("x"))) == (True, False)


def test_affinity_that_is_ignored_decides_nothing():
    required = NodeSelector((NodeSelectorTerm((label_in("pool", "x"),)),))
    pod = pod_with(SpreadConstraint("a"), SpreadConstraint("b", honor_affinity=False), required=required)
    rules = [spread.rules for spread in own_spreads(pod, hard=True).items]
    assert rules == [NodeRules.of({}, required, None), None]


def test_what_decides_which_nodes_count():
    tolerations = (Toleration("t", "Exists"),)
    pod = pod_with(
        SpreadConstraint("a"),
        SpreadConstraint("b", honor_affinity=False),
        SpreadConstraint("c", honor_affinity=False, honor_taints=True),
        node_selector={"pool": "x"},
        tolerations=tolerations,
    )
    rules = [spread.rules for spread in own_spreads(pod, hard=True).items]
    assert rules == [NodeRules.of({"pool": "x"}, None, None), None, NodeRules.of({}, None, tolerations)]


def test_defaults_take_the_peers_for_their_selector():
    peers = PodQuery(frozenset(("blue",)), WEB, terminating=False)
    pod = pod_with(node_selector={"pool": "x"})
    soft = default_spreads(pod, SYSTEM_DEFAULTS, peers, hard=False)
    assert [spread.query for spread in soft.items] == [peers, peers]
    assert all(spread.selector is WEB and spread.rules is not None for spread in soft.items)
    assert default_spreads(pod, SYSTEM_DEFAULTS, peers, hard=False) is soft
    assert default_spreads(pod, SYSTEM_DEFAULTS, peers, hard=True).items == ()
