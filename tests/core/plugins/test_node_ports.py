"""NodePorts."""

import pytest

from moorage.core.cache.node_changes import node_event
from moorage.core.framework.interface import Skip
from moorage.core.model.cluster_event import Action, ClusterEvent, Resource
from moorage.core.model.pod import HostPort
from moorage.core.plugins.node_ports import NodePorts
from moorage.core.snapshot.snapshot import Snapshot
from tests.kit.models import make_node, make_pod
from tests.kit.plugin_checks import refusals, wakes

NODES = [make_node("a"), make_node("b")]
REASON = "node(s) didn't have free ports for the requested pod ports"
HTTP = HostPort("10.0.0.1", "TCP", 80)


def gone(*ports):
    """A bound pod with these ports is deleted."""
    return ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE, make_pod("gone", ports=ports, node="a"), None)


@pytest.mark.parametrize(
    ("held", "conflict"),
    [
        (HTTP, True),
        (80, True),
        (HostPort("10.0.0.2", "TCP", 80), False),
        (HostPort("10.0.0.1", "UDP", 80), False),
        (HostPort("10.0.0.1", "TCP", 81), False),
    ],
)
def test_a_port_is_given_once_a_node(held, conflict):
    """And the going of its holder is what helps."""
    pod = make_pod("web", ports=[HTTP, 443])
    holder = make_pod("holder", ports=[held], node="b")
    assert refusals(NodePorts(), pod, NODES, [holder]) == ({"b": [REASON]} if conflict else {})
    assert wakes(NodePorts(), pod, gone(held)) is conflict


def test_one_taken_port_of_several_is_enough():
    holder = make_pod("holder", ports=[8443, 443], node="a")
    assert refusals(NodePorts(), make_pod("web", ports=[80, 443]), NODES, [holder]) == {"a": [REASON]}


def test_pods_without_host_ports_are_not_checked():
    assert NodePorts().pre_filter(make_pod("web"), Snapshot()) is Skip.SKIP


def test_a_new_node_helps():
    assert wakes(NodePorts(), make_pod("web", ports=[80]), node_event(None, make_node("c")))
    assert not wakes(NodePorts(), make_pod("web", ports=[80]), gone())
