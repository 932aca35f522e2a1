"""Which changes may help a pod that topology spread kept off a node.

Where kube-scheduler's hints leave such a pod waiting for the periodic flush although it could go (a pod that is being
deleted, a node that no longer counts because of its labels, other values of matchLabelKeys), these wake it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from moorage.core.framework.spreading import Spread, own_spreads, unasked_spreads
from moorage.core.model.cluster_event import Action, ClusterEvent, Resource, WakesOn
from moorage.core.model.node import Node
from moorage.core.model.pod import Pod
from moorage.core.model.spread import SpreadDefaults


@dataclass(frozen=True, slots=True)
class SpreadHints:
    """``defaults`` hold for pods without constraints of their own.

    Which pods those count depends on Services and workloads, which hints do not see: any pod of the namespace
    may matter.
    """

    defaults: SpreadDefaults

    def wakes_on(self) -> Sequence[WakesOn]:
        """Pods come, go or change labels; nodes come, go, move or change taints; the pod itself changes."""
        pods = Action.ADD | Action.UPDATE_POD_LABEL | Action.UPDATE_POD_DELETING | Action.DELETE
        own = Action.UPDATE_POD_TOLERATIONS | Action.UPDATE_POD_LABEL
        nodes = Action.ADD | Action.DELETE | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT
        wakes = (
            WakesOn(Resource.ASSIGNED_POD, pods, self.after_assigned_pod, alike=_constraints),
            WakesOn(Resource.PENDING_POD, own, self.after_own_change, per_spec=False),
            WakesOn(Resource.NODE, nodes, self.after_node),
        )
        if not any(constraint.hard for constraint in self.defaults.constraints):
            return wakes
        workloads = Action.ADD | Action.DELETE | Action.UPDATE_OTHER
        return (
            *wakes,
            WakesOn(Resource.WORKLOAD, workloads, self.after_workload, alike=_constraints),
        )

    def after_assigned_pod(self, pod: Pod, event: ClusterEvent) -> bool:
        """A placed pod of the namespace, which a constraint counts, came or goes or is counted differently."""
        old: Pod | None = event.old
        new: Pod | None = event.new
        either = new if new is not None else old
        if either is None or either.namespace != pod.namespace:
            return False
        if not pod.spec.spread:
            return True
        spreads = own_spreads(pod, hard=True).items
        if old is None or new is None or event.action & Action.UPDATE_POD_DELETING:
            return any(spread.means(either) for spread in spreads)
        return _counts_differently(spreads, old, new)

    def after_own_change(self, pod: Pod, event: ClusterEvent) -> bool:
        """The pod tolerates other taints and a constraint looks at them, or a constraint counts it differently."""
        if not pod.spec.spread:
            return True
        old: Pod = event.old
        new: Pod = event.new
        spreads = own_spreads(pod, hard=True).items
        if old.spec.tolerations != new.spec.tolerations and any(
            spread.constraint.honor_taints for spread in spreads
        ):
            return True
        keys = {key for spread in spreads for key in spread.constraint.match_label_keys}
        if any(old.labels.get(key) != new.labels.get(key) for key in keys):
            return True
        return _counts_differently(spreads, old, new)

    def after_node(self, pod: Pod, event: ClusterEvent) -> bool:
        """A node that has all topology keys came or went, or an other one now counts, or one counts elsewhere."""
        old: Node | None = event.old
        new: Node | None = event.new
        own = pod.spec.spread
        spreads = own_spreads(pod, hard=True) if own else unasked_spreads(pod, self.defaults)
        was, is_ = (
            node is not None and all(key in node.labels for key in spreads.keys) for node in (old, new)
        )
        if old is None or new is None or was != is_:
            return was or is_
        return is_ and any(
            old.labels[spread.constraint.topology_key] != new.labels[spread.constraint.topology_key]
            or (spread.rules is not None and spread.rules.admit(old) != spread.rules.admit(new))
            for spread in spreads.items
        )

    def after_workload(self, pod: Pod, event: ClusterEvent) -> bool:
        """A Service or a workload of the namespace changed whom it selects."""
        either = event.new if event.new is not None else event.old
        return not pod.spec.spread and either.namespace == pod.namespace


def _constraints(pod: Pod) -> Hashable:
    """What these hints read of a waiting pod; labels of its own, such as a StatefulSet's pod has, are no part of it."""
    return pod.namespace, own_spreads(pod, hard=True) if pod.spec.spread else None


def _counts_differently(spreads: Sequence[Spread], old: Pod, new: Pod) -> bool:
    return old.labels != new.labels and any(spread.means(old) != spread.means(new) for spread in spreads)
