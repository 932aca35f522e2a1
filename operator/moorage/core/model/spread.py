"""Topology spread: how evenly the pods of a set should lie over the values of a node label.

Source of the rules: Kubernetes documentation, "Pod Topology Spread Constraints".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from moorage.core.model.selector import LabelSelector, Operator, Requirement

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"


@dataclass(frozen=True, slots=True)
class SpreadConstraint:
    """One constraint; ``hard`` is DoNotSchedule, else ScheduleAnyway.

    ``honor_affinity`` and ``honor_taints`` tell whether nodes count that the pod's node affinity, or
    their own taints, close to the pod (``nodeAffinityPolicy``, ``nodeTaintsPolicy``).  A selector of None
    matches nothing.
    """

    topology_key: str
    max_skew: int = 1
    hard: bool = True
    selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    min_domains: int = 1
    honor_affinity: bool = True
    honor_taints: bool = False

    def selector_for(self, labels: Mapping[str, str]) -> LabelSelector | None:
        """The selector as it is meant on a pod with these labels.

        kube-scheduler adds the values of ``matchLabelKeys`` whether or not the API server has merged them already; a
        key that the pod does not carry is left out of account.
        """
        if self.selector is None or not self.match_label_keys:
            return self.selector
        merged = (
            Requirement(key, Operator.IN, (labels[key],)) for key in self.match_label_keys if key in labels
        )
        return LabelSelector((*self.selector.requirements, *merged))


@dataclass(frozen=True, slots=True, eq=False)
class SpreadDefaults:
    """Constraints for pods without any of their own that belong to a Service or a workload.

    ``system`` tells that nobody configured them: only then do nodes count that lack one of the keys.
    """

    constraints: tuple[SpreadConstraint, ...]
    system: bool = False


#: What kube-scheduler asks, softly, if it is not told otherwise.
SYSTEM_DEFAULTS = SpreadDefaults(
    (SpreadConstraint(HOSTNAME, 3, hard=False), SpreadConstraint(ZONE, 5, hard=False)), system=True
)
