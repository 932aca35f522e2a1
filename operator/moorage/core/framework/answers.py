"""The plugins' joint answers, and the guard around every call of a plugin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

from moorage.core.framework.interface import FilterPlugin, Plugin, Verdict
from moorage.core.model.decision import Code, Rejection

Bools = npt.NDArray[np.bool_]
P = ParamSpec("P")
T = TypeVar("T")


class PluginError(Exception):
    """A plugin raised or broke its contract; the text names the plugin and the extension point."""

    def __init__(self, plugin: str, point: str, cause: object) -> None:
        super().__init__(f"running {point} plugin {plugin!r}: {cause}")
        self.plugin = plugin
        self.point = point


def guarded(plugin: Plugin, point: str, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a plugin; whatever it raises becomes a PluginError that names it."""
    try:
        return call(*args, **kwargs)
    except Exception as error:  # foreign code: its fault must cost one pod one attempt, and no more
        raise PluginError(plugin.name, point, f"{type(error).__name__}: {error}") from error


@dataclass(frozen=True, slots=True)
class PreFiltered:
    """PreFilter's joint answer: the Filter plugins that have something to say, with their states.

    ``names`` (None: all) are the only nodes that come into question, because of ``narrowed_by``.
    """

    active: tuple[tuple[FilterPlugin[Any], Any], ...] = ()
    names: frozenset[str] | None = None
    narrowed_by: tuple[str, ...] = ()
    rejection: Rejection | None = None


def rejection_at(plugin: str, verdict: Verdict, index: int) -> Rejection | None:
    """A verdict's words about one of its nodes, None if it has nothing against it."""
    if verdict.fits[index]:
        return None
    against = [r for r, failed in zip(verdict.reasons, verdict.failed[:, index], strict=True) if failed]
    code = Code.UNSCHEDULABLE if all(r.resolvable for r in against) else Code.UNRESOLVABLE
    return Rejection(plugin, tuple(r.text for r in against), code)
