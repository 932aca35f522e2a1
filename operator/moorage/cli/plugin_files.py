"""Files with users' plugins on a command line: ``moorage run | simulate | decide | extender FILE.py``."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

import click

from moorage.core.framework.interface import Plugin
from moorage.core.profile import Additions
from moorage.plugins.adapted import Refreshing
from moorage.plugins.loading import PluginLoadError, load
from moorage.plugins.refresh import refresh_once
from moorage.plugins.watch import Watch

BROKEN: Final = 2


def split(files: Sequence[str]) -> tuple[list[str], list[str]]:
    """(the files with plugins, the others)."""
    ours = [file for file in files if file.endswith(".py")]
    return ours, [file for file in files if file not in ours]


def load_plugins(files: Sequence[str]) -> Additions:
    """The plugins of these files, and of installed packages; ends the process with 2 if one cannot be used."""
    try:
        return load(files)
    except PluginLoadError as error:
        for problem in error.problems:
            click.secho(problem, fg="red", err=True)
        raise SystemExit(BROKEN) from error


class Refreshed:
    """Has stateful plugins fetch what they go by, each once, for a command that decides and ends."""

    def __init__(self) -> None:
        self._done: dict[int, Plugin] = {}
        self._watch = Watch()

    def __call__(self, plugins: Iterable[Plugin]) -> None:
        """Wait until those of them that are new have tried."""
        fresh = {id(p): p for p in plugins if isinstance(p, Refreshing) and id(p) not in self._done}
        if fresh:
            asyncio.run(refresh_once(fresh.values(), self._watch))
            self._done |= fresh
