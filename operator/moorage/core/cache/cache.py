"""Pod states and the columns that follow from them.

::

               assume                   add (the watch shows it bound)
    (unknown) ────────▶ assumed ─────────────────────────▶ added
        ▲                  │ forget                          │ remove
        └──────────────────┴─────────────────────────────────┘

``add`` also takes a pod from unknown straight to added (someone else bound it).  There is no timer
here: an assumed pod holds its room until it is confirmed or forgotten.

Pods may be known before their node is, and stay known when their node goes; they are counted on the
node's row while there is one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from moorage.core.model.node import Node
from moorage.core.model.pod import Pod
from moorage.core.model.storage import StorageKind, StorageObject
from moorage.core.snapshot.snapshot import Snapshot


@dataclass(slots=True)
class PodState:
    """A pod that takes room on a node; ``assumed`` until the API server shows it there."""

    pod: Pod
    node_name: str
    assumed: bool


class Cache:
    """Owns the snapshot; the only place that changes it outside a transaction."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._pods: dict[str, PodState] = {}
        self._by_node: dict[str, dict[str, Pod]] = {}
        self._stamps: dict[str, int] = {}
        self._clock = 0

    def __len__(self) -> int:
        return len(self._pods)

    @property
    def assumed_count(self) -> int:
        """Pods that are assumed and not confirmed yet."""
        return sum(state.assumed for state in self._pods.values())

    def state(self, uid: str) -> PodState | None:
        """What is known of a pod that takes room, None if nothing is."""
        return self._pods.get(uid)

    def states(self) -> Iterable[PodState]:
        """Every pod that takes room."""
        return self._pods.values()

    def pods_on(self, node_name: str) -> list[Pod]:
        """The pods that take room on a node, whether or not the node itself is known."""
        return list(self._by_node.get(node_name, {}).values())

    def stamp(self, node_name: str) -> int:
        """Changes whenever the node, or a pod on it that we did not place, changes."""
        return self._stamps.get(node_name, 0)

    # -- nodes -----------------------------------------------------------------------------------

    def apply_node(self, node: Node) -> Node | None:
        """Add or replace a node; returns what it was before."""
        snapshot = self.snapshot
        row = snapshot.row_of(node.name)
        before = None if row is None else snapshot.nodes[row]
        if before == node:
            return before
        new_row = snapshot.set_node(node)
        if row is None:
            for pod in self._by_node.get(node.name, {}).values():
                snapshot.add_pod(new_row, pod)
        self._touch(node.name)
        return before

    def remove_node(self, name: str) -> Node | None:
        """Drop a node, keeping what is known of its pods; returns what it was."""
        row = self.snapshot.row_of(name)
        if row is None:
            return None
        before = self.snapshot.nodes[row]
        self.snapshot.drop_node(name)
        self._touch(name)
        if name not in self._by_node:
            self._stamps.pop(name, None)
        return before

    # -- storage ---------------------------------------------------------------------------------

    def apply_storage(self, obj: StorageObject) -> StorageObject | None:
        """Add or replace a storage object; returns what it was before."""
        return self.snapshot.storage.apply(obj)

    def remove_storage(self, kind: StorageKind, key: str) -> StorageObject | None:
        """Drop a storage object; returns what it was."""
        return self.snapshot.storage.drop(kind, key)

    def _touch(self, node_name: str) -> None:
        self._clock += 1
        self._stamps[node_name] = self._clock

    # -- pods ------------------------------------------------------------------------------------

    def assume(self, pod: Pod, node_name: str) -> Pod:
        """Book the pod's place before the API server knows; returns the pod as it is on the node.

        Raises ValueError if the pod takes room already.
        """
        if pod.uid in self._pods:
            raise ValueError(
                f"pod {pod.key} ({pod.uid}) already takes room on {self._pods[pod.uid].node_name}"
            )
        placed = replace(pod, node_name=node_name)
        self._put(placed, assumed=True)
        return placed

    def forget(self, uid: str) -> Pod | None:
        """Undo an assumption; returns the pod, None (and does nothing) if it is not assumed."""
        state = self._pods.get(uid)
        if state is None or not state.assumed:
            return None
        self._take(state)
        return state.pod

    def add(self, pod: Pod) -> PodState | None:
        """The API server shows the pod on ``pod.node_name``; returns what was believed before."""
        before = self._pods.get(pod.uid)
        if before is None:
            self._put(pod, assumed=False)
            self._touch(pod.node_name)
        elif (
            before.node_name == pod.node_name
            and before.pod.requests is pod.requests
            and _same_ports(before.pod, pod)
            and before.pod.volumes == pod.volumes
        ):
            self._refresh(before, pod)
        else:
            moved = before.node_name != pod.node_name
            self._take(before)
            self._put(pod, assumed=False)
            if moved or not before.assumed:
                self._touch(pod.node_name)
            return before
        return before

    def take_out(self, uid: str) -> PodState | None:
        """Take a pod off its node for a look; ``put_back`` undoes it without a trace."""
        state = self._pods.get(uid)
        if state is not None:
            self._take(state)
        return state

    def put_back(self, state: PodState) -> None:
        """Undo ``take_out``."""
        self._put(state.pod, assumed=state.assumed)

    def remove(self, uid: str) -> Pod | None:
        """The pod is gone; returns it as it was last known."""
        state = self._pods.get(uid)
        if state is None:
            return None
        self._take(state)
        return state.pod

    def _refresh(self, state: PodState, pod: Pod) -> None:
        """The pod takes what it took; only its description changes, so no column does."""
        self._by_node[state.node_name][pod.uid] = pod
        row = self.snapshot.row_of(state.node_name)
        if row is not None:
            self.snapshot.refresh_pod(row, pod)
        self._pods[pod.uid] = PodState(pod, state.node_name, assumed=False)

    def _put(self, pod: Pod, *, assumed: bool) -> None:
        self._pods[pod.uid] = PodState(pod, pod.node_name, assumed)
        self._by_node.setdefault(pod.node_name, {})[pod.uid] = pod
        row = self.snapshot.row_of(pod.node_name)
        if row is not None:
            self.snapshot.add_pod(row, pod)

    def _take(self, state: PodState) -> None:
        uid = state.pod.uid
        del self._pods[uid]
        on_node = self._by_node[state.node_name]
        del on_node[uid]
        row = self.snapshot.row_of(state.node_name)
        if row is not None:
            self.snapshot.remove_pod(row, state.pod)
        if not on_node:
            del self._by_node[state.node_name]
            if row is None:
                self._stamps.pop(state.node_name, None)


def _same_ports(a: Pod, b: Pod) -> bool:
    return a.spec is b.spec or a.spec.host_ports == b.spec.host_ports
