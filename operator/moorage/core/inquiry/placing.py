"""Placing pods one after the other in an engine that nobody else uses: what would happen if these came."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from moorage.core.cycle.scheduling_cycle import best_of
from moorage.core.engine import Engine
from moorage.core.framework.answers import PluginError
from moorage.core.framework.interface import Reads
from moorage.core.inquiry.trial import Change, as_pending, tried
from moorage.core.model.decision import Decision
from moorage.core.model.events import PodBound, PodGone
from moorage.core.model.pod import Pod


@dataclass(frozen=True, slots=True)
class Placed:
    """What became of a pod: its ``node``, else None and the ``refusal``; ``victims`` went for it."""

    pod: Pod
    node: str | None
    victims: tuple[Pod, ...] = ()
    refusal: Decision | None = None


@dataclass(frozen=True, slots=True)
class Capacity:
    """How many pods of one kind fit without anybody's eviction, where, and why no more do.

    ``reasons`` counts the nodes that each reason speaks against once it is full; ``complete`` is False if counting
    was ended before that.
    """

    fit: int
    nodes: Mapping[str, int]
    reasons: Mapping[str, int] = field(default_factory=dict)
    message: str = ""
    complete: bool = True


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A pod on a node whose place would be another with more policies.

    ``before`` and ``after`` are the nodes it would go to without and with them, were it pending; ``refused`` are the
    words against the node it is on, empty if it might stay.
    """

    pod: Pod
    before: str | None
    after: str | None
    refused: tuple[str, ...] = ()


def place_all(engine: Engine, pods: Iterable[Pod], now: float, *, evict: bool = True) -> Iterator[Placed]:
    """Place the pods in this order, each seeing what the ones before it led to; raises PluginError.

    With ``evict``, pods that a preemption would cost their place go at once.  Of pods that are alike, those after one
    that no node takes are not tried again until something changes.
    """
    refused: dict[tuple[object, ...], Decision] = {}
    for pod in pods:
        kind = pod.namespace, id(pod.spec), tuple(sorted(pod.labels.items())), pod.owner, pod.volumes
        refusal = refused.get(kind)
        if refusal is not None:
            yield Placed(pod, None, (), refusal)
            continue
        node = choose(engine, pod, now)
        victims: tuple[Pod, ...] = ()
        if node is None:
            refusal = engine.evaluate(pod, now)
            if evict and refusal.preemption is not None:
                victims = _evict(engine, refusal, now)
                node = choose(engine, pod, now)
        if node is not None and _bind(engine, pod, node, now):
            refused.clear()
            yield Placed(pod, node, victims)
        else:
            refused[kind] = refusal = refusal or engine.evaluate(pod, now)
            yield Placed(pod, None, victims, refusal)


def choose(engine: Engine, pod: Pod, now: float) -> str | None:
    """One of the nodes that ``evaluate`` calls best, without the record: the one known for longest.

    None also for a pod that may not be tried now.  Raises PluginError.
    """
    at = engine.vantage(pod, now)
    if at.held is not None or at.runner.pre_enqueue(at.pod) is not None:
        return None
    _, rows = best_of(at.runner, at.pod, at.around)
    return engine.snapshot.name_at(int(rows[0])) if rows.size else None


def _takers(engine: Engine, pod: Pod, now: float) -> tuple[list[str], bool]:
    """The nodes that would take the pod, and whether each would whatever comes to the others."""
    at = engine.vantage(pod, now)
    if at.held is not None or at.runner.pre_enqueue(at.pod) is not None:
        return [], True
    screened = at.runner.screen(at.pod, at.around.nominated)
    apart = not any(plugin.reads & Reads.CLUSTER for plugin, _ in screened.pre.active)
    return [engine.snapshot.name_at(row) for row in np.flatnonzero(screened.feasible).tolist()], apart


def _bind(engine: Engine, pod: Pod, node: str, now: float) -> bool:
    """Put the pod there; False if what it needs there cannot be promised after all."""
    placed = replace(pod, node_name=node, nominated_node="", started=now)
    if engine.reserve(placed) is not None:
        return False
    engine.handle(PodBound(placed), now)
    return True


def _evict(engine: Engine, decision: Decision, now: float) -> tuple[Pod, ...]:
    """Let the victims be gone."""
    assert decision.preemption is not None, "there is somebody to evict"
    keys = set(decision.preemption.victims)
    victims = tuple(pod for pod in engine.cache.pods_on(decision.preemption.node) if pod.key in keys)
    for pod in victims:
        engine.handle(PodGone(pod.ref), now)
    return victims


def capacity(engine: Engine, pod: Pod, now: float, at_most: int = 1_000_000) -> Capacity:
    """Fill the engine's cluster with copies of the pod until none fits any more; raises PluginError."""
    copies = (replace(pod, name=f"{pod.name}-{i}", uid=f"{pod.uid}-{i}") for i in range(at_most))
    nodes = _fill(engine, pod, copies, now)  # what is left after it, if anything, takes turns
    for placed in place_all(engine, copies, now, evict=False):
        if placed.node is None:
            refusal = placed.refusal
            assert refusal is not None, "there is a reason"
            return Capacity(nodes.total(), nodes, reasons_of(refusal), refusal.message or refusal.error)
        nodes[placed.node] += 1
    return Capacity(at_most, nodes, complete=False)


def _fill(engine: Engine, pod: Pod, copies: Iterator[Pod], now: float) -> Counter[str]:
    """Put a copy on every node that takes one, again and again, if what a node takes does not depend on other nodes.

    In which order such nodes are filled does not matter, so there is nothing to score.
    """
    nodes: Counter[str] = Counter()
    before = -1
    while not pod.volumes and nodes.total() > before:
        before = nodes.total()
        names, apart = _takers(engine, pod, now)
        if not apart:
            break
        for name, one in zip(names, copies, strict=False):
            engine.handle(PodBound(replace(one, node_name=name, nominated_node="", started=now)), now)
            nodes[name] += 1
    return nodes


def reasons_of(decision: Decision) -> dict[str, int]:
    """How many nodes each reason speaks against, the most frequent first."""
    counts = Counter(reason for rejection in decision.filtered.values() for reason in rejection.reasons)
    for rejection in (decision.prefilter, decision.preenqueue):
        if rejection is not None:
            counts.update(dict.fromkeys(rejection.reasons, 0))
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def elsewhere(before: Engine, after: Engine, pods: Iterable[Pod], now: float) -> Iterator[Elsewhere]:
    """Of pods on nodes of both engines, those that the policies of ``after`` would place elsewhere; raises PluginError.

    Each is judged as if it alone were not bound.  Where several nodes are equally good, staying with one of them counts
    as no difference.
    """
    for pod in pods:
        change, asked = Change(without=(pod,)), as_pending(pod)
        with tried(before, change):
            was = _best(before, asked, now)
        with tried(after, change):
            will = _best(after, asked, now)
            verdict = after.evaluate(asked, now, [pod.node_name])
        rejection = verdict.filtered.get(pod.node_name) or verdict.prefilter
        refused = () if rejection is None else rejection.reasons
        if refused or not (was & will or was == will):
            yield Elsewhere(pod, min(was, default=None), min(will, default=None), refused)


def _best(engine: Engine, pod: Pod, now: float) -> frozenset[str]:
    """The nodes among which the pod's would be drawn."""
    decision = engine.evaluate(pod, now)
    if decision.error:
        raise PluginError("", "Evaluate", decision.error)
    return frozenset(decision.best)
