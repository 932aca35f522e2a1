"""What a plugin sees: the same columns for the whole table and for some of its rows."""

import numpy as np
import pytest

from moorage.core.model.pod import HostPort
from moorage.core.snapshot.snapshot import Snapshot
from moorage.core.snapshot.view import Nodes
from tests.kit.models import label_in, make_node, make_pod, required, taint, term


@pytest.fixture
def snapshot():
    """Four nodes, each unlike the others, the last of them gone."""
    snapshot = Snapshot()
    snapshot.set_node(make_node("a", cpu=1000, labels={"zone": "x"}, images={"app": 7}))
    snapshot.set_node(make_node("b", cpu=2000, taints=[taint("x"), taint("y")]))
    snapshot.set_node(make_node("c", cpu=3000, unschedulable=True, images={"app": 7}))
    snapshot.set_node(make_node("d", images={"app": 7}))
    snapshot.add_pod(1, make_pod("web", cpu=500, memory=70, ports=[80]))
    snapshot.drop_node("d")
    return snapshot


ROWS = [2, 0, 1]


def columns(nodes):
    """Every column of a view, by name."""
    selector = required(term(label_in("zone", "x")), term(names=("c",)))
    return {
        "allocatable": nodes.allocatable("cpu"),
        "requested": nodes.requested("cpu"),
        "nothing": nodes.requested("x.com/y"),
        "scoring_cpu": nodes.scoring_cpu,
        "scoring_memory": nodes.scoring_memory,
        "pod_count": nodes.pod_count,
        "unschedulable": nodes.unschedulable,
        "taints": nodes.measure_taints(lambda taints, tolerations: len(taints), ()),
        "satisfying": nodes.satisfying(label_in("zone", "x")),
        "matching_term": nodes.matching_term(term(names=("c",))),
        "matching": nodes.matching(selector),
        "ports": nodes.in_port_conflict([HostPort("10.0.0.1", "TCP", 80)]),
        "image": nodes.image("app")[0],
    }


def test_some_rows_in_their_order(snapshot):
    nodes = Nodes(snapshot, np.array(ROWS))
    assert {name: column.tolist() for name, column in columns(nodes).items()} == {
        "allocatable": [3000, 1000, 2000],
        "requested": [0, 0, 500],
        "nothing": [0, 0, 0],
        "scoring_cpu": [0, 0, 500],
        "scoring_memory": [0, 0, 70],
        "pod_count": [0, 0, 1],
        "unschedulable": [True, False, False],
        "taints": [0, 0, 2],
        "satisfying": [False, True, False],
        "matching_term": [True, False, False],
        "matching": [True, True, False],
        "ports": [False, False, True],
        "image": [True, True, False],
    }
    assert (len(nodes), [nodes.node(i).name for i in range(3)]) == (3, ["c", "a", "b"])


def test_the_whole_table_says_the_same(snapshot):
    whole, some = Nodes(snapshot), Nodes(snapshot, np.array(ROWS))
    assert len(whole) == snapshot.capacity == whole.rows.size
    for name, column in columns(whole).items():
        assert column.shape == (snapshot.capacity,), name
        assert column[ROWS].tolist() == columns(some)[name].tolist(), name


def test_how_many_nodes_have_an_image_is_counted_over_all_that_are_there(snapshot):
    assert Nodes(snapshot, np.array([0])).image("app")[1:] == (7, 2)
    assert Nodes(snapshot).image("unknown")[1:] == (0, 0)


def test_masks_handed_out_as_fresh_are(snapshot):
    nodes = Nodes(snapshot, np.array(ROWS))
    nodes.false()[0] = True
    assert nodes.false().tolist() == [False, False, False]


def test_a_free_row_has_no_node(snapshot):
    with pytest.raises(LookupError):
        Nodes(snapshot, np.array([3])).node(0)
