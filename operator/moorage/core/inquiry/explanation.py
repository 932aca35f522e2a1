"""Everything there is to say about one pod: where it could go, why not elsewhere, what it waits for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from moorage.core.engine import Engine
from moorage.core.inquiry.remedies import Remedy, remedies
from moorage.core.inquiry.trial import Change, as_pending, tried
from moorage.core.model.decision import Decision
from moorage.core.model.pod import Pod
from moorage.core.turns import POLICY_WINDOWS


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of the funnel: ``plugin`` took ``refused`` of the nodes that were left, with these words and counts."""

    plugin: str
    refused: int
    left: int
    reasons: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Wait:
    """Something the pod waits for.

    ``kind`` is gate, window, policy, pool, volume, room, node, victims, backoff, turn, or error.
    """

    kind: str
    text: str
    until: float | None = None


@dataclass(frozen=True, slots=True)
class QueueEntry:
    """What the queue of a running scheduler knows of the pod; times in seconds since the epoch.

    ``ahead`` counts the pods that are tried before it, None where it does not wait for its turn.  ``policies`` are
    those that were in force when it was last looked at.
    """

    place: str
    added: float
    since: float
    attempts: int
    unschedulable: int
    errors: int
    refused_by: tuple[str, ...]
    backoff_until: float | None = None
    ahead: int | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """``decision`` is where the pod could go now; a bound one (``pod.node_name``) as if it were not bound.

    ``policies`` are in force for it, ``audited`` are not.  ``leaving`` are pods that make room for it at the moment.
    """

    pod: Pod
    decision: Decision
    nodes: int
    funnel: tuple[Stage, ...] = ()
    policies: tuple[str, ...] = ()
    audited: tuple[str, ...] = ()
    waits: tuple[Wait, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    queue: QueueEntry | None = None
    leaving: tuple[str, ...] = ()


def explain_in(engine: Engine, pod: Pod, now: float, *, search: bool = True) -> Explanation:
    """Explain a pod of the engine's cluster; with ``search``, look for what would help, which takes longer."""
    taken = engine.cache.state(pod.uid)
    with tried(engine, Change(without=() if taken is None else (taken.pod,))):
        asked = as_pending(pod)
        decision = engine.evaluate(asked, now)
        explanation = explained(engine, pod, decision, now)
        if not search:
            return explanation
        return replace(explanation, remedies=tuple(remedies(engine, asked, now)))


def explained(engine: Engine, pod: Pod, decision: Decision, now: float) -> Explanation:
    """What the decision and the engine's state come to."""
    shaping = engine.policies.shaping(pod)
    entry = queue_entry(engine, pod.uid, now)
    waits = () if pod.node_name else tuple(_waits(engine, pod, decision, entry, now))
    return Explanation(
        pod=pod,
        decision=decision,
        nodes=engine.snapshot.node_count,
        funnel=tuple(_funnel(engine, pod, decision)),
        policies=tuple(ref.key for ref in shaping.merged.shaping),
        audited=tuple(policy.ref.key for policy in shaping.audited),
        waits=waits,
        queue=entry,
        leaving=tuple(_leaving(engine, pod)),
    )


def queue_entry(engine: Engine, uid: str, now: float) -> QueueEntry | None:
    """The pod's place in the queue, None if it is not in it."""
    queued = engine.queue.get(uid)
    if queued is None:
        return None
    return QueueEntry(
        place=queued.place.value,
        added=queued.added,
        since=queued.since,
        attempts=queued.attempts,
        unschedulable=queued.unschedulable_count,
        errors=queued.error_count,
        refused_by=tuple(sorted(queued.rejectors)),
        backoff_until=queued.backoff_until if queued.backoff_until > now else None,
        ahead=engine.queue.ahead_of(uid),
    )


def _funnel(engine: Engine, pod: Pod, decision: Decision) -> Iterator[Stage]:
    """The nodes that each plugin took, in the order in which plugins are asked."""
    by_plugin: dict[str, Counter[str]] = {}
    refused: Counter[str] = Counter()
    for rejection in decision.filtered.values():
        refused[rejection.plugin] += 1
        by_plugin.setdefault(rejection.plugin, Counter()).update(rejection.reasons)
    left = engine.snapshot.node_count
    order = {
        plugin.name: place
        for place, plugin in enumerate(engine.vantage(pod, engine.snapshot.now).runner.filters)
    }
    for name in sorted(refused, key=lambda name: (order.get(name, -1 if "," in name else len(order)), name)):
        left -= refused[name]
        yield Stage(name, refused[name], left, dict(by_plugin[name]))


_KINDS = {
    "NodeResourcesFit": "room",
    "PolicyPools": "pool",
    "PolicyLimits": "policy",
    "PolicyNodes": "policy",
    "PolicySpread": "policy",
    "PolicyLoad": "policy",
    "VolumeBinding": "volume",
    "VolumeRestrictions": "volume",
    "VolumeZone": "volume",
    "NodeVolumeLimits": "volume",
}


def _waits(
    engine: Engine, pod: Pod, decision: Decision, entry: QueueEntry | None, now: float
) -> Iterator[Wait]:
    held = decision.preenqueue
    if held is not None:
        hold = engine.hold_of(pod, now) if held.plugin == POLICY_WINDOWS else None
        kind = "window" if hold is not None else "gate" if pod.gates else "policy"
        yield Wait(kind, ", ".join(held.reasons), None if hold is None else hold.until)
        return
    if decision.error:
        yield Wait("error", decision.error)
    elif decision.prefilter is not None:
        yield Wait(
            _KINDS.get(decision.prefilter.plugin, "node"),
            f"{decision.prefilter.plugin}: {', '.join(decision.prefilter.reasons)}",
        )
    elif decision.chosen is None:
        yield from _refusals(engine, pod, decision)
    leaving = _leaving(engine, pod)
    if leaving:
        yield Wait("victims", f"{', '.join(leaving)} to leave node {pod.nominated_node}")
    elif decision.preemption is not None:
        victims = ", ".join(decision.preemption.victims)
        yield Wait(
            "victims", f"its next attempt, which evicts {victims} from node {decision.preemption.node}"
        )
    if entry is not None and entry.backoff_until is not None and entry.place == "backoff":
        yield Wait("backoff", "its backoff after a failed attempt", entry.backoff_until)
    elif decision.chosen is not None:
        yield Wait("turn", f"node {decision.chosen} would take it now")


def _refusals(engine: Engine, pod: Pod, decision: Decision) -> Iterator[Wait]:
    """One line for each kind of refusal, with all plugins and words of it."""
    words: dict[str, list[str]] = {}
    for stage in _funnel(engine, pod, decision):
        texts = ", ".join(f"{count} {reason}" for reason, count in stage.reasons.items())
        kind = next((_KINDS[part] for part in stage.plugin.split(", ") if part in _KINDS), "node")
        words.setdefault(kind, []).append(f"{stage.plugin}: {texts}")
    for kind, texts_of in words.items():
        yield Wait(kind, "; ".join(texts_of))


def _leaving(engine: Engine, pod: Pod) -> Sequence[str]:
    if not pod.nominated_node:
        return ()
    on_node = engine.cache.pods_on(pod.nominated_node)
    return sorted(other.key for other in on_node if other.deleting and other.priority < pod.priority)
