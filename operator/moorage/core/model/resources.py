"""Amounts of resources, as exact integers in base units.

CPU is counted in milli-CPU, everything else in whole units (bytes, devices, pods).  The source of
the unit rules is kube-scheduler's ``framework.Resource``: ``MilliValue()`` for cpu, ``Value()``
for the rest, both rounding up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"

#: Largest amount a single request or capacity can hold; larger ones are clamped to it.
MAX_AMOUNT = (1 << 63) - 1

#: What a container that names no request counts as when nodes are scored (never when fit is checked).
DEFAULT_MILLI_CPU = 100
DEFAULT_MEMORY = 200 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Requests:
    """What one pod takes on a node.

    ``amounts`` maps resource names to base units and holds only what is asked for, zeros included
    (a request of 0 of an unknown resource fits anywhere).  ``scoring_cpu`` and ``scoring_memory``
    are the same sums with the defaults above filled in per container.

    ``arriving_cpu`` and ``arriving_memory`` (None: the same) are what NodeResourcesFit counts when it scores nodes
    for this very pod: kube-scheduler v1.37 leaves pod-level resources out there, though not once it is placed.
    """

    amounts: Mapping[str, int]
    scoring_cpu: int = 0
    scoring_memory: int = 0
    arriving_cpu: int | None = None
    arriving_memory: int | None = None

    def of(self, resource: str) -> int:
        """The amount asked of ``resource``, 0 if it is not named."""
        return self.amounts.get(resource, 0)


def is_extended(resource: str) -> bool:
    """Whether a resource name is an extended one: with a domain that is not Kubernetes' own.

    Source of the rule: ``IsExtendedResourceName`` of the Kubernetes API helpers.
    """
    return "/" in resource and "kubernetes.io/" not in resource and not resource.startswith("requests.")


def is_scalar(resource: str) -> bool:
    """Whether a resource other than cpu, memory and ephemeral-storage takes part in scheduling at all.

    These are extended resources, huge pages, resources under kubernetes.io, and attachable-volume counts;
    kube-scheduler leaves requests of any other name out of account (``IsScalarResourceName``).
    """
    return (
        resource.startswith(("hugepages-", "attachable-volumes-"))
        or "kubernetes.io/" in resource
        or is_extended(resource)
    )
