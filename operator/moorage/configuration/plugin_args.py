"""``pluginConfig``: the arguments of plugins.  ``READERS`` is the one table; a plugin that is not in it takes none."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

from moorage.adapters.kube.fields import INT32, INT64, Reader
from moorage.adapters.kube.resource_lists import is_qualified_name
from moorage.adapters.kube.selectors import read_node_affinity
from moorage.adapters.kube.spread import read_spread_defaults
from moorage.adapters.kube.validate_pod import check_term
from moorage.configuration.section import Findings, Section
from moorage.core.framework.interface import Plugin
from moorage.core.framework.resource_scoring import ScoringStrategy, StrategyType, Weighted
from moorage.core.plugins.inter_pod_affinity import InterPodAffinity
from moorage.core.plugins.node_affinity import NodeAffinity
from moorage.core.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from moorage.core.plugins.node_resources_fit import NodeResourcesFit
from moorage.core.plugins.pod_topology_spread import PodTopologySpread
from moorage.core.plugins.volume_binding import VolumeBinding
from moorage.plugins.adapted import Adapted

API_VERSION: Final = "kubescheduler.config.k8s.io/v1"


def read_plugin_config(profile: Section, plugins: dict[str, Plugin]) -> None:
    """Give the plugins their arguments, whether they are enabled or not: ``plugins`` is changed in place."""
    seen = set()
    for item in profile.sections("pluginConfig"):
        item.only("name", "args")
        name = item.text("name")
        if name in seen:
            item.report("name", f"the arguments of plugin {name!r} are given twice")
        seen.add(name)
        args = item.section("args")
        for key, right in (("apiVersion", API_VERSION), ("kind", f"{name}Args")):
            if key in args and args.get(key) != right:
                args.report(key, f"must be {right}, not {args.get(key)!r}")
        plain = {key: value for key, value in args.values.items() if key not in ("apiVersion", "kind")}
        plugin = plugins.get(name)
        reader = READERS.get(name)
        if plugin is not None and reader is not None:
            plugins[name] = reader(plugin, Section(plain, args.path, args.findings))
        elif isinstance(plugin, Adapted):
            plugins[name] = _declared(plugin, Section(plain, args.path, args.findings))
        elif plain or plugin is None:
            item.report("name", f"arguments of plugin {name!r} are not supported")


def _declared(plugin: Adapted, args: Section) -> Plugin:
    """The arguments that a user's plugin declares, each of the type of its default."""
    defaults = plugin.declaration.arguments
    args.only(*defaults)
    given: dict[str, Any] = {}
    before = len(args.findings.problems)
    for key, default in defaults.items():
        if key not in args:
            continue
        match default:
            case bool():
                given[key] = args.flag(key)
            case int():
                given[key] = args.whole(key, INT64)
            case float():
                given[key] = _number(args, key)
            case str():
                given[key] = args.text(key)
            case _:
                given[key] = args.texts(key)
    if len(args.findings.problems) > before:
        return plugin
    try:
        return plugin.with_arguments(given)
    except Exception as error:  # noqa: BLE001 - foreign code: the constructor of a user's class
        args.report("", f"plugin {plugin.name} does not take this: {type(error).__name__}: {error}")
        return plugin


def _number(args: Section, key: str) -> float:
    value = args.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        args.report(key, f"must be a number, not {value!r}")
        return 0.0
    return float(value)


def _default_preemption(plugin: Plugin, args: Section) -> Plugin:
    percentage, absolute = "minCandidateNodesPercentage", "minCandidateNodesAbsolute"
    args.only(percentage, absolute)
    least = args.whole(percentage, (0, 100), 10), args.whole(absolute, (0, INT32[1]), 100)
    for key in (percentage, absolute):
        if least == (0, 0):
            args.report(key, f"{percentage} and {absolute} cannot both be 0")
        elif key in args:
            args.warn(key, "is ignored: all candidates are considered (docs/decisions/0008)")
    return plugin


def _fit(plugin: Plugin, args: Section) -> Plugin:
    assert isinstance(plugin, NodeResourcesFit)
    args.only("scoringStrategy", "ignoredResources", "ignoredResourceGroups")
    resources, groups = args.texts("ignoredResources"), args.texts("ignoredResourceGroups")
    for key, names in (("ignoredResources", resources), ("ignoredResourceGroups", groups)):
        for index, name in enumerate(names):
            if key == "ignoredResourceGroups" and "/" in name:
                args.report(f"{key}[{index}]", "must not contain '/'")
            elif not is_qualified_name(name):
                args.report(f"{key}[{index}]", f"{name!r} is not a valid name")
    return replace(
        plugin, strategy=_strategy(args), ignored=frozenset(resources), ignored_groups=frozenset(groups)
    )


def _strategy(args: Section) -> ScoringStrategy:
    if "scoringStrategy" not in args:
        return ScoringStrategy()
    strategy = args.section("scoringStrategy")
    strategy.only("type", "resources", "requestedToCapacityRatio")
    name = strategy.text("type")
    try:
        kind = StrategyType(name)
    except ValueError:
        strategy.report("type", f"must be one of {', '.join(StrategyType)}, not {name!r}")
        return ScoringStrategy()
    shape: tuple[tuple[int, int], ...] = ()
    if kind is StrategyType.REQUESTED_TO_CAPACITY_RATIO:
        ratio = strategy.section("requestedToCapacityRatio")
        ratio.only("shape")
        shape = read_shape(ratio)
    elif "requestedToCapacityRatio" in strategy:
        strategy.report("requestedToCapacityRatio", f"does not go with type {kind.value}")
    return ScoringStrategy(kind, _resources(strategy) or ScoringStrategy().resources, shape)


def read_shape(section: Section) -> tuple[tuple[int, int], ...]:
    """The field ``shape``: points of utilization and score."""
    shape = []
    for point in section.sections("shape"):
        point.only("utilization", "score")
        shape.append((point.whole("utilization", (0, 100)), point.whole("score", (0, 10))))
    if not shape:
        section.report("shape", "must have at least one point")
    if any(left >= right for (left, _), (right, _) in pairwise(shape)):
        section.report("shape", "utilization must ascend from point to point")
    return tuple(shape)


def _balanced(plugin: Plugin, args: Section) -> Plugin:
    assert isinstance(plugin, NodeResourcesBalancedAllocation)
    args.only("resources")
    resources = _resources(args)
    for index, resource in enumerate(resources):
        if resource.weight != 1:
            args.report(f"resources[{index}].weight", f"must be 1, not {resource.weight}")
        if resource.name in (earlier.name for earlier in resources[:index]):
            args.report(f"resources[{index}].name", f"{resource.name!r} is listed twice")
    return replace(plugin, resources=resources or plugin.resources)


def _resources(section: Section) -> tuple[Weighted, ...]:
    resources = []
    for item in section.sections("resources"):
        item.only("name", "weight")
        resources.append(Weighted(item.text("name"), item.whole("weight", (0, 100)) or 1))
    return tuple(resources)


def _node_affinity(plugin: Plugin, args: Section) -> Plugin:
    assert isinstance(plugin, NodeAffinity)
    args.only("addedAffinity")
    affinity = args.section("addedAffinity")
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    affinity.only(required, preferred)
    selector, terms = read_node_affinity(args.get("addedAffinity"), affinity.path, args.findings)
    quiet = Reader()  # what is of the wrong type is reported already
    for term in Section(affinity.get(required), affinity.where(required), Findings()).sections(
        "nodeSelectorTerms"
    ):
        check_term(term.values, term.path, quiet, args.findings)
    for item in Section(affinity.values, affinity.path, Findings()).sections(preferred):
        term = item.section("preference")
        check_term(term.values, term.path, quiet, args.findings)
    return replace(plugin, added_required=selector, added_preferred=terms)


def _spread(plugin: Plugin, args: Section) -> Plugin:
    assert isinstance(plugin, PodTopologySpread)
    args.only("defaultConstraints", "defaultingType")
    return replace(plugin, defaults=read_spread_defaults(args.values, args.path, args.findings))


def _volume_binding(plugin: Plugin, args: Section) -> Plugin:
    assert isinstance(plugin, VolumeBinding)
    args.only("bindTimeoutSeconds", "shape")
    seconds = args.whole("bindTimeoutSeconds", (0, INT32[1]), int(plugin.bind_timeout))
    return replace(
        plugin, bind_timeout=float(seconds), shape=read_shape(args) if "shape" in args else plugin.shape
    )


def _pod_affinity(plugin: Plugin, args: Section) -> Plugin:
    assert isinstance(plugin, InterPodAffinity)
    weight, ignore = "hardPodAffinityWeight", "ignorePreferredTermsOfExistingPods"
    args.only(weight, ignore)
    return replace(
        plugin,
        hard_weight=args.whole(weight, (0, 100), plugin.hard_weight),
        ignore_preferred_of_existing=args.flag(ignore),
    )


#: A plugin with its defaults, and its arguments, to the plugin with those arguments.
ArgsReader = Callable[[Any, Section], Plugin]

READERS: Final[Mapping[str, ArgsReader]] = {
    "DefaultPreemption": _default_preemption,
    "InterPodAffinity": _pod_affinity,
    "NodeAffinity": _node_affinity,
    "NodeResourcesBalancedAllocation": _balanced,
    "NodeResourcesFit": _fit,
    "PodTopologySpread": _spread,
    "VolumeBinding": _volume_binding,
}
