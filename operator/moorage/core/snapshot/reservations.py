"""Volumes promised to placed pods, before the API server shows it.

Between the choice of a node and the volume controller's word, a chosen volume must not be chosen again, and
a claim that is to be provisioned for one node must not send another pod to a different one.  A promise is
about one state of an object: whatever the API server shows next takes its place (kube-scheduler: assume cache).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from moorage.core.model.storage import ClaimRef, PersistentVolume, PersistentVolumeClaim, StorageKind

T = TypeVar("T", PersistentVolume, PersistentVolumeClaim)


@dataclass(frozen=True, slots=True)
class Binding:
    """A claim and the existing volume chosen for it, both as they were believed to be when they were chosen."""

    claim: PersistentVolumeClaim
    volume: PersistentVolume


@dataclass(slots=True)
class Reservation:
    """What one pod was promised on its node.

    ``written`` are the resource versions that the API server gave to what we wrote, None while that is to be done.
    """

    pod_uid: str
    node_name: str
    bindings: tuple[Binding, ...] = ()
    provisions: tuple[PersistentVolumeClaim, ...] = ()
    written: dict[tuple[StorageKind, str], str] | None = field(default=None)

    def objects(self) -> Iterator[tuple[StorageKind, str]]:
        """What the promise is about."""
        for binding in self.bindings:
            yield StorageKind.VOLUME, binding.volume.name
            yield StorageKind.CLAIM, binding.claim.key
        for claim in self.provisions:
            yield StorageKind.CLAIM, claim.key


@dataclass(slots=True)
class _Assumed(Generic[T]):
    """An object as it will be, and the pods that rely on it."""

    obj: T
    pods: set[str]


class Reservations:
    """All promises, by pod."""

    def __init__(self) -> None:
        self.epoch = 0  # counts changes
        self._by_pod: dict[str, Reservation] = {}
        self._volumes: dict[str, _Assumed[PersistentVolume]] = {}
        self._claims: dict[str, _Assumed[PersistentVolumeClaim]] = {}
        self._volumes_of: dict[str, set[str]] = {}  # by claim
        self._concerned: dict[tuple[StorageKind, str], set[str]] = {}  # pods by object

    def __len__(self) -> int:
        return len(self._by_pod)

    def get(self, pod_uid: str) -> Reservation | None:
        """What the pod was promised, None if nothing was."""
        return self._by_pod.get(pod_uid)

    def concerned(self, kind: StorageKind, key: str) -> frozenset[str]:
        """The pods whose promise is about this object."""
        return frozenset(self._concerned.get((kind, key), ()))

    def begin(self, reservation: Reservation) -> None:
        """Promise; what the pod was promised before is void."""
        uid = reservation.pod_uid
        self.end(uid)
        self.epoch += 1
        self._by_pod[uid] = reservation
        for about in reservation.objects():
            self._concerned.setdefault(about, set()).add(uid)
        for binding in reservation.bindings:
            volume, ref = binding.volume, binding.claim.ref
            _assume(self._volumes, volume.name, replace(volume, claim=ref), uid)
            self._volumes_of.setdefault(ref.key, set()).add(volume.name)
        for claim in reservation.provisions:
            _assume(self._claims, claim.key, replace(claim, selected_node=reservation.node_name), uid)

    def end(self, pod_uid: str) -> None:
        """Take the promise back, or let it rest because it was kept."""
        reservation = self._by_pod.pop(pod_uid, None)
        if reservation is None:
            return
        self.epoch += 1
        for about in reservation.objects():
            pods = self._concerned.get(about)
            if pods is not None:
                pods.discard(pod_uid)
                if not pods:
                    del self._concerned[about]
        for binding in reservation.bindings:
            name, key = binding.volume.name, binding.claim.key
            if _release(self._volumes, name, pod_uid):
                volumes = self._volumes_of[key]
                volumes.discard(name)
                if not volumes:
                    del self._volumes_of[key]
        for claim in reservation.provisions:
            _release(self._claims, claim.key, pod_uid)

    def volume(self, shown: PersistentVolume) -> PersistentVolume:
        """The volume as it is to be believed, given what the API server shows."""
        assumed = self._volumes.get(shown.name) if self._volumes else None
        if assumed is None or assumed.obj.resource_version != shown.resource_version:
            return shown
        return assumed.obj

    def claim(self, shown: PersistentVolumeClaim) -> PersistentVolumeClaim:
        """The claim as it is to be believed, given what the API server shows."""
        assumed = self._claims.get(shown.key) if self._claims else None
        if assumed is None or assumed.obj.resource_version != shown.resource_version:
            return shown
        return assumed.obj

    def volumes_for(self, claim: ClaimRef) -> frozenset[str]:
        """The names of the volumes promised to a claim."""
        return frozenset(self._volumes_of.get(claim.key, ()))


def _assume(assumed: dict[str, _Assumed[T]], key: str, obj: T, uid: str) -> None:
    known = assumed.get(key)
    if known is None or known.obj.resource_version != obj.resource_version:
        pods = {uid} if known is None else known.pods | {uid}
        assumed[key] = _Assumed(obj, pods)
    else:
        known.pods.add(uid)


def _release(assumed: dict[str, _Assumed[T]], key: str, uid: str) -> bool:
    """True if no pod relies on it any more."""
    known = assumed.get(key)
    if known is None:
        return False
    known.pods.discard(uid)
    if known.pods:
        return False
    del assumed[key]
    return True
