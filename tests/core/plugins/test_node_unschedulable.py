"""NodeUnschedulable."""

from dataclasses import replace

import pytest

from moorage.core.cache.node_changes import node_event
from moorage.core.cache.pod_changes import pending_event
from moorage.core.model.taint import NO_EXECUTE, Toleration
from moorage.core.plugins.node_unschedulable import NodeUnschedulable
from tests.kit.models import make_node, make_pod, make_spec, taint
from tests.kit.plugin_checks import refusals, wakes

OPEN, CORDONED = make_node("a"), make_node("b", unschedulable=True)
KEY = "node.kubernetes.io/unschedulable"
POD = make_pod("web")


@pytest.mark.parametrize(
    ("toleration", "refused"),
    [
        (None, True),
        (Toleration(KEY, "Exists"), False),
        (Toleration("", "Exists"), False),
        (Toleration(KEY, "Equal", ""), False),
        (Toleration(KEY, "Equal", "yes"), True),
        (Toleration(KEY, "Exists", effect=NO_EXECUTE), True),
    ],
)
def test_cordoned_nodes_take_only_pods_that_tolerate_the_cordon(toleration, refused):
    """Whether or not the node carries the taint yet."""
    pod = make_pod("web", tolerations=() if toleration is None else (toleration,))
    expected = {"b": ["(node(s) were unschedulable)"]} if refused else {}
    assert refusals(NodeUnschedulable(), pod, [OPEN, CORDONED]) == expected


def test_an_uncordoned_or_a_new_open_node_helps():
    uncordoned = replace(CORDONED, unschedulable=False)
    assert wakes(NodeUnschedulable(), POD, node_event(CORDONED, uncordoned))
    assert wakes(NodeUnschedulable(), POD, node_event(None, OPEN))
    assert not wakes(NodeUnschedulable(), POD, node_event(None, CORDONED))
    assert not wakes(NodeUnschedulable(), POD, node_event(OPEN, CORDONED))
    assert not wakes(NodeUnschedulable(), POD, node_event(OPEN, replace(OPEN, taints=(taint("x"),))))


def test_the_pod_s_own_toleration_helps():
    for key, helps in ((KEY, True), ("other", False)):
        tolerant = replace(POD, spec=make_spec(tolerations=(Toleration(key, "Exists"),)))
        assert wakes(NodeUnschedulable(), tolerant, pending_event(POD, tolerant)) is helps
