"""The fields that a policy sets, in words, by the names under which they can be lost to another policy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from moorage.core.model.policy import (
    AvoidedTaint,
    LoadRules,
    NodeRules,
    Policy,
    Pool,
    Pools,
    PreemptionRules,
    Scoring,
    SpreadRule,
    StrategyRule,
    Window,
)
from moorage.core.model.selector import LabelSelector, Operator

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def fields_of(policy: Policy) -> Iterator[tuple[str, str]]:
    """Name and value of each field, in the order of the documentation."""
    for window in policy.windows:
        yield "windows", _window(window)
    if policy.max_delay is not None:
        yield "maxDelay", duration(policy.max_delay)
    if policy.nodes is not None:
        yield from _nodes(policy.nodes)
    if policy.pools is not None:
        yield "pools", _pools(policy.pools)
    for rule in policy.spread:
        yield "spread", _spread(rule)
    for limit in policy.limits:
        yield "limits", f"{limit.max_pods} per {limit.topology_key}"
    if policy.scoring is not None:
        yield from _scoring(policy.scoring)
    if policy.load is not None:
        yield from _load(policy.load)
    if policy.preemption is not None:
        yield "preemption", _preemption(policy.preemption)
    if policy.backoff is not None:
        if policy.backoff.initial is not None:
            yield "backoff.initial", duration(policy.backoff.initial)
        if policy.backoff.longest is not None:
            yield "backoff.max", duration(policy.backoff.longest)
    if policy.pending_deadline is not None:
        yield "pendingDeadline", duration(policy.pending_deadline)


def duration(seconds: float) -> str:
    """As a policy has it: 5400.0 is 1h30m."""
    millis = round(seconds * 1000)
    parts = []
    for unit, size in (("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)):
        count, millis = divmod(millis, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts)


def _window(window: Window) -> str:
    action = "Hold" if window.hold else "Allow"
    days = ", ".join(_DAYS[day] for day in sorted(window.days)) if len(window.days) < 7 else "every day"
    start, end = (f"{minutes // 60:02}:{minutes % 60:02}" for minutes in (window.start, window.end))
    return f"{action} {start} to {end} {window.zone}, {days}"


def _nodes(rules: NodeRules) -> Iterator[tuple[str, str]]:
    if rules.selector is not None:
        yield "nodes.selector", selector(rules.selector)
    if rules.expression is not None:
        yield "nodes.expression", rules.expression.text
    if rules.avoid_taints:
        yield "nodes.avoidTaints", ", ".join(map(_taint, rules.avoid_taints))
    if rules.keep_free:
        yield "nodes.keepFree", _percentages(rules.keep_free)


def _taint(taint: AvoidedTaint) -> str:
    value = f"={taint.value}" if taint.value is not None else ""
    return f"{taint.key}{value}{f':{taint.effect}' if taint.effect else ''}"


def _pools(pools: Pools) -> str:
    def shown(pool: Pool) -> str:
        if pool.max_percent is not None:
            return f"{pool.name} (at most {pool.max_percent}%)"
        return pool.name if pool.max_pods is None else f"{pool.name} (at most {pool.max_pods})"

    return f"{', then '.join(map(shown, pools.items))}; when full {'wait' if pools.wait else 'next'}"


def _spread(rule: SpreadRule) -> str:
    parts = [f"maxSkew {rule.max_skew} over {rule.topology_key}"]
    if rule.min_domains is not None:
        parts.append(f"minDomains {rule.min_domains}")
    parts.append("DoNotSchedule" if rule.hard else "ScheduleAnyway")
    if rule.hard_for is not None:
        parts.append(f"for {duration(rule.hard_for)}")
    return ", ".join(parts)


def _scoring(scoring: Scoring) -> Iterator[tuple[str, str]]:
    if scoring.strategy is not None:
        yield "scoring.strategy", _strategy(scoring.strategy)
    for name, weight in scoring.weights.items():
        yield f"scoring.weights.{name}", str(weight)
    for item in scoring.prefer:
        what = item.expression.text if item.expression is not None else selector(item.selector)
        yield "scoring.prefer", f"{what}, weight {item.weight}"
    if scoring.protect:
        yield "scoring.protect", ", ".join(scoring.protect)


def _strategy(rule: StrategyRule) -> str:
    resources = ", ".join(f"{name} {weight}" for name, weight in rule.resources)
    shape = ", ".join(f"{score} at {utilization}%" for utilization, score in rule.shape)
    return f"{rule.type} of {resources}{f': {shape}' if shape else ''}"


def _load(load: LoadRules) -> Iterator[tuple[str, str]]:
    stale = f"stale after {duration(load.stale_after)}: {load.on_stale.value}"
    for name, percent in load.target.items():
        yield f"load.target.{name}", f"{percent}%, {stale}"
    for name, percent in load.limit.items():
        yield f"load.limit.{name}", f"{percent}%, {stale}"


def _preemption(rules: PreemptionRules) -> str:
    if rules.never:
        return "Never"
    parts = ["LowerPriority"]
    if rules.min_victim_runtime is not None:
        parts.append(f"victims have run for {duration(rules.min_victim_runtime)}")
    if rules.min_priority_gap is not None:
        parts.append(f"their priority is lower by {rules.min_priority_gap}")
    if rules.max_victims is not None:
        parts.append(f"at most {rules.max_victims} of them")
    if rules.strict_budgets:
        parts.append("within their disruption budgets")
    return ", ".join(parts)


def selector(rules: LabelSelector | None) -> str:
    """As kubectl takes selectors."""
    if rules is None or not rules.requirements:
        return "all"
    parts = []
    for rule in rules.requirements:
        values = ", ".join(rule.values)
        match rule.operator:
            case Operator.IN if len(rule.values) == 1:
                parts.append(f"{rule.key}={values}")
            case Operator.IN:
                parts.append(f"{rule.key} in ({values})")
            case Operator.NOT_IN:
                parts.append(f"{rule.key} notin ({values})")
            case Operator.EXISTS:
                parts.append(rule.key)
            case Operator.DOES_NOT_EXIST:
                parts.append(f"!{rule.key}")
            case Operator.GT | Operator.LT:
                parts.append(f"{rule.key}{'>' if rule.operator is Operator.GT else '<'}{values}")
    return ",".join(parts)


def _percentages(amounts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {percent}%" for name, percent in amounts.items())
