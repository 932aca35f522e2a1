"""What a user's plugin sees of a pod."""

from __future__ import annotations

from collections.abc import Mapping

from moorage.core.model.pod import OwnerRef
from moorage.core.model.pod import Pod as CorePod
from moorage.core.model.taint import Toleration


class Pod:
    """The pod to be placed; it cannot be changed.

    With ``spec_only``, as plugins that are *pure* get it, what alike pods do not share raises AttributeError: labels,
    for one, since pods of one template with other labels would be given this pod's answer.
    """

    __slots__ = ("_pod", "_spec_only")

    def __init__(self, pod: CorePod, *, spec_only: bool = False) -> None:
        self._pod = pod
        self._spec_only = spec_only

    def __repr__(self) -> str:
        return f"<Pod {self._pod.key}>"

    def _own(self, what: str) -> CorePod:
        if self._spec_only:
            raise AttributeError(
                f"pod.{what} is not for a plugin that is pure: alike pods share its answers, whatever their {what}"
            )
        return self._pod

    # -- what pods of one template may differ in -------------------------------------------------

    @property
    def name(self) -> str:
        """``metadata.name``."""
        return self._own("name").name

    @property
    def namespace(self) -> str:
        """``metadata.namespace``."""
        return self._own("namespace").namespace

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return self._own("key").key

    @property
    def uid(self) -> str:
        """``metadata.uid``."""
        return self._own("uid").uid

    @property
    def labels(self) -> Mapping[str, str]:
        """``metadata.labels``."""
        return self._own("labels").labels

    @property
    def annotations(self) -> Mapping[str, str]:
        """Not there: the scheduler keeps no annotations of pods.  Raises AttributeError."""
        raise AttributeError("pod.annotations: the scheduler does not keep them; use a label")

    @property
    def owner(self) -> OwnerRef | None:
        """The controller that made the pod (``kind``, ``name``, ``uid``), None without one."""
        return self._own("owner").owner

    @property
    def created(self) -> float:
        """When it was created, in seconds since the epoch."""
        return self._own("created").created

    @property
    def nominated_node(self) -> str:
        """The node that was promised to it by a preemption, or ""."""
        return self._own("nominated_node").nominated_node

    # -- the spec --------------------------------------------------------------------------------

    @property
    def requests(self) -> Mapping[str, int]:
        """What it asks for by resource, in base units: thousandths of a CPU, bytes, devices."""
        return self._pod.spec.requests.amounts

    def request(self, resource: str) -> int:
        """What it asks of one resource, in base units, 0 if nothing."""
        return self._pod.spec.requests.of(resource)

    @property
    def priority(self) -> int:
        """Its priority."""
        return self._pod.spec.priority

    @property
    def priority_class(self) -> str:
        """The name of its PriorityClass, or ""."""
        return self._pod.spec.priority_class

    @property
    def scheduler_name(self) -> str:
        """``spec.schedulerName``."""
        return self._pod.spec.scheduler_name

    @property
    def node_selector(self) -> Mapping[str, str]:
        """``spec.nodeSelector``."""
        return self._pod.spec.node_selector

    @property
    def tolerations(self) -> tuple[Toleration, ...]:
        """``spec.tolerations``."""
        return self._pod.spec.tolerations

    @property
    def images(self) -> tuple[str, ...]:
        """The images of its containers, with tag, one entry a container."""
        return self._pod.spec.images
