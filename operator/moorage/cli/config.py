"""KubeSchedulerConfiguration v1, as much of it as offline commands honour, to profiles.

Whatever would change a decision and is not honoured is an error that names the field, never silently ignored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

import yaml

from moorage.adapters.kube.fields import Reader
from moorage.core.framework.interface import Plugin
from moorage.core.framework.resource_scoring import ScoringStrategy, StrategyType, Weighted
from moorage.core.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from moorage.core.plugins.node_resources_fit import NodeResourcesFit
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


def _profile(profile: Mapping[str, Any], path: str, reader: Reader) -> Profile:
    _refuse_others(
        profile, path, {"schedulerName", "percentageOfNodesToScore", "plugins", "pluginConfig"}, reader
    )
    name = reader.text(profile.get("schedulerName"), f"{path}.schedulerName") or KUBE_SCHEDULER_NAME
    base = default_profile(name)
    plugins = {plugin.name: plugin for plugin in base.plugins}
    weights = dict(base.weights)
    points = reader.mapping(profile.get("plugins"), f"{path}.plugins")
    _refuse_others(points, f"{path}.plugins", {"multiPoint", "score"}, reader)
    for point in ("multiPoint", "score"):
        where = f"{path}.plugins.{point}"
        chosen = reader.mapping(points.get(point), where)
        _refuse_others(chosen, where, {"enabled", "disabled"}, reader)
        for disabled in _names(chosen.get("disabled"), f"{where}.disabled", reader):
            for plugin in list(plugins) if disabled == "*" else [disabled]:
                if point == "score":
                    weights[plugin] = 0
                elif disabled != "*":
                    plugins.pop(plugin, None)
                else:
                    reader.report(f"{where}.disabled", "'*' is not supported")
                    break
        for at, item in reader.objects(chosen.get("enabled"), f"{where}.enabled"):
            plugin = reader.text(item.get("name"), f"{at}.name")
            if plugin not in plugins:
                reader.report(f"{at}.name", f"plugin {plugin!r} is not supported")
            elif weight := reader.whole(item.get("weight"), f"{at}.weight", (0, 2**31 - 1)):
                weights[plugin] = weight
            elif not weights.get(plugin, 1):
                weights[plugin] = base.weight(plugin)
    for at, item in reader.objects(profile.get("pluginConfig"), f"{path}.pluginConfig"):
        _configure(item, at, plugins, reader)
    try:
        return Profile(name, tuple(plugins.values()), weights)
    except ValueError as error:
        reader.report(path, str(error))
        return base


def _names(value: object, path: str, reader: Reader) -> Iterator[str]:
    for at, item in reader.objects(value, path):
        name = reader.text(item.get("name"), f"{at}.name")
        if name != "*" and name not in _KUBE_PLUGINS_NOT_HERE and name not in _known():
            reader.report(f"{at}.name", f"there is no plugin {name!r}")
        yield name


def _known() -> frozenset[str]:
    return frozenset(plugin.name for plugin in default_profile().plugins)


def _configure(item: Mapping[str, Any], path: str, plugins: dict[str, Plugin], reader: Reader) -> None:
    name = reader.text(item.get("name"), f"{path}.name")
    args = reader.mapping(item.get("args"), f"{path}.args")
    plugin = plugins.get(name)
    plain = {"apiVersion", "kind"}
    if isinstance(plugin, NodeResourcesFit):
        known = plain | {"scoringStrategy", "ignoredResources", "ignoredResourceGroups"}
        _refuse_others(args, f"{path}.args", known, reader)
        plugins[name] = replace(
            plugin,
            strategy=_strategy(args.get("scoringStrategy"), f"{path}.args.scoringStrategy", reader),
            ignored=frozenset(reader.texts(args.get("ignoredResources"), f"{path}.args.ignoredResources")),
            ignored_groups=frozenset(
                reader.texts(args.get("ignoredResourceGroups"), f"{path}.args.ignoredResourceGroups")
            ),
        )
    elif isinstance(plugin, NodeResourcesBalancedAllocation):
        _refuse_others(args, f"{path}.args", plain | {"resources"}, reader)
        resources = _resources(args.get("resources"), f"{path}.args.resources", reader)
        plugins[name] = replace(plugin, resources=resources or plugin.resources)
    elif name == "DefaultPreemption":  # how many candidates to sample; all are looked at here
        known = plain | {"minCandidateNodesPercentage", "minCandidateNodesAbsolute"}
        _refuse_others(args, f"{path}.args", known, reader)
    else:
        reader.report(f"{path}.name", f"arguments of plugin {name!r} are not supported")


def _strategy(value: object, path: str, reader: Reader) -> ScoringStrategy:
    strategy = reader.mapping(value, path)
    _refuse_others(strategy, path, {"type", "resources", "requestedToCapacityRatio"}, reader)
    name = reader.text(strategy.get("type"), f"{path}.type") or StrategyType.LEAST_ALLOCATED.value
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
