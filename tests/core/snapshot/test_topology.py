"""Domains of a topology key, and the nodes that count."""

import pytest

from moorage.core.model.node import Node
from moorage.core.model.selector import Operator, Requirement
from moorage.core.model.taint import NO_EXECUTE, PREFER_NO_SCHEDULE, Taint, Toleration
from moorage.core.snapshot.snapshot import Snapshot
from moorage.core.snapshot.topology import NodeRules, Topology
from tests.kit.models import label_in, required, term


@pytest.fixture
def snapshot():
    made = Snapshot()
    made.set_node(Node("a", labels={"zone": "1", "rack": "x"}))
    made.set_node(Node("b", labels={"zone": "2"}, taints=(Taint("t"),)))
    made.set_node(
        Node("c", labels={"zone": "1", "rack": "y"}, taints=(Taint("soft", "", PREFER_NO_SCHEDULE),))
    )
    made.set_node(Node("d", labels={"rack": ""}))
    return made


def names(snapshot, mask):
    return "".join(node.name for row, node in enumerate(snapshot.nodes) if node is not None and mask[row])


def values_of(snapshot, domains):
    """The label's value by node name."""
    column = snapshot.label(domains.key).values
    ids = domains.ids.tolist()
    return {
        node.name: None if ids[row] == domains.size else column[ids[row]]
        for row, node in enumerate(snapshot.nodes)
        if node is not None
    }


def test_domains_are_the_values_of_the_label(snapshot):
    zones = snapshot.topology.domains("zone")
    assert values_of(snapshot, zones) == {"a": "1", "b": "2", "c": "1", "d": None}
    assert zones.ids.shape == (snapshot.capacity,)
    assert zones.ids[4:].tolist() == [zones.size] * (snapshot.capacity - 4)
    assert zones.zeros().shape == (zones.size + 1,)
    assert snapshot.topology.domains("zone") is zones


def test_whether_all_nodes_have_the_label(snapshot):
    assert not snapshot.topology.domains("zone").complete
    snapshot.drop_node("d")
    assert snapshot.topology.domains("zone").complete


def test_the_empty_value_is_a_domain_of_its_own(snapshot):
    racks = snapshot.topology.domains("rack")
    assert racks.ids[3] == racks.blank
    assert snapshot.topology.domains("zone").blank == -1


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s.set_node(Node("a", labels={"zone": "2"})),
        lambda s: s.set_node(Node("a", labels={"zone": "1", "rack": "x"}, taints=(Taint("new"),))),
        lambda s: s.set_node(Node("e", labels={"zone": "3"})),
        lambda s: s.drop_node("a"),
    ],
    ids=["label", "taint", "new-node", "node-gone"],
)
def test_changes_of_labels_taints_and_nodes_start_over(snapshot, change):
    topology = snapshot.topology
    rules = NodeRules.of({}, None, ())
    zones, scope, layout = topology.domains("zone"), topology.scope(("zone",), rules), topology.layout
    change(snapshot)
    assert topology.layout > layout
    assert zones.stale
    assert topology.domains("zone") is not zones
    assert topology.scope(("zone",), rules) is not scope


def test_other_changes_of_a_node_do_not(snapshot):
    zones, layout = snapshot.topology.domains("zone"), snapshot.topology.layout
    snapshot.set_node(
        Node("a", labels={"zone": "1", "rack": "x"}, allocatable={"cpu": 1}, unschedulable=True)
    )
    assert snapshot.topology.layout == layout
    assert snapshot.topology.domains("zone") is zones


def test_scope_by_keys(snapshot):
    topology = snapshot.topology
    assert names(snapshot, topology.scope((), None).mask) == "abcd"
    assert names(snapshot, topology.scope(("zone",), None).mask) == "abc"
    assert names(snapshot, topology.scope(("zone", "rack"), None).mask) == "ac"
    assert topology.scope((), None).everywhere
    assert not topology.scope(("zone",), None).everywhere


@pytest.mark.parametrize(
    ("rules", "counting"),
    [
        (NodeRules.of({"rack": "x"}, None, None), "a"),
        (NodeRules.of({}, required(term(label_in("zone", "2"))), None), "b"),
        (NodeRules.of({}, required(term(names=("c",))), None), "c"),
        (NodeRules.of({}, required(), None), ""),
        (NodeRules.of({}, None, ()), "acd"),
        (NodeRules.of({}, None, (Toleration("t", "Exists"),)), "abcd"),
        (NodeRules.of({"zone": "1"}, required(term(Requirement("rack", Operator.EXISTS))), ()), "ac"),
        (NodeRules.of({}, None, None), "abcd"),
    ],
)
def test_scope_by_rules(snapshot, rules, counting):
    assert names(snapshot, snapshot.topology.scope((), rules).mask) == counting


def test_no_execute_closes_a_node_too(snapshot):
    snapshot.set_node(Node("e", taints=(Taint("x", "", NO_EXECUTE),)))
    assert "e" not in names(snapshot, snapshot.topology.scope((), NodeRules.of({}, None, ())).mask)


def test_rules_that_let_every_node_count_are_none():
    assert NodeRules.of({}, None, None) is None
    assert NodeRules.of({"a": "b"}, None, None) == NodeRules.of({"a": "b"}, None, None)
    assert len({NodeRules.of({"a": "b"}, None, None), NodeRules.of({"a": "b"}, None, None)}) == 1


def test_present_domains_have_a_node_that_counts(snapshot):
    topology = snapshot.topology
    zones = topology.domains("zone")
    ids = {value: snapshot.label("zone").id_of(value) for value in "12"}
    assert topology.scope(("zone",), None).present(zones).tolist() == sorted(ids.values())
    closed = topology.scope(("zone",), NodeRules.of({}, None, ()))
    assert closed.present(zones).tolist() == [ids["1"]]
    assert topology.scope((), NodeRules.of({}, required(), None)).present(zones).tolist() == []


def test_the_oldest_scope_makes_room(snapshot, monkeypatch):
    monkeypatch.setattr(Topology, "KEPT", 2)
    topology = snapshot.topology
    first, second = topology.scope(("zone",), None), topology.scope(("rack",), None)
    assert topology.scope(("zone",), None) is first
    topology.scope((), None)
    assert (first.dropped, second.dropped) == (False, True)
    assert topology.scope(("rack",), None) is not second
