"""Scheduler configurations for decision cases: arguments, weights, and plugins turned off or moved at single points.

Left out, because the two sides differ there on purpose or one refuses what the other accepts: a plugin that is on at a
point but off at the one that prepares it, VolumeBinding turned off at some points only, two profiles where volumes are
promised (kube-scheduler's profiles do not know of each other's promises).  DefaultPreemption stays on at preEnqueue, by
which the oracle finds it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

T = TypeVar("T")
Json = dict[str, Any]

_GPU: Final = "example.com/gpu"
_NIC: Final = "vendor.io/nic"
_TOPOLOGY_KEYS: Final = ("kubernetes.io/hostname", "topology.kubernetes.io/zone", "rack")
#: A second profile, for cases in which pods name one.
SECOND: Final = "second"

_SCORERS: Final = (
    "NodeResourcesFit",
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
    "TaintToleration",
    "NodeAffinity",
    "PodTopologySpread",
    "InterPodAffinity",
    "VolumeBinding",
)
_FILTERS: Final = (
    "NodeUnschedulable",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeZone",
    "PodTopologySpread",
    "InterPodAffinity",
)
_PREPARING: Final = ("VolumeBinding", *_FILTERS[2:])
_REMOVABLE: Final = (
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
    "NodeUnschedulable",
    "DefaultPreemption",
    "PodTopologySpread",
    "InterPodAffinity",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
    "SchedulingGates",
)


@dataclass(frozen=True)
class Configuration:
    """Draws a configuration; ``choose`` gives a number below its argument, 0 being the simplest."""

    choose: Callable[[int], int]
    themes: frozenset[str]

    def one_in(self, n: int) -> bool:
        """True once in n times; shrinks to False."""
        return self.choose(n) == n - 1

    def pick(self, values: Sequence[T]) -> T:
        """One of the values; shrinks to the first."""
        return values[self.choose(len(values))]

    def some(self, values: Sequence[T], most: int, least: int = 0) -> list[T]:
        """Some of the values, each once, in any order."""
        left = list(values)
        return [left.pop(self.choose(len(left))) for _ in range(least + self.choose(most - least + 1))]

    def about(self, *themes: str) -> bool:
        """Whether the case is about one of these themes."""
        return not self.themes.isdisjoint(themes)

    # -- the whole -------------------------------------------------------------------------------

    def config(self) -> Json:
        """A configuration of one profile or, at times, of two."""
        profile = self.profile()
        if self.about("volumes") or not self.one_in(4):
            return {"profiles": [profile]}
        second = {"schedulerName": SECOND, **self.profile()}
        return {"profiles": [{"schedulerName": "default-scheduler", **profile}, second]}

    def profile(self) -> Json:
        """Arguments and plugins of one profile."""
        profile: Json = {}
        if args := self.arguments():
            profile["pluginConfig"] = [{"name": name, "args": value} for name, value in args.items()]
        if points := self.points():
            profile["plugins"] = points
        return profile

    # -- which plugins run -----------------------------------------------------------------------

    def points(self) -> Json:
        """What is said of the extension points; mostly nothing."""
        points: Json = {}
        removed = self.pick(_REMOVABLE) if self.one_in(5) else ""
        if self.about("volumes") and self.one_in(3):
            removed = "VolumeBinding"  # which otherwise is the first to find what is wrong with a claim
        if removed:
            points["multiPoint"] = {"disabled": [{"name": removed}]}
        if self.one_in(3):
            enabled = self.weights(2, without=(removed,))
            if self.one_in(3):  # off and on again: it runs last
                points.setdefault("multiPoint", {}).setdefault("disabled", []).extend(
                    {"name": each["name"]} for each in enabled[:1]
                )
            points.setdefault("multiPoint", {})["enabled"] = enabled
        if self.one_in(4):
            self.at_score(points, removed)
        if self.one_in(3):
            self.at_filter(points, removed)
        if self.one_in(12):
            points["postFilter"] = {"disabled": [{"name": "*"}]}
        if self.one_in(12):
            points["preEnqueue"] = {"disabled": [{"name": "SchedulingGates"}]}
        return points

    def at_score(self, points: Json, removed: str) -> None:
        """Scores that are off, or weigh something else."""
        off = ["*"] if self.one_in(6) else self.some(_SCORERS, 2)
        score: Json = {"disabled": [{"name": name} for name in off]}
        if self.one_in(3):
            score["enabled"] = self.weights(2, without=(removed,))
        elif self.one_in(2) and off != ["*"] and "VolumeBinding" not in off:
            points["preScore"] = {"disabled": [{"name": name} for name in off]}
        points["score"] = score

    def at_filter(self, points: Json, removed: str) -> None:
        """Filters that are off, or come in another order."""
        way = self.pick(("off", "order", "order before", "both off"))
        if way == "off":
            points["filter"] = {"disabled": _named(self.some(_FILTERS, 2, 1))}
        elif way == "both off":
            names = self.some(_FILTERS, 2, 1)
            points["preFilter"] = {"disabled": _named(names)}
            points["filter"] = {"disabled": _named(names)}
        else:
            point, pool = ("filter", _FILTERS) if way == "order" else ("preFilter", _PREPARING)
            order = [name for name in self.some(pool, 3, 1) if name != removed]
            points[point] = {"enabled": _named(order)}

    def weights(self, most: int, *, without: Collection[str] = ()) -> list[Json]:
        """Plugins that score, mentioned anew; without a weight they weigh 1."""
        plugins = []
        for name in self.some([name for name in _SCORERS if name not in without], most):
            weight = self.pick((1, 2, 5, 100, None, 0))
            plugins.append({"name": name, **({} if weight is None else {"weight": weight})})
        return plugins

    # -- arguments -------------------------------------------------------------------------------

    def arguments(self) -> dict[str, Json]:
        """Arguments by plugin, above all of the plugins that the case is about."""
        args: dict[str, Json] = {}
        if self.one_in(2) or (self.about("strategies") and self.one_in(2)):
            args["NodeResourcesFit"] = self.fit()
        if self.one_in(2 if self.about("strategies") else 6):
            args["NodeResourcesBalancedAllocation"] = {"resources": self.weighted(balanced=True)}
        if self.one_in(2 if self.about("defaults") else 8):
            args["PodTopologySpread"] = self.spread()
        if self.one_in(2 if self.about("pod affinity", "eviction") else 8):
            args["InterPodAffinity"] = {
                "hardPodAffinityWeight": self.pick((1, 0, 5, 100)),
                "ignorePreferredTermsOfExistingPods": self.one_in(2),
            }
        if self.one_in(3 if self.about("affinity") else 12):
            args["NodeAffinity"] = {"addedAffinity": self.added_affinity()}
        if self.one_in(2 if self.about("volumes") else 12):
            args["VolumeBinding"] = {"shape": self.shape(), "bindTimeoutSeconds": self.pick((600, 0, 7))}
        if self.one_in(12):
            args["DefaultPreemption"] = {"minCandidateNodesPercentage": 100}
        return args

    def fit(self) -> Json:
        """Arguments of NodeResourcesFit."""
        args: Json = {}
        kind = self.pick(("LeastAllocated", "MostAllocated", *("RequestedToCapacityRatio",) * 2))
        strategy: Json = {"type": kind}
        if kind == "RequestedToCapacityRatio" or not self.one_in(3):
            strategy["resources"] = self.weighted()
        if kind == "RequestedToCapacityRatio":
            strategy["requestedToCapacityRatio"] = {"shape": self.shape()}
        args["scoringStrategy"] = strategy
        if self.one_in(4):
            args["ignoredResources"] = [self.pick((_GPU, _NIC))]
        if self.one_in(4):
            args["ignoredResourceGroups"] = [self.pick(("example.com", "vendor.io"))]
        return args

    def shape(self) -> list[Json]:
        """A broken line from utilization to score."""
        points = sorted(self.some((0, 10, 33, 50, 90, 100), 4, 1 if self.one_in(6) else 2))
        return [{"utilization": u, "score": self.pick((0, 10, 3, 7, 1))} for u in points]

    def weighted(self, *, balanced: bool = False) -> list[Json]:
        """Resources with weights, each once."""
        names = self.some(("cpu", "memory", _GPU, "ephemeral-storage", _NIC), 4, 1)
        return [{"name": name, "weight": 1 if balanced else self.pick((1, 2, 3, 100))} for name in names]

    def spread(self) -> Json:
        """Arguments of PodTopologySpread: constraints for pods that have none."""
        if self.one_in(5):
            return {"defaultingType": "System"}
        constraints = [
            {
                "topologyKey": key,
                "maxSkew": self.pick((1, 2, 3)),
                "whenUnsatisfiable": self.pick(("DoNotSchedule", "ScheduleAnyway")),
            }
            for key in self.some(_TOPOLOGY_KEYS, 2, 1)
        ]
        return {"defaultingType": "List", "defaultConstraints": constraints}

    def added_affinity(self) -> Json:
        """What NodeAffinity asks for in the name of every pod."""
        zone = {"key": "zone", "operator": self.pick(("Exists", "DoesNotExist", "In")), "values": ["a"]}
        if zone["operator"] != "In":
            del zone["values"]
        affinity: Json = {}
        if not self.one_in(3):
            terms = [{"matchExpressions": [zone]}]
            if self.one_in(2):
                terms.append({"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]})
            affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
        if not affinity or self.one_in(2):
            affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [
                {"weight": self.pick((1, 7, 100)), "preference": {"matchExpressions": [zone]}}
            ]
        return affinity


def _named(names: Collection[str]) -> list[Json]:
    return [{"name": name} for name in names]
