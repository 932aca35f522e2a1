"""SupportedFeatures: refuse what this version cannot honour, instead of placing the pod without it.

This plugin is ours; kube-scheduler has none such.  A pod whose spec could not be read in full is
refused here, too, with the field and the reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from moorage.core.framework.interface import Reads, Rejected, Skip, Verdict
from moorage.core.model.cluster_event import Action, Resource, WakesOn
from moorage.core.model.decision import Code
from moorage.core.model.pod import Pod
from moorage.core.snapshot.snapshot import Snapshot
from moorage.core.snapshot.view import Nodes


class SupportedFeatures:
    """Rejects pods that ask for something unsupported or are malformed."""

    name: ClassVar[str] = "SupportedFeatures"
    reads: ClassVar[Reads] = Reads.NODE

    def pre_filter(self, pod: Pod, snapshot: Snapshot) -> Skip | Rejected:
        """Names every unsupported feature and every unreadable field."""
        reasons = (
            *(
                f"pod asks for {feature}, which this scheduler does not support yet"
                for feature in pod.spec.unsupported
            ),
            *(f"pod cannot be read: {problem}" for problem in pod.spec.invalid),
        )
        return Rejected(reasons, Code.UNRESOLVABLE) if reasons else Skip.SKIP

    def filter(self, state: None, nodes: Nodes) -> Verdict:
        """Never called, since pre_filter either skips or rejects."""
        return Verdict((), np.zeros((0, len(nodes)), dtype=np.bool_))

    def wakes_on(self) -> Sequence[WakesOn]:
        """Only a change of the pod itself helps."""
        return (
            WakesOn(Resource.PENDING_POD, Action.UPDATE_POD_OTHER),
            WakesOn(Resource.PENDING_POD, Action.UPDATE_POD_TOLERATIONS),
            WakesOn(Resource.PENDING_POD, Action.UPDATE_POD_SCALE_DOWN),
        )
