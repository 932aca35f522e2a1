"""Stacks of the main thread, seen each time that it has used some CPU time."""

import asyncio
import signal
from collections import Counter

import pytest

from moorage.adapters.telemetry.debug.stack_sampler import Profile, sample


def at_work():
    return sum(i * i for i in range(20_000))


async def worker():
    while True:
        at_work()
        await asyncio.sleep(0)


async def test_the_loop_is_seen_where_it_works():
    busy = asyncio.create_task(worker())
    try:
        profile = await sample(0.5)
    finally:
        busy.cancel()
    found = [stack for stack in profile.stacks if any("at_work" in function for function in stack)]
    assert found
    assert any("worker" in function for function in found[0])
    assert profile.cpu > 0


async def test_a_loop_that_waits_uses_no_time():
    profile = await sample(0.3)
    assert sum(profile.stacks.values()) < 30
    assert profile.seconds >= 0.3


async def test_the_signal_is_as_it_was():
    before = signal.getsignal(signal.SIGPROF)
    await sample(0.01)
    assert signal.getsignal(signal.SIGPROF) is before
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)


async def test_only_the_main_thread_can_be_looked_at():
    def elsewhere():
        asyncio.run(sample(0.01))

    with pytest.raises(ValueError, match="main thread"):
        await asyncio.to_thread(elsewhere)


def test_what_is_told_of_the_stacks():
    profile = Profile(Counter({("main", "a", "b"): 6, ("main", "a"): 3, ("main", "a", "a"): 1}), 1.0, 0.25)
    assert profile.folded() == "main;a;b 6\nmain;a 3\nmain;a;a 1\n"
    table = profile.table().splitlines()
    assert table[0] == "10 samples; 0.25 s of CPU time in 1.00 s"
    assert [line.split() for line in table[2:]] == [
        ["60.0", "60.0", "b"],
        ["40.0", "100.0", "a"],
        ["0.0", "100.0", "main"],
    ]
