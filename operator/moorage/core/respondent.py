"""What an extender answers: the engine's judgement on the nodes that another scheduler asks about.

Nothing here changes what outlasts the call, but ``claim``.  Times are engine time; questions may name nodes and pods
that the engine has not seen yet, since the one who asks follows the cluster by streams of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

from moorage.core.cycle.refusals import Refusals, add_refusals
from moorage.core.cycle.scoring import score_nodes
from moorage.core.engine import Engine, Vantage
from moorage.core.framework.answers import PluginError
from moorage.core.framework.budgets import Budgets
from moorage.core.framework.interface import MAX_NODE_SCORE
from moorage.core.framework.preemption_guards import NO_GUARDS, Guards
from moorage.core.model.decision import Code, Rejection
from moorage.core.model.extender import (
    MAX_EXTENDER_PRIORITY,
    MOST_UNSEEN,
    Filtered,
    NoAnswer,
    Preempted,
    Prioritized,
)
from moorage.core.model.instructions import Bind
from moorage.core.model.node import Node
from moorage.core.model.pod import Pod
from moorage.core.plugins.default_preemption import DefaultPreemption

Ints = npt.NDArray[np.int64]

#: The scheduler has found out which budgets an eviction breaks.
_NO_BUDGETS = Budgets(())

_UNKNOWN = Rejection("Cache", ("node(s) not known to Moorage yet",))


class Respondent:
    """Answers for all pods, whoever schedules them."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._snapshot = engine.snapshot

    # -- filter ----------------------------------------------------------------------------------

    def filter(
        self, pod: Pod, names: Sequence[str], now: float, unseen: Sequence[Node] = ()
    ) -> Filtered | NoAnswer:
        """Which of these nodes may take the pod, in their order.

        ``unseen`` are whole objects of nodes; those that are known are judged as they are known.
        """
        view = self._engine.vantage(pod, now)
        if view.held is not None:
            refusals = Refusals()
            refusals.add(names, view.held)
            return Filtered((), refusals.failed, refusals.unresolvable)
        try:
            with self._with(unseen):
                return self._filter(view, names)
        except PluginError as error:
            return NoAnswer(str(error))

    def _filter(self, view: Vantage, names: Sequence[str]) -> Filtered:
        runner, pod, around = view.runner, view.pod, view.around
        rows = self._rows(names)
        screened = runner.screen(pod, around.nominated, names)
        passes = (rows >= 0) & screened.feasible[rows]
        if passes.all():
            return Filtered(tuple(names))
        refusals = Refusals()
        refusals.add([names[i] for i in np.flatnonzero(rows < 0).tolist()], _UNKNOWN)
        refused = np.flatnonzero((rows >= 0) & ~passes)
        if refused.size:
            diagnosis = runner.diagnose(pod, screened.pre, around.nominated, names)
            add_refusals(refusals, diagnosis, [names[i] for i in refused.tolist()], rows[refused])
        passed = tuple(names[i] for i in np.flatnonzero(passes).tolist())
        return Filtered(passed, refusals.failed, refusals.unresolvable)

    # -- prioritize ------------------------------------------------------------------------------

    def prioritize(
        self, pod: Pod, names: Sequence[str], now: float, unseen: Sequence[Node] = ()
    ) -> Prioritized | NoAnswer:
        """Scores of 0..10: the weighted mean of all that scores this pod's nodes, whose own scale is 0..100.

        Nodes that may not take the pod, and all nodes for a pod that nothing scores, get 0.
        """
        view = self._engine.vantage(pod, now)
        try:
            with self._with(unseen):
                scores = self._scores(view, names) if view.held is None else [0] * len(names)
        except PluginError as error:
            return NoAnswer(str(error))
        return Prioritized(tuple(zip(names, scores, strict=True)))

    def _scores(self, view: Vantage, names: Sequence[str]) -> list[int]:
        runner, pod = view.runner, view.pod
        rows = self._rows(names)
        result = np.zeros(len(names), dtype=np.int64)
        if not runner.scorers:
            return result.tolist()
        screened = runner.screen(pod, view.around.nominated, names)
        places = np.flatnonzero((rows >= 0) & screened.feasible[rows])
        weights = {plugin.name: weight for plugin, weight in runner.scorers}
        most = 0

        def spoke(plugin: str, _: Ints) -> None:
            nonlocal most
            most += weights[plugin] * runner.most.get(plugin, MAX_NODE_SCORE)

        totals = score_nodes(runner, pod, screened, rows[places], spoke)
        if most:
            result[places] = (2 * MAX_EXTENDER_PRIORITY * totals + most) // (2 * most)
        return result.tolist()

    # -- preempt ---------------------------------------------------------------------------------

    def preempt(
        self,
        pod: Pod,
        victims: Mapping[str, tuple[tuple[str, ...], int]],
        now: float,
        sent: Mapping[str, Pod] | None = None,
        unseen: Sequence[Node] = (),
    ) -> Preempted | NoAnswer:
        """The nodes, and what to evict there, that nothing speaks against.

        ``victims`` maps nodes to the UIDs of pods and to how many disruption budgets evicting them breaks, as the
        scheduler found; ``sent`` are such pods by UID, as far as it told.  A node whose victims may not be evicted, or
        would be in vain as the pod may not go there even then, is left out as a whole: what
        is there was found to be the least that makes room.
        """
        view = self._engine.vantage(pod, now)
        guards = _guards(view)
        if view.held is not None or guards.rules.never:
            return Preempted({})
        if guards == NO_GUARDS and not view.runner.filters:
            return Preempted(dict(victims))
        try:
            with self._with(unseen):
                kept = {
                    node: found
                    for node, found in victims.items()
                    if self._may_evict(view, guards, node, found, sent or {})
                }
        except PluginError as error:
            return NoAnswer(str(error))
        return Preempted(kept)

    def _may_evict(
        self,
        view: Vantage,
        guards: Guards,
        node: str,
        found: tuple[tuple[str, ...], int],
        sent: Mapping[str, Pod],
    ) -> bool:
        row = self._snapshot.row_of(node)
        if row is None:
            return False
        uids, violations = found
        on_node = self._snapshot.pods[row]
        known = [on_node.get(uid) or sent.get(uid) for uid in uids]
        victims = [victim for victim in known if victim is not None]
        if len(victims) < len(uids):
            return False  # of a pod that nobody has shown us, nothing can be said
        if not all(guards.allow(view.pod, victim, self._snapshot.now) for victim in victims):
            return False
        if guards.against(victims, _NO_BUDGETS) or (guards.rules.strict_budgets and violations > 0):
            return False
        runner = view.runner
        pre = runner.pre_filter(view.pod)
        if pre.rejection is not None and pre.rejection.code is Code.UNRESOLVABLE:
            return False
        if pre.names is not None and node not in pre.names:
            return False
        removed = [victim for victim in victims if victim.uid in on_node]
        return runner.judge_with(pre, row, (), removed) is None

    # -- bind ------------------------------------------------------------------------------------

    def claim(self, pod: Pod, node_name: str, now: float) -> Bind | Rejection:
        """See ``Claims.claim``; a plugin that fails is a rejection, and so is a hold."""
        held = self._engine.vantage(pod, now).held
        if held is not None:
            return held
        try:
            return self._engine.claims.claim(pod, node_name, now)
        except PluginError as error:
            return Rejection(error.plugin, (str(error),), Code.UNRESOLVABLE)

    # -- nodes -----------------------------------------------------------------------------------

    def _rows(self, names: Sequence[str]) -> Ints:
        """The row of each node, -1 for those that are not known, shape (len(names),)."""
        row_of = self._snapshot.row_of
        found = (row_of(name) for name in names)
        return np.fromiter((-1 if row is None else row for row in found), np.int64, len(names))

    @contextmanager
    def _with(self, unseen: Sequence[Node]) -> Iterator[None]:
        """With the first of those nodes that are not known yet; afterwards they are not known again."""
        new = {node.name: node for node in unseen if self._snapshot.row_of(node.name) is None}
        some = list(new.values())[:MOST_UNSEEN]
        for node in some:
            self._engine.cache.apply_node(node)
        try:
            yield
        finally:
            for node in some:
                self._engine.cache.remove_node(node.name)


def _guards(view: Vantage) -> Guards:
    plugins = (plugin for plugin in view.runner.plugins if isinstance(plugin, DefaultPreemption))
    return next((plugin.guards for plugin in plugins), NO_GUARDS)
