"""NodePorts: a host port is given to one pod of a node at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from moorage.core.framework.interface import Bools, Ints, Reads, Reason, Skip, Verdict
from moorage.core.framework.trials import Balance, Trial
from moorage.core.model.cluster_event import Action, ClusterEvent, Resource, WakesOn
from moorage.core.model.pod import HostPort, Pod
from moorage.core.snapshot.host_ports import conflicts, meetings
from moorage.core.snapshot.snapshot import Snapshot
from moorage.core.snapshot.view import Nodes

_REASONS = (Reason("node(s) didn't have free ports for the requested pod ports"),)


class NodePorts:
    """Compares address, protocol and number with the ports of the pods on the node."""

    name: ClassVar[str] = "NodePorts"
    reads: ClassVar[Reads] = Reads.USAGE

    def pre_filter(self, pod: Pod, snapshot: Snapshot) -> tuple[HostPort, ...] | Skip:
        """The pod's host ports."""
        return pod.spec.host_ports or Skip.SKIP

    def filter(self, state: tuple[HostPort, ...], nodes: Nodes) -> Verdict:
        """Nodes where one of the ports is taken fail."""
        return Verdict(_REASONS, nodes.in_port_conflict(state)[None, :])

    def trial(self, state: tuple[HostPort, ...], trial: Trial) -> Balance:
        """One sum: how often a wanted port meets one that is taken."""
        taken = trial.by_row(trial.snapshot.host_ports.times_in_conflict(state))
        weighed = trial.weighed(lambda pod: meetings(state, pod.spec.host_ports), taken > 0)

        def judge(change: Ints, at: Ints) -> Verdict:
            conflict: Bools = taken[at] + change[0] > 0
            return Verdict(_REASONS, conflict[None, :])

        return Balance.of((weighed,), judge)

    def wakes_on(self) -> Sequence[WakesOn]:
        """A pod that held one of the ports goes, or a node is added."""
        return (
            WakesOn(Resource.ASSIGNED_POD, Action.DELETE, _frees_a_port),
            WakesOn(Resource.NODE, Action.ADD),
        )


def _frees_a_port(pod: Pod, event: ClusterEvent) -> bool:
    return any(
        (held.protocol, held.port) == (wanted.protocol, wanted.port) and conflicts(wanted, held.ip)
        for held in event.old.spec.host_ports
        for wanted in pod.spec.host_ports
    )
