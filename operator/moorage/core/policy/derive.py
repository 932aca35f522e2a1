"""From a profile and the policies in force for a pod to the profile by which the pod is placed.

Nothing of the profile's plugins is taken away but scores that a policy weighs with 0, so a policy never weakens what
the pod itself asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from moorage.core.framework.interface import Plugin
from moorage.core.framework.points import Point, Points
from moorage.core.framework.preemption_guards import Guards
from moorage.core.framework.resource_scoring import ScoringStrategy, StrategyType, Weighted
from moorage.core.model.pod import Pod
from moorage.core.model.policy import PolicyRef, StrategyRule
from moorage.core.model.selector import Requirement
from moorage.core.plugins.default_preemption import DefaultPreemption
from moorage.core.plugins.node_resources_fit import NodeResourcesFit
from moorage.core.plugins.policy_limits import PolicyLimits
from moorage.core.plugins.policy_load import PolicyLoad
from moorage.core.plugins.policy_nodes import PolicyNodes
from moorage.core.plugins.policy_pools import PolicyPools
from moorage.core.plugins.policy_preferences import PolicyPreferences
from moorage.core.plugins.policy_spread import PolicySpread
from moorage.core.policy.merge import Merged
from moorage.core.profile import PARTS, Profile

Selects = Callable[[Pod], Collection[PolicyRef]]

#: The plugins by which policies reject pods: what a pod that only a change of policies can help waits for.
REJECTING = frozenset(p.name for p in (PolicyNodes, PolicyLimits, PolicySpread, PolicyLoad, PolicyPools))


def derive(profile: Profile, merged: Merged, selects: Selects) -> Profile:
    """The profile with what the policies add to it; the very same one if they have no word in placing.

    ``selects`` tells which policies select a pod.
    """
    plugins = tuple(_adapted(plugin, merged) for plugin in profile.plugins)
    own = _own_plugins(merged, selects)
    weights = _weights(profile, merged)
    if not own and weights is profile.weights and all(map(_same, plugins, profile.plugins)):
        return profile
    points = _extended(profile.points, own)
    return Profile(profile.scheduler_name, (*plugins, *own), weights, points, profile.extenders)


def _same(one: Plugin, other: Plugin) -> bool:
    return one is other


def _adapted(plugin: Plugin, merged: Merged) -> Plugin:
    """A plugin of the profile with the arguments that the policies set."""
    if merged.strategy is not None and isinstance(plugin, NodeResourcesFit):
        return replace(plugin, strategy=_strategy(merged.strategy))
    if merged.preemption is not None and isinstance(plugin, DefaultPreemption):
        return replace(plugin, guards=Guards(merged.preemption))
    return plugin


def _strategy(rule: StrategyRule) -> ScoringStrategy:
    resources = tuple(Weighted(name, weight) for name, weight in rule.resources)
    return ScoringStrategy(StrategyType(rule.type), resources or ScoringStrategy().resources, rule.shape)


def _weights(profile: Profile, merged: Merged) -> Mapping[str, int]:
    names = {plugin.name for plugin in profile.plugins}
    changed = {name: weight for name, weight in merged.weights.items() if name in names}
    return {**profile.weights, **changed} if changed else profile.weights


def _own_plugins(merged: Merged, selects: Selects) -> tuple[Plugin, ...]:
    """The plugins that apply the policies' rules; pools come last, as they choose among what is left."""
    own: list[Plugin] = []
    if merged.nodes:
        own.append(PolicyNodes(merged.nodes))
    if merged.limits:
        own.append(PolicyLimits(merged.limits, selects))
    if merged.spread:
        own.append(PolicySpread(merged.spread, _within(merged), _since, selects))
    if merged.load:
        own.append(PolicyLoad(merged.load))
    if merged.prefer or merged.protect:
        own.append(PolicyPreferences(merged.prefer, tuple(resource for _, resource in merged.protect)))
    if merged.pools is not None:
        own.append(PolicyPools(*merged.pools, selects))
    return tuple(own)


def _within(merged: Merged) -> tuple[Requirement, ...]:
    """What the policies' node selectors ask of nodes, as the pod's own would."""
    selectors = (rules.selector for _, rules in merged.nodes if rules.selector is not None)
    return tuple(dict.fromkeys(r for selector in selectors for r in selector.requirements))


def _since(pod: Pod) -> float:
    return pod.waiting_since


def _extended(points: Points, own: Sequence[Plugin]) -> Points:
    """The points with the policies' plugins behind the others, at those where not all plugins run."""
    return {
        point: (*names, *(plugin.name for plugin in own if _has_part(plugin, point)))
        for point, names in points.items()
    }


def _has_part(plugin: Plugin, point: Point) -> bool:
    return point in PARTS and isinstance(plugin, PARTS[point])
