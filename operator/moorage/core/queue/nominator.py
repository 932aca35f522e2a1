"""Pods that were promised a node by preemption and wait for their victims to go."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from moorage.core.model.pod import Pod


class Nominator:
    """Promises by node.  A promise on a node that does not exist is kept and has no effect.

    The end of a promise gives room to others, and so may a change of the pod it is made to: both are kept until
    they are drained.
    """

    def __init__(self) -> None:
        self._by_uid: dict[str, tuple[str, Pod]] = {}
        self._by_node: dict[str, dict[str, Pod]] = {}
        self._ended: list[Pod] = []
        self._changed: list[tuple[Pod, Pod]] = []

    def __len__(self) -> int:
        return len(self._by_uid)

    def nominate(self, pod: Pod, node_name: str) -> None:
        """Promise a node to the pod, in place of an earlier promise."""
        self._end(pod.uid, pod, node_name)
        self._by_uid[pod.uid] = (node_name, pod)
        self._by_node.setdefault(node_name, {})[pod.uid] = pod

    def update(self, pod: Pod) -> None:
        """The pod was shown again, perhaps changed; what it is promised stays the same."""
        known = self._by_uid.get(pod.uid)
        if known is not None:
            self.nominate(pod, known[0])

    def withdraw(self, uid: str, placed: Pod | None = None) -> None:
        """The pod is gone, no longer promised anything, or ``placed`` on that node or another."""
        self._end(uid, placed, "" if placed is None else placed.node_name)

    def _end(self, uid: str, after: Pod | None, on: str) -> None:
        """``after`` is the pod as it takes, or is promised, room from now ``on`` that node; None if it is not."""
        known = self._by_uid.pop(uid, None)
        if known is None:
            return
        node_name, pod = known
        pods = self._by_node[node_name]
        del pods[uid]
        if not pods:
            del self._by_node[node_name]
        if after is None or on != node_name:
            self._ended.append(replace(pod, nominated_node=node_name))
        elif after.requests is not pod.requests or after.labels is not pod.labels:
            self._changed.append((pod, after))

    def drain_ended(self) -> list[Pod]:
        """The pods that lost their promise, or took another node, since the last call; each names the promised node."""
        ended, self._ended = self._ended, []
        return ended

    def drain_changed(self) -> list[tuple[Pod, Pod]]:
        """Before and after, the pods that have changed since the last call and keep, or took, the promised node."""
        changed, self._changed = self._changed, []
        return changed

    def node_of(self, uid: str) -> str:
        """The node promised to the pod, "" if none."""
        known = self._by_uid.get(uid)
        return "" if known is None else known[0]

    def promised(self, node_name: str) -> list[Pod]:
        """The pods that were promised the node."""
        return list(self._by_node.get(node_name, {}).values())

    def ahead_of(self, pod: Pod) -> Iterator[tuple[str, list[Pod]]]:
        """By node, the promised pods that ``pod`` must give way to: others of at least its priority."""
        for node_name, pods in self._by_node.items():
            ahead = [p for p in pods.values() if p.uid != pod.uid and p.priority >= pod.priority]
            if ahead:
                yield node_name, ahead
