"""Asking extenders, step by step; the engine's tests have the rest."""

import numpy as np

from moorage.core.cycle.consultation import Circumstances, Consultation
from moorage.core.framework.runner import Runner
from moorage.core.model.extender import Extender, Filtered, NoAnswer, Prioritized, Verb
from moorage.core.profile import default_profile
from moorage.core.snapshot.snapshot import Snapshot
from tests.kit.models import make_node, make_pod

FILTER = Extender("http://x", verbs=frozenset({Verb.FILTER}))
SCORE = Extender("http://y", verbs=frozenset({Verb.PRIORITIZE}), weight=3)


def talk(*extenders):
    snapshot = Snapshot()
    for name in "abc":
        snapshot.set_node(make_node(name, cpu=1000))
    profile = default_profile(without=("DefaultPreemption",))
    runner = Runner(profile.plugins, profile.weights, snapshot, extenders=extenders)
    return Consultation(runner, make_pod("web", cpu=100), Circumstances, extenders)


def play(steps, *answers):
    """Run to the end with these answers; gives the result and the node names of each question."""
    questions: list[tuple[str, ...]] = []
    reply = None
    for each in (*answers, None):
        try:
            asked = steps.send(reply)
        except StopIteration as end:
            return end.value, questions
        questions += [question.node_names for question in asked]
        reply = each
    raise AssertionError("more is asked than is answered")


def test_those_that_do_not_filter_are_not_asked():
    one = talk(SCORE)
    rows, asked = play(one.filter(one.rows()))
    assert (rows.size, asked) == (3, [])


def test_each_filter_is_asked_about_what_the_one_before_left():
    one = talk(FILTER, FILTER)
    rows, asked = play(one.filter(one.rows()), (Filtered(("c", "a"), {"b": "no"}),), (Filtered(("c",)),))
    assert asked == [("a", "b", "c"), ("a", "c")]
    assert one.refused["b"].reasons == ("no",)
    assert rows.tolist() == [2]


def test_when_none_is_left_nobody_is_asked_any_more():
    one = talk(FILTER, FILTER)
    rows, asked = play(one.filter(one.rows()), (Filtered(()),))
    assert (rows.size, len(asked), one.refusers) == (0, 1, {"http://x"})


def test_points_are_weighted_and_scaled():
    one = talk(FILTER, SCORE)
    (rows, given), _ = play(one.prioritize(one.rows()), (Prioritized((("a", 2), ("z", 9), ("a", 1))),))
    assert rows.size == 3
    assert given == {"http://x": {"a": 0, "b": 0, "c": 0}, "http://y": {"a": 90}}


def test_points_that_would_overflow_are_no_points():
    one = talk(SCORE)
    (_, given), _ = play(one.prioritize(one.rows()), (Prioritized((("a", 1 << 62),)),))
    assert given == {}


def test_a_promised_node_does_not_pass_where_an_extender_fails():
    one = talk(FILTER)
    passed, asked = play(one.nominated(1), (NoAnswer("down"),))
    assert (passed, asked) == (False, [("b",)])
    passed, _ = play(one.nominated(1), (Filtered(("b",)),))
    assert passed
    assert np.array_equal(one.rows(), [0, 1, 2])
