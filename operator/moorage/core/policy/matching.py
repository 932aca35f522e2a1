"""Which pods a policy is about."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

from moorage.core.model.pod import Pod
from moorage.core.model.policy import Mode, Policy
from moorage.core.model.selector import Operator, Requirement


def in_scope(policy: Policy, namespace: str) -> bool:
    """Whether the policy may speak of pods in that namespace: one that lives in a namespace only of its own."""
    return policy.ref.namespace in ("", namespace)


def selects(policy: Policy, pod: Pod, namespace_labels: Mapping[str, str]) -> bool:
    """Whether a policy that is not disabled selects the pod; its canary is not looked at.

    ``namespace_labels`` are those of the pod's namespace.
    """
    selection = policy.selection
    return (
        policy.mode is not Mode.DISABLED
        and in_scope(policy, pod.namespace)
        and (not selection.priority_classes or pod.spec.priority_class in selection.priority_classes)
        and (not selection.scheduler_names or pod.spec.scheduler_name in selection.scheduler_names)
        and (not selection.expression or selection.expression in pod.holds)
        and selection.pods.matches(pod.labels)
        and (selection.namespaces is None or selection.namespaces.matches(namespace_labels))
    )


class Aspects:
    """What the selections of some policies read of a pod: pods with equal keys are selected by the same of them.

    Of a label only that is kept which a requirement could tell apart, so pods with labels of their own (those of a
    StatefulSet, say) still have few keys.
    """

    def __init__(self, policies: Iterable[Policy]) -> None:
        values: dict[str, set[str] | None] = {}  # None: every value may matter
        expressions: set[str] = set()
        self._reads_class = self._reads_scheduler = False
        for policy in policies:
            selection = policy.selection
            for requirement in selection.pods.requirements:
                _add(values, requirement)
            if selection.expression:
                expressions.add(selection.expression)
            self._reads_class |= bool(selection.priority_classes)
            self._reads_scheduler |= bool(selection.scheduler_names)
        self._values = values
        self._expressions = frozenset(expressions)

    def key(self, pod: Pod) -> Hashable:
        """What tells the pod from others of its namespace."""
        parts: list[Hashable] = []
        values = self._values
        for name, value in pod.labels.items():  # far fewer than the labels that hundreds of policies name
            if name in values:
                known = values[name]
                parts.append((name, value if known is None or value in known else True))
        return (
            frozenset(parts),
            pod.spec.priority_class if self._reads_class else "",
            pod.spec.scheduler_name if self._reads_scheduler else "",
            pod.holds & self._expressions if self._expressions else None,
        )


def _add(values: dict[str, set[str] | None], requirement: Requirement) -> None:
    known = values.setdefault(requirement.key, set())
    if requirement.operator in (Operator.GT, Operator.LT):
        values[requirement.key] = None
    elif known is not None:
        known.update(requirement.values)
