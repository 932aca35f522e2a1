"""Taints on nodes and the tolerations of pods (Kubernetes documentation, "Taints and Tolerations")."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

NO_SCHEDULE = "NoSchedule"
PREFER_NO_SCHEDULE = "PreferNoSchedule"
NO_EXECUTE = "NoExecute"

#: The taint that cordoning adds; NodeUnschedulable asks for its toleration.
UNSCHEDULABLE_KEY = "node.kubernetes.io/unschedulable"
NOT_READY_KEY = "node.kubernetes.io/not-ready"
UNREACHABLE_KEY = "node.kubernetes.io/unreachable"


@dataclass(frozen=True, slots=True)
class Taint:
    """A mark on a node that keeps away the pods that do not tolerate it."""

    key: str
    value: str = ""
    effect: str = NO_SCHEDULE


@dataclass(frozen=True, slots=True)
class Toleration:
    """What a pod tolerates; an empty key with Exists is any key, an empty effect any effect."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: Taint) -> bool:
        """Whether this toleration covers ``taint``; unknown operators cover nothing."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        if self.operator == "Exists":
            return True
        return self.operator in ("", "Equal") and self.value == taint.value


def tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    """Whether any of the tolerations covers ``taint``."""
    return any(t.tolerates(taint) for t in tolerations)
