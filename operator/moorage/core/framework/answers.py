"""The plugins' joint answers, and the guard around every call of a plugin."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

from moorage.core.framework.interface import FilterPlugin, Plugin, ScorePlugin, Verdict
from moorage.core.framework.watching import NOW, tell_of
from moorage.core.model.decision import Code, Rejection
from moorage.core.snapshot.view import Nodes

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
P = ParamSpec("P")
T = TypeVar("T")


class PluginError(Exception):
    """A plugin raised or broke its contract; the text names the plugin and the extension point."""

    def __init__(self, plugin: str, point: str, cause: object) -> None:
        # kube-scheduler's words, which are not the same for all points.
        of = f'"{plugin}" filter plugin' if point == "Filter" else f'{point} plugin "{plugin}"'
        super().__init__(f"running {of}: {cause}")
        self.plugin = plugin
        self.point = point


def guarded(plugin: Plugin, point: str, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a plugin; whatever it raises becomes a PluginError that names it, unless it is one already."""
    watch = NOW.calls
    try:
        if watch is not None:
            return tell_of(watch, plugin.name, point, call, *args, **kwargs)
        return call(*args, **kwargs)
    except PluginError:
        raise
    except Exception as error:  # foreign code: its fault must cost one pod one attempt, and no more
        raise PluginError(plugin.name, point, f"{type(error).__name__}: {error}") from error


def verdict_of(plugin: FilterPlugin[Any], state: Any, nodes: Nodes) -> Verdict:
    """Call Filter and hold the answer to its contract."""
    verdict = guarded(plugin, "Filter", plugin.filter, state, nodes)
    if not isinstance(verdict, Verdict):
        raise PluginError(plugin.name, "Filter", f"must answer with a Verdict, not {type(verdict).__name__}")
    fits = verdict.fits
    if fits.dtype != np.bool_ or fits.shape != (len(nodes),):
        raise PluginError(
            plugin.name, "Filter", f"must judge {len(nodes)} nodes by booleans, not {fits.dtype}{fits.shape}"
        )
    return verdict


def scores_of(plugin: ScorePlugin[Any], state: Any, nodes: Nodes) -> Ints:
    """Call Score and hold the answer to its contract."""
    return _checked(plugin, "Score", guarded(plugin, "Score", plugin.score, state, nodes), len(nodes))


def normalized_of(plugin: ScorePlugin[Any], raw: Ints) -> Ints:
    """Call NormalizeScore and hold the answer to its contract."""
    scores = guarded(plugin, "NormalizeScore", plugin.normalize, raw)
    return _checked(plugin, "NormalizeScore", scores, raw.size)


def _checked(plugin: Plugin, point: str, scores: object, number: int) -> Ints:
    if not isinstance(scores, np.ndarray) or scores.dtype != np.int64 or scores.shape != (number,):
        got = f"{scores.dtype}{scores.shape}" if isinstance(scores, np.ndarray) else type(scores).__name__
        raise PluginError(plugin.name, point, f"must give {number} int64 scores, not {got}")
    return scores


@dataclass(frozen=True, slots=True)
class PreFiltered:
    """PreFilter's joint answer: the Filter plugins that have something to say, with their states.

    ``names`` (None: all) are the only nodes that come into question, because of ``narrowed_by``.  ``answers``
    holds what each plugin said that answers alike for alike pods.
    """

    active: tuple[tuple[FilterPlugin[Any], Any], ...] = ()
    names: frozenset[str] | None = None
    narrowed_by: tuple[str, ...] = ()
    rejection: Rejection | None = None
    rejectors: frozenset[str] = frozenset()  # whose change of mind would lift ``rejection``
    answers: Mapping[str, Any] = field(default_factory=dict)


def rejection_at(plugin: str, verdict: Verdict, index: int) -> Rejection | None:
    """A verdict's words about one of its nodes, None if it has nothing against it."""
    if verdict.fits[index]:
        return None
    against = [r for r, failed in zip(verdict.reasons, verdict.failed[:, index], strict=True) if failed]
    code = Code.UNSCHEDULABLE if all(r.resolvable for r in against) else Code.UNRESOLVABLE
    return Rejection(plugin, tuple(r.text for r in against), code)
