"""The pods that wait for a change of the cluster, and which of them a change may help.

Pods that get the same answer wait together, so that the price of a change depends on the number of templates and not
of pods.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from moorage.core.model.cluster_event import ClusterEvent, QueueingHint, WakesOn
from moorage.core.model.instructions import Fault
from moorage.core.model.pod import Pod

if TYPE_CHECKING:
    from moorage.core.queue.scheduling_queue import QueuedPod

#: By plugin, what wakes the pods that the plugin rejected.
_WakesOf = Mapping[str, Sequence[WakesOn]]

#: The same for the plugins of a pod's profile; the same object for pods of the same profile.
Wakes = Callable[[Pod], _WakesOf]

#: What an interest's hint reads of a pod.
_Scope = Callable[[Pod], Hashable]


class _Room:
    """Pods rejected by the same plugins of one profile, sorted out by each scope that some hint has needed so far."""

    __slots__ = ("_keys", "_sorted", "pods", "wakes")

    def __init__(self, wakes: _WakesOf) -> None:
        self.wakes = wakes
        self.pods: dict[str, QueuedPod] = {}
        self._sorted: dict[_Scope, dict[Hashable, dict[str, QueuedPod]]] = {}
        self._keys: dict[str, dict[_Scope, Hashable]] = {}

    def add(self, queued: QueuedPod) -> None:
        uid = queued.pod.uid
        self.pods[uid] = queued
        keys = self._keys[uid] = {}
        for scope, groups in self._sorted.items():
            keys[scope] = scope(queued.pod)
            groups.setdefault(keys[scope], {})[uid] = queued

    def discard(self, uid: str) -> None:
        del self.pods[uid]
        for scope, key in self._keys.pop(uid).items():
            groups = self._sorted[scope]
            group = groups[key]
            del group[uid]
            if not group:
                del groups[key]

    def groups(self, scope: _Scope) -> Mapping[Hashable, Mapping[str, QueuedPod]]:
        """The pods by what a hint reads of them."""
        groups = self._sorted.get(scope)
        if groups is None:
            groups = self._sorted[scope] = {}
            for uid, queued in self.pods.items():
                key = self._keys[uid][scope] = scope(queued.pod)
                groups.setdefault(key, {})[uid] = queued
        return groups


class UnschedulablePods:
    """Waiting pods by what rejected them and by what they look like."""

    def __init__(self, wakes: Wakes) -> None:
        self._wakes = wakes
        self._rooms: dict[
            tuple[frozenset[str], int], _Room
        ] = {}  # by rejectors and what wakes whom, as an object
        self._places: dict[str, tuple[frozenset[str], int]] = {}
        self._faults: list[Fault] = []

    def __len__(self) -> int:
        return len(self._places)

    def add(self, queued: QueuedPod) -> None:
        """The pod waits from now on; again, if its description, or its profile, has changed."""
        pod = queued.pod
        self.discard(pod.uid)
        wakes = self._wakes(pod)
        place = queued.rejectors, id(wakes)
        room = self._rooms.get(place)
        if room is None:
            room = self._rooms[place] = _Room(wakes)
        room.add(queued)
        self._places[pod.uid] = place

    def discard(self, uid: str) -> None:
        """The pod does not wait any more; nothing happens if it does not."""
        place = self._places.pop(uid, None)
        if place is not None:
            room = self._rooms[place]
            room.discard(uid)
            if not room.pods:
                del self._rooms[place]

    def everyone(self) -> list[QueuedPod]:
        """All waiting pods."""
        return [queued for room in self._rooms.values() for queued in room.pods.values()]

    def helped_by(self, event: ClusterEvent, *, but: str = "") -> list[QueuedPod]:
        """The waiting pods that the change may help, but for the one of that UID."""
        helped: dict[str, QueuedPod] = {}
        asked: dict[tuple[int, Hashable], bool] = {}
        for (rejectors, _), room in self._rooms.items():
            if not rejectors:
                helped.update(room.pods)
            for interest in _interests(room.wakes, rejectors, event):
                if interest.hint is None:
                    helped.update(room.pods)
                    continue
                for key, group in room.groups(_scope(interest)).items():
                    answer = asked.get((id(interest), key))
                    if answer is None:
                        answer = self._ask(interest.hint, next(iter(group.values())).pod, event)
                        asked[id(interest), key] = answer
                    if answer:
                        helped.update(group)
        helped.pop(but, None)
        return list(helped.values())

    def helps(self, queued: QueuedPod, event: ClusterEvent) -> bool:
        """Whether the change may help this one pod, which need not wait here."""
        return not queued.rejectors or any(
            interest.hint is None or self._ask(interest.hint, queued.pod, event)
            for interest in _interests(self._wakes(queued.pod), queued.rejectors, event)
        )

    def drain_faults(self) -> list[Fault]:
        """What hints have raised since the last call."""
        faults, self._faults = self._faults, []
        return faults

    def _ask(self, hint: QueueingHint, pod: Pod, event: ClusterEvent) -> bool:
        """The hint's answer; yes if it raises, since a try too many does less harm than a pod that sleeps."""
        try:
            return bool(hint(pod, event))
        except Exception as error:  # noqa: BLE001 - foreign code
            name = getattr(hint, "__qualname__", repr(hint))
            self._faults.append(Fault(f"queueing hint {name}: {type(error).__name__}: {error}", pod.ref))
            return True


def _interests(wakes: _WakesOf, rejectors: Iterable[str], event: ClusterEvent) -> Iterable[WakesOn]:
    """The interests in this change of the plugins that rejected a pod."""
    for name in rejectors:
        for interest in wakes.get(name, ()):
            if (
                interest.resource is event.resource
                and interest.action & event.action
                and (interest.concerns is None or interest.concerns(event))
            ):
                yield interest


def _scope(interest: WakesOn) -> _Scope:
    if interest.alike is not None:
        return interest.alike
    return _spec if interest.per_spec else _uid


def _spec(pod: Pod) -> Hashable:
    return pod.spec


def _uid(pod: Pod) -> Hashable:
    return pod.uid
