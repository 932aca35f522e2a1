"""The fields of a policy that say where pods go: nodes, pools, spread and limits."""

from __future__ import annotations

import re
from typing import Final

from moorage.adapters.policy.expressions import (
    CompiledNodeExpression,
    ExpressionProblem,
    compile_node_expression,
)
from moorage.adapters.policy.fields import FieldReader, Fields
from moorage.core.model.policy import AvoidedTaint, LimitRule, NodeRules, Pool, Pools, SpreadRule
from moorage.core.model.selector import LabelSelector

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_PERCENT: Final = re.compile(r"(100|[1-9]?[0-9])%")
_MOST: Final = 1_000_000
_HARD, _SOFT = "DoNotSchedule", "ScheduleAnyway"
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def read_expression(
    section: Fields, path: str, reader: FieldReader, *, scores: bool = False
) -> CompiledNodeExpression | None:
    """The field ``expression`` over a node, None if absent."""
    text = section.get("expression")
    if not isinstance(text, str):
        reader.text(text, f"{path}.expression")
        return None
    try:
        return compile_node_expression(text, scores=scores)
    except ExpressionProblem as error:
        reader.report(f"{path}.expression", str(error))
        return None


def read_nodes(spec: Fields, reader: FieldReader) -> NodeRules | None:
    """``spec.nodes``."""
    path = "spec.nodes"
    section = reader.section(spec, "nodes", "spec", ("selector", "expression", "avoidTaints", "keepFree"))
    if section is None:
        return None
    if not section:
        reader.report(path, "must say something")
    return NodeRules(
        selector=reader.selector(section, "selector", path),
        expression=read_expression(section, path, reader),
        avoid_taints=tuple(
            AvoidedTaint(
                reader.key(item.get("key"), f"{at}.key"),
                None if item.get("value") is None else reader.text(item["value"], f"{at}.value"),
                None if item.get("effect") is None else reader.one_of(item, "effect", at, _EFFECTS),
            )
            for at, item in reader.items(section, "avoidTaints", path, 32, ("key", "value", "effect"))
        ),
        keep_free=reader.percentages(section, "keepFree", path, (0, 100)),
    )


def read_pools(spec: Fields, reader: FieldReader) -> Pools | None:
    """``spec.pools``."""
    path = "spec.pools"
    section = reader.section(spec, "pools", "spec", ("whenFull", "items"))
    if section is None:
        return None
    reader.needed(section, "items", path)
    items = reader.items(section, "items", path, 16, ("name", "selector", "max"))
    reader.different((at, item["name"]) for at, item in items if isinstance(item.get("name"), str))
    return Pools(
        items=tuple(_pool(item, at, reader) for at, item in items),
        wait=reader.one_of(section, "whenFull", path, ("next", "wait")) == "wait",
    )


def _pool(item: Fields, path: str, reader: FieldReader) -> Pool:
    name = ""
    if reader.needed(item, "name", path):
        name = reader.text(item["name"], f"{path}.name")
        if isinstance(item["name"], str) and not _NAME.fullmatch(name):
            reader.report(f"{path}.name", f"{name!r} is not a name: lower-case letters, digits and '-' only")
    reader.needed(item, "selector", path)
    selector = reader.selector(item, "selector", path) or LabelSelector()
    most = item.get("max")
    if isinstance(most, str):
        match = _PERCENT.fullmatch(most)
        if match is None:
            reader.report(
                f"{path}.max", f'must be a whole number or a percentage such as "40%", not {most!r:.40}'
            )
        return Pool(name, selector, max_percent=int(match[1]) if match else 0)
    return Pool(name, selector, reader.number(item, "max", path, (0, _MOST)))


def read_spread(spec: Fields, reader: FieldReader) -> tuple[SpreadRule, ...]:
    """``spec.spread``."""
    known = ("topologyKey", "maxSkew", "minDomains", "whenUnsatisfiable", "hardFor")
    items = reader.items(spec, "spread", "spec", 8, known)
    rules = []
    for at, item in items:
        hard = reader.one_of(item, "whenUnsatisfiable", at, (_HARD, _SOFT)) == _HARD
        for key in ("minDomains", "hardFor"):
            if not hard and item.get(key) is not None:
                reader.report(f"{at}.{key}", f"only goes with whenUnsatisfiable {_HARD}")
        rules.append(
            SpreadRule(
                topology_key=reader.key(item.get("topologyKey"), f"{at}.topologyKey"),
                max_skew=reader.number(item, "maxSkew", at, (1, _MOST)) or 1,
                min_domains=reader.number(item, "minDomains", at, (1, _MOST)),
                hard=hard,
                hard_for=reader.duration(item, "hardFor", at),
            )
        )
    reader.different(
        (at, f"{rule.topology_key} {_HARD if rule.hard else _SOFT}")
        for (at, _), rule in zip(items, rules, strict=True)
    )
    return tuple(rules)


def read_limits(spec: Fields, reader: FieldReader) -> tuple[LimitRule, ...]:
    """``spec.limits``."""
    items = reader.items(spec, "limits", "spec", 8, ("topologyKey", "maxPods"))
    rules = []
    for at, item in items:
        reader.needed(item, "maxPods", at)
        rules.append(
            LimitRule(
                reader.key(item.get("topologyKey"), f"{at}.topologyKey"),
                reader.number(item, "maxPods", at, (1, _MOST)) or 1,
            )
        )
    reader.different((at, rule.topology_key) for (at, _), rule in zip(items, rules, strict=True))
    return tuple(rules)
