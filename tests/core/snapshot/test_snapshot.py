"""Rows, columns and masks; any order of changes is tried in ``tests/laws/test_cache_machine.py``."""

import numpy as np
import pytest

from moorage.core.model.selector import NodeSelector, NodeSelectorTerm, Operator, Requirement
from moorage.core.snapshot.snapshot import Snapshot
from tests.kit.models import MI, label_in, make_node, make_pod, required, taint, term


@pytest.fixture
def snapshot():
    """Nodes a, b, c with zones x, y and none."""
    snapshot = Snapshot()
    for name, labels in (("a", {"zone": "x"}), ("b", {"zone": "y"}), ("c", {})):
        snapshot.set_node(make_node(name, labels=labels))
    return snapshot


def named(snapshot, mask):
    """The nodes of a mask."""
    return "".join(snapshot.name_at(int(row)) for row in np.flatnonzero(mask & snapshot.alive))


def test_rows_are_stable_and_free_ones_are_used_again(snapshot):
    snapshot.drop_node("b")
    assert (snapshot.row_of("a"), snapshot.row_of("b"), snapshot.row_of("c")) == (0, None, 2)
    assert snapshot.set_node(make_node("d")) == 1
    assert snapshot.set_node(make_node("a", cpu=1)) == 0
    assert (snapshot.node_count, named(snapshot, snapshot.alive)) == (3, "adc")


def test_a_free_row_holds_no_node(snapshot):
    snapshot.drop_node("b")
    with pytest.raises(LookupError, match=r"^row 1 holds no node$"):
        snapshot.name_at(1)
    with pytest.raises(KeyError):
        snapshot.drop_node("b")


def test_a_row_that_is_freed_holds_nothing(snapshot):
    snapshot.set_node(
        make_node("b", unschedulable=True, taints=[taint("x")], images={"app": 1}, more={"x.com/y": 2})
    )
    snapshot.add_pod(1, make_pod("web", cpu=500, ports=[80]))
    snapshot.drop_node("b")
    columns = [
        snapshot.pod_count,
        snapshot.unschedulable,
        snapshot.allocatable("x.com/y"),
        snapshot.requested("cpu"),
    ]
    assert [bool(column[1]) for column in (*columns, snapshot.scoring_memory.values)] == [False] * 5
    assert (snapshot.taints.of(1), snapshot.pods[1], snapshot.host_ports._taken) == ((), {}, {})


def test_resources_a_node_does_not_name_any_more_are_gone(snapshot):
    snapshot.set_node(make_node("a", more={"x.com/y": 2}))
    assert snapshot.allocatable("x.com/y")[0] == 2
    snapshot.set_node(make_node("a"))
    assert snapshot.allocatable("x.com/y")[0] == 0


def test_images_come_and_go_with_the_node_s_status(snapshot):
    def having():
        return named(snapshot, snapshot.images.column("app", snapshot.nodes, snapshot.capacity)[0])

    assert having() == ""
    snapshot.set_node(make_node("a", images={"app": 1}))
    assert having() == "a"
    snapshot.set_node(make_node("a"))
    assert having() == ""


def test_a_resource_that_nobody_has():
    assert not Snapshot().allocatable("x.com/y").any()
    assert not Snapshot().requested("x.com/y").any()
    assert Snapshot().peak("x.com/y") == 0


def test_pods_are_counted_and_taken_off(snapshot):
    pod = make_pod("web", cpu=500, more={"x.com/y": 2, "x.com/z": 0})
    snapshot.add_pod(0, pod)
    assert (snapshot.pod_count[0], snapshot.requested("cpu")[0], snapshot.requested("x.com/y")[0]) == (
        1,
        500,
        2,
    )
    assert (snapshot.scoring_cpu.values[0], snapshot.scoring_memory.values[0]) == (500, 200 * MI)
    assert "x.com/z" not in snapshot.resources
    snapshot.remove_pod(0, pod)
    assert (snapshot.pod_count[0], snapshot.requested("cpu")[0], snapshot.scoring_cpu.values[0]) == (0, 0, 0)


def test_the_peak_of_a_resource_covers_what_nodes_have_pods_ask_and_scoring_counts(snapshot):
    assert snapshot.peak("cpu") == 4000
    snapshot.add_pod(0, make_pod("web", cpu=9000))
    assert snapshot.peak("cpu") == 9000
    snapshot.add_pod(0, make_pod("idle"))
    assert snapshot.peak("cpu") == 9100


def test_whether_every_node_has_some_of_a_resource(snapshot):
    assert snapshot.everywhere("cpu")
    assert not snapshot.everywhere("x.com/y")
    snapshot.set_node(make_node("b", cpu=0))
    assert not snapshot.everywhere("cpu")
    snapshot.drop_node("b")
    assert snapshot.everywhere("cpu")


def test_the_table_grows_with_everything_in_it(snapshot):
    snapshot.add_pod(0, make_pod("web", cpu=500, ports=[80]))
    masks = [snapshot.requirement_mask(label_in("zone", "x", "z")) for _ in range(2)]
    for number in range(100):
        snapshot.set_node(
            make_node(f"n{number}", labels={"zone": "z"}, taints=[taint(str(number))], images={"app": 1})
        )
    assert snapshot.capacity >= 103
    assert masks[0].size == 64
    assert np.count_nonzero(snapshot.requirement_mask(label_in("zone", "x", "z"))) == 101
    assert (snapshot.pod_count[0], snapshot.requested("cpu")[0]) == (1, 500)
    assert snapshot.taints.of(102)[0].key == "99"
    assert np.count_nonzero(snapshot.images.column("app", snapshot.nodes, snapshot.capacity)[0]) == 100


def test_journals_tell_changes_of_nodes_from_changes_of_pods(snapshot):
    static, usage = snapshot.static.epoch, snapshot.usage.epoch
    snapshot.add_pod(2, make_pod("web"))
    assert (snapshot.static.since(static).tolist(), snapshot.usage.since(usage).tolist()) == ([], [2])
    snapshot.set_node(make_node("b", cpu=1))
    assert (snapshot.static.since(static).tolist(), snapshot.usage.since(usage).tolist()) == ([1], [2])


# -- masks -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        (required(term(label_in("zone", "x"))), "a"),
        (required(term(label_in("zone", "x")), term(names=("c",))), "ac"),
        (required(term(label_in("zone", "x"), names=("b",))), ""),
        (required(term(names=("b", "ghost"))), "b"),
        (required(NodeSelectorTerm()), ""),
        (NodeSelector(), ""),
        (required(NodeSelectorTerm(fields=(Requirement("metadata.name", Operator.NOT_IN, ("a",)),))), "bc"),
        (required(NodeSelectorTerm(fields=(Requirement("metadata.uid", Operator.EXISTS),))), ""),
    ],
)
def test_selectors(snapshot, selector, expected):
    """A term without requirements matches no node, and neither does a field other than the name."""
    assert named(snapshot, snapshot.selector_mask(selector)) == expected


def test_a_mask_follows_the_nodes(snapshot):
    selector = required(term(label_in("zone", "x"), names=("a", "d")))
    assert named(snapshot, snapshot.selector_mask(selector)) == "a"
    snapshot.set_node(make_node("a"))
    snapshot.set_node(make_node("d", labels={"zone": "x"}))
    assert named(snapshot, snapshot.selector_mask(selector)) == "d"


def test_masks_are_not_computed_again_for_pods_that_come_and_go(snapshot):
    requirement = label_in("zone", "x")
    mask = snapshot.requirement_mask(requirement)
    snapshot.add_pod(0, make_pod("web"))
    assert snapshot.requirement_mask(requirement) is mask


def test_columns_of_labels_that_come_and_go_do_not_grow_for_ever(snapshot):
    for number in range(500):
        snapshot.set_node(make_node("host", labels={"hostname": str(number)}))
        snapshot.requirement_mask(label_in("hostname", str(number)))
        snapshot.drop_node("host")
    assert len(snapshot.label("hostname").values) < 100
