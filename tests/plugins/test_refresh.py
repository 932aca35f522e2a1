"""Stateful plugins are kept fresh in the background, and their failures cost nobody anything."""

import asyncio
import logging

import pytest

import moorage
from moorage.plugins import refresh as module
from moorage.plugins.declare import collecting
from moorage.plugins.refresh import Refresher, refresh_once
from moorage.plugins.watch import Watch
from tests.kit.user_plugins import user_plugins


@pytest.fixture(autouse=True)
def _apart():
    with collecting():
        yield


def made(on_refresh, *, every=1, name="fresh"):
    """A plugin whose refresh awaits this function's result, with the number of the call."""

    @moorage.plugin(name=name, refresh_every=every)
    class Fresh:
        def __init__(self):
            self.count = 0

        async def refresh(self):
            self.count += 1
            await on_refresh(self.count)

        def score(self, pod, nodes):
            return [0.0] * len(nodes)

    (plugin,) = user_plugins(Fresh).plugins
    return plugin


@pytest.fixture
async def begin():
    """A way to run one with these plugins: gives it, and an event for its being ready; it is stopped in the end."""
    ready = asyncio.Event()
    refresher = Refresher(Watch(), ready.set)
    tasks = []

    def run(*plugins):
        refresher.follow(plugins)
        tasks.append(asyncio.create_task(refresher.run()))
        return refresher, ready

    yield run
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_it_is_ready_when_all_have_tried(begin):
    go = asyncio.Event()

    async def waits(_):
        await go.wait()

    async def fails(_):
        raise OSError("away")

    refresher, ready = begin(made(waits), made(fails, name="failing"))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not refresher.ready
    go.set()
    async with asyncio.timeout(30):
        await ready.wait()
    assert refresher.ready


async def test_without_anything_to_refresh_it_is_ready_at_once(begin):
    refresher, _ = begin()
    assert refresher.ready


async def test_its_patience_ends(begin, monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 0.05)
    refresher, ready = begin(made(lambda _: asyncio.sleep(3600)))
    assert not refresher.ready
    async with asyncio.timeout(30):
        await ready.wait()


async def test_it_goes_on_after_failures_and_tells(begin, caplog):
    enough = asyncio.Event()

    async def sometimes(count):
        if count >= 3:
            enough.set()
        if count < 3:
            raise OSError("away")

    caplog.set_level(logging.WARNING)
    begin(made(sometimes))
    async with asyncio.timeout(30):
        await enough.wait()
    (record,) = caplog.records
    assert (
        "Plugin fresh: refresh() has failed: OSError: away; what was known before stays in use"
        in record.getMessage()
    )


async def test_one_that_takes_too_long_has_failed(caplog, monkeypatch):
    monkeypatch.setattr(module, "LIMIT", 0.01)
    caplog.set_level(logging.WARNING)
    await refresh_once([made(lambda _: asyncio.sleep(3600))], Watch())
    assert "took longer than" in caplog.text


async def test_those_no_longer_in_use_are_stopped_and_new_ones_begun(begin):
    stopped, begun = asyncio.Event(), asyncio.Event()

    async def first(_):
        try:
            await asyncio.sleep(3600)
        finally:
            stopped.set()

    async def second(_):
        begun.set()

    refresher, _ = begin(made(first))
    await asyncio.sleep(0.01)
    refresher.follow([made(second, name="second")])
    async with asyncio.timeout(30):
        await stopped.wait()
        await begun.wait()


async def test_what_stays_in_use_is_not_begun_again(begin):
    counts = []

    async def count(number):
        counts.append(number)

    plugin = made(count, every=3600)
    refresher, ready = begin(plugin)
    async with asyncio.timeout(30):
        await ready.wait()
    refresher.follow([plugin, plugin])
    for _ in range(5):
        await asyncio.sleep(0)
    assert counts == [1]
