"""KubeSchedulerConfiguration v1, as much of it as offline commands honour, to profiles.

Whatever would change a decision and is not honoured is an error that names the field, never silently ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

import yaml

from moorage.adapters.kube.fields import INT32, Reader
from moorage.core.framework.interface import BindPlugin, Plugin, ScorePlugin
from moorage.core.framework.resource_scoring import ScoringStrategy, StrategyType, Weighted
from moorage.core.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from moorage.core.plugins.node_resources_fit import NodeResourcesFit
from moorage.core.plugins.supported_features import SupportedFeatures
from moorage.core.profile import DEFAULT_SCHEDULER_NAME, Profile, default_profile

KUBE_SCHEDULER_NAME: Final = "default-scheduler"

_API_VERSION, _KIND = "kubescheduler.config.k8s.io/v1", "KubeSchedulerConfiguration"
#: Fields that have no bearing on where a pod goes, at least when every node is looked at.
_IRRELEVANT: Final = frozenset(
    {
        "apiVersion",
        "kind",
        "clientConnection",
        "delayCacheUntilActive",
        "enableContentionProfiling",
        "enableProfiling",
        "leaderElection",
        "parallelism",
        "percentageOfNodesToScore",
        "podInitialBackoffSeconds",
        "podMaxBackoffSeconds",
    }
)
_KUBE_PLUGINS_NOT_HERE: Final = frozenset(
    {
        "DeferredPodScheduling",
        "DynamicResources",
        "InterPodAffinity",
        "NodeDeclaredFeatures",
        "NodeVolumeLimits",
        "PodTopologySpread",
        "VolumeBinding",
        "VolumeRestrictions",
        "VolumeZone",
    }
)


class ConfigError(ValueError):
    """The configuration is broken or asks for something that is not supported; the text begins with the field."""


def read_config(config: object) -> Mapping[str, Profile]:
    """Profiles by scheduler name; without a configuration, the default one under kube-scheduler's name and ours."""
    if isinstance(config, str):
        try:
            config = yaml.safe_load(config)
        except yaml.YAMLError as error:
            raise ConfigError(f"not YAML: {error}") from error
    if config is None:
        return {name: default_profile(name) for name in (KUBE_SCHEDULER_NAME, DEFAULT_SCHEDULER_NAME)}
    reader = Reader()
    top = reader.mapping(config, "config")
    for key, right in (("apiVersion", _API_VERSION), ("kind", _KIND)):
        if top.get(key, right) != right:
            reader.report(key, f"must be {right}, not {top[key]!r}")
    _refuse_others(top, "", _IRRELEVANT | {"profiles"}, reader)
    _check_numbers(top, reader)
    profiles = [
        _profile(profile, path, reader) for path, profile in reader.objects(top.get("profiles"), "profiles")
    ]
    result = {
        profile.scheduler_name: profile for profile in profiles or [default_profile(KUBE_SCHEDULER_NAME)]
    }
    if len(result) < len(profiles):
        reader.report("profiles", "two profiles have the same schedulerName")
    if reader.problems:
        raise ConfigError(
            "; ".join(": ".join(part for part in problem if part) for problem in reader.problems)
        )
    return result


def _check_numbers(top: Mapping[str, Any], reader: Reader) -> None:
    """Numbers that are not used here must still be such as kube-scheduler accepts."""
    reader.whole(top.get("percentageOfNodesToScore"), "percentageOfNodesToScore", (0, 100))
    for key in ("parallelism", "podInitialBackoffSeconds", "podMaxBackoffSeconds"):
        if top.get(key) is not None:
            reader.whole(top[key], key, (1, INT32[1]))


def _profile(profile: Mapping[str, Any], path: str, reader: Reader) -> Profile:
    _refuse_others(
        profile, path, {"schedulerName", "percentageOfNodesToScore", "plugins", "pluginConfig"}, reader
    )
    name = reader.text(profile.get("schedulerName"), f"{path}.schedulerName") or KUBE_SCHEDULER_NAME
    base = default_profile(name)
    plugins = {plugin.name: plugin for plugin in base.plugins}
    _configure(profile.get("pluginConfig"), f"{path}.pluginConfig", plugins, reader)
    where = f"{path}.plugins"
    points = reader.mapping(profile.get("plugins"), where)
    _refuse_others(points, where, {"multiPoint", "score"}, reader)
    weights = _multi_point(_point(points, "multiPoint", where, reader), base, reader)
    _score(_point(points, "score", where, reader), weights, plugins, reader)
    if not any(isinstance(plugins[each], BindPlugin) for each in weights):
        reader.report(path, f"profile {name!r} needs a Bind plugin")
    try:
        return Profile(name, tuple(plugins[each] for each in weights), weights)
    except ValueError as error:
        reader.report(path, str(error))
        return base


@dataclass(frozen=True, slots=True)
class _Point:
    """What a profile says of one extension point: plugins to turn off, and to turn on, with path and weight."""

    path: str
    disabled: frozenset[str]
    enabled: Mapping[str, tuple[str, int]]

    def disables(self, plugin: str) -> bool:
        """Whether the plugin, or every plugin, is turned off here."""
        return plugin in self.disabled or "*" in self.disabled


def _point(points: Mapping[str, Any], point: str, path: str, reader: Reader) -> _Point:
    where = f"{path}.{point}"
    chosen = reader.mapping(points.get(point), where)
    _refuse_others(chosen, where, {"enabled", "disabled"}, reader)
    known = _default_names()
    disabled = []
    for at, item in reader.objects(chosen.get("disabled"), f"{where}.disabled"):
        disabled.append(reader.text(item.get("name"), f"{at}.name"))
        if disabled[-1] not in {"*", *known, *_KUBE_PLUGINS_NOT_HERE}:
            reader.report(f"{at}.name", f"there is no plugin {disabled[-1]!r}")
    enabled: dict[str, tuple[str, int]] = {}
    for at, item in reader.objects(chosen.get("enabled"), f"{where}.enabled"):
        name = reader.text(item.get("name"), f"{at}.name")
        if name not in known:
            reader.report(f"{at}.name", f"plugin {name!r} is not supported")
        elif name in enabled:
            reader.report(f"{at}.name", f"plugin {name!r} is enabled twice")
        else:  # kube-scheduler's default weight counts only for a plugin that is not mentioned
            enabled[name] = (at, reader.whole(item.get("weight"), f"{at}.weight", (0, INT32[1])) or 1)
    return _Point(where, frozenset(disabled), enabled)


def _default_names() -> tuple[str, ...]:
    """The plugins that a configuration may name, in the order in which they run by default."""
    return tuple(p.name for p in default_profile().plugins if not isinstance(p, SupportedFeatures))


def _multi_point(point: _Point, base: Profile, reader: Reader) -> dict[str, int]:
    """Which plugins run, in their order, and how much each counts.

    A default plugin that is enabled anew keeps its place; one that is also disabled moves to the end.
    """
    weights = {SupportedFeatures.name: 0}  # never off: a pod must not be placed without what it asks for
    for name in _default_names():
        if not point.disables(name):
            weights[name] = point.enabled[name][1] if name in point.enabled else base.weight(name)
    for name, (_, weight) in point.enabled.items():
        weights.setdefault(name, weight)
    return weights


def _score(point: _Point, weights: dict[str, int], plugins: Mapping[str, Plugin], reader: Reader) -> None:
    """Apply what is said of scores alone; a weight of 0 means that the plugin does not score."""
    for name in weights:
        if point.disables(name):
            weights[name] = 0
    for name, (path, weight) in point.enabled.items():
        if not isinstance(plugins[name], ScorePlugin):
            reader.report(f"{path}.name", f"plugin {name!r} does not score nodes")
        elif name not in weights:
            message = f"plugin {name!r} is disabled; enabling it for scores alone is not supported"
            reader.report(f"{path}.name", message)
        else:
            weights[name] = weight


def _configure(value: object, path: str, plugins: dict[str, Plugin], reader: Reader) -> None:
    """Read the arguments of plugins, whether they are enabled or not."""
    seen = set()
    for at, item in reader.objects(value, path):
        name = reader.text(item.get("name"), f"{at}.name")
        if name in seen:
            reader.report(f"{at}.name", f"the arguments of plugin {name!r} are given twice")
        seen.add(name)
        args = {
            key: arg
            for key, arg in reader.mapping(item.get("args"), f"{at}.args").items()
            if key not in ("apiVersion", "kind")
        }
        if args or name not in plugins:
            _configure_one(name, args, at, plugins, reader)


def _configure_one(
    name: str, args: Mapping[str, Any], path: str, plugins: dict[str, Plugin], reader: Reader
) -> None:
    plugin = plugins.get(name)
    where = f"{path}.args"
    if isinstance(plugin, NodeResourcesFit):
        _refuse_others(args, where, {"scoringStrategy", "ignoredResources", "ignoredResourceGroups"}, reader)
        groups = reader.texts(args.get("ignoredResourceGroups"), f"{where}.ignoredResourceGroups")
        for index, group in enumerate(groups):
            if "/" in group:
                reader.report(f"{where}.ignoredResourceGroups[{index}]", "must not contain '/'")
        plugins[name] = replace(
            plugin,
            strategy=_strategy(args.get("scoringStrategy"), f"{where}.scoringStrategy", reader),
            ignored=frozenset(reader.texts(args.get("ignoredResources"), f"{where}.ignoredResources")),
            ignored_groups=frozenset(groups),
        )
    elif isinstance(plugin, NodeResourcesBalancedAllocation):
        _refuse_others(args, where, {"resources"}, reader)
        resources = _resources(args.get("resources"), f"{where}.resources", reader)
        for index, resource in enumerate(resources):
            if resource.weight != 1:
                reader.report(f"{where}.resources[{index}].weight", f"must be 1, not {resource.weight}")
            if resource.name in (earlier.name for earlier in resources[:index]):
                reader.report(f"{where}.resources[{index}].name", f"{resource.name!r} is listed twice")
        plugins[name] = replace(plugin, resources=resources or plugin.resources)
    elif name == "DefaultPreemption":  # how many candidates to sample; all are looked at here
        _refuse_others(args, where, {"minCandidateNodesPercentage", "minCandidateNodesAbsolute"}, reader)
        key = "minCandidateNodesPercentage"
        reader.whole(args.get(key), f"{where}.{key}", (0, 100))
        key = "minCandidateNodesAbsolute"
        reader.whole(args.get(key), f"{where}.{key}", (0, INT32[1]))
    else:
        reader.report(f"{path}.name", f"arguments of plugin {name!r} are not supported")


def _strategy(value: object, path: str, reader: Reader) -> ScoringStrategy:
    if value is None:
        return ScoringStrategy()
    strategy = reader.mapping(value, path)
    _refuse_others(strategy, path, {"type", "resources", "requestedToCapacityRatio"}, reader)
    name = reader.text(strategy.get("type"), f"{path}.type")
    try:
        kind = StrategyType(name)
    except ValueError:
        reader.report(f"{path}.type", f"must be one of {', '.join(StrategyType)}, not {name!r}")
        return ScoringStrategy()
    ratio = reader.mapping(strategy.get("requestedToCapacityRatio"), f"{path}.requestedToCapacityRatio")
    where = f"{path}.requestedToCapacityRatio.shape"
    shape = tuple(
        (
            reader.whole(point.get("utilization"), f"{at}.utilization", (0, 100)),
            reader.whole(point.get("score"), f"{at}.score", (0, 10)),
        )
        for at, point in reader.objects(ratio.get("shape"), where)
    )
    if kind is StrategyType.REQUESTED_TO_CAPACITY_RATIO and not shape:
        reader.report(where, "must have at least one point")
    if kind is not StrategyType.REQUESTED_TO_CAPACITY_RATIO and ratio:
        reader.report(f"{path}.requestedToCapacityRatio", f"does not go with type {kind.value}")
    if any(left >= right for (left, _), (right, _) in pairwise(shape)):
        reader.report(where, "utilization must ascend from point to point")
    resources = _resources(strategy.get("resources"), f"{path}.resources", reader)
    return ScoringStrategy(kind, resources or ScoringStrategy().resources, shape)


def _resources(value: object, path: str, reader: Reader) -> tuple[Weighted, ...]:
    return tuple(
        Weighted(
            reader.text(item.get("name"), f"{at}.name"),
            reader.whole(item.get("weight"), f"{at}.weight", (0, 100)) or 1,
        )
        for at, item in reader.objects(value, path)
    )


def _refuse_others(
    value: Mapping[str, Any], path: str, known: set[str] | frozenset[str], reader: Reader
) -> None:
    for key in value:
        if key not in known and value[key] is not None:
            reader.report(f"{path}.{key}" if path else key, "is not supported")
