"""Placed pods that wait for their volumes: between the choice of a node and the instruction to bind."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from moorage.core.cache.cache import Cache
from moorage.core.cycle.preparation import Ended, Preparing, error_text, prepare, revisit
from moorage.core.framework.answers import PluginError
from moorage.core.framework.runner import Runner
from moorage.core.model.events import VolumesNotPrepared, VolumesPrepared
from moorage.core.model.instructions import BindVolume, Instruction, PrepareVolumes, VolumeStep
from moorage.core.model.pod import Pod
from moorage.core.model.storage import StorageKind


class Conclusion(Protocol):
    """What becomes of a pod when its wait ends."""

    def bind_now(self, pod: Pod, now: float) -> list[Instruction]:
        """All is ready."""
        ...

    def give_back(self, pod: Pod, error: VolumesNotPrepared | str, now: float) -> list[Instruction]:
        """The pod gives its place up and is tried again."""
        ...


class Preparations:
    """The pods in PreBind.  A pod's place is held by the cache, what it was promised by the storage's reservations."""

    def __init__(self, cache: Cache, runner_of: Callable[[Pod], Runner], conclusion: Conclusion) -> None:
        self._cache = cache
        self._runner_of = runner_of
        self._conclusion = conclusion
        self._preparing: dict[str, Preparing] = {}
        self._steps: dict[str, tuple[VolumeStep, ...]] = {}
        self._tickets = 0

    def __len__(self) -> int:
        return len(self._preparing)

    def begin(self, pod: Pod, now: float) -> list[Instruction]:
        """Have done what the pod needs before it is bound; if that is nothing, bind it."""
        self._tickets += 1
        try:
            preparing, steps = prepare(self._runner_of(pod), pod, self._tickets, now)
        except PluginError as error:
            return self._conclusion.give_back(pod, str(error), now)
        if preparing is None:
            return self._conclusion.bind_now(pod, now)
        self._preparing[pod.uid] = preparing
        if steps:
            self._steps[pod.uid] = steps
            return [PrepareVolumes(pod.ref, preparing.ticket, steps)]
        return self._written(preparing, (), now)

    def end(self, uid: str) -> Pod | None:
        """Stop waiting, if the pod does; its place and promises are the caller's to undo."""
        self._steps.pop(uid, None)
        preparing = self._preparing.pop(uid, None)
        return None if preparing is None else preparing.pod

    def next_deadline(self) -> float | None:
        """When the first of the pods has waited too long; None if none waits."""
        return min((preparing.deadline for preparing in self._preparing.values()), default=None)

    # -- news ------------------------------------------------------------------------------------

    def prepared(self, event: VolumesPrepared, now: float) -> list[Instruction]:
        """What we asked for is written; the rest is up to the volume controller and the provisioners."""
        preparing = self._preparing.get(event.ref.uid)
        if preparing is None or preparing.ticket != event.ticket:
            return []
        return self._written(preparing, event.versions, now)

    def not_prepared(self, event: VolumesNotPrepared, now: float) -> list[Instruction]:
        """What we asked for could not be written."""
        preparing = self._preparing.get(event.ref.uid)
        if preparing is None or preparing.ticket != event.ticket:
            return []
        self.end(event.ref.uid)
        return self._conclusion.give_back(preparing.pod, event, now)

    def node_changed(self, node_name: str, now: float) -> list[Instruction]:
        """A node changed or is gone; pods that wait for volumes there may have to give up."""
        here = [uid for uid, preparing in self._preparing.items() if preparing.pod.node_name == node_name]
        return self.look_again(here, now)

    def overdue(self, now: float) -> list[Instruction]:
        """Give up on pods that have waited too long."""
        return self.look_again([uid for uid, p in self._preparing.items() if now >= p.deadline], now)

    def look_again(self, uids: Iterable[str], now: float) -> list[Instruction]:
        """Something that these pods may wait for has changed."""
        instructions: list[Instruction] = []
        for uid in uids:
            preparing = self._preparing.get(uid)
            if preparing is None:
                continue
            pod = preparing.pod
            try:
                ended = revisit(self._runner_of(pod), preparing, now)
            except PluginError as error:
                ended = Ended(str(error))
            if ended is None:
                continue
            self.end(uid)
            if ended.error:
                instructions += self._conclusion.give_back(pod, ended.error, now)
            else:
                # The API server shows all that was promised, so nothing has to be believed beyond that.
                self._cache.snapshot.storage.reservations.end(uid)
                instructions += self._conclusion.bind_now(pod, now)
        return instructions

    def _written(self, preparing: Preparing, versions: tuple[str, ...], now: float) -> list[Instruction]:
        uid = preparing.pod.uid
        steps = self._steps.pop(uid, ())
        reservation = self._cache.snapshot.storage.reservations.get(uid)
        if reservation is not None:
            reservation.written = {
                _about(step): version for step, version in zip(steps, versions, strict=True)
            }
        preparing.restart(now)
        return self.look_again((uid,), now)


def _about(step: VolumeStep) -> tuple[StorageKind, str]:
    if isinstance(step, BindVolume):
        return StorageKind.VOLUME, step.volume
    return StorageKind.CLAIM, step.claim.key


def failure_text(error: VolumesNotPrepared | str) -> str:
    """The words for the user."""
    return error if isinstance(error, str) else error_text("VolumeBinding", error.message)
