"""Places that others have chosen for pods: checked, booked, and ready to be bound."""

from __future__ import annotations

from collections.abc import Callable

from moorage.core.cache.assumptions import Assumptions
from moorage.core.cache.cache import Cache
from moorage.core.cache.transaction import Transaction
from moorage.core.cycle.reservation import reserve, unreserve
from moorage.core.framework.answers import PluginError
from moorage.core.framework.runner import Runner
from moorage.core.model.decision import Code, Rejection
from moorage.core.model.instructions import Bind, Placement
from moorage.core.model.pod import Pod
from moorage.core.policy_effects import POLICIES_ANNOTATION


class Claims:
    """Books a pod's place at once, so that the next one is judged with it there, however slow the binding is."""

    def __init__(
        self,
        cache: Cache,
        assumptions: Assumptions,
        runner_of: Callable[[Pod], Runner],
        shaped_by: Callable[[Pod], str],
    ) -> None:
        self._cache = cache
        self._assumptions = assumptions
        self._runner_of = runner_of
        self._shaped_by = shaped_by

    def claim(self, pod: Pod, node_name: str, now: float) -> Bind | Rejection:
        """What is to be written, or why the pod may not go there; raises PluginError.

        The caller tells by ``BindSucceeded`` or ``BindFailed`` what came of it.
        """
        known = self._cache.state(pod.uid)
        if known is not None:
            return _refusal(f"the pod takes room on node {known.node_name} already")
        row = self._cache.snapshot.row_of(node_name)
        if row is None:
            return _refusal(f"node {node_name} is not known")
        runner = self._runner_of(pod)
        pre = runner.pre_filter(pod)
        rejection = pre.rejection or runner.judge(pre, row)
        if rejection is None and pre.names is not None and node_name not in pre.names:
            rejection = _refusal(f"node(s) didn't satisfy plugin(s) [{' '.join(pre.narrowed_by)}]")
        if rejection is not None:
            return rejection
        with Transaction(self._cache) as transaction:
            placed = transaction.place(pod, node_name)
            try:
                rejection = reserve(runner, placed)
            except PluginError:
                unreserve(runner, placed)
                raise
            if rejection is not None:
                unreserve(runner, placed)
                transaction.rollback()
                return rejection
            transaction.commit()
        self._assumptions.begin(placed, self._cache.stamp(node_name), now)
        names = self._shaped_by(placed)
        return Bind((Placement(pod.ref, node_name),), ((POLICIES_ANNOTATION, names),) if names else ())


def _refusal(text: str) -> Rejection:
    return Rejection("Binding", (text,), Code.UNRESOLVABLE)
