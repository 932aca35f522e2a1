"""NodeAffinity."""

import pytest

from moorage.core.cache.node_changes import node_event
from moorage.core.framework.interface import Narrowed, Rejected, Skip
from moorage.core.model.decision import Code
from moorage.core.model.selector import NodeSelector, NodeSelectorTerm, Operator, PreferredTerm, Requirement
from moorage.core.plugins.node_affinity import NodeAffinity
from moorage.core.snapshot.snapshot import Snapshot
from tests.kit.models import label_in, make_node, make_pod, required, term
from tests.kit.plugin_checks import refusals, scores, wakes

A = make_node("a", labels={"zone": "x", "disk": "ssd"})
B = make_node("b", labels={"zone": "y"})
MISMATCH = "(node(s) didn't match Pod's node affinity/selector)"
ENFORCED = "(node(s) didn't match scheduler-enforced node affinity)"
X, Y = term(label_in("zone", "x")), term(label_in("zone", "y"))


def two_names(first, second):
    """A term that asks for both names at once."""
    return NodeSelectorTerm(fields=(label_in("metadata.name", *first), label_in("metadata.name", *second)))


@pytest.mark.parametrize(
    ("fields", "refused"),
    [
        ({"node_selector": {"zone": "x"}}, "b"),
        ({"node_selector": {"zone": "x", "disk": "hdd"}}, "ab"),
        ({"required": required(X)}, "b"),
        ({"required": required(X, Y)}, ""),
        ({"node_selector": {"disk": "ssd"}, "required": required(Y)}, "ab"),
        ({"required": NodeSelector()}, "ab"),
        ({"required": required(NodeSelectorTerm())}, "ab"),
        ({"required": required(X, term(names=("b",)))}, ""),
    ],
)
def test_selector_and_affinity_must_both_hold(fields, refused):
    expected = {name: [MISMATCH] for name in refused}
    assert refusals(NodeAffinity(), make_pod("web", **fields), [A, B]) == expected


def test_the_configured_affinity_is_asked_first_and_named_alone():
    plugin = NodeAffinity(added_required=required(X))
    assert refusals(plugin, make_pod("web"), [A, B]) == {"b": [ENFORCED]}
    pod = make_pod("web", node_selector={"disk": "hdd"})
    assert refusals(plugin, pod, [A, B]) == {"a": [MISMATCH], "b": [ENFORCED]}


@pytest.mark.parametrize(
    ("terms", "names"),
    [
        ([term(names=("a", "b"))], {"a", "b"}),
        ([term(names=("a",)), term(label_in("zone", "x"), names=("ghost",))], {"a", "ghost"}),
        ([two_names(("a", "b"), ("b", "c"))], {"b"}),
        ([two_names(("a",), ("b",)), term(names=("c",))], {"c"}),
        ([term(names=("a",)), X], None),
        ([NodeSelectorTerm(fields=(Requirement("metadata.name", Operator.NOT_IN, ("a",)),))], None),
    ],
)
def test_which_names_come_into_question(terms, names):
    """Terms are alternatives, so one that is open to every name opens them all."""
    answer = NodeAffinity().pre_filter(make_pod("web", required=required(*terms)), Snapshot())
    assert (answer.names if isinstance(answer, Narrowed) else None) == names


def test_names_that_exclude_each_other_reject_the_pod():
    pod = make_pod("web", required=required(two_names(("a",), ("b",))))
    expected = Rejected(("pod affinity terms conflict",), Code.UNRESOLVABLE)
    assert NodeAffinity().pre_filter(pod, Snapshot()) == expected


def test_without_affinity_there_is_nothing_to_check():
    pod = make_pod("web", preferred=(PreferredTerm(5, X),))
    assert NodeAffinity().pre_filter(pod, Snapshot()) is Skip.SKIP
    assert NodeAffinity(added_required=required(X)).pre_filter(pod, Snapshot()) is not Skip.SKIP


def test_weights_of_matching_terms_add_up_and_the_largest_sum_gets_a_hundred():
    terms = (PreferredTerm(30, X), PreferredTerm(10, term(label_in("disk", "ssd"))), PreferredTerm(15, Y))
    assert scores(NodeAffinity(), make_pod("web", preferred=terms), [A, B]) == ([40, 15], [100, 37])


def test_an_empty_preferred_term_matches_nothing():
    pod = make_pod("web", preferred=(PreferredTerm(30, NodeSelectorTerm()),))
    assert scores(NodeAffinity(), pod, [A, B]) == ([0, 0], [0, 0])


def test_the_configuration_s_preferences_count_for_every_pod():
    plugin = NodeAffinity(added_preferred=(PreferredTerm(3, Y),))
    assert scores(plugin, make_pod("web"), [A, B]) == ([0, 3], [0, 100])
    assert scores(NodeAffinity(), make_pod("web"), [A, B]) is None


def test_a_node_helps_when_it_comes_to_match():
    pod = make_pod("web", node_selector={"zone": "x"})
    relabelled = make_node("b", labels={"zone": "x"})
    assert wakes(NodeAffinity(), pod, node_event(B, relabelled))
    assert wakes(NodeAffinity(), pod, node_event(None, A))
    assert not wakes(NodeAffinity(), pod, node_event(None, B))
    assert not wakes(NodeAffinity(), pod, node_event(relabelled, B))
    assert not wakes(NodeAffinity(), pod, node_event(A, make_node("a", labels={"zone": "x"})))
    enforcing = NodeAffinity(added_required=required(term(label_in("disk", "ssd"))))
    assert not wakes(enforcing, pod, node_event(None, relabelled))
    assert wakes(enforcing, pod, node_event(None, A))
