"""What an evaluation may cost, with a clock that says how long things took."""

import pytest

from moorage.adapters.policy.budget import LIMIT, STRIKES, Budget, check_cost, explain
from moorage.core.model.policy import ExpressionError


class Slow:
    """A program whose evaluations take the given times, and the clock that shows it."""

    def __init__(self, *times, result=True):
        self._times = iter(times)
        self._now = 0.0
        self._result = result
        self.contexts = []

    def execute(self, context):
        self.contexts.append(context)
        self._now += next(self._times)
        if isinstance(self._result, Exception):
            raise self._result
        return self._result

    def clock(self):
        return self._now


def test_what_is_in_time_counts():
    slow = Slow(LIMIT, 0.0)
    budget = Budget(slow, slow.clock)
    assert budget.evaluate({"a": 1}) is True
    assert budget.evaluate({}) is True
    assert slow.contexts == [{"a": 1}, {}]


def test_what_is_late_fails_and_is_given_up_when_it_goes_on():
    slow = Slow(*[0.002, 0.0] * STRIKES)
    budget = Budget(slow, slow.clock)
    for _ in range(STRIKES - 1):
        with pytest.raises(ExpressionError, match=r"took 2\.0 ms, 1 ms are allowed"):
            budget.evaluate({})
        assert budget.evaluate({}) is True
    with pytest.raises(ExpressionError, match="took"):
        budget.evaluate({})
    calls = len(slow.contexts)
    for _ in range(10):
        with pytest.raises(ExpressionError, match="not evaluated any more"):
            budget.evaluate({})
    assert len(slow.contexts) == calls


def test_an_error_that_comes_late_is_a_strike_too():
    slow = Slow(*[0.002] * STRIKES, result=KeyError("a"))
    budget = Budget(slow, slow.clock)
    for _ in range(STRIKES):
        with pytest.raises(ExpressionError, match="took"):
            budget.evaluate({})
    with pytest.raises(ExpressionError, match="not evaluated any more"):
        budget.evaluate({})


def test_an_error_in_time_says_what_it_is():
    slow = Slow(0.0, result=KeyError("memory"))
    with pytest.raises(ExpressionError, match="there is no 'memory'"):
        Budget(slow, slow.clock).evaluate({})


def test_tries_it_on_growing_data_until_it_is_too_slow():
    slow = Slow(0.0, 0.002, 0.0005, 0.5, 0.5, 0.5, 9.0)
    assert check_cost(slow, "abcd", slow.clock) == "takes 500.0 ms, 1 ms are allowed"
    assert slow.contexts == ["a", "b", "b", "c", "c", "c"]


def test_an_error_is_no_matter_of_cost():
    slow = Slow(*[0.0] * 4, result=RuntimeError("no"))
    assert check_cost(slow, "abcd", slow.clock) is None


def test_explains_on_one_line():
    assert explain(TypeError("No such overload. Convert\nit")) == "No such overload"
    assert explain(RuntimeError("")) == "RuntimeError"
