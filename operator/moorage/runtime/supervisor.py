"""Background tasks that must all live: the first that ends without being told to ends everything."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


class TaskEnded(Exception):
    """A task that should run for ever has returned."""


class Supervisor:
    """Starts tasks by name and watches them.

    ``on_failure`` is called once, with what the first one died of; stopping them is the owner's business,
    because what must be finished first is his to know.
    """

    def __init__(self, on_failure: Callable[[BaseException], None]) -> None:
        self._on_failure = on_failure
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._expected: set[str] = set()
        self.failure: BaseException | None = None

    def start(self, name: str, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run it as a task of this name."""
        task = asyncio.get_running_loop().create_task(coroutine, name=f"moorage {name}")
        self._tasks[name] = task
        task.add_done_callback(lambda done: self._ended(name, done))
        return task

    def fail(self, failure: BaseException) -> None:
        """Something died, be it a task or not; only the first counts."""
        if self.failure is None:
            self.failure = failure
            self._on_failure(failure)

    def release(self, name: str) -> None:
        """From now on this task may end by itself."""
        self._expected.add(name)

    async def join(self, name: str) -> None:
        """Wait until the task has ended, however it did."""
        if name in self._tasks:
            await asyncio.wait([self._tasks[name]])

    async def cancel(self, *names: str) -> None:
        """End these tasks (all, if none is named) and wait for their clean-up."""
        chosen = {name: self._tasks[name] for name in (names or tuple(self._tasks)) if name in self._tasks}
        self._expected.update(chosen)
        for task in chosen.values():
            task.cancel()
        if chosen:
            await asyncio.wait(chosen.values())

    def _ended(self, name: str, task: asyncio.Task[None]) -> None:
        self._tasks.pop(name, None)
        if task.cancelled():
            if name not in self._expected:
                self.fail(TaskEnded(f"{name} was cancelled"))
            return
        failure = task.exception()
        if failure is not None:
            while isinstance(failure, BaseExceptionGroup):  # the others only followed the first
                failure = failure.exceptions[0]
            self.fail(failure)
        elif name not in self._expected:
            self.fail(TaskEnded(f"{name} has ended"))
