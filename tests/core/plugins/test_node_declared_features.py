"""NodeDeclaredFeatures."""

from dataclasses import replace

import pytest

from moorage.core.cache.node_changes import node_event
from moorage.core.cache.pod_changes import pending_event
from moorage.core.framework.interface import Skip
from moorage.core.plugins.node_declared_features import NodeDeclaredFeatures
from moorage.core.snapshot.snapshot import Snapshot
from tests.kit.models import make_node, make_pod, make_spec
from tests.kit.plugin_checks import refusals, wakes

NONE, SOME, ALL = (), ("A",), ("A", "B", "C")
PLUGIN = NodeDeclaredFeatures()


@pytest.mark.parametrize(
    ("needed", "refused"),
    [(("A",), ["none"]), (("A", "B"), ["none", "some"]), (("D",), ["all", "none", "some"])],
)
def test_a_node_must_declare_every_feature(needed, refused):
    nodes = [make_node(n, declared_features=f) for n, f in (("none", NONE), ("some", SOME), ("all", ALL))]
    found = refusals(PLUGIN, make_pod("web", required_features=needed), nodes)
    text = "(node(s) didn't match Pod's required features)"
    assert found == {name: [text] for name in refused}


def test_most_pods_need_none():
    assert PLUGIN.pre_filter(make_pod("web"), Snapshot()) is Skip.SKIP


@pytest.mark.parametrize(
    ("before", "after", "helps"),
    [
        (None, ALL, True),
        (None, SOME, False),
        (SOME, ALL, True),
        (NONE, SOME, False),
        (ALL, ("A", "B"), False),
        (ALL, NONE, False),
    ],
)
def test_a_node_that_comes_to_declare_what_is_needed_helps(before, after, helps):
    pod = make_pod("web", required_features=("A", "B"))
    old = None if before is None else make_node("a", declared_features=before)
    assert wakes(PLUGIN, pod, node_event(old, make_node("a", declared_features=after))) is helps


def test_other_changes_of_nodes_do_not():
    pod = make_pod("web", required_features=("A",))
    node = make_node("a", declared_features=ALL)
    assert not wakes(PLUGIN, pod, node_event(node, replace(node, labels={"zone": "a"})))


def test_the_pod_s_own_needs_may_change():
    pod = make_pod("web", required_features=("A",))
    for needed, helps in ((("A",), False), (("A", "B"), True), ((), True)):
        changed = replace(pod, spec=make_spec(required_features=needed, cpu=1))
        assert wakes(PLUGIN, changed, pending_event(pod, changed)) is helps
