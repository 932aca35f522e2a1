"""Keeps what stateful plugins go by fresh, in the background."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from moorage.core.framework.interface import Plugin
from moorage.plugins.adapted import Refreshing
from moorage.plugins.watch import Watch

#: How long the start waits for the first refreshes.
PATIENCE = 5.0
#: A refresh that takes longer has failed.
LIMIT = 30.0


class Refresher:
    """Awaits each plugin's ``refresh`` at once and then at its period, for as long as the plugin is in use.

    ``on_ready`` is called once, when ``ready`` has become true: each of the first plugins has tried, or time is up.
    """

    def __init__(self, watch: Watch, on_ready: Callable[[], None] = lambda: None) -> None:
        self._watch = watch
        self._on_ready = on_ready
        self._wanted: dict[int, Refreshing] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._tried: set[int] = set()
        self._changed = asyncio.Event()
        self.ready = True

    def follow(self, plugins: Iterable[Plugin]) -> None:
        """These are in use from now on, and no others."""
        self._wanted = {id(plugin): plugin for plugin in plugins if isinstance(plugin, Refreshing)}
        if not self._tasks and not self._tried:
            self.ready = not self._wanted
        self._changed.set()

    async def run(self) -> None:
        """Do it for ever."""
        timer = asyncio.get_running_loop().call_later(PATIENCE, self._now_ready)
        try:
            while True:
                self._changed.clear()
                self._start_and_stop()
                await self._changed.wait()
        finally:
            timer.cancel()
            tasks = list(self._tasks.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _start_and_stop(self) -> None:
        for key in [key for key in self._tasks if key not in self._wanted]:
            self._tasks.pop(key).cancel()
        for key, plugin in self._wanted.items():
            if key not in self._tasks:
                task = asyncio.get_running_loop().create_task(
                    self._keep_fresh(plugin), name=f"moorage refresh of plugin {plugin.name}"
                )
                self._tasks[key] = task

    async def _keep_fresh(self, plugin: Refreshing) -> None:
        while True:
            await refresh(plugin, self._watch)
            self._tried.add(id(plugin))
            if not self.ready and self._tried >= self._wanted.keys():
                self._now_ready()
            await asyncio.sleep(plugin.declaration.refresh_every)

    def _now_ready(self) -> None:
        if not self.ready:
            self.ready = True
            self._on_ready()


async def refresh(plugin: Refreshing, watch: Watch) -> bool:
    """Refresh it once; false, and a word to the log, if that failed."""
    try:
        async with asyncio.timeout(LIMIT):
            await plugin.refresh()
    except TimeoutError as error:
        watch.stale(
            plugin.name, f"refresh() has failed: {str(error) or f'it took longer than {LIMIT:.0f} s'}"
        )
        return False
    except Exception as error:  # noqa: BLE001 - foreign code
        watch.stale(plugin.name, f"refresh() has failed: {type(error).__name__}: {error}")
        return False
    return True


async def refresh_once(plugins: Iterable[Plugin], watch: Watch) -> None:
    """Refresh all that can be, at the same time: for a command that decides once and ends."""
    await asyncio.gather(*(refresh(plugin, watch) for plugin in plugins if isinstance(plugin, Refreshing)))
