"""``profiles``: which plugins run at which extension point, in which order, with which weight.

The rules are kube-scheduler's: the defaults are a multiPoint list; what a profile says of multiPoint changes that list;
it is expanded to every point that a plugin has a part in; what a profile says of a single point goes before that.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from moorage.adapters.kube.fields import INT32
from moorage.configuration.plugin_args import read_plugin_config
from moorage.configuration.section import Section
from moorage.core.framework.interface import BindPlugin, Plugin
from moorage.core.framework.points import Point, at_point
from moorage.core.plugins.supported_features import SupportedFeatures
from moorage.core.profile import (
    NO_ADDITIONS,
    PARTS,
    REMOVED_UPSTREAM,
    UPSTREAM_ONLY,
    Additions,
    Profile,
    default_profile,
)

KUBE_SCHEDULER_NAME: Final = "default-scheduler"

_MULTI_POINT: Final = "multiPoint"
_POD_GROUPS: Final = ("placementGenerate", "placementScore", "podGroupPostFilter")
#: Where a plugin that does the second must do the first.
_PREPARES: Final = {Point.FILTER: Point.PRE_FILTER, Point.SCORE: Point.PRE_SCORE}


def read_profiles(top: Section, additions: Additions = NO_ADDITIONS) -> list[Profile]:
    """The profiles in their order; without any, the default one under kube-scheduler's name."""
    sections = list(top.sections("profiles"))
    profiles: list[Profile] = []
    for section in sections:
        section.only("schedulerName", "percentageOfNodesToScore", "plugins", "pluginConfig")
        name = section.text("schedulerName")
        if not name:
            if len(sections) > 1 or "schedulerName" in section:
                section.report(
                    "schedulerName",
                    "must not be empty" + " where there are several profiles" * (len(sections) > 1),
                )
            name = KUBE_SCHEDULER_NAME
        elif name in (earlier.scheduler_name for earlier in profiles):
            section.report("schedulerName", f"two profiles have the same name {name!r}")
        section.whole("percentageOfNodesToScore", (0, 100))
        profiles.append(_profile(section, name, additions))
    return profiles or [default_profile(KUBE_SCHEDULER_NAME, additions=additions)]


def _profile(section: Section, name: str, additions: Additions) -> Profile:
    base = default_profile(name, additions=additions)
    known = {plugin.name: plugin for plugin in base.plugins}
    read_plugin_config(section, known)
    points = section.section("plugins")
    points.only(_MULTI_POINT, *Point, *_POD_GROUPS)
    for key in _POD_GROUPS:
        if points.section(key).values:
            points.report(key, "is not supported: pod groups are not scheduled as groups")
    names = configurable(additions)
    multi = _Choice(points.section(_MULTI_POINT), names)
    choices = {point: _Choice(points.section(point), names) for point in Point}
    order = _multi_point(multi, base)
    for choice in choices.values():
        order += [each for each in choice.enabled if each not in order]
    plugins = tuple(known[each] for each in order)
    on_all = set(_multi_point(multi, base))
    lists = {point: _expand(choice, point, order, on_all, known) for point, choice in choices.items()}
    _check_pairs(points, lists, known)
    weights = _weights(choices[Point.SCORE], multi, base, order, lists[Point.SCORE])
    default = {point: _with_a_part(point, order, known) for point in Point}
    changed = {point: tuple(at) for point, at in lists.items() if at != default[point]}
    try:
        profile = Profile(name, plugins, weights, {p: at for p, at in changed.items() if p not in _SCORES})
    except ValueError as error:
        section.report("", str(error))
        return base
    if not any(isinstance(p, BindPlugin) for p in at_point(plugins, profile.points, Point.BIND)):
        section.report("", f"profile {name!r} needs a Bind plugin")
    return profile


#: What scores, and in which order, is told by weights alone: sums do not depend on the order.
_SCORES: Final = (Point.PRE_SCORE, Point.SCORE)


class _Choice:
    """What a profile says of one extension point: plugins to turn off, and to turn on, with path and weight."""

    def __init__(self, section: Section, names: Collection[str]) -> None:
        section.only("enabled", "disabled")
        self.disabled: set[str] = set()
        self.enabled: dict[str, tuple[Section, int]] = {}
        for item in section.sections("disabled"):
            name = item.text("name")
            self.disabled.add(name)
            if name not in {"*", *names, *UPSTREAM_ONLY, *REMOVED_UPSTREAM}:
                item.report("name", f"there is no plugin {name!r}")
        for item in section.sections("enabled"):
            item.only("name", "weight")
            name = item.text("name")
            weight = item.whole("weight", (0, INT32[1]))
            if name in REMOVED_UPSTREAM:
                item.report("name", f"plugin {name!r} is gone; NodeVolumeLimits does its work")
            elif name not in names:
                item.report("name", f"plugin {name!r} is not supported")
            elif name in self.enabled:
                item.report("name", f"plugin {name!r} is enabled twice")
            else:  # kube-scheduler's default weight counts only for a plugin that is not mentioned
                self.enabled[name] = (item, weight or 1)

    def disables(self, plugin: str) -> bool:
        """Whether the plugin, or every plugin, is turned off here."""
        return plugin in self.disabled or "*" in self.disabled


def configurable(additions: Additions = NO_ADDITIONS) -> tuple[str, ...]:
    """The plugins that a configuration may name, in the order in which they run by default."""
    plugins = default_profile(additions=additions).plugins
    return tuple(p.name for p in plugins if not isinstance(p, SupportedFeatures))


def _named(base: Profile) -> list[str]:
    return [p.name for p in base.plugins if not isinstance(p, SupportedFeatures)]


def _multi_point(choice: _Choice, base: Profile) -> list[str]:
    """The plugins that run wherever they have a part.

    A default plugin that is enabled anew keeps its place; one that is also disabled moves to the end.
    """
    # A pod must never be placed without what it asks for, so the plugin that sees to that cannot be named.
    order = [SupportedFeatures.name, *(name for name in _named(base) if not choice.disables(name))]
    return order + [name for name in choice.enabled if name not in order]


def _has_part(plugin: Plugin, point: Point) -> bool:
    part = PARTS.get(point)
    return part is not None and isinstance(plugin, part)


def _with_a_part(point: Point, names: list[str], known: Mapping[str, Plugin]) -> list[str]:
    return [name for name in names if _has_part(known[name], point)]


def _expand(
    choice: _Choice, point: Point, order: list[str], on_all: set[str], known: Mapping[str, Plugin]
) -> list[str]:
    """The plugins at one point: those named there that run everywhere, the others that do, the rest of those named."""
    named = []
    for name, (item, _) in choice.enabled.items():
        if _has_part(known[name], point):
            named.append(name)
        else:
            item.report("name", f"plugin {name!r} has no part in {point}")
    ours = [name for name in (SupportedFeatures.name,) if _has_part(known[name], point)]
    if "*" in choice.disabled:
        return [*ours, *named]
    everywhere = [name for name in _with_a_part(point, order, known) if name in on_all and name not in ours]
    first = [name for name in named if name in everywhere and name not in choice.disabled]
    multi = [name for name in everywhere if name not in named and name not in choice.disabled]
    return [*ours, *first, *multi, *(name for name in named if name not in first)]


def _check_pairs(points: Section, lists: Mapping[Point, list[str]], known: Mapping[str, Plugin]) -> None:
    for point, before in _PREPARES.items():
        for name in lists[point]:
            if name not in lists[before]:
                message = f"plugin {name!r} is off here but on at {point}, which needs what it prepares here"
                points.report(before, message)


def _weights(
    score: _Choice, multi: _Choice, base: Profile, order: list[str], scoring: list[str]
) -> dict[str, int]:
    """How much each plugin's score counts; 0 means that it does not score."""
    weights = {}
    for name in order:
        if name in score.enabled:
            weights[name] = score.enabled[name][1]
        elif name in multi.enabled:
            weights[name] = multi.enabled[name][1]
        else:
            weights[name] = base.weight(name)
        if name not in scoring:
            weights[name] = 0
    return weights
