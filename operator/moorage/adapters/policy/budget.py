"""How long an evaluation may take.

What an expression may say bounds its cost (see ``rules``); the budget is for what is left.  Time is that which this
thread spends calculating, so that a busy machine makes no expression too slow.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol

from moorage.core.model.policy import ExpressionError

LIMIT: Final = 0.001
#: An expression that was too slow so often is not evaluated any more.
STRIKES: Final = 3

Clock = Callable[[], float]
CPU_CLOCK: Final[Clock] = time.thread_time


class Program(Protocol):
    """What the library compiles."""

    def execute(self, context: Any) -> Any:
        """The value for these variables: a dict or, where they are used more than once, the library's Context."""
        ...


class Budget:
    """Evaluates one program, and gives it up when it keeps being too slow."""

    __slots__ = ("_clock", "_program", "_strikes")

    def __init__(self, program: Program, clock: Clock = CPU_CLOCK) -> None:
        self._program = program
        self._clock = clock
        self._strikes = 0

    def evaluate(self, context: Any) -> Any:
        """The value; raises ExpressionError, also for one that came too late."""
        if self._strikes >= STRIKES:
            raise ExpressionError(
                f"is not evaluated any more: it took longer than {LIMIT * 1e3:g} ms {STRIKES} times"
            )
        start = self._clock()
        try:
            value = self._program.execute(context)
        except Exception as error:  # noqa: BLE001 - the library raises whatever fits
            self._charge(start)
            raise ExpressionError(explain(error)) from None
        self._charge(start)
        return value

    def _charge(self, start: float) -> None:
        took = self._clock() - start
        if took > LIMIT:
            self._strikes += 1
            raise ExpressionError(f"took {took * 1e3:.1f} ms, {LIMIT * 1e3:g} ms are allowed")


def check_cost(program: Program, contexts: Iterable[Any], clock: Clock = CPU_CLOCK) -> str | None:
    """Why the program is too slow, tried on data of growing size; None if it is not.

    The first are so small that even an expression that is far too slow ends soon, and the next are not tried
    then.  It gets three chances, since the first evaluation also pays for what is done once.
    """
    for context in contexts:
        took = 0.0
        for _ in range(3):
            start = clock()
            with contextlib.suppress(
                Exception
            ):  # a field that is not there, for one: only time is of interest
                program.execute(context)
            took = clock() - start
            if took <= LIMIT:
                break
        else:
            return f"takes {took * 1e3:.1f} ms, {LIMIT * 1e3:g} ms are allowed"
    return None


def explain(error: Exception) -> str:
    """The library's complaint on one line, without the advice it adds."""
    if "QuantityError: " in str(error):  # of a function of ours
        return str(error).rpartition("QuantityError: ")[2].partition(". Check")[0][:200]
    if isinstance(error, KeyError):
        return f"there is no {error.args[0]!r}" if error.args else "a key is missing"
    return " ".join(str(error).split(". ", 1)[0].split())[:200] or type(error).__name__
