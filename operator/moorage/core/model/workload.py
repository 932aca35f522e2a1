"""Objects that tell which pods belong together and where they live: Services, controllers, namespaces.

Only what default spreading and namespace selectors read of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from moorage.core.model.selector import LabelSelector


class WorkloadKind(StrEnum):
    """The kinds whose selectors default spreading reads."""

    SERVICE = "Service"
    REPLICATION_CONTROLLER = "ReplicationController"
    REPLICA_SET = "ReplicaSet"
    STATEFUL_SET = "StatefulSet"


@dataclass(frozen=True, slots=True)
class Workload:
    """A Service or a controller and the pods it selects.

    Services and ReplicationControllers select by ``labels``, which must all be there; the others by ``selector``.
    """

    kind: WorkloadKind
    namespace: str
    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    selector: LabelSelector | None = None


@dataclass(frozen=True, slots=True)
class Namespace:
    """A namespace and its labels."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
