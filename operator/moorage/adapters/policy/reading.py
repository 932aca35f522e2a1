"""A raw SchedulingPolicy or ClusterSchedulingPolicy to the core's ``Policy``.

It checks what the CRD does (the two share their tests), and what a CRD cannot: time zones, expressions, names of
plugins.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, tzinfo
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from moorage.adapters.policy.expressions import ExpressionProblem, PodExpression, compile_pod_expression
from moorage.adapters.policy.fields import FieldReader, Fields
from moorage.adapters.policy.reading_nodes import read_limits, read_nodes, read_pools, read_spread
from moorage.adapters.policy.reading_scoring import read_load, read_scoring
from moorage.adapters.policy.remarks import remarks
from moorage.core.model.policy import (
    Backoff,
    Mode,
    Policy,
    PolicyRef,
    PreemptionRules,
    Selection,
    Window,
)
from moorage.core.model.selector import LabelSelector

API_VERSION: Final = "moorage.dev/v1alpha1"
NAMESPACED, CLUSTER = "SchedulingPolicy", "ClusterSchedulingPolicy"
KINDS: Final = (NAMESPACED, CLUSTER)

_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_TIME: Final = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])")
_ZONE: Final = re.compile(r"[A-Za-z0-9_+/-]{1,64}")
_MODES: Final = {mode.value: mode for mode in Mode}
_FIELDS: Final = (
    "precedence",
    "mode",
    "canary",
    "selector",
    "windows",
    "maxDelay",
    "nodes",
    "pools",
    "spread",
    "limits",
    "scoring",
    "load",
    "preemption",
    "backoff",
    "pendingDeadline",
)


@dataclass(frozen=True, slots=True)
class ReadPolicy:
    """What came of reading: ``policy`` is None if anything is ``wrong``.

    ``wrong`` and ``odd`` are paths of fields and what is to be said of them; what is odd has no influence.
    """

    ref: PolicyRef
    policy: Policy | None
    pod_expression: PodExpression | None
    wrong: tuple[tuple[str, str], ...]
    odd: tuple[tuple[str, str], ...]


def ref_of(obj: Mapping[str, Any]) -> PolicyRef:
    """Which policy a raw object is, as far as it says; its kind decides whether its namespace counts."""
    metadata = obj.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    namespace = metadata.get("namespace") or "default" if obj.get("kind") == NAMESPACED else ""
    return PolicyRef(str(namespace), str(metadata.get("name", "")))


def read_policy(obj: Mapping[str, Any], plugins: Collection[str] | None = None) -> ReadPolicy:
    """Read a policy that has a kind and a name; ``plugins`` are the scoring plugins there are (None: not checked)."""
    reader = FieldReader()
    ref = ref_of(obj)
    metadata = reader.mapping(obj.get("metadata"), "metadata")
    spec: Fields = {}
    if obj.get("spec") is None:
        reader.report("spec", "is missing")
    else:
        spec = reader.mapping(obj["spec"], "spec")
        reader.only(spec, "spec", _FIELDS)
    canary = reader.section(spec, "canary", "spec", ("percent",))
    if canary is not None:
        reader.needed(canary, "percent", "spec.canary")
    expression, selection = _selection(spec, reader, cluster=not ref.namespace)
    windows = tuple(_windows(spec, reader))
    policy = Policy(
        ref=ref,
        uid=reader.text(metadata.get("uid"), "metadata.uid"),
        generation=reader.whole(metadata.get("generation"), "metadata.generation", (0, (1 << 63) - 1)),
        created=reader.time(metadata.get("creationTimestamp"), "metadata.creationTimestamp"),
        precedence=reader.number(spec, "precedence", "spec", (-1_000_000, 1_000_000)) or 0,
        mode=reader.choice(spec, "mode", "spec", _MODES, Mode.ENFORCE),
        canary_percent=None if canary is None else reader.number(canary, "percent", "spec.canary", (0, 100)),
        selection=selection,
        windows=windows,
        max_delay=reader.duration(spec, "maxDelay", "spec"),
        nodes=read_nodes(spec, reader),
        pools=read_pools(spec, reader),
        spread=read_spread(spec, reader),
        limits=read_limits(spec, reader),
        scoring=read_scoring(spec, reader, plugins),
        load=read_load(spec, reader),
        preemption=_preemption(spec, reader),
        backoff=_backoff(spec, reader),
        pending_deadline=reader.duration(spec, "pendingDeadline", "spec"),
    )
    if policy.max_delay is not None and not windows and not spec.get("windows"):
        reader.report("spec.maxDelay", "is about windows, and there are none")
    wrong = tuple(dict.fromkeys(reader.problems))
    if wrong:
        return ReadPolicy(ref, None, None, wrong, ())
    return ReadPolicy(ref, policy, expression, (), tuple(remarks(policy)))


def _selection(spec: Fields, reader: FieldReader, *, cluster: bool) -> tuple[PodExpression | None, Selection]:
    path = "spec.selector"
    known = (
        "podSelector",
        *(("namespaceSelector",) if cluster else ()),
        "priorityClasses",
        "schedulerNames",
        "expression",
    )
    if not reader.needed(spec, "selector", "spec"):
        return None, Selection()
    section = reader.section(spec, "selector", "spec", known) or {}
    text = reader.text(section.get("expression"), f"{path}.expression")
    expression = None
    if isinstance(section.get("expression"), str):
        try:
            expression = compile_pod_expression(text)
        except ExpressionProblem as error:
            reader.report(f"{path}.expression", str(error))
    return expression, Selection(
        pods=reader.selector(section, "podSelector", path, of_pods=True) or LabelSelector(),
        namespaces=reader.selector(section, "namespaceSelector", path, of_pods=True) if cluster else None,
        priority_classes=frozenset(reader.strings(section, "priorityClasses", path, 32)),
        scheduler_names=frozenset(reader.strings(section, "schedulerNames", path, 32)),
        expression=text,
    )


def _windows(spec: Fields, reader: FieldReader) -> list[Window]:
    known = ("days", "start", "end", "timeZone", "action")
    windows = []
    for at, item in reader.items(spec, "windows", "spec", 32, known):
        days = reader.strings(item, "days", at, 7)
        for index, day in enumerate(days):
            if day and day not in _DAYS:
                reader.report(f"{at}.days[{index}]", f"must be one of {', '.join(_DAYS)}, not {day!r}")
        windows.append(
            Window(
                days=frozenset(_DAYS.index(day) for day in days or _DAYS if day in _DAYS),
                start=_minutes(item, "start", at, reader),
                end=_minutes(item, "end", at, reader),
                zone=_zone(item, at, reader),
                hold=reader.one_of(item, "action", at, ("Allow", "Hold")) == "Hold",
            )
        )
    return windows


def _minutes(item: Fields, key: str, path: str, reader: FieldReader) -> int:
    if not reader.needed(item, key, path):
        return 0
    text = reader.text(item[key], f"{path}.{key}")
    match = _TIME.fullmatch(text)
    if match is None:
        if isinstance(item[key], str):
            reader.report(f"{path}.{key}", f'must be a time of day such as "06:00", not {text!r:.40}')
        return 0
    return int(match[1]) * 60 + int(match[2])


def _zone(item: Fields, path: str, reader: FieldReader) -> tzinfo:
    name = reader.text(item.get("timeZone"), f"{path}.timeZone") or "UTC"
    try:
        if not _ZONE.fullmatch(name):
            raise ValueError(name)
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        reader.report(f"{path}.timeZone", f"there is no time zone {name!r:.70}")
        return UTC


def _preemption(spec: Fields, reader: FieldReader) -> PreemptionRules | None:
    path = "spec.preemption"
    known = ("policy", "minVictimRuntime", "minPriorityGap", "maxVictims", "respectPDB")
    section = reader.section(spec, "preemption", "spec", known)
    if section is None:
        return None
    if not section:
        reader.report(path, "must say something")
    never = reader.one_of(section, "policy", path, ("LowerPriority", "Never")) == "Never"
    if never and len(section) > 1:
        reader.report(f"{path}.policy", "Never leaves nothing for the other fields to guard")
    return PreemptionRules(
        never=never,
        min_victim_runtime=reader.duration(section, "minVictimRuntime", path),
        min_priority_gap=reader.number(section, "minPriorityGap", path, (1, 2_000_000_000)),
        max_victims=reader.number(section, "maxVictims", path, (1, 1000)),
        strict_budgets=reader.one_of(section, "respectPDB", path, ("BestEffort", "Strict")) == "Strict",
    )


def _backoff(spec: Fields, reader: FieldReader) -> Backoff | None:
    path = "spec.backoff"
    section = reader.section(spec, "backoff", "spec", ("initial", "max"))
    if section is None:
        return None
    if not section:
        reader.report(path, "must say something")
    initial, longest = reader.duration(section, "initial", path), reader.duration(section, "max", path)
    if initial is not None and longest is not None and initial > longest:
        reader.report(f"{path}.initial", "must not be longer than backoff.max")
    return Backoff(initial, longest)
