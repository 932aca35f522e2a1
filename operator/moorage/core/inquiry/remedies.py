"""What would get a pod placed: a small search with the engine itself.

Each proposal is a change of the cluster under which the engine places the pod, found by repairing one node after the
other: whatever the first plugin to refuse it complains about is mended, until none does.  Nothing is guessed: a
proposal that the engine does not confirm is dropped.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from moorage.core.engine import Engine
from moorage.core.inquiry.placing import choose
from moorage.core.inquiry.trial import Change, as_pending, kind_of, one_more, tried
from moorage.core.model.decision import Decision, Rejection
from moorage.core.model.node import Node
from moorage.core.model.pod import Pod
from moorage.core.model.resources import CPU, MEMORY, PODS
from moorage.core.model.selector import Operator, Requirement
from moorage.core.model.taint import NO_EXECUTE, NO_SCHEDULE, UNSCHEDULABLE_KEY, Taint, tolerated

#: Nodes that are repaired for each way of being refused, ways that are looked at, kinds of nodes that are tried.
_NODES_EACH, _WAYS, _KINDS = 2, 8, 12
#: Complaints of one node that are mended before it is given up.
_COMPLAINTS = 6
#: Pods that are system-critical are never proposed to be deleted (``system-cluster-critical`` and above).
_CRITICAL = 2_000_000_000
#: Pods of a node from which the smallest set to delete is picked one by one.
_PICKED = 12


@dataclass(frozen=True, slots=True)
class Remedy:
    """A change under which the pod goes to ``node``; ``alike`` other nodes are refused in the same words."""

    change: Change
    node: str
    alike: int = 0


def remedies(engine: Engine, pod: Pod, now: float) -> list[Remedy]:
    """What would get the pod placed, none if it can be placed as things are; raises PluginError."""
    search = remedy_search(engine, pod, now)
    while True:
        try:
            next(search)
        except StopIteration as end:
            found: list[Remedy] = end.value
            return found


def remedy_search(engine: Engine, pod: Pod, now: float) -> Generator[None, None, list[Remedy]]:
    """The same, in turns: whenever it yields, nothing of what it tried is left in the engine."""
    base, now = _what_holds_it(engine, pod, now)
    pod = as_pending(pod, base)
    decision = engine.evaluate(pod, now)
    yield
    if decision.chosen is not None:
        return [] if base == Change() else [Remedy(base, decision.chosen)]
    if decision.preenqueue is not None or decision.error:
        return []
    found: list[Remedy] = []
    for rejected in _ways(engine, pod, decision):
        for evict in (False, True):
            mended: list[Remedy] = []
            for name in rejected[:_NODES_EACH]:
                remedy = yield from _repaired(engine, pod, now, base, name, evict=evict)
                if remedy is not None and remedy.change not in [other.change for other in (*found, *mended)]:
                    mended.append(remedy)
            if mended:
                best = min(mended, key=_cost)
                found.append(replace(best, alike=len(rejected) - 1))
    for like in _kinds(engine)[:_KINDS]:
        new = one_more(like, {node.name for node in _nodes(engine)})
        remedy = _confirmed(engine, pod, now, replace(base, nodes={new.name: new}, like=like.name))
        yield
        if remedy is not None:
            found.append(remedy)
            break  # kinds come smallest first
    return sorted(found, key=_cost)


def _what_holds_it(engine: Engine, pod: Pod, now: float) -> tuple[Change, float]:
    """What must happen before any node is looked at."""
    ungated = Change(ungated=pod.gates)
    hold = engine.hold_of(as_pending(pod, ungated), now)
    if hold is None or hold.until is None:
        return ungated, now
    return replace(ungated, at=hold.until), hold.until


def _cost(remedy: Remedy) -> tuple[int, int, str]:
    change = remedy.change
    return len(change.without) + len(change.ungated), len(change.nodes), remedy.node


def _confirmed(engine: Engine, pod: Pod, now: float, change: Change) -> Remedy | None:
    """The change as a remedy, if the engine places the pod under it."""
    with tried(engine, change):
        chosen = choose(engine, pod, now)
    return None if chosen is None else Remedy(change, chosen)


# -- which nodes to look at ----------------------------------------------------------------------


def _nodes(engine: Engine) -> Iterator[Node]:
    return (node for node in engine.snapshot.nodes if node is not None)


def _kinds(engine: Engine) -> list[Node]:
    """One node of each kind, the smallest first."""
    found: dict[object, Node] = {}
    for node in _nodes(engine):
        found.setdefault(kind_of(node), node)
    return sorted(
        found.values(), key=lambda n: (n.allocatable.get(CPU, 0), n.allocatable.get(MEMORY, 0), n.name)
    )


def _ways(engine: Engine, pod: Pod, decision: Decision) -> list[list[str]]:
    """Refused nodes by who refused them with which words, those that lack least first; the rarest way last."""
    groups: dict[Rejection, list[str]] = {}
    for name, rejection in decision.filtered.items():
        groups.setdefault(rejection, []).append(name)
    for names in groups.values():
        names.sort(key=lambda name: (_shortage(engine, pod, name), name))
    return sorted(groups.values(), key=lambda names: (_shortage(engine, pod, names[0]), names[0]))[:_WAYS]


def _missing(engine: Engine, pod: Pod, name: str) -> dict[str, int]:
    """What the node has too little of, by resource."""
    snapshot = engine.snapshot
    row = snapshot.row_of(name)
    if row is None:
        return {}
    found = {}
    for resource, amount in pod.requests.amounts.items():
        free = int(snapshot.allocatable(resource)[row]) - int(snapshot.requested(resource)[row])
        if amount > free and amount > 0:
            found[resource] = amount - free
    crowd = len(engine.cache.pods_on(name)) + 1 - int(snapshot.allocatable(PODS)[row])
    return {**found, **({PODS: crowd} if crowd > 0 else {})}


def _shortage(engine: Engine, pod: Pod, name: str) -> float:
    """How much the node lacks, as a share of what the pod asks for; 0 if it has room."""
    wanted: Mapping[str, int] = {**pod.requests.amounts, PODS: 1}
    missing = _missing(engine, pod, name)
    return sum(amount / wanted[resource] for resource, amount in missing.items())


# -- mending one node ----------------------------------------------------------------------------


def _repaired(
    engine: Engine, pod: Pod, now: float, base: Change, name: str, *, evict: bool
) -> Generator[None, None, Remedy | None]:
    """Mend what the node is refused for, one complaint after the other; room is made by deleting pods, or added."""
    change = base
    for _ in range(_COMPLAINTS):
        with tried(engine, change):
            decision = engine.evaluate(pod, now, [name])
            if decision.chosen is not None:
                break
            node = engine.snapshot.nodes[engine.snapshot.row_of(name) or 0]
            rejection = decision.filtered.get(name)
            if node is None or node.name != name or rejection is None:
                return None
            mended = None if evict and rejection.plugin in _CROWDED else _mended(engine, pod, node, rejection)
        yield
        if mended is not None:
            change = replace(change, nodes={**change.nodes, name: mended})
        elif evict and not change.without:
            change = yield from _without_pods(engine, pod, now, change, name)
            if not change.without:
                return None
        else:
            return None
    if evict and not change.without:
        return None  # the other way of mending has found it already
    return _confirmed(engine, pod, now, change)


#: Plugins whose complaints other pods on the node are the cause of.
_CROWDED = frozenset({"NodeResourcesFit", "NodePorts", "InterPodAffinity", "NodeVolumeLimits"})


def _mended(engine: Engine, pod: Pod, node: Node, rejection: Rejection) -> Node | None:
    """The node without what the plugin complains about, None where that is not the node's to change."""
    match rejection.plugin:
        case "NodeResourcesFit":
            room = dict(node.allocatable)
            for resource, amount in _missing(engine, pod, node.name).items():
                room[resource] = room.get(resource, 0) + amount
            return None if room == node.allocatable else replace(node, allocatable=room)
        case "NodeUnschedulable":
            taints = tuple(taint for taint in node.taints if taint.key != UNSCHEDULABLE_KEY)
            return replace(node, unschedulable=False, taints=taints)
        case "TaintToleration":
            kept = tuple(taint for taint in node.taints if not _repels(taint, pod))
            return None if kept == node.taints else replace(node, taints=kept)
        case plugin if "NodeAffinity" in plugin:
            labels = _labels(pod, node)
            return None if labels is None or labels == node.labels else replace(node, labels=labels)
    return None


def _repels(taint: Taint, pod: Pod) -> bool:
    return taint.effect in (NO_SCHEDULE, NO_EXECUTE) and not tolerated(taint, pod.spec.tolerations)


def _labels(pod: Pod, node: Node) -> Mapping[str, str] | None:
    """Labels with which the node matches selector and affinity, as near as can be to those it has."""
    terms = [()] if pod.spec.required is None else [term.expressions for term in pod.spec.required.terms]
    found = []
    for term in terms:
        labels = {**node.labels, **pod.spec.node_selector}
        for requirement in term:
            if not requirement.admits(labels.get(requirement.key)) and not _set(labels, requirement):
                break
        else:
            if pod.spec.required is None or pod.spec.required.matches(node.name, labels):
                found.append(labels)
    return min(found, key=lambda labels: len(labels.items() ^ node.labels.items()), default=None)


def _set(labels: dict[str, str], requirement: Requirement) -> bool:
    """Make the labels satisfy the requirement; False where no value is known to."""
    key = requirement.key
    match requirement.operator:
        case Operator.IN if requirement.values:
            labels[key] = requirement.values[0]
        case Operator.EXISTS:
            labels[key] = ""
        case Operator.DOES_NOT_EXIST | Operator.NOT_IN:
            labels.pop(key, None)
        case Operator.GT | Operator.LT if requirement.values and requirement.values[0].isdigit():
            bound = int(requirement.values[0])
            labels[key] = str(bound + 1 if requirement.operator is Operator.GT else bound - 1)
        case _:
            return False
    return requirement.admits(labels.get(key))


def _without_pods(
    engine: Engine, pod: Pod, now: float, change: Change, name: str
) -> Generator[None, None, Change]:
    """The change with the fewest, least important pods of the node deleted that make it fit; as it was if none do."""
    pods = [p for p in engine.cache.pods_on(name) if p.priority < _CRITICAL and p.uid != pod.uid]
    pods.sort(key=lambda p: (p.priority, -(p.started or 0.0), p.key))

    def fits(going: Sequence[Pod]) -> bool:
        with tried(engine, replace(change, without=tuple(going))):
            decision = engine.evaluate(pod, now, [name])
        rejection = decision.filtered.get(name)
        return decision.chosen is not None or (rejection is not None and rejection.plugin not in _CROWDED)

    if not pods or not fits(pods):
        return change
    low, high = 1, len(pods)
    while low < high:
        yield
        middle = (low + high) // 2
        low, high = (low, middle) if fits(pods[:middle]) else (middle + 1, high)
    going = pods[:high]
    for kept in reversed(going[-_PICKED:]):  # the most important first
        fewer = [other for other in going if other is not kept]
        yield
        if fewer and fits(fewer):
            going = fewer
    return replace(change, without=tuple(going))
