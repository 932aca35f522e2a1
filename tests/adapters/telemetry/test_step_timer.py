"""Steps by phase, and a sample of them by call."""

import random

import pytest

from moorage.adapters.telemetry.step_timer import StepTimer


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def test_phases_add_up_to_the_step(clock):
    timer = StepTimer(share=0.0, clock=clock)
    timer.begin()
    for phase, seconds in (("filter", 1.0), ("score", 2.0), ("filter", 4.0), ("tell", 8.0)):
        timer.phase(phase)
        clock.now += seconds
    assert timer.phases(16.0) == {"queue": 0.0, "filter": 5.0, "score": 2.0, "tell": 9.0}


def test_a_step_without_phases_was_the_queues(clock):
    timer = StepTimer(share=0.0, clock=clock)
    timer.begin()
    timer.phase("filter")
    timer.begin()
    assert timer.phases(3.0) == {"queue": 3.0}


def test_calls_within_calls(clock):
    timer = StepTimer(share=1.0, clock=clock)
    timer.begin()
    timer.calling()
    clock.now = 1.0
    timer.calling()
    clock.now = 3.0
    timer.called("Fit", "Filter", "Success")
    clock.now = 7.0
    timer.called("Preemption", "PostFilter", "Unschedulable")
    assert [(c.plugin, c.seconds, c.nested) for c in timer.calls] == [
        ("Fit", 2.0, True),
        ("Preemption", 7.0, False),
    ]
    timer.begin()
    assert timer.calls == []


def test_calls_do_not_add_up_for_ever(clock):
    timer = StepTimer(share=1.0, clock=clock)
    timer.begin()
    for _ in range(5000):
        timer.calling()
        timer.called("Fit", "Filter", "Success")
    assert len(timer.calls) == 1000


@pytest.mark.parametrize(("share", "expected"), [(0.0, 0), (0.01, 1000), (0.1, 10_000), (1.0, 100_000)])
def test_the_share_that_is_timed_in_detail(share, expected):
    timer = StepTimer(share=share, rng=random.Random(3))
    number = 0
    for _ in range(100_000):
        timer.begin()
        number += timer.detailed
    assert abs(number - expected) <= 0.1 * expected
