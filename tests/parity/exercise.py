"""What a case put to the test, by what the oracle says of it, and how often each of that has to come up."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

#: Of every hundred cases, one at least has to exercise each part: 500 of 50,000.
SHARE: Final = 100
#: With fewer cases, a part can be missing by chance.
ENOUGH: Final = 20_000

_FIT: Final = "NodeResourcesFit"
_PREEMPTION: Final = "DefaultPreemption"
_AFFINITY: Final = "InterPodAffinity"

_SINGLE: Final = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use"
    " by another pod"
)

#: The parts that have to be exercised.  NodeName is not among them: a pod that names a node is never scheduled.
DEMANDED: Final = (
    f"{_PREEMPTION} breaks a budget",
    f"{_PREEMPTION} chooses",
    f"{_PREEMPTION} evicts several",
    f"{_PREEMPTION} finds no victims",
    f"{_PREEMPTION} is not helpful",
    f"{_PREEMPTION} may not (preemptionPolicy)",
    f"{_PREEMPTION} preempts",
    f"{_PREEMPTION} ties",
    f"{_PREEMPTION} waits for victims",
    "ImageLocality score",
    f"{_AFFINITY} filter",
    f"{_AFFINITY} filter: node(s) didn't match pod affinity rules",
    f"{_AFFINITY} filter: node(s) didn't match pod anti-affinity rules",
    f"{_AFFINITY} filter: node(s) didn't satisfy existing pods anti-affinity rules",
    f"{_AFFINITY} score",
    "NodeAffinity filter",
    "NodeAffinity narrows the nodes",
    "NodeAffinity prefilter",
    "NodeAffinity score",
    "NodeDeclaredFeatures filter",
    "NodePorts filter",
    "NodeResourcesBalancedAllocation score",
    f"{_FIT} filter",
    f"{_FIT} filter: Insufficient cpu",
    f"{_FIT} filter: Insufficient ephemeral-storage",
    f"{_FIT} filter: Insufficient extended resource",
    f"{_FIT} filter: Insufficient hugepages",
    f"{_FIT} filter: Insufficient memory",
    f"{_FIT} filter: Too many pods",
    f"{_FIT} score",
    f"{_FIT} score by LeastAllocated",
    f"{_FIT} score by MostAllocated",
    f"{_FIT} score by RequestedToCapacityRatio",
    "NodeUnschedulable filter",
    "NodeVolumeLimits filter",
    "NodeVolumeLimits filter: … CSI driver is not installed on the node",
    "NodeVolumeLimits filter: node(s) exceed max volume count",
    "PodTopologySpread filter",
    "PodTopologySpread filter: node(s) didn't match pod topology spread constraints",
    "PodTopologySpread filter: node(s) didn't match pod topology spread constraints (missing required label)",
    "PodTopologySpread score",
    "SchedulingGates preenqueue",
    "TaintToleration filter",
    "TaintToleration score",
    "VolumeBinding filter",
    "VolumeBinding filter: node(s) did not have enough free storage",
    "VolumeBinding filter: node(s) didn't find available persistent volumes to bind",
    "VolumeBinding filter: node(s) didn't match PersistentVolume's node affinity",
    "VolumeBinding filter: node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
    "VolumeBinding prefilter",
    "VolumeBinding score",
    "VolumeRestrictions filter",
    "VolumeRestrictions filter: node(s) had no available disk",
    f"VolumeRestrictions filter: {_SINGLE}",
    "VolumeRestrictions prefilter",
    "VolumeZone filter",
    "VolumeZone prefilter",
    "configuration: a plugin off everywhere",
    "configuration: a plugin off at a point",
    "configuration: another order",
    "configuration: arguments",
    "configuration: two profiles",
    "configuration: weights",
    "nominated node taken",
    "the pod again after an eviction",
)


def exercised(answer: Mapping[str, Any], case: Mapping[str, Any] | None = None) -> set[str]:
    """The parts that made a difference: that rejected some nodes but not all, gave unequal scores, and so on."""
    config = (case or {}).get("config")
    parts = {part for result in answer.get("results", ()) for part in _parts(result, _strategy(config))}
    return parts.union(_configured(config)) if config else parts


def missing(counts: Mapping[str, int], compared: int) -> list[tuple[str, int, int]]:
    """(part, count, demand) of each part that came up too rarely; with few cases, none."""
    if compared < ENOUGH:
        return []
    demand = demanded(compared)
    return [(part, counts.get(part, 0), demand) for part in DEMANDED if counts.get(part, 0) < demand]


def demanded(compared: int) -> int:
    """How often each part has to come up among that many cases."""
    return compared // SHARE


def table(exercised: Mapping[str, int], disagreed: Mapping[str, int], compared: int) -> str:
    """Part by part: in how many cases it came up, and in how many of these the two disagreed about it."""
    demand = demanded(compared) if compared >= ENOUGH else 0
    parts = sorted({*DEMANDED, *exercised})
    width = max(map(len, parts))
    lines = [f"{'':{width}}  exercised   demand  disagreements"]
    for part in parts:
        wanted = (demand or "") if part in DEMANDED else ""
        lines.append(f"{part:{width}}  {exercised.get(part, 0):9}  {wanted:>7}  {disagreed.get(part, 0):13}")
    return "\n".join(lines)


def _parts(result: Mapping[str, Any], strategy: str) -> Iterator[str]:
    for point in ("preenqueue", "prefilter"):
        if result.get(point):
            yield f"{result[point]['plugin']} {point}"
    nodes = len(result["feasible"]) + len(result["filtered"])
    rejecting = Counter(rejection["plugin"] for rejection in result["filtered"].values())
    for plugin, count in rejecting.items():
        if count < nodes:
            yield f"{plugin} filter"
    for rejection in result["filtered"].values():
        for reason in rejection["reasons"]:
            if reason.startswith("node(s) didn't satisfy plugin(s)"):
                yield f"{rejection['plugin']} narrows the nodes"
            else:
                yield f"{rejection['plugin']} filter: {_reason(reason)}"
    rows = list(result["scores"].values())
    for plugin in {plugin for row in rows for plugin in row} - {"total"}:
        if len({row.get(plugin) for row in rows}) > 1:
            yield f"{plugin} score"
            if plugin == _FIT and strategy:
                yield f"{plugin} score by {strategy}"
    yield from _preemption(result["preemption"], result["message"])
    if result.get("nominatedNodeFits"):
        yield "nominated node taken"
    if result.get("reserve"):
        yield f"{result['reserve']['plugin']} reserve"
    if result.get("retry"):
        yield "the pod again after an eviction"
        yield from _parts(result["retry"], strategy)


def _preemption(found: Mapping[str, Any] | None, message: str) -> Iterator[str]:
    if found:
        yield f"{_PREEMPTION} preempts"
        if len(found["candidates"]) > 1:
            yield f"{_PREEMPTION} chooses"
        if found.get("ties"):
            yield f"{_PREEMPTION} ties"
        if found["pdbViolations"]:
            yield f"{_PREEMPTION} breaks a budget"
        if len(found["victims"]) > 1:
            yield f"{_PREEMPTION} evicts several"
    said = message.partition("preemption: ")[2]
    for words, part in (
        ("a terminating pod on the nominated node", "waits for victims"),
        ("preemptionPolicy=Never", "may not (preemptionPolicy)"),
        ("No preemption victims found", "finds no victims"),
        ("Preemption is not helpful", "is not helpful"),
    ):
        if words in said:
            yield f"{_PREEMPTION} {part}"


def _reason(text: str) -> str:
    """The reason without what differs from case to case: names, taints, resources other than the usual ones."""
    text = re.sub(r"\{[^}]*\}", "{…}", re.sub(r'"[^"]*"', '"…"', text))
    text = re.sub(r"^Insufficient hugepages-\S+", "Insufficient hugepages", text)
    text = re.sub(r"^Insufficient \S+/\S+", "Insufficient extended resource", text)
    text = re.sub(r"^(looking up )?PVC \S+", r"\1PVC …", text)
    return re.sub(r"^\S+ CSI driver is", "… CSI driver is", text)


def _strategy(config: Mapping[str, Any] | None) -> str:
    """How NodeResourcesFit scores, "" where that depends on the profile."""
    profiles: Sequence[Mapping[str, Any]] = (config or {}).get("profiles") or [{}]
    if len(profiles) > 1:
        return ""
    for item in profiles[0].get("pluginConfig", ()):
        if item["name"] == _FIT:
            return str(item["args"].get("scoringStrategy", {}).get("type", ""))
    return "LeastAllocated"


def _configured(config: Mapping[str, Any]) -> Iterator[str]:
    profiles = config.get("profiles") or []
    if len(profiles) > 1:
        yield "configuration: two profiles"
    for profile in profiles:
        if profile.get("pluginConfig"):
            yield "configuration: arguments"
        for point, choice in profile.get("plugins", {}).items():
            scoring = point in ("multiPoint", "score")
            if choice.get("disabled"):
                yield f"configuration: a plugin off {'everywhere' if point == 'multiPoint' else 'at a point'}"
            if choice.get("enabled"):
                yield f"configuration: {'weights' if scoring else 'another order'}"
