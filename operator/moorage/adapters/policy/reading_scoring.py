"""The fields of a policy that say which node is better: scoring and load."""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise
from typing import Final

from moorage.adapters.policy.fields import FieldReader, Fields
from moorage.adapters.policy.reading_nodes import read_expression
from moorage.core.model.policy import LoadRules, OnStale, Preference, Scoring, StrategyRule

_TYPES: Final = ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")
_DEFAULT_RESOURCES: Final = (("cpu", 1), ("memory", 1))
_MEASURED: Final = ("cpu", "memory")
_STALE: Final = {item.value: item for item in OnStale}


def read_scoring(spec: Fields, reader: FieldReader, plugins: Collection[str] | None) -> Scoring | None:
    """``spec.scoring``; ``plugins`` are the names that may have a weight."""
    path = "spec.scoring"
    section = reader.section(spec, "scoring", "spec", ("strategy", "weights", "prefer", "protect"))
    if section is None:
        return None
    if not section:
        reader.report(path, "must say something")
    protect = reader.strings(section, "protect", path, 16)
    for index, name in enumerate(protect):
        if name:
            reader.key(name, f"{path}.protect[{index}]")
    return Scoring(
        strategy=_strategy(section, reader),
        weights=_weights(section, reader, plugins),
        prefer=tuple(
            _preference(item, at, reader)
            for at, item in reader.items(section, "prefer", path, 16, ("selector", "expression", "weight"))
        ),
        protect=protect,
    )


def _strategy(scoring: Fields, reader: FieldReader) -> StrategyRule | None:
    path = "spec.scoring.strategy"
    section = reader.section(scoring, "strategy", "spec.scoring", ("type", "resources", "shape"))
    if section is None:
        return None
    kind = _TYPES[0]
    if reader.needed(section, "type", path):
        kind = reader.one_of(section, "type", path, _TYPES)
    items = reader.items(section, "resources", path, 16, ("name", "weight"))
    resources = []
    for at, item in items:
        weight = reader.number(item, "weight", at, (1, 100), 1) or 1
        resources.append((reader.key(item.get("name"), f"{at}.name"), weight))
    reader.different((at, name) for (at, _), (name, _) in zip(items, resources, strict=True))
    points = reader.items(section, "shape", path, 32, ("utilization", "score"))
    shape = []
    for at, point in points:
        for key in ("utilization", "score"):
            reader.needed(point, key, at)
        utilization = reader.number(point, "utilization", at, (0, 100)) or 0
        shape.append((utilization, reader.number(point, "score", at, (0, 10)) or 0))
    reader.different((at, str(point[0])) for (at, _), point in zip(points, shape, strict=True))
    if any(left > right for (left, _), (right, _) in pairwise(shape)):
        reader.report(f"{path}.shape", "must be in ascending order of utilization")
    if (kind == _TYPES[2]) != (section.get("shape") is not None):
        reader.report(f"{path}.shape", f"goes with {_TYPES[2]}, which needs it")
    return StrategyRule(kind, tuple(resources) or _DEFAULT_RESOURCES, tuple(shape))


def _weights(scoring: Fields, reader: FieldReader, plugins: Collection[str] | None) -> dict[str, int]:
    path = "spec.scoring.weights"
    weights = reader.mapping(scoring.get("weights"), path)
    if scoring.get("weights") is not None and not weights:
        reader.report(path, "must name at least one plugin")
    if len(weights) > 32:
        reader.report(path, f"must have at most 32 items, not {len(weights)}")
    result = {}
    for name, value in weights.items():
        result[name] = reader.whole(value, f"{path}.{name}", (0, 100))
        if value is None:
            reader.report(f"{path}.{name}", "must be an integer, not null")
        if plugins is not None and name not in plugins:
            known = ", ".join(sorted(plugins))
            reader.report(f"{path}.{name}", f"there is no scoring plugin of this name; there are {known}")
    return result


def _preference(item: Fields, path: str, reader: FieldReader) -> Preference:
    if (item.get("selector") is None) == (item.get("expression") is None):
        reader.report(path, "exactly one of selector and expression must be set")
    reader.needed(item, "weight", path)
    return Preference(
        weight=reader.number(item, "weight", path, (1, 100)) or 1,
        selector=reader.selector(item, "selector", path),
        expression=read_expression(item, path, reader, scores=True),
    )


def read_load(spec: Fields, reader: FieldReader) -> LoadRules | None:
    """``spec.load``."""
    path = "spec.load"
    section = reader.section(spec, "load", "spec", ("target", "limit", "staleAfter", "onStale"))
    if section is None:
        return None
    target, limit = (_percent_of_use(section, key, reader) for key in ("target", "limit"))
    if section.get("target") is None and section.get("limit") is None:
        reader.report(path, "must set target, limit or both")
    for name in target:
        if name in limit and target[name] > limit[name]:
            reader.report(f"{path}.target.{name}", f"must not be above load.limit.{name}")
    stale_after = reader.duration(section, "staleAfter", path)
    return LoadRules(
        target=target,
        limit=limit,
        stale_after=180.0 if stale_after is None else stale_after,
        on_stale=reader.choice(section, "onStale", path, _STALE, OnStale.IGNORE),
    )


def _percent_of_use(load: Fields, key: str, reader: FieldReader) -> dict[str, int]:
    reader.section(load, key, "spec.load", _MEASURED)
    return reader.percentages(load, key, "spec.load", (1, 100))
