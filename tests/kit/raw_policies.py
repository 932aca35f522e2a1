"""Policies, good and bad, as users write them: the API server and the reader must agree on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

Spec = Mapping[str, Any]

API_VERSION: Final = "moorage.dev/v1alpha1"


def make_policy(name: str = "p", namespace: str | None = None, **spec: Any) -> dict[str, Any]:
    """A policy as an object; of the cluster if there is no namespace."""
    metadata: dict[str, Any] = {"name": name}
    if namespace is not None:
        metadata["namespace"] = namespace
    kind = "ClusterSchedulingPolicy" if namespace is None else "SchedulingPolicy"
    return {
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": metadata,
        "spec": {"selector": {}, **spec},
    }


_LABELS: Final = {"matchLabels": {"a": "b"}}
_WINDOW: Final = {"start": "22:00", "end": "06:00"}
_POOL: Final = {"name": "od", "selector": _LABELS}
_RATIO: Final = "RequestedToCapacityRatio"


def _requirement(**fields: Any) -> Spec:
    return {"matchExpressions": [fields]}


#: Every field at its fullest.
FULL: Final[Spec] = {
    "precedence": 100,
    "mode": "Enforce",
    "canary": {"percent": 25},
    "selector": {
        "podSelector": {"matchLabels": {"tier": "batch"}},
        "priorityClasses": ["low"],
        "schedulerNames": ["moorage"],
        "expression": "pod.spec.containers.size() == 1",
    },
    "windows": [
        {
            "days": ["Mon", "Tue"],
            "start": "22:00",
            "end": "06:00",
            "timeZone": "Europe/Berlin",
            "action": "Allow",
        }
    ],
    "maxDelay": "8h",
    "nodes": {
        "selector": _requirement(key="pool", operator="In", values=["spot", "batch"]),
        "expression": "node.allocatable['cpu'] >= quantity('8') && !('legacy' in node.labels)",
        "avoidTaints": [{"key": "maintenance"}, {"key": "x/y", "value": "z", "effect": "NoSchedule"}],
        "keepFree": {"cpu": 10, "memory": 5},
    },
    "pools": {
        "whenFull": "next",
        "items": [
            {"name": "on-demand", "selector": {"matchLabels": {"pool": "od"}}, "max": 3},
            {"name": "half", "selector": _requirement(key="gen", operator="Gt", values=["3"]), "max": "40%"},
            {"name": "spot", "selector": {"matchLabels": {"pool": "spot"}}},
        ],
    },
    "spread": [
        {
            "topologyKey": "topology.kubernetes.io/zone",
            "maxSkew": 2,
            "minDomains": 3,
            "whenUnsatisfiable": "DoNotSchedule",
            "hardFor": "10m",
        },
        {"topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway"},
    ],
    "limits": [{"topologyKey": "kubernetes.io/hostname", "maxPods": 2}],
    "scoring": {
        "strategy": {
            "type": _RATIO,
            "resources": [{"name": "cpu", "weight": 1}, {"name": "nvidia.com/gpu", "weight": 5}],
            "shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}],
        },
        "weights": {"ImageLocality": 0, "InterPodAffinity": 5},
        "prefer": [
            {"selector": {"matchLabels": {"disk": "ssd"}}, "weight": 5},
            {"expression": "100.0 - node.usage['cpu']", "weight": 2},
        ],
        "protect": ["nvidia.com/gpu"],
    },
    "load": {
        "target": {"cpu": 60},
        "limit": {"cpu": 85, "memory": 90},
        "staleAfter": "1m30s",
        "onStale": "Exclude",
    },
    "preemption": {
        "policy": "LowerPriority",
        "minVictimRuntime": "10m",
        "minPriorityGap": 100,
        "maxVictims": 3,
        "respectPDB": "Strict",
    },
    "backoff": {"initial": "500ms", "max": "30s"},
    "pendingDeadline": "1h",
}

#: What both the API server and the reader take.
GOOD: Final[Mapping[str, Spec]] = {
    "everything": FULL,
    "an empty selector": {},
    "audit": {"mode": "Audit"},
    "a window of a whole day": {"windows": [{"start": "00:00", "end": "00:00"}]},
    "a canary of nobody": {"canary": {"percent": 0}},
    "a pool that takes none": {
        "pools": {"items": [{**_POOL, "max": 0}, {**_POOL, "name": "b", "max": "0%"}]}
    },
    "nobody evicts": {"preemption": {"policy": "Never"}},
    "exists": {"nodes": {"selector": _requirement(key="gpu", operator="Exists")}},
    "less than": {"nodes": {"selector": _requirement(key="age", operator="Lt", values=["-3"])}},
    "a limit alone": {"load": {"limit": {"memory": 80}}},
    "target at the limit": {"load": {"target": {"cpu": 50}, "limit": {"cpu": 50}}},
}

#: What both refuse: the spec, and the path of the field that the message names.
BAD: Final[Mapping[str, tuple[Spec, str]]] = {
    "no selector": ({"selector": None}, "spec.selector"),
    "precedence beyond": ({"precedence": 2_000_000}, "spec.precedence"),
    "precedence of text": ({"precedence": "high"}, "spec.precedence"),
    "unknown mode": ({"mode": "Enforced"}, "spec.mode"),
    "canary without percent": ({"canary": {}}, "spec.canary.percent"),
    "canary beyond": ({"canary": {"percent": 101}}, "spec.canary.percent"),
    "canary below": ({"canary": {"percent": -1}}, "spec.canary.percent"),
    "no values": (
        {"selector": {"podSelector": _requirement(key="a", operator="In")}},
        "spec.selector.podSelector.matchExpressions[0].values",
    ),
    "values of Exists": (
        {"selector": {"podSelector": _requirement(key="a", operator="Exists", values=["b"])}},
        "spec.selector.podSelector.matchExpressions[0].values",
    ),
    "Gt over pods": (
        {"selector": {"podSelector": _requirement(key="a", operator="Gt", values=["1"])}},
        "spec.selector.podSelector.matchExpressions[0].operator",
    ),
    "unknown operator": (
        {"nodes": {"selector": _requirement(key="a", operator="Is", values=["1"])}},
        "spec.nodes.selector.matchExpressions[0].operator",
    ),
    "Gt of no number": (
        {"nodes": {"selector": _requirement(key="a", operator="Gt", values=["x"])}},
        "spec.nodes.selector.matchExpressions[0].values",
    ),
    "no label key": (
        {"nodes": {"selector": _requirement(key="a b", operator="Exists")}},
        "spec.nodes.selector.matchExpressions[0].key",
    ),
    "label value not of text": (
        {"nodes": {"selector": {"matchLabels": {"a": 1}}}},
        "spec.nodes.selector.matchLabels.a",
    ),
    "no priority class": ({"selector": {"priorityClasses": []}}, "spec.selector.priorityClasses"),
    "priority class twice": (
        {"selector": {"priorityClasses": ["a", "a"]}},
        "spec.selector.priorityClasses[1]",
    ),
    "scheduler name twice": ({"selector": {"schedulerNames": ["a", "a"]}}, "spec.selector.schedulerNames[1]"),
    "long expression": ({"selector": {"expression": "true" + " " * 1021}}, "spec.selector.expression"),
    "empty expression": ({"nodes": {"expression": ""}}, "spec.nodes.expression"),
    "no windows": ({"windows": []}, "spec.windows"),
    "window without start": ({"windows": [{"end": "06:00"}]}, "spec.windows[0].start"),
    "window without end": ({"windows": [_WINDOW, {"start": "06:00"}]}, "spec.windows[1].end"),
    "an hour that is none": ({"windows": [{**_WINDOW, "start": "24:00"}]}, "spec.windows[0].start"),
    "a minute that is none": ({"windows": [{**_WINDOW, "end": "6:00"}]}, "spec.windows[0].end"),
    "unknown day": ({"windows": [{**_WINDOW, "days": ["Monday"]}]}, "spec.windows[0].days[0]"),
    "a day twice": ({"windows": [{**_WINDOW, "days": ["Mon", "Mon"]}]}, "spec.windows[0].days[1]"),
    "no zone": ({"windows": [{**_WINDOW, "timeZone": "../etc"}]}, "spec.windows[0].timeZone"),
    "unknown action": ({"windows": [{**_WINDOW, "action": "Deny"}]}, "spec.windows[0].action"),
    "maxDelay without windows": ({"maxDelay": "8h"}, "spec.maxDelay"),
    "maxDelay in days": ({"windows": [_WINDOW], "maxDelay": "1d"}, "spec.maxDelay"),
    "maxDelay of a number": ({"windows": [_WINDOW], "maxDelay": 60}, "spec.maxDelay"),
    "nodes say nothing": ({"nodes": {}}, "spec.nodes"),
    "taint without key": ({"nodes": {"avoidTaints": [{"value": "x"}]}}, "spec.nodes.avoidTaints[0].key"),
    "unknown effect": (
        {"nodes": {"avoidTaints": [{"key": "a", "effect": "Never"}]}},
        "spec.nodes.avoidTaints[0].effect",
    ),
    "keepFree beyond": ({"nodes": {"keepFree": {"cpu": 101}}}, "spec.nodes.keepFree.cpu"),
    "keepFree of text": ({"nodes": {"keepFree": {"cpu": "10%"}}}, "spec.nodes.keepFree.cpu"),
    "pools without items": ({"pools": {"whenFull": "wait"}}, "spec.pools.items"),
    "no pools": ({"pools": {"items": []}}, "spec.pools.items"),
    "unknown whenFull": ({"pools": {"whenFull": "stop", "items": [_POOL]}}, "spec.pools.whenFull"),
    "pool without name": ({"pools": {"items": [{"selector": _LABELS}]}}, "spec.pools.items[0].name"),
    "odd name of a pool": (
        {"pools": {"items": [{**_POOL, "name": "On Demand"}]}},
        "spec.pools.items[0].name",
    ),
    "pool without selector": ({"pools": {"items": [{"name": "od"}]}}, "spec.pools.items[0].selector"),
    "pool twice": ({"pools": {"items": [_POOL, _POOL]}}, "spec.pools.items[1]"),
    "max below": ({"pools": {"items": [{**_POOL, "max": -1}]}}, "spec.pools.items[0].max"),
    "max beyond": ({"pools": {"items": [{**_POOL, "max": "101%"}]}}, "spec.pools.items[0].max"),
    "max of text": ({"pools": {"items": [{**_POOL, "max": "3"}]}}, "spec.pools.items[0].max"),
    "spread without key": ({"spread": [{"maxSkew": 1}]}, "spec.spread[0].topologyKey"),
    "no skew": ({"spread": [{"topologyKey": "z", "maxSkew": 0}]}, "spec.spread[0].maxSkew"),
    "no domains": ({"spread": [{"topologyKey": "z", "minDomains": 0}]}, "spec.spread[0].minDomains"),
    "unknown whenUnsatisfiable": (
        {"spread": [{"topologyKey": "z", "whenUnsatisfiable": "Wait"}]},
        "spec.spread[0].whenUnsatisfiable",
    ),
    "hardFor of a preference": (
        {"spread": [{"topologyKey": "z", "whenUnsatisfiable": "ScheduleAnyway", "hardFor": "1m"}]},
        "spec.spread[0].hardFor",
    ),
    "minDomains of a preference": (
        {"spread": [{"topologyKey": "z", "whenUnsatisfiable": "ScheduleAnyway", "minDomains": 2}]},
        "spec.spread[0].minDomains",
    ),
    "spread twice": (
        {"spread": [{"topologyKey": "z"}, {"topologyKey": "z", "maxSkew": 2}]},
        "spec.spread[1]",
    ),
    "limit without number": ({"limits": [{"topologyKey": "z"}]}, "spec.limits[0].maxPods"),
    "limit of none": ({"limits": [{"topologyKey": "z", "maxPods": 0}]}, "spec.limits[0].maxPods"),
    "limit twice": (
        {"limits": [{"topologyKey": "z", "maxPods": 1}, {"topologyKey": "z", "maxPods": 2}]},
        "spec.limits[1]",
    ),
    "scoring says nothing": ({"scoring": {}}, "spec.scoring"),
    "strategy without type": ({"scoring": {"strategy": {}}}, "spec.scoring.strategy.type"),
    "unknown strategy": ({"scoring": {"strategy": {"type": "Random"}}}, "spec.scoring.strategy.type"),
    "ratio without shape": ({"scoring": {"strategy": {"type": _RATIO}}}, "spec.scoring.strategy.shape"),
    "shape without ratio": (
        {"scoring": {"strategy": {"type": "MostAllocated", "shape": [{"utilization": 0, "score": 1}]}}},
        "spec.scoring.strategy.shape",
    ),
    "shape that descends": (
        {
            "scoring": {
                "strategy": {
                    "type": _RATIO,
                    "shape": [{"utilization": 50, "score": 1}, {"utilization": 0, "score": 2}],
                }
            }
        },
        "spec.scoring.strategy.shape",
    ),
    "shape that stands": (
        {
            "scoring": {
                "strategy": {
                    "type": _RATIO,
                    "shape": [{"utilization": 50, "score": 1}, {"utilization": 50, "score": 2}],
                }
            }
        },
        "spec.scoring.strategy.shape[1]",
    ),
    "score beyond": (
        {"scoring": {"strategy": {"type": _RATIO, "shape": [{"utilization": 0, "score": 11}]}}},
        "spec.scoring.strategy.shape[0].score",
    ),
    "utilization beyond": (
        {"scoring": {"strategy": {"type": _RATIO, "shape": [{"utilization": 101, "score": 1}]}}},
        "spec.scoring.strategy.shape[0].utilization",
    ),
    "resource without name": (
        {"scoring": {"strategy": {"type": "MostAllocated", "resources": [{"weight": 1}]}}},
        "spec.scoring.strategy.resources[0].name",
    ),
    "resource without weight": (
        {"scoring": {"strategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 0}]}}},
        "spec.scoring.strategy.resources[0].weight",
    ),
    "resource twice": (
        {"scoring": {"strategy": {"type": "MostAllocated", "resources": [{"name": "cpu"}, {"name": "cpu"}]}}},
        "spec.scoring.strategy.resources[1]",
    ),
    "weight beyond": ({"scoring": {"weights": {"ImageLocality": 101}}}, "spec.scoring.weights.ImageLocality"),
    "weight below": ({"scoring": {"weights": {"ImageLocality": -1}}}, "spec.scoring.weights.ImageLocality"),
    "preference of nothing": ({"scoring": {"prefer": [{"weight": 1}]}}, "spec.scoring.prefer[0]"),
    "preference of both": (
        {"scoring": {"prefer": [{"weight": 1, "selector": _LABELS, "expression": "true"}]}},
        "spec.scoring.prefer[0]",
    ),
    "preference without weight": (
        {"scoring": {"prefer": [{"selector": _LABELS}]}},
        "spec.scoring.prefer[0].weight",
    ),
    "preference of no weight": (
        {"scoring": {"prefer": [{"selector": _LABELS, "weight": 0}]}},
        "spec.scoring.prefer[0].weight",
    ),
    "protected twice": ({"scoring": {"protect": ["a/b", "a/b"]}}, "spec.scoring.protect[1]"),
    "protects no name": ({"scoring": {"protect": ["a b"]}}, "spec.scoring.protect[0]"),
    "load says nothing": ({"load": {"onStale": "Ignore"}}, "spec.load"),
    "load of nothing": ({"load": {"limit": {}}}, "spec.load.limit"),
    "load beyond": ({"load": {"limit": {"cpu": 101}}}, "spec.load.limit.cpu"),
    "target of none": ({"load": {"target": {"memory": 0}}}, "spec.load.target.memory"),
    "target above limit": ({"load": {"target": {"cpu": 90}, "limit": {"cpu": 80}}}, "spec.load.target.cpu"),
    "memory above limit": (
        {"load": {"target": {"memory": 90}, "limit": {"memory": 80}}},
        "spec.load.target.memory",
    ),
    "staleAfter of nothing": ({"load": {"limit": {"cpu": 1}, "staleAfter": "0s"}}, "spec.load.staleAfter"),
    "unknown onStale": ({"load": {"limit": {"cpu": 1}, "onStale": "Fail"}}, "spec.load.onStale"),
    "preemption says nothing": ({"preemption": {}}, "spec.preemption"),
    "unknown preemption": ({"preemption": {"policy": "Always"}}, "spec.preemption.policy"),
    "guards of nobody": ({"preemption": {"policy": "Never", "maxVictims": 1}}, "spec.preemption.policy"),
    "no gap": ({"preemption": {"minPriorityGap": 0}}, "spec.preemption.minPriorityGap"),
    "no victims": ({"preemption": {"maxVictims": 0}}, "spec.preemption.maxVictims"),
    "no runtime": ({"preemption": {"minVictimRuntime": "soon"}}, "spec.preemption.minVictimRuntime"),
    "unknown respectPDB": ({"preemption": {"respectPDB": "Always"}}, "spec.preemption.respectPDB"),
    "backoff says nothing": ({"backoff": {}}, "spec.backoff"),
    "backoff upside down": ({"backoff": {"initial": "1m", "max": "30s"}}, "spec.backoff.initial"),
    "backoff beyond": ({"backoff": {"max": "8761h"}}, "spec.backoff.max"),
    "deadline of nothing": ({"pendingDeadline": "0h0m"}, "spec.pendingDeadline"),
    "deadline beyond all numbers": ({"pendingDeadline": "9" * 20 + "h"}, "spec.pendingDeadline"),
}
