"""Pods that were promised a node by preemption and wait for their victims to go."""

from __future__ import annotations

from collections.abc import Iterator

from moorage.core.model.pod import Pod


class Nominator:
    """Promises by node.  A promise on a node that does not exist is kept and has no effect."""

    def __init__(self) -> None:
        self._by_uid: dict[str, tuple[str, Pod]] = {}
        self._by_node: dict[str, dict[str, Pod]] = {}

    def __len__(self) -> int:
        return len(self._by_uid)

    def nominate(self, pod: Pod, node_name: str) -> None:
        """Promise a node to the pod, in place of an earlier promise."""
        self.withdraw(pod.uid)
        self._by_uid[pod.uid] = (node_name, pod)
        self._by_node.setdefault(node_name, {})[pod.uid] = pod

    def withdraw(self, uid: str) -> None:
        """The pod is placed, gone, or no longer promised anything."""
        known = self._by_uid.pop(uid, None)
        if known is None:
            return
        pods = self._by_node[known[0]]
        del pods[uid]
        if not pods:
            del self._by_node[known[0]]

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
