"""What several policies that select one pod come to together.

What narrows adds up: windows, nodes, spread, limits, limits of real use, guards of preemption.  So do preferences.
What can have only one value comes from the first policy that sets it: those of the cluster before those of the
namespace, of each the highest ``precedence`` first, and the older one first on a tie.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TypeVar

from moorage.core.model.policy import (
    Backoff,
    LimitRule,
    LoadRules,
    NodeRules,
    Policy,
    PolicyRef,
    Pools,
    PreemptionRules,
    Preference,
    Scoring,
    SpreadRule,
    StrategyRule,
)
from moorage.core.model.policy_report import LostField

T = TypeVar("T")
Of = tuple[PolicyRef, T]

_NO_WEIGHTS: Mapping[str, int] = MappingProxyType({})


def merge_key(policy: Policy) -> tuple[bool, int, float, PolicyRef]:
    """Sort key: who has the first word on what can have only one value."""
    return bool(policy.ref.namespace), -policy.precedence, policy.created, policy.ref


@dataclass(frozen=True, slots=True, eq=False)
class Merged:
    """The policies in force for a pod, in the order of merging, and what they say together.

    Rules come with the policy they are of.  ``preemption`` is the strictest of all.  ``lost`` are the fields of a
    policy that another one sets first; ``shaping`` the policies of which at least one field is in force.
    """

    policies: tuple[Policy, ...] = ()
    timed: tuple[Policy, ...] = ()  # those with windows
    nodes: tuple[Of[NodeRules], ...] = ()
    pools: Of[Pools] | None = None
    spread: tuple[Of[SpreadRule], ...] = ()
    limits: tuple[Of[LimitRule], ...] = ()
    strategy: StrategyRule | None = None
    weights: Mapping[str, int] = field(default_factory=lambda: _NO_WEIGHTS)
    prefer: tuple[Of[Preference], ...] = ()
    protect: tuple[Of[str], ...] = ()
    load: tuple[Of[LoadRules], ...] = ()
    preemption: PreemptionRules | None = None
    backoff: Backoff = field(default_factory=Backoff)
    pending_deadline: Of[float] | None = None
    lost: tuple[Of[LostField], ...] = ()
    shaping: tuple[PolicyRef, ...] = ()


def merge(policies: Iterable[Policy]) -> Merged:
    """Put the policies together; they may come in any order."""
    ordered = tuple(sorted(policies, key=merge_key))
    if not ordered:
        return NOTHING
    firsts = _Firsts()
    scorings = [(p.ref, p.scoring or Scoring()) for p in ordered]
    strategy = firsts.of("scoring.strategy", [(ref, scoring.strategy) for ref, scoring in scorings])
    merged = Merged(
        policies=ordered,
        timed=tuple(p for p in ordered if p.windows),
        nodes=tuple((p.ref, p.nodes) for p in ordered if p.nodes is not None),
        pools=firsts.of("pools", [(p.ref, p.pools) for p in ordered]),
        spread=tuple((p.ref, rule) for p in ordered for rule in p.spread),
        limits=tuple((p.ref, rule) for p in ordered for rule in p.limits),
        strategy=None if strategy is None else strategy[1],
        weights={
            name: weight
            for name, (_, weight) in firsts.of_each(
                "scoring.weights", [(ref, scoring.weights) for ref, scoring in scorings]
            ).items()
        },
        prefer=tuple((ref, item) for ref, scoring in scorings for item in scoring.prefer),
        protect=_distinct((ref, resource) for ref, scoring in scorings for resource in scoring.protect),
        load=_loads(ordered, firsts),
        preemption=_strictest([p.preemption for p in ordered if p.preemption is not None]),
        backoff=_backoff(ordered, firsts),
        pending_deadline=firsts.of("pendingDeadline", [(p.ref, p.pending_deadline) for p in ordered]),
    )
    lost = tuple(firsts.lost)
    shaping = tuple(p.ref for p in ordered if _settings(p) > sum(ref == p.ref for ref, _ in lost))
    return replace(merged, lost=lost, shaping=shaping)


NOTHING = Merged()


class _Firsts:
    """Picks the first value that is set and notes who else has set the field."""

    def __init__(self) -> None:
        self.lost: list[Of[LostField]] = []

    def of(self, name: str, values: Sequence[tuple[PolicyRef, T | None]]) -> Of[T] | None:
        found: Of[T] | None = None
        for ref, value in values:
            if value is None:
                continue
            if found is None:
                found = (ref, value)
            else:
                self.lost.append((ref, LostField(name, found[0])))
        return found

    def of_each(self, name: str, values: Sequence[Of[Mapping[str, T]]]) -> dict[str, Of[T]]:
        keys = dict.fromkeys(key for _, mapping in values for key in mapping)
        found = {key: self.of(f"{name}.{key}", [(ref, m.get(key)) for ref, m in values]) for key in keys}
        return {key: first for key, first in found.items() if first is not None}


def _loads(ordered: Sequence[Policy], firsts: _Firsts) -> tuple[Of[LoadRules], ...]:
    """All limits, each judged by its own policy's idea of stale; of the targets of a resource the first."""
    rules = [(p.ref, p.load) for p in ordered if p.load is not None]
    targets = firsts.of_each("load.target", [(ref, load.target) for ref, load in rules])
    kept: list[Of[LoadRules]] = []
    for ref, load in rules:
        own = {resource: target for resource, target in load.target.items() if targets[resource][0] == ref}
        if own or load.limit:
            kept.append((ref, load if len(own) == len(load.target) else replace(load, target=own)))
    return tuple(kept)


def _backoff(ordered: Sequence[Policy], firsts: _Firsts) -> Backoff:
    given = [(p.ref, p.backoff or Backoff()) for p in ordered]
    initial = firsts.of("backoff.initial", [(ref, backoff.initial) for ref, backoff in given])
    longest = firsts.of("backoff.max", [(ref, backoff.longest) for ref, backoff in given])
    return Backoff(initial and initial[1], longest and longest[1])


def _strictest(rules: Sequence[PreemptionRules]) -> PreemptionRules | None:
    if not rules:
        return None
    runtimes = [r.min_victim_runtime for r in rules if r.min_victim_runtime is not None]
    gaps = [r.min_priority_gap for r in rules if r.min_priority_gap is not None]
    victims = [r.max_victims for r in rules if r.max_victims is not None]
    return PreemptionRules(
        never=any(r.never for r in rules),
        min_victim_runtime=max(runtimes, default=None),
        min_priority_gap=max(gaps, default=None),
        max_victims=min(victims, default=None),
        strict_budgets=any(r.strict_budgets for r in rules),
    )


def _settings(policy: Policy) -> int:
    """How many things the policy sets, counted as fields can be lost."""
    scoring, load = policy.scoring or Scoring(), policy.load or LoadRules()
    backoff = policy.backoff or Backoff()
    return (
        len(policy.windows)
        + (policy.nodes is not None)
        + (policy.pools is not None)
        + len(policy.spread)
        + len(policy.limits)
        + (scoring.strategy is not None)
        + len(scoring.weights)
        + len(scoring.prefer)
        + len(scoring.protect)
        + len(load.target)
        + len(load.limit)
        + (policy.preemption is not None)
        + (backoff.initial is not None)
        + (backoff.longest is not None)
        + (policy.pending_deadline is not None)
    )


H = TypeVar("H", bound=Hashable)


def _distinct(items: Iterable[Of[H]]) -> tuple[Of[H], ...]:
    """The first of those that say the same."""
    found: dict[H, PolicyRef] = {}
    for ref, item in items:
        found.setdefault(item, ref)
    return tuple((ref, item) for item, ref in found.items())
