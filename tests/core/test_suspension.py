"""A cycle that waits for answers."""

from typing import Any

from moorage.core.model.extender import Extender, NoAnswer, Question, Verb
from moorage.core.suspension import Suspended
from tests.kit.models import make_pod

QUESTIONS = [Question(Extender(f"http://{n}"), Verb.FILTER, make_pod("web").ref) for n in "xy"]


def suspended() -> Suspended:
    nobody: Any = None
    return Suspended(nobody, nobody, QUESTIONS, first=7)


def test_each_question_has_a_ticket():
    assert [(call.ticket, call.question) for call in suspended().calls()] == list(
        zip((7, 8), QUESTIONS, strict=True)
    )


def test_it_is_complete_when_all_have_answered_whatever_else_comes():
    one = suspended()
    one.take(8, NoAnswer("second"))
    one.take(6, NoAnswer("another cycle's"))
    one.take(9, NoAnswer("another cycle's"))
    assert one.complete() is None
    one.take(7, NoAnswer("first"))
    one.take(7, NoAnswer("again"))
    assert one.complete() == (NoAnswer("first"), NoAnswer("second"))
