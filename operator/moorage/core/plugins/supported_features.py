"""SupportedFeatures: refuse what this version cannot honour, instead of placing the pod without it.

This plugin is ours; kube-scheduler has none such.  A pod whose spec could not be read in full is
refused here, too, with the field and the reason.

Devices are allocated by no part of this scheduler.  A pod may ask for them as for an extended resource, by a name
that a DeviceClass gives; a node that advertises that very resource has it from a device plugin and is treated as any
other, for kube-scheduler, too, allocates devices only where the node has none of it (``shouldDelegateResourceToDRA``;
docs/decisions/0014).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from moorage.core.framework.interface import Reads, Reason, Rejected, Skip, Verdict
from moorage.core.framework.trials import Balance, Trial
from moorage.core.model.cluster_event import Action, ClusterEvent, Resource, WakesOn
from moorage.core.model.decision import Code
from moorage.core.model.pod import Pod
from moorage.core.snapshot.snapshot import Snapshot
from moorage.core.snapshot.view import Nodes

#: Resources that the pod asks for and that mean devices of a class, each with the name of the class.
Devices = tuple[tuple[str, str], ...]


class SupportedFeatures:
    """Rejects pods that ask for something unsupported or are malformed."""

    name: ClassVar[str] = "SupportedFeatures"
    reads: ClassVar[Reads] = Reads.NODE | Reads.CLUSTER  # the DeviceClasses

    def pre_filter(self, pod: Pod, snapshot: Snapshot) -> Devices | Skip | Rejected:
        """Names every unsupported feature and every unreadable field; else finds what DeviceClasses stand for."""
        reasons = (
            *(
                f"pod asks for {feature}, which this scheduler does not support yet"
                for feature in pod.spec.unsupported
            ),
            *(f"pod cannot be read: {problem}" for problem in pod.spec.invalid),
        )
        if reasons:
            return Rejected(reasons, Code.UNRESOLVABLE)
        if not snapshot.device_classes:
            return Skip.SKIP
        return _devices(pod.spec.requests.amounts, snapshot) or Skip.SKIP

    def filter(self, state: Devices, nodes: Nodes) -> Verdict:
        """Nodes that do not advertise such a resource could offer it as devices only."""
        failed = [nodes.allocatable(resource) <= 0 for resource, _ in state]
        return Verdict(tuple(_reason(*device) for device in state), np.stack(failed))

    def trial(self, state: Devices, trial: Trial) -> Balance:
        """Pods on the node do not matter."""
        return Balance.fixed(self, state, trial)

    def wakes_on(self) -> Sequence[WakesOn]:
        """The pod itself changes; a class no longer stands for what it asks; a node advertises that itself."""
        return (
            WakesOn(Resource.PENDING_POD, Action.UPDATE_POD_OTHER),
            WakesOn(Resource.PENDING_POD, Action.UPDATE_POD_TOLERATIONS),
            WakesOn(Resource.PENDING_POD, Action.UPDATE_POD_SCALE_DOWN),
            WakesOn(Resource.DEVICE_CLASS, Action.UPDATE | Action.DELETE, _stood_for_what_is_asked),
            WakesOn(Resource.NODE, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE, _advertises),
        )


def _devices(amounts: Mapping[str, int], snapshot: Snapshot) -> Devices:
    found = ((r, snapshot.device_classes.of(r)) for r, amount in sorted(amounts.items()) if amount > 0)
    return tuple((resource, known.name) for resource, known in found if known is not None)


def _reason(resource: str, device_class: str) -> Reason:
    text = (
        f"node(s) could offer {resource} only as devices of DeviceClass {device_class}, "
        "which this scheduler does not support yet"
    )
    return Reason(text, resolvable=False)


def _stood_for_what_is_asked(pod: Pod, event: ClusterEvent) -> bool:
    after = () if event.new is None else event.new.resources
    return any(r not in after and pod.spec.requests.of(r) > 0 for r in event.old.resources)


def _advertises(pod: Pod, event: ClusterEvent) -> bool:
    before = {} if event.old is None else event.old.allocatable
    return any(
        amount > 0 and event.new.allocatable.get(r, 0) > 0 >= before.get(r, 0)
        for r, amount in pod.spec.requests.amounts.items()
    )
