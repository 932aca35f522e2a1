"""Cycles that wait for extenders: what is asked, what goes on meanwhile, and how they end."""

from dataclasses import replace

import pytest

from moorage.core.model.events import (
    BindFailure,
    BindSucceeded,
    ExtenderAnswered,
    NodeGone,
    PodGone,
    PodLeftPending,
    Reconfigured,
)
from moorage.core.model.extender import (
    Answer,
    Extender,
    Filtered,
    NoAnswer,
    Preempted,
    Prioritized,
    Question,
    Verb,
    Victims,
)
from moorage.core.model.instructions import Bind, CallExtender, Evict, Placement
from moorage.core.profile import default_profile
from moorage.core.queue.scheduling_queue import QueueSettings
from tests.core.driving import Driven, conditions, of_type, placements
from tests.kit.models import make_node, make_pod

FILTER = Extender("http://x", verbs=frozenset({Verb.FILTER}))
SCORE = Extender("http://y", number=1, verbs=frozenset({Verb.PRIORITIZE}), weight=1)


def driven(*extenders: Extender, without=("DefaultPreemption",)) -> Driven:
    profile = replace(default_profile(without=without), extenders=extenders)
    return Driven(profiles={"moorage": profile})


def asked(instructions) -> list[CallExtender]:
    return of_type(instructions, CallExtender)


def answer(engine: Driven, calls: list[CallExtender], *answers: Answer) -> None:
    for call, each in zip(calls, answers, strict=True):
        engine.tell(ExtenderAnswered(call.ticket, each))


@pytest.fixture
def waiting():
    """An engine whose cycle for ``web`` waits for a filter, and the call."""
    engine = driven(FILTER)
    engine.tell(make_node("a", cpu=1000), make_node("b", cpu=1000))
    pod = make_pod("web", cpu=600)
    engine.tell(pod)
    (call,) = asked(engine.run())
    return engine, pod, call


def test_the_feasible_nodes_are_sent_and_one_that_passes_is_chosen(waiting):
    engine, pod, call = waiting
    assert call.question == Question(FILTER, Verb.FILTER, pod.ref, ("a", "b"))
    assert not engine.engine.ready(engine.now)
    answer(engine, [call], Filtered(("b",)))
    assert placements(engine.run()) == {"web": "b"}


def test_no_other_cycle_starts_meanwhile(waiting):
    engine, _, call = waiting
    engine.tell(make_pod("next"))
    assert engine.later(60.0) == []
    answer(engine, [call], Filtered(("a",)))
    told = engine.step()
    assert placements(told) == {"web": "a"}
    assert [each.question.pod.name for each in asked(engine.run())] == ["next"]


def test_a_pod_that_no_extender_is_concerned_with_never_waits():
    engine = driven(replace(FILTER, managed=frozenset({"example.com/gpu"})))
    engine.tell(make_node("a", cpu=1000, more={"example.com/gpu": 1}), make_pod("plain"))
    assert engine.bound() == {"plain": "a"}
    engine.tell(make_pod("greedy", more={"example.com/gpu": 1}))
    assert len(asked(engine.run())) == 1


def test_reasons_become_the_condition_and_any_change_wakes_the_pod(waiting):
    engine, pod, call = waiting
    answer(engine, [call], Filtered((), {"a": "too green"}, {"b": "never"}))
    text = "0/2 nodes are available: 1 never, 1 too green."
    assert conditions(engine.run()) == [("web", "Unschedulable", text)]
    assert engine.place_of(pod) == "unschedulable"
    engine.tell(make_node("a", cpu=1000, labels={"x": "y"}))
    assert len(asked(engine.later(2.0))) == 1


def test_nodes_that_are_left_out_without_a_word_count_for_no_reason(waiting):
    engine, pod, call = waiting
    answer(engine, [call], Filtered(()))
    assert conditions(engine.run()) == [("web", "Unschedulable", "0/2 nodes are available:")]
    assert engine.queued(pod).rejectors == {"http://x"}


def test_a_change_during_the_wait_is_not_lost(waiting):
    engine, pod, call = waiting
    engine.tell(make_node("c", cpu=1000))
    answer(engine, [call], Filtered((), {"a": "no", "b": "no"}))
    engine.run()
    assert engine.place_of(pod) in ("backoff", "in-flight")


def test_a_row_that_is_full_by_then_is_not_chosen(waiting):
    engine, _, call = waiting
    engine.tell(make_pod("other", cpu=900, node="a"))
    answer(engine, [call], Filtered(("a", "b")))
    assert placements(engine.run()) == {"web": "b"}


def test_a_node_that_is_gone_by_then_is_not_chosen_nor_the_one_in_its_row(waiting):
    engine, _, call = waiting
    engine.tell(NodeGone("a"), make_node("stranger", cpu=8000))
    answer(engine, [call], Filtered(("a", "b")))
    assert placements(engine.run()) == {"web": "b"}


def test_if_none_is_left_by_then_the_reasons_are_those_of_now(waiting):
    engine, _, call = waiting
    engine.tell(make_pod("one", cpu=900, node="a"), make_pod("two", cpu=900, node="b"))
    answer(engine, [call], Filtered(("a", "b")))
    assert conditions(engine.run()) == [
        ("web", "Unschedulable", "0/2 nodes are available: 2 Insufficient cpu.")
    ]


@pytest.mark.parametrize("leave", [PodLeftPending, PodGone])
def test_a_pod_that_is_gone_takes_its_cycle_with_it(waiting, leave):
    engine, pod, call = waiting
    engine.tell(leave(pod.ref), make_pod("next"))
    told = engine.run()
    assert [each.question.pod.name for each in asked(told)] == ["next"]
    answer(engine, [call], Filtered(("a",)))
    assert engine.run() == []


def test_a_failure_is_an_error_and_the_pod_is_tried_again(waiting):
    engine, pod, call = waiting
    answer(engine, [call], NoAnswer("no answer within 5 s"))
    assert conditions(engine.run()) == [("web", "SchedulerError", "no answer within 5 s")]
    assert engine.place_of(pod) == "backoff"
    assert len(asked(engine.later(2.0))) == 1


def test_a_node_that_was_not_sent_is_an_error(waiting):
    engine, _, call = waiting
    answer(engine, [call], Filtered(("c",)))
    text = 'extender "http://x" claims a filtered node "c" which is not found in the input node list'
    assert conditions(engine.run()) == [("web", "SchedulerError", text)]


def test_an_answer_of_another_kind_is_an_error(waiting):
    engine, _, call = waiting
    answer(engine, [call], Prioritized(()))
    assert [reason for _, reason, _ in conditions(engine.run())] == ["SchedulerError"]


def test_an_ignorable_one_is_skipped():
    engine = driven(replace(FILTER, ignorable=True))
    engine.tell(make_node("a", cpu=1000), make_pod("web"))
    answer(engine, asked(engine.run()), NoAnswer("down"))
    assert placements(engine.run()) == {"web": "a"}


def test_filters_are_asked_in_turn_and_prioritizers_together():
    second = replace(FILTER, name="http://z", number=2)
    another = replace(SCORE, name="http://w", number=3, weight=2)
    engine = driven(FILTER, second, SCORE, another)
    engine.tell(*(make_node(name, cpu=1000) for name in "abc"), make_pod("web"))
    calls = asked(engine.run())
    answer(engine, calls, Filtered(("b", "a")))
    calls = asked(engine.run())
    assert [call.question.node_names for call in calls] == [("a", "b")]
    answer(engine, calls, Filtered(("a", "b")))
    calls = asked(engine.run())
    assert [call.question.extender for call in calls] == [SCORE, another]
    answer(engine, calls[1:], Prioritized((("b", 5),)))
    assert engine.run() == [], "one is still to come"
    answer(engine, calls[:1], Prioritized((("a", 9),)))
    assert placements(engine.run()) == {"web": "b"}


def test_a_prioritizer_that_fails_has_no_opinion():
    engine = driven(SCORE)
    engine.tell(make_node("a", cpu=1000), make_node("b", cpu=9000), make_pod("web", cpu=500))
    answer(engine, asked(engine.run()), NoAnswer("down"))
    assert placements(engine.run()) == {"web": "b"}


def test_the_only_node_is_not_rated():
    engine = driven(SCORE)
    engine.tell(make_node("a", cpu=1000), make_pod("web"))
    assert engine.bound() == {"web": "a"}


def test_a_change_of_configuration_begins_the_cycle_anew(waiting):
    engine, _, call = waiting
    profile = default_profile(without=("DefaultPreemption",))
    engine.tell(Reconfigured({"moorage": profile}, QueueSettings()))
    answer(engine, [call], Filtered(()))
    assert set(placements(engine.run())) == {"web"}


# -- preemption ----------------------------------------------------------------------------------

PREEMPT = Extender("http://p", verbs=frozenset({Verb.PREEMPT}))


def preempting() -> tuple[Driven, CallExtender]:
    engine = driven(PREEMPT, without=())
    for name in "ab":
        engine.tell(make_node(name, cpu=1000))
        engine.tell(*(make_pod(f"{name}{i}", cpu=400, priority=1, node=name) for i in (0, 1)))
    engine.tell(make_pod("urgent", cpu=900, priority=100))
    (call,) = asked(engine.run())
    return engine, call


def test_candidates_are_sent_with_their_victims():
    _, call = preempting()
    assert set(call.question.victims) == {"a", "b"}
    assert {ref.name for ref in call.question.victims["a"].pods} == {"a0", "a1"}
    assert isinstance(call.question.victims["a"], Victims)


def test_only_candidates_and_victims_that_it_leaves_are_taken():
    engine, call = preempting()
    answer(engine, [call], Preempted({"b": (("uid-b1",), 0)}))
    (evict,) = of_type(engine.run(), Evict)
    assert (evict.node_name, [ref.name for ref in evict.victims]) == ("b", ["b1"])


def test_a_candidate_whose_node_has_filled_up_meanwhile_is_none():
    engine, call = preempting()
    engine.tell(make_pod("vip", cpu=150, priority=1000, node="b"))
    answer(engine, [call], Preempted({"b": (("uid-b0", "uid-b1"), 0)}))
    told = engine.run()
    assert of_type(told, Evict) == []
    assert "preemption: no candidate node for preemption" in conditions(told)[0][2]


def test_a_victim_that_went_meanwhile_needs_no_eviction():
    engine, call = preempting()
    engine.tell(PodGone(make_pod("b0").ref))
    answer(engine, [call], Preempted({"b": (("uid-b0", "uid-b1"), 0)}))
    (evict,) = of_type(engine.run(), Evict)
    assert [ref.name for ref in evict.victims] == ["b1"]


def test_its_failure_means_no_preemption_this_time():
    engine, call = preempting()
    answer(engine, [call], NoAnswer("down"))
    told = engine.run()
    assert of_type(told, Evict) == []
    assert conditions(told)[0][2] == "0/2 nodes are available: 2 Insufficient cpu. preemption: down"


# -- bind ----------------------------------------------------------------------------------------

BINDER = Extender("http://b", binds=True)


def test_the_placement_says_who_binds():
    engine = driven(BINDER)
    pod = make_pod("web")
    engine.tell(make_node("a", cpu=1000), pod)
    (bind,) = of_type(engine.run(), Bind)
    assert bind == Bind((Placement(pod.ref, "a", "http://b"),))
    engine.tell(BindSucceeded(pod.ref, "a"))
    engine.run()
    assert engine.place_of(pod) == ""


def test_what_the_binding_extender_says_is_the_message():
    engine = driven(BINDER)
    pod = make_pod("web")
    engine.tell(make_node("a", cpu=1000), pod)
    engine.run()
    engine.fail(pod, "a", BindFailure.EXTENDER, "not today")
    assert conditions(engine.run()) == [("web", "SchedulerError", "not today")]
