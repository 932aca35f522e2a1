"""Who looks on while the engine steps: the core has no clock, so whoever takes the time is handed in.

Plugins are called in many places, and hardly one of them knows of the engine.  So the watch is not passed down but
set for the length of one step, by whoever drives it.  It only looks on: with or without one, decisions are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import ParamSpec, Protocol, TypeVar

from moorage.core.framework.interface import Rejected, Skip, Wait
from moorage.core.model.decision import Code

P = ParamSpec("P")
T = TypeVar("T")


class Phase(StrEnum):
    """The parts of a step, in their order; a step begins in ``QUEUE``, and need not have all of them."""

    QUEUE = "queue"  # what time alone does, and taking out the next pod
    FILTER = "filter"  # PreFilter and Filter, of all nodes
    SCORE = "score"  # PreScore and Score
    DIAGNOSE = "diagnose"  # why not
    PREEMPT = "preempt"  # PostFilter
    POLICIES = "policies"  # holds, audits
    PLACE = "place"  # assume, Reserve, Permit, PreBind
    TELL = "tell"  # back into the queue, conditions, events


class Watch(Protocol):
    """Looks on at steps.  Must be cheap and must not raise."""

    @property
    def detailed(self) -> bool:
        """Whether it wants to know of each call of a plugin, of this step."""
        ...

    def phase(self, phase: Phase) -> None:
        """Another part of the step begins."""
        ...

    def calling(self) -> None:
        """A plugin is called now; calls may be nested (a dry run filters within PostFilter)."""
        ...

    def called(self, plugin: str, point: str, status: str) -> None:
        """The last call that has not ended ends; ``status`` is kube-scheduler's word for how (``status_of``)."""
        ...


class _Now:
    """Who looks on at this moment; a step never waits, so there is one moment at a time."""

    __slots__ = ("calls", "watch")

    def __init__(self) -> None:
        self.watch: Watch | None = None
        #: Who wants to know of each call of a plugin, if anybody does.
        self.calls: Watch | None = None


NOW = _Now()


def watched(watch: Watch, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Let it look on at the call.  (A context manager would cost more than all that it does.)"""
    NOW.watch = watch
    if watch.detailed:
        NOW.calls = watch
    try:
        return call(*args, **kwargs)
    finally:
        NOW.watch = NOW.calls = None


def enter(phase: Phase) -> None:
    """Another part of the step begins."""
    if NOW.watch is not None:
        NOW.watch.phase(phase)


def tell_of(
    watch: Watch, plugin: str, point: str, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Call a plugin, and tell how that went."""
    watch.calling()
    try:
        answer = call(*args, **kwargs)
    except BaseException:
        watch.called(plugin, point, "Error")
        raise
    watch.called(plugin, point, status_of(answer))
    return answer


def status_of(answer: object) -> str:
    """How a plugin's call ended, as a code of kube-scheduler's; Filter judges many nodes at once and so succeeds."""
    match answer:
        case Skip():
            return "Skip"
        case Rejected():
            return answer.code.value
        case Wait():
            return "Wait"
        case _:
            # A PostFiltered without a node to make room on; that module imports ours by a long way.
            return Code.UNSCHEDULABLE.value if getattr(answer, "chosen", "") is None else "Success"
