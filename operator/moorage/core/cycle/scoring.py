"""Scores: raw by plugin, normalised over the feasible nodes, weighted, added up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from moorage.core.framework.answers import PluginError, guarded, normalized_of, scores_of
from moorage.core.framework.interface import MAX_NODE_SCORE, ScorePlugin, Skip
from moorage.core.framework.runner import Runner, Screened
from moorage.core.model.pod import Pod
from moorage.core.snapshot.view import Nodes

Ints = npt.NDArray[np.int64]


def score_nodes(
    runner: Runner,
    pod: Pod,
    screened: Screened,
    rows: Ints,
    report: Callable[[str, Ints], None] | None = None,
) -> Ints:
    """The total score of the feasible nodes on ``rows``, shape (M,).

    ``report`` is called with each plugin's weighted, normalised scores (M,).  Raises PluginError,
    also for scores outside their scale, 0..MAX_NODE_SCORE as a rule, after normalising.
    """
    nodes = Nodes(runner.snapshot, rows)
    everywhere = rows.size == runner.snapshot.capacity
    total = np.zeros(rows.size, dtype=np.int64)
    shared = {} if screened.alike is None else screened.alike.raw
    for plugin, weight in runner.scorers:
        known = shared.get(plugin.name)
        raw = _ask(runner, plugin, pod, nodes) if known is None else known if everywhere else known[rows]
        if raw is None:
            continue
        scores = normalized_of(plugin, raw)
        most = runner.most.get(plugin.name, MAX_NODE_SCORE)
        if scores.size and (int(scores.min()) < 0 or int(scores.max()) > most):
            raise PluginError(plugin.name, "Score", f"a score is outside 0..{most}")
        weighted = scores if weight == 1 else scores * weight
        total += weighted
        if report is not None:
            report(plugin.name, weighted)
    return total


def _ask(runner: Runner, plugin: ScorePlugin[Any], pod: Pod, nodes: Nodes) -> Ints | None:
    state = guarded(plugin, "PreScore", plugin.pre_score, pod, runner.snapshot, nodes)
    if state is Skip.SKIP:
        return None
    return scores_of(plugin, state, nodes)
