"""Changes of the cluster that are tried and undone again, so that what is proposed has been seen to help."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from moorage.core.cache.transaction import Transaction
from moorage.core.engine import Engine
from moorage.core.model.node import Node
from moorage.core.model.pod import Pod
from moorage.core.model.taint import NOT_READY_KEY, UNREACHABLE_KEY, UNSCHEDULABLE_KEY, Taint

HOSTNAME = "kubernetes.io/hostname"
_NO_NODES: Mapping[str, Node] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Change:
    """What is to be done: ``nodes`` as they would be, by name (new ones, too), and ``without`` these pods.

    ``ungated`` are the gates of the pod in question that must go, ``at`` the time to wait for (None: now).
    ``like`` is the node that a new one is a copy of.
    """

    nodes: Mapping[str, Node] = field(default_factory=lambda: _NO_NODES)
    without: tuple[Pod, ...] = ()
    ungated: tuple[str, ...] = ()
    at: float | None = None
    like: str = ""


@contextmanager
def tried(engine: Engine, change: Change) -> Iterator[None]:
    """The engine's cluster with the change, until the block is left.

    Nobody who waits is told of it.  Raises LookupError if a pod that is to go takes no room.
    """
    cache = engine.cache
    with ExitStack() as undo:
        for node in change.nodes.values():
            before = cache.apply_node(node)
            if before is None:
                undo.callback(cache.remove_node, node.name)
            else:
                undo.callback(cache.apply_node, before)
        transaction = undo.enter_context(Transaction(cache))
        for pod in change.without:
            transaction.evict(pod.uid)
        yield


def as_pending(pod: Pod, change: Change | None = None) -> Pod:
    """The pod as if it had no node yet, with what the change does to the pod itself."""
    gates = pod.gates if change is None else tuple(gate for gate in pod.gates if gate not in change.ungated)
    if not pod.node_name:
        return pod if gates == pod.gates else replace(pod, gates=gates)
    return replace(pod, node_name="", nominated_node="", started=None, gates=gates)


def one_more(node: Node, taken: frozenset[str] | set[str]) -> Node:
    """An empty node of the same kind: ready, not cordoned, without the taints that tell of a node's trouble."""
    number = 1
    while (name := f"{node.name}-more-{number}") in taken:
        number += 1
    labels = dict(node.labels)
    if HOSTNAME in labels:
        labels[HOSTNAME] = name
    taints = tuple(t for t in node.taints if not t.key.startswith("node.kubernetes.io/"))
    return replace(
        node,
        name=name,
        uid=f"uid-{name}",
        labels=labels,
        taints=taints,
        unschedulable=False,
        ready="True" if node.ready else "",
        images={},
    )


def kind_of(node: Node) -> tuple[Any, ...]:
    """Nodes of equal kinds are exchangeable but for their names."""
    labels = tuple(sorted(item for item in node.labels.items() if item[0] != HOSTNAME))
    taints = tuple(t for t in node.taints if not t.key.startswith("node.kubernetes.io/"))
    return labels, taints, tuple(sorted(node.allocatable.items()))


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do: ``action`` names it, the rest says to what, as data."""

    action: str
    node: str = ""
    details: tuple[tuple[str, Any], ...] = ()

    def record(self) -> dict[str, Any]:
        """As JSON."""
        return {"action": self.action, **({"node": self.node} if self.node else {}), **dict(self.details)}


def steps_of(change: Change, nodes: Mapping[str, Node]) -> list[Step]:
    """The change, one thing after the other; ``nodes`` are those it touches, as they are now."""
    steps = [Step("ungate", details=(("gate", gate),)) for gate in change.ungated]
    if change.at is not None:
        steps.append(Step("wait", details=(("until", change.at),)))
    for name, node in change.nodes.items():
        before = nodes.get(name)
        if before is None:
            steps.append(Step("addNode", name, (("like", change.like),)))
        else:
            steps += _node_steps(before, node)
    steps += [Step("deletePod", pod.node_name, (("pod", pod.key),)) for pod in change.without]
    return steps


def _node_steps(before: Node, after: Node) -> Iterator[Step]:
    name = before.name
    if before.unschedulable and not after.unschedulable:
        yield Step("uncordon", name)
    gone = [taint for taint in before.taints if taint not in after.taints]
    if any(taint.key in (NOT_READY_KEY, UNREACHABLE_KEY) for taint in gone):
        yield Step("makeReady", name)
    for taint in gone:
        if taint.key not in (NOT_READY_KEY, UNREACHABLE_KEY, UNSCHEDULABLE_KEY):
            yield Step("removeTaint", name, (("taint", taint_text(taint)),))
    changed = {key: value for key, value in after.labels.items() if before.labels.get(key) != value}
    for key, value in sorted(changed.items()):
        yield Step("setLabel", name, (("key", key), ("value", value)))
    for key in sorted(before.labels.keys() - after.labels.keys()):
        yield Step("removeLabel", name, (("key", key),))
    for resource, amount in sorted(after.allocatable.items()):
        missing = amount - before.allocatable.get(resource, 0)
        if missing > 0:
            yield Step("addResource", name, (("resource", resource), ("amount", missing)))


def taint_text(taint: Taint) -> str:
    """As kubectl writes it."""
    return f"{taint.key}{f'={taint.value}' if taint.value else ''}:{taint.effect}"
