"""Nodes."""

from dataclasses import replace

import pytest

from moorage.core.model.node import Node
from tests.kit.models import make_node, taint


def test_equal_nodes_are_equal():
    """The cache tells a change from a heartbeat by this."""
    assert make_node("a", labels={"x": "y"}) == make_node("a", labels={"x": "y"})


@pytest.mark.parametrize(
    "change", [{"labels": {"x": "y"}}, {"taints": (taint("t"),)}, {"unschedulable": True}, {"ready": "False"}]
)
def test_any_difference_counts(change):
    assert replace(make_node("a"), **change) != make_node("a")


def test_what_a_node_does_not_say():
    node = Node("a")
    assert (dict(node.labels), node.taints, dict(node.allocatable), node.ready) == ({}, (), {}, "")


def test_nodes_without_labels_share_one_mapping_that_nobody_can_write_to():
    assert Node("a").labels is Node("b").labels
    with pytest.raises(TypeError):
        Node("a").labels["x"] = "y"  # type: ignore[index]
