"""Supervised tasks: the first failure is told once, and expected ends are none."""

import asyncio

from moorage.runtime.supervisor import Supervisor, TaskEnded


async def forever():
    await asyncio.Event().wait()


async def fail(text):
    raise ValueError(text)


async def test_the_first_failure_is_told_and_only_it():
    told: list[BaseException] = []
    supervisor = Supervisor(told.append)
    supervisor.start("a", fail("first"))
    supervisor.start("b", fail("second"))
    supervisor.start("c", forever())
    await asyncio.sleep(0.01)
    assert [str(failure) for failure in told] == ["first"]
    assert supervisor.failure is told[0]
    await supervisor.cancel()
    assert len(told) == 1


async def test_a_task_that_just_returns_is_a_failure_too():
    told: list[BaseException] = []
    supervisor = Supervisor(told.append)
    supervisor.start("pending pods", asyncio.sleep(0))
    await asyncio.sleep(0.01)
    assert [(type(failure), str(failure)) for failure in told] == [(TaskEnded, "pending pods has ended")]


async def test_expected_ends_are_no_failures():
    told: list[BaseException] = []
    supervisor = Supervisor(told.append)
    supervisor.start("a", forever())
    supervisor.release("b")
    supervisor.start("b", asyncio.sleep(0))
    await asyncio.sleep(0.01)
    await supervisor.cancel("a", "unknown")
    await supervisor.cancel()
    assert told == []


async def test_a_task_cancelled_by_someone_else_is_a_failure():
    told: list[BaseException] = []
    supervisor = Supervisor(told.append)
    task = supervisor.start("a", forever())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0.01)
    assert str(told[0]) == "a was cancelled"
