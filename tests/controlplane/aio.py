"""The test client for async tests: every call runs in a thread, so the loop under test is never held up by the test."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import ParamSpec, TypeVar

from tests.controlplane.client import PATIENCE, Client

P = ParamSpec("P")
R = TypeVar("R")


def _threaded(function: Callable[P, R]) -> Callable[P, Awaitable[R]]:
    def call(*args: P.args, **kwargs: P.kwargs) -> Awaitable[R]:
        return asyncio.to_thread(function, *args, **kwargs)

    return call


class AsyncClient:
    """Client's methods as coroutines, by the same names and arguments."""

    def __init__(self, client: Client) -> None:
        self.sync = client
        self.request = _threaded(client.request)
        self.create = _threaded(client.create)
        self.get = _threaded(client.get)
        self.find = _threaded(client.find)
        self.list = _threaded(client.list)
        self.patch = _threaded(client.patch)
        self.patch_status = _threaded(client.patch_status)
        self.delete = _threaded(client.delete)
        self.bind = _threaded(client.bind)
        self.apply = _threaded(client.apply)
        self.node_of = _threaded(client.node_of)
        self.placements = _threaded(client.placements)
        self.condition = _threaded(client.condition)
        self.events = _threaded(client.events)

    async def wait_for(
        self, predicate: Callable[[], R | Awaitable[R]], timeout: float = 10, what: str = ""
    ) -> R:
        """Call `predicate` (plain or async) until it gives something true; AssertionError long after `timeout`."""
        timeout *= PATIENCE
        deadline = time.monotonic() + timeout
        while True:
            answer = predicate()
            value: R = await answer if inspect.isawaitable(answer) else answer
            if value:
                return value
            if time.monotonic() > deadline:
                raise AssertionError(f"not in {timeout} s: {what or predicate}; last: {value!r}")
            await asyncio.sleep(0.02)
