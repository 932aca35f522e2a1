"""Profiles: which plugins run for which scheduler name, in which order and with which weights."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from moorage.core.framework.interface import (
    BindPlugin,
    FilterPlugin,
    PermitPlugin,
    Plugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    QueueSortPlugin,
    ReservePlugin,
    ScorePlugin,
)
from moorage.core.framework.points import Point, Points, at_point
from moorage.core.framework.post_filter import PostFilterPlugin
from moorage.core.framework.resource_scoring import ScoringStrategy
from moorage.core.model.extender import Extender
from moorage.core.plugins.default_binder import DefaultBinder
from moorage.core.plugins.default_preemption import DefaultPreemption
from moorage.core.plugins.image_locality import ImageLocality
from moorage.core.plugins.inter_pod_affinity import InterPodAffinity
from moorage.core.plugins.node_affinity import NodeAffinity
from moorage.core.plugins.node_declared_features import NodeDeclaredFeatures
from moorage.core.plugins.node_name import NodeName
from moorage.core.plugins.node_ports import NodePorts
from moorage.core.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from moorage.core.plugins.node_resources_fit import NodeResourcesFit
from moorage.core.plugins.node_unschedulable import NodeUnschedulable
from moorage.core.plugins.node_volume_limits import NodeVolumeLimits
from moorage.core.plugins.pod_topology_spread import PodTopologySpread
from moorage.core.plugins.priority_sort import PrioritySort
from moorage.core.plugins.scheduling_gates import SchedulingGates
from moorage.core.plugins.supported_features import SupportedFeatures
from moorage.core.plugins.taint_toleration import TaintToleration
from moorage.core.plugins.volume_binding import VolumeBinding
from moorage.core.plugins.volume_restrictions import VolumeRestrictions
from moorage.core.plugins.volume_zone import VolumeZone

DEFAULT_SCHEDULER_NAME = "moorage"

#: Every plugin by name, in the order in which the default profile runs them.
REGISTRY: Mapping[str, Callable[[], Plugin]] = {
    "SupportedFeatures": SupportedFeatures,
    "SchedulingGates": SchedulingGates,
    "PrioritySort": PrioritySort,
    "NodeName": NodeName,
    "NodeUnschedulable": NodeUnschedulable,
    "TaintToleration": TaintToleration,
    "NodeAffinity": NodeAffinity,
    "NodePorts": NodePorts,
    "NodeResourcesFit": NodeResourcesFit,
    "VolumeRestrictions": VolumeRestrictions,
    "NodeVolumeLimits": NodeVolumeLimits,
    "VolumeBinding": VolumeBinding,
    "VolumeZone": VolumeZone,
    "PodTopologySpread": PodTopologySpread,
    "InterPodAffinity": InterPodAffinity,
    "DefaultPreemption": DefaultPreemption,
    "NodeResourcesBalancedAllocation": NodeResourcesBalancedAllocation,
    "ImageLocality": ImageLocality,
    "DefaultBinder": DefaultBinder,
    "NodeDeclaredFeatures": NodeDeclaredFeatures,
}

#: Weights of the default profile (kube-scheduler v1.37); plugins not named here weigh 1.
DEFAULT_WEIGHTS: Mapping[str, int] = {
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
}


#: What a plugin must be to have a part in an extension point; the points that are absent here are not supported yet.
PARTS: Mapping[Point, type] = {
    Point.PRE_ENQUEUE: PreEnqueuePlugin,
    Point.QUEUE_SORT: QueueSortPlugin,
    Point.PRE_FILTER: FilterPlugin,
    Point.FILTER: FilterPlugin,
    Point.POST_FILTER: PostFilterPlugin,
    Point.PRE_SCORE: ScorePlugin,
    Point.SCORE: ScorePlugin,
    Point.RESERVE: ReservePlugin,
    Point.PERMIT: PermitPlugin,
    Point.PRE_BIND: PreBindPlugin,
    Point.BIND: BindPlugin,
}


#: Plugins that kube-scheduler v1.37 has and we do not, and those that it has no more: their names are taken.
UPSTREAM_ONLY = frozenset(
    {
        "DeferredPodScheduling",
        "DynamicResources",
        "GangScheduling",
        "PodGroupPodsCount",
        "TopologyPlacementGenerator",
    }
)
REMOVED_UPSTREAM = frozenset({"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"})


@dataclass(frozen=True)
class Additions:
    """Plugins that are not built in.  They run after the built-in ones, with these weights."""

    plugins: tuple[Plugin, ...] = ()
    weights: Mapping[str, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.plugins)


NO_ADDITIONS = Additions()


@dataclass(frozen=True)
class Profile:
    """The plugins of one scheduler name, in the order in which they run, and the weights of their scores.

    ``points`` names the plugins of those extension points where it is not all that have a part in them, in this order.
    ``extenders`` are asked in their order.
    """

    scheduler_name: str
    plugins: tuple[Plugin, ...]
    weights: Mapping[str, int]
    points: Points = field(default_factory=dict)
    extenders: tuple[Extender, ...] = ()

    def __post_init__(self) -> None:
        names = [plugin.name for plugin in self.plugins]
        if len(set(names)) != len(names):
            raise ValueError(f"profile {self.scheduler_name!r} names a plugin twice: {', '.join(names)}")
        sorting = at_point(self.plugins, self.points, Point.QUEUE_SORT)
        if sum(isinstance(plugin, QueueSortPlugin) for plugin in sorting) != 1:
            raise ValueError(f"profile {self.scheduler_name!r} needs exactly one QueueSort plugin")
        for plugin in self.plugins:
            rejecting = isinstance(plugin, FilterPlugin | PreEnqueuePlugin | ReservePlugin | PermitPlugin)
            if rejecting and not plugin.wakes_on():
                raise ValueError(f"plugin {plugin.name} can reject pods but names nothing that wakes them")

    def weight(self, name: str) -> int:
        """How often a plugin's score counts."""
        return self.weights.get(name, 1)

    def without(self, names: Collection[str]) -> Profile:
        """The same profile without these plugins."""
        plugins = tuple(plugin for plugin in self.plugins if plugin.name not in names)
        points = {point: tuple(n for n in at if n not in names) for point, at in self.points.items()}
        return Profile(self.scheduler_name, plugins, self.weights, points, self.extenders)

    def extended(self, additions: Additions) -> Profile:
        """The same profile with these plugins behind its own, at every point that they have a part in."""
        if not additions:
            return self
        plugins = (*self.plugins, *additions.plugins)
        points = {
            point: (
                *at,
                *(p.name for p in additions.plugins if point in PARTS and isinstance(p, PARTS[point])),
            )
            for point, at in self.points.items()
        }
        weights = {**self.weights, **additions.weights}
        return Profile(self.scheduler_name, plugins, weights, points, self.extenders)

    def decides_like(self, other: Profile) -> bool:
        """Whether both lead to the same decisions: the same plugins, with the same arguments, at the same points."""
        return (
            list(map(_essence, self.plugins)) == list(map(_essence, other.plugins))
            and {p.name: self.weight(p.name) for p in self.plugins}
            == {p.name: other.weight(p.name) for p in other.plugins}
            and dict(self.points) == dict(other.points)
            and self.extenders == other.extenders
        )


def default_profile(
    scheduler_name: str = DEFAULT_SCHEDULER_NAME,
    *,
    without: Collection[str] = (),
    additions: Additions = NO_ADDITIONS,
) -> Profile:
    """Every registered plugin, but for those named, with kube-scheduler's default weights; then the additions."""
    plugins = tuple(make() for name, make in REGISTRY.items() if name not in without)
    return Profile(scheduler_name, plugins, DEFAULT_WEIGHTS).extended(additions)


def score_plugins(additions: Additions = NO_ADDITIONS) -> frozenset[str]:
    """The names of all plugins that score: those whose weight can be set."""
    plugins = (*(make() for make in REGISTRY.values()), *additions.plugins)
    return frozenset(plugin.name for plugin in plugins if isinstance(plugin, ScorePlugin))


def bare_profile(scheduler_name: str = DEFAULT_SCHEDULER_NAME) -> Profile:
    """What only policies give anything to do: it refuses and prefers nothing by itself.

    Two plugins are there for what policies set in them: how nodes are scored by their resources, and whom a pod may
    evict.
    """
    scoring = NodeResourcesFit(strategy=ScoringStrategy(resources=()))
    plugins = (PrioritySort(), scoring, DefaultPreemption(), DefaultBinder())
    return Profile(scheduler_name, plugins, {}, {Point.PRE_FILTER: (), Point.FILTER: ()})


def extender_profile(*, full: bool, additions: Additions = NO_ADDITIONS) -> Profile:
    """What an extender judges by: with ``full`` as the default profile does, else the additions and policies alone."""
    return default_profile(additions=additions) if full else bare_profile().extended(additions)


def _essence(plugin: Plugin) -> object:
    """What tells one plugin from another: its class and, where it can be compared, its arguments."""
    return (type(plugin), plugin if hasattr(plugin, "__dataclass_fields__") else None)
