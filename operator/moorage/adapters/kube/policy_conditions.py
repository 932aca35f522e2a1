"""A policy's status as the API has it: conditions and figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from moorage.adapters.kube.policy_register import KnownPolicy
from moorage.core.model.policy import Mode, OnStale, Policy, Speaks
from moorage.core.model.policy_report import PolicyReport

Obj = Mapping[str, Any]

#: What the schema in crds/ takes.
_LONGEST_TEXT, _LONGEST_MESSAGE = 1024, 4096
_MOST_REASONS, _MOST_SAMPLES = 32, 16
#: What the figures are in; without a report they stay as they are.
_FIGURES = ("pods", "reasons", "pools", "expressions", "audit")


@dataclass(frozen=True, slots=True)
class Usage:
    """Whether there are figures of the nodes' real use: ``reason`` is a word, and ``message`` says it in full."""

    available: bool
    reason: str
    message: str


def needs_usage(policy: Policy) -> bool:
    """Whether the policy asks what nodes really use."""
    if policy.mode is Mode.DISABLED:
        return False
    expressions = [policy.nodes.expression] if policy.nodes else []
    expressions += [preference.expression for preference in policy.scoring.prefer] if policy.scoring else []
    return policy.load is not None or any(e is not None and Speaks.USAGE in e.speaks for e in expressions)


def status_of(
    known: KnownPolicy,
    report: PolicyReport | None,
    usage: Usage,
    now: float,
    failures: tuple[int, str] = (0, ""),
    *,
    exact: bool = True,
) -> dict[str, Any]:
    """The status of a policy; parts that are empty are left out.

    Without a ``report`` (the engine has not heard of it yet), the figures stay as they are while a generation is in
    force.  ``failures`` are those of its expression over pods, which the engine does not see: how many, and the last.
    Not ``exact``: who binds pods does not ask once more, so what counts pods or room is best effort.
    """
    conditions = [_accepted(known), _effective(known, exact), _conflicted(report, known)]
    if known.newest is not None and needs_usage(known.newest):
        conditions.append(_metrics(known.newest, report, usage))
    before = {c.get("type"): c for c in _objects(known.status.get("conditions"))}
    stamp = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    for condition in conditions:
        old = before.get(condition["type"], {})
        same = old.get("status") == condition["status"] and old.get("lastTransitionTime")
        condition["lastTransitionTime"] = old["lastTransitionTime"] if same else stamp
        condition["observedGeneration"] = known.generation
    status: dict[str, Any] = {"observedGeneration": known.generation, "conditions": conditions}
    if report is not None:
        status |= _figures(report, failures)
    elif known.newest is not None:
        status |= {name: known.status[name] for name in _FIGURES if name in known.status}
    return status


def merge_patch(before: Obj, status: Obj) -> dict[str, Any]:
    """What to send so that the status, which was ``before``, is this one."""
    return {**{name: None for name in before if name not in status}, **status}


# -- conditions ------------------------------------------------------------------------------------


def _condition(kind: str, holds: bool, reason: str, message: str) -> dict[str, Any]:
    text = message if len(message) <= _LONGEST_MESSAGE else message[: _LONGEST_MESSAGE - 4] + " ..."
    return {"type": kind, "status": "True" if holds else "False", "reason": reason, "message": text}


def _accepted(known: KnownPolicy) -> dict[str, Any]:
    if not known.problems:
        return _condition("Accepted", True, "Valid", f"generation {known.generation} is accepted")
    wrong = "; ".join(f"{path}: {reason}" if path else reason for path, reason in known.problems)
    stays = (
        f"generation {known.newest.generation} stays in force"
        if known.newest is not None
        else "no generation is in force"
    )
    return _condition("Accepted", False, "Invalid", f"{wrong} (generation {known.generation}; {stays})")


def _counting(policy: Policy) -> list[str]:
    """The fields of the spec that go by which pods are where, and so by what was decided a moment ago."""
    nodes = policy.nodes
    found = {
        "limits": policy.limits,
        "pools": policy.pools,
        "nodes.keepFree": nodes is not None and nodes.keep_free,
        "spread": policy.spread,
    }
    return [name for name, there in found.items() if there]


def _effective(known: KnownPolicy, exact: bool) -> dict[str, Any]:
    policy = known.in_force
    if known.waiting is not None:
        text = f"pods are looked at anew for the expression of generation {known.waiting.generation}"
        if policy is None:
            return _condition("Effective", False, "Pending", text)
    if policy is None:
        return _condition("Effective", False, "NotAccepted", "no generation is in force")
    if policy.mode is Mode.DISABLED:
        return _condition("Effective", False, "Disabled", "spec.mode is Disabled")
    if policy.mode is Mode.AUDIT:
        return _condition("Effective", False, "Audit", "spec.mode is Audit: decisions are only compared")
    text = f"generation {policy.generation} is in force"
    if policy.canary_percent is not None:
        text = f"{text} for {policy.canary_percent} % of the owners"
    if not exact and (counting := _counting(policy)):
        text = (
            f"{text}; best effort, as pods are bound without asking again: {', '.join(counting)} "
            "(moorage extender --enable-bind makes that exact)"
        )
    if policy.canary_percent is not None:
        return _condition("Effective", True, "Canary", text)
    earlier = policy.generation != known.generation
    return _condition("Effective", True, "EarlierGeneration" if earlier else "Enforced", text)


def _conflicted(report: PolicyReport | None, known: KnownPolicy) -> dict[str, Any]:
    if report is None:
        old = next(
            (c for c in _objects(known.status.get("conditions")) if c.get("type") == "Conflicted"), None
        )
        if old is not None and known.newest is not None:
            return _condition("Conflicted", old["status"] == "True", old["reason"], old["message"])
    elif report.lost:
        text = ", ".join(f"{lost.field} (to {lost.winner.key})" for lost in report.lost)
        message = f"for some pods these fields are those of policies that go before: {text}"
        return _condition("Conflicted", True, "FieldsLost", message)
    return _condition("Conflicted", False, "NoConflict", "every field of the policy counts")


def _metrics(policy: Policy, report: PolicyReport | None, usage: Usage) -> dict[str, Any]:
    excluded = policy.load is not None and policy.load.on_stale is OnStale.EXCLUDE
    effect = (
        "nodes without a recent sample are not used" if excluded else "such nodes are not judged by their use"
    )
    stale = report.stale_nodes if report is not None else None
    if not usage.available:
        return _condition("MetricsAvailable", False, usage.reason, f"{usage.message}; {effect}")
    if stale:
        nodes = "1 node has" if stale == 1 else f"{stale} nodes have"
        return _condition("MetricsAvailable", False, "StaleNodes", f"{nodes} no recent sample; {effect}")
    return _condition("MetricsAvailable", True, usage.reason, usage.message)


# -- figures ---------------------------------------------------------------------------------------


def _figures(report: PolicyReport, failures: tuple[int, str]) -> dict[str, Any]:
    figures: dict[str, Any] = {
        "pods": {"matched": report.matched, "pending": report.pending, "bound": report.bound}
    }
    if report.reasons:
        figures["reasons"] = [
            {"plugin": blocked.plugin, "reason": _cut(blocked.reason), "pods": blocked.pods}
            for blocked in report.reasons[:_MOST_REASONS]
        ]
    if report.pools:
        figures["pools"] = [
            {"name": pool.name, "pods": pool.pods, **({} if pool.most is None else {"max": pool.most})}
            for pool in report.pools
        ]
    failed = report.failed_expressions + failures[0]
    if failed:
        figures["expressions"] = {"failed": failed, "lastError": _cut(report.last_error or failures[1])}
    if report.audit is not None:
        audit = report.audit
        figures["audit"] = {
            "evaluated": audit.evaluated,
            "different": audit.different,
            "skipped": audit.skipped,
            "samples": [
                {"pod": s.pod, "chosen": s.chosen, "wouldChoose": s.would_choose, "why": _cut(s.why)}
                for s in audit.samples[-_MOST_SAMPLES:]
            ],
        }
    return figures


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else text[: _LONGEST_TEXT - 4] + " ..."


def _objects(value: object) -> list[Obj]:
    """What others wrote into a status may be anything."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []
