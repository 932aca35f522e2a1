"""A pod's claims: whether they can be used at all, and what is to be done about each.

Source of the rules and words: the plugin VolumeBinding of kube-scheduler v1.37 (``volume_binding.go``, ``binder.go``).
"""

from __future__ import annotations

from dataclasses import dataclass

from moorage.core.model.pod import Pod
from moorage.core.model.storage import PersistentVolumeClaim
from moorage.core.snapshot.storage import Storage


@dataclass(frozen=True, slots=True)
class PodClaims:
    """A pod's claims, in the order of its volumes."""

    bound: tuple[PersistentVolumeClaim, ...] = ()
    delayed: tuple[PersistentVolumeClaim, ...] = ()  # to be bound once a node is chosen
    immediate: tuple[PersistentVolumeClaim, ...] = ()  # should be bound, and are not


def claim_problem(pod: Pod, storage: Storage) -> str:
    """Why the pod's claims cannot be used at all, "" if they can."""
    for use in pod.volumes.claims:
        claim = storage.claims.get(f"{pod.namespace}/{use.name}")
        if claim is None:
            if use.ephemeral:
                return (
                    "waiting for ephemeral volume controller to create the persistentvolumeclaim "
                    f'"{use.name}"'
                )
            return f'persistentvolumeclaim "{use.name}" not found'
        if claim.phase == "Lost":
            return (
                f'persistentvolumeclaim "{claim.name}" bound to non-existent persistentvolume '
                f'"{claim.volume_name}"'
            )
        if claim.deleting:
            return f'persistentvolumeclaim "{claim.name}" is being deleted'
        if use.ephemeral and claim.owner != pod.uid:
            return f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)"
    return ""


def claims_of(pod: Pod, storage: Storage) -> PodClaims:
    """The pod's claims by what is to be done about them; ``claim_problem`` must have found nothing."""
    bound: list[PersistentVolumeClaim] = []
    delayed: list[PersistentVolumeClaim] = []
    immediate: list[PersistentVolumeClaim] = []
    for use in pod.volumes.claims:
        claim = storage.claim(f"{pod.namespace}/{use.name}")
        if claim is None:
            continue
        if claim.bound:
            bound.append(claim)
            continue
        storage_class = storage.classes.get(claim.storage_class) if claim.storage_class else None
        waits = storage_class is not None and storage_class.waits_for_consumer
        # A claim that names a volume itself is the volume controller's business, whatever its class.
        (delayed if waits and not claim.volume_name else immediate).append(claim)
    return PodClaims(tuple(bound), tuple(delayed), tuple(immediate))
