"""NodeName."""

import pytest

from moorage.core.cache.node_changes import node_event
from moorage.core.framework.interface import Narrowed, Skip
from moorage.core.plugins.node_name import NodeName
from moorage.core.snapshot.snapshot import Snapshot
from tests.kit.models import make_node, make_pod
from tests.kit.plugin_checks import refusals, wakes

NODES = [make_node("a"), make_node("b")]
REASON = "(node(s) didn't match the requested node name)"


@pytest.mark.parametrize(
    ("wanted", "refused"), [("b", {"a": [REASON]}), ("ghost", {"a": [REASON], "b": [REASON]}), ("", {})]
)
def test_every_other_node_is_refused(wanted, refused):
    assert refusals(NodeName(), make_pod("web", node_name=wanted), NODES) == refused


def test_only_the_named_node_comes_into_question():
    """So that eviction is considered on no other."""
    assert NodeName().pre_filter(make_pod("web", node_name="b"), Snapshot()) == Narrowed("b", frozenset("b"))
    assert NodeName().pre_filter(make_pod("web"), Snapshot()) is Skip.SKIP


def test_the_named_node_s_coming_helps_and_no_other_s():
    pod = make_pod("web", node_name="b")
    assert wakes(NodeName(), pod, node_event(None, make_node("b")))
    assert not wakes(NodeName(), pod, node_event(None, make_node("a")))
