"""SchedulingGates: a pod with scheduling gates stays out of the queue (KEP-3521)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from moorage.core.framework.interface import Rejected
from moorage.core.model.cluster_event import Action, Resource, WakesOn
from moorage.core.model.decision import Code
from moorage.core.model.pod import Pod


class SchedulingGates:
    """Keeps gated pods out until the last gate is removed."""

    name: ClassVar[str] = "SchedulingGates"

    def pre_enqueue(self, pod: Pod) -> Rejected | None:
        """A rejection that lists the gates, as kube-scheduler writes it."""
        if not pod.gates:
            return None
        gates = " ".join(pod.gates)
        return Rejected((f"waiting for scheduling gates: [{gates}]",), Code.UNRESOLVABLE)

    def wakes_on(self) -> Sequence[WakesOn]:
        """Only the removal of the gates helps."""
        return (WakesOn(Resource.PENDING_POD, Action.UPDATE_POD_GATES_ELIMINATED),)
