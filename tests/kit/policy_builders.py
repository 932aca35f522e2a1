"""Builders of policies, which read as sentences: ``make_policy("batch", labels={"tier": "batch"}, limits=…)``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from moorage.core.model.policy import Policy, PolicyRef, Selection, Window
from moorage.core.model.selector import LabelSelector
from tests.kit.models import label_in

EVERY_DAY = frozenset(range(7))
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def labelled(labels: Mapping[str, str]) -> LabelSelector:
    """``matchLabels``."""
    return LabelSelector(tuple(label_in(key, value) for key, value in labels.items()))


def make_policy(
    name: str = "p",
    *,
    namespace: str = "",
    labels: Mapping[str, str] | None = None,
    namespace_labels: Mapping[str, str] | None = None,
    priority_classes: Iterable[str] = (),
    scheduler_names: Iterable[str] = (),
    expression: str = "",
    **fields: Any,
) -> Policy:
    """A policy for the pods of these labels (default: all in scope); what is no part of a selection is a field."""
    selection = Selection(
        labelled(labels or {}),
        None if namespace_labels is None else labelled(namespace_labels),
        frozenset(priority_classes),
        frozenset(scheduler_names),
        expression,
    )
    return Policy(PolicyRef(namespace, name), selection=selection, **fields)


def window(days: str, start: str, end: str, zone: str | tzinfo = "UTC", *, hold: bool = False) -> Window:
    """``window("Mon Tue", "22:00", "06:00", "Europe/Berlin")``; no days are all days."""
    numbers = frozenset(map(_DAYS.index, days.split())) if days else EVERY_DAY
    return Window(
        numbers, _minutes(start), _minutes(end), ZoneInfo(zone) if isinstance(zone, str) else zone, hold
    )


def _minutes(text: str) -> int:
    hours, _, minutes = text.partition(":")
    return int(hours) * 60 + int(minutes)


def at(text: str, zone: str = "UTC", *, fold: int = 0) -> float:
    """The instant of ``2026-03-29 02:30`` in a zone."""
    naive = datetime.strptime(text, "%Y-%m-%d %H:%M").replace(tzinfo=UTC)
    return naive.replace(tzinfo=ZoneInfo(zone), fold=fold).timestamp()
