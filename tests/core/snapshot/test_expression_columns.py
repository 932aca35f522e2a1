"""Expressions as columns: when they are evaluated, what they see, and what becomes of errors."""

import math

import pytest

from moorage.core.model.events import UsageSample
from moorage.core.model.policy import Speaks
from moorage.core.model.resources import CPU, MEMORY, PODS
from moorage.core.snapshot.expression_columns import ExpressionColumns
from moorage.core.snapshot.snapshot import Snapshot
from tests.kit.models import GI, make_node, make_pod, taint
from tests.kit.policies import BLUE, RED, Scripted

NODE, REQUESTED, USAGE = Speaks.NODE, Speaks.REQUESTED, Speaks.USAGE


def made(number=3):
    snapshot = Snapshot()
    snapshot.now = 1000.0
    for index in range(number):
        snapshot.set_node(make_node(f"n{index}", cpu=1000 * (index + 1)))
    return snapshot


def truth(snapshot, expression, rows=None, ref=RED):
    return snapshot.expressions.truth(ref, expression, rows)[:3].tolist()


def seen(snapshot, speaks):
    """What an expression is shown of the first node."""
    found = []

    def look(node):
        found.append(node)
        return True

    snapshot.expressions.truth(RED, Scripted("look", speaks, look))
    return found[0]


# -- when ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("speaks", [NODE, REQUESTED, USAGE])
def test_a_node_is_looked_at_once(speaks):
    snapshot = made()
    expression = Scripted("small", speaks, lambda node: node.allocatable[CPU] < 2.0)
    for _ in range(3):
        assert truth(snapshot, expression) == [True, False, False]
    assert expression.asked == ["n0", "n1", "n2"]


@pytest.mark.parametrize(
    ("speaks", "node_changes", "pod_comes", "sampled"),
    [(NODE, 1, 0, 0), (REQUESTED, 1, 1, 0), (USAGE, 1, 1, 3), (NODE | REQUESTED, 1, 1, 0)],
)
def test_only_what_changed_is_looked_at_again(speaks, node_changes, pod_comes, sampled):
    snapshot = made()
    expression = Scripted("any", speaks, lambda node: True)

    def looks():
        expression.asked.clear()
        assert truth(snapshot, expression) == [True, True, True]
        return len(expression.asked)

    assert looks() == 3
    snapshot.set_node(make_node("n1", cpu=5))
    assert looks() == node_changes
    snapshot.add_pod(2, make_pod("web"))
    assert looks() == pod_comes
    snapshot.usage_samples.apply({"n0": UsageSample(1000.0, {CPU: 1})})
    assert looks() == sampled
    assert looks() == 0


def test_a_sample_that_goes_stale_is_a_change_of_its_node():
    snapshot = made()
    snapshot.usage_samples.apply({"n0": UsageSample(900.0, {CPU: 1}), "n1": UsageSample(1000.0, {CPU: 1})})
    expression = Scripted("known", USAGE, lambda node: CPU in node.usage)
    assert truth(snapshot, expression) == [True, True, False]
    snapshot.now = 1080.0
    assert truth(snapshot, expression) == [True, True, False]
    snapshot.now = 1080.5
    expression.asked.clear()
    assert truth(snapshot, expression) == [False, True, False]
    assert expression.asked == ["n0"]


def test_only_nodes_asked_about_are_looked_at():
    snapshot = made()
    expression = Scripted("any", NODE, lambda node: True)
    rows = snapshot.static.since(0)[1:2]
    assert truth(snapshot, expression, rows) == [False, True, False]
    assert expression.asked == ["n1"]
    assert truth(snapshot, expression) == [True, True, True]
    assert expression.asked == ["n1", "n0", "n2"]


def test_rows_without_a_node_are_false_and_not_asked_about():
    snapshot = made()
    expression = Scripted("any", NODE, lambda node: True)
    truth(snapshot, expression)
    snapshot.drop_node("n1")
    assert truth(snapshot, expression) == [True, False, True]
    assert snapshot.expressions.truth(RED, expression).sum() == 2
    snapshot.set_node(make_node("new"))
    assert truth(snapshot, expression) == [True, True, True]
    assert expression.asked == ["n0", "n1", "n2", "new"]


def test_a_journal_that_has_lost_track_makes_it_look_at_everything():
    snapshot = made()
    expression = Scripted("any", NODE, lambda node: node.allocatable[CPU] > 1.0)
    truth(snapshot, expression)
    for number in range(snapshot.static.LIMIT + 1):
        snapshot.set_node(make_node("n0", cpu=2000 + number % 2))
    assert truth(snapshot, expression) == [True, True, True]


def test_it_grows_with_the_snapshot():
    snapshot = made()
    expression = Scripted("any", NODE, lambda node: True)
    truth(snapshot, expression)
    for number in range(100):
        snapshot.set_node(make_node(f"more{number}"))
    assert snapshot.expressions.truth(RED, expression).sum() == 103


def test_columns_are_bounded(monkeypatch):
    monkeypatch.setattr(ExpressionColumns, "KEPT", 2)
    snapshot = made(1)
    texts = ["one", "two", "one", "three", "one", "two"]
    asked = []
    for text in texts:
        expression = Scripted(text, NODE, lambda node: True)
        truth(snapshot, expression)
        asked.append(len(expression.asked))
    assert asked == [1, 1, 0, 1, 0, 1]
    assert len(snapshot.expressions) == 2


# -- what it sees --------------------------------------------------------------------------------


def test_what_can_be_said_about_a_node():
    snapshot = Snapshot()
    snapshot.now = 1000.0
    node = make_node(
        "a", cpu=1500, memory=GI, pods=9, labels={"zone": "x"}, taints=[taint("k", "v")], more={"gpu": 2}
    )
    snapshot.set_node(node)
    snapshot.add_pod(0, make_pod("one", cpu=250, more={"other": 3}))
    snapshot.usage_samples.apply({"a": UsageSample(1000.0, {CPU: 300, "unknown": 7})})
    facts = seen(snapshot, NODE | REQUESTED | USAGE)
    assert facts.name == "a"
    assert facts.labels == {"zone": "x"}
    assert facts.taints == ({"key": "k", "value": "v", "effect": "NoSchedule"},)
    assert facts.allocatable == {CPU: 1.5, MEMORY: float(GI), PODS: 9.0, "gpu": 2.0}
    assert facts.requested == {CPU: 0.25, MEMORY: 0.0, PODS: 1.0, "gpu": 0.0, "other": 3.0}
    assert facts.usage == {CPU: pytest.approx(550 / 15)}  # the pod is younger than the sample


def test_use_is_absent_where_it_is_not_known():
    snapshot = made()
    assert seen(snapshot, USAGE).usage == {}
    snapshot.usage_samples.apply({"n0": UsageSample(819.9, {CPU: 300})})
    assert seen(snapshot, USAGE).usage == {}


# -- what becomes of it --------------------------------------------------------------------------


def test_what_fails_is_false_and_counted_for_its_policy():
    snapshot = made()
    expression = Scripted("zone", NODE, lambda node: node.labels["zone"] == "a")
    assert truth(snapshot, expression) == [False, False, False]
    truth(snapshot, expression)
    assert snapshot.expressions.failures(RED).count == 3
    assert snapshot.expressions.failures(RED).last == "zone: KeyError: 'zone'"
    assert snapshot.expressions.failures(BLUE).count == 0
    score = Scripted("share", NODE, lambda node: 1 / 0)
    assert snapshot.expressions.score(BLUE, score)[:3].tolist() == [0.0, 0.0, 0.0]
    assert snapshot.expressions.failures(BLUE).last == "share: ZeroDivisionError: division by zero"


def test_a_dropped_policy_begins_anew():
    snapshot = made()
    expression = Scripted("zone", NODE, lambda node: node.labels["zone"] == "a")
    truth(snapshot, expression)
    truth(snapshot, expression, ref=BLUE)
    snapshot.expressions.drop(RED)
    snapshot.expressions.drop(RED)
    assert (snapshot.expressions.failures(RED).count, snapshot.expressions.failures(BLUE).count) == (0, 3)
    assert len(snapshot.expressions) == 1
    truth(snapshot, expression)
    assert snapshot.expressions.failures(RED).count == 3


def test_one_text_can_be_a_rule_and_a_preference():
    snapshot = made()
    expression = Scripted("big", NODE, lambda node: node.allocatable[CPU] > 1.0)
    assert truth(snapshot, expression) == [False, True, True]
    assert snapshot.expressions.score(RED, expression)[:3].tolist() == [0.0, 100.0, 100.0]


@pytest.mark.parametrize(
    ("value", "score"), [(math.nan, 0.0), (math.inf, 0.0), (-math.inf, 0.0), (12.5, 12.5)]
)
def test_a_score_is_a_number(value, score):
    class Odd(Scripted):
        def score(self, node):
            return value

    snapshot = made()
    assert snapshot.expressions.score(RED, Odd("odd", NODE, lambda node: 0.0))[0] == score
