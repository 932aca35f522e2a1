"""`python -m tests.parity.spread`: random clusters rich in spread constraints and pod affinity, decided by both sides.

Pools are small, so that selectors match, domains collide and skews are at their limit often.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from moorage.adapters.kube.convert import Converter
from tests.parity.build import find
from tests.parity.oracle import Answer, Case, Oracle
from tests.parity.sides import OracleUnsure, ask_all, differences

Obj = dict[str, Any]

HOSTNAME, ZONE, RACK = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "rack"
KEYS = (HOSTNAME, ZONE, RACK)
NAMESPACES = ("default", "blue", "green")
APPS, TIERS, REVISIONS = ("x", "y", "z"), ("f", "b"), ("1", "2")
THEMES = ("spread", "spread", "affinity", "affinity", "mixed", "defaults", "preemption", "preemption")
PLUGINS = ("PodTopologySpread", "InterPodAffinity")


class Maker:
    """Draws one case after the other from a seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.calm = False  # few nodes closed for reasons that no preemption resolves

    def chance(self, of: float) -> bool:
        return self.rng.random() < of

    def some(self, pool: Any, most: int) -> list[Any]:
        return [self.rng.choice(pool) for _ in range(self.rng.randint(0, most))]

    # -- selectors -------------------------------------------------------------------------------

    def labels(self) -> dict[str, str]:
        labels = {}
        if self.chance(0.9):
            labels["app"] = self.rng.choice(APPS)
        if self.chance(0.5):
            labels["tier"] = self.rng.choice(TIERS)
        if self.chance(0.3):
            labels["rev"] = self.rng.choice(REVISIONS)
        if self.chance(0.1):
            labels["blank"] = ""
        return labels

    def expression(self) -> Obj:
        key, pool = self.rng.choice([("app", APPS), ("tier", TIERS), ("rev", REVISIONS), ("blank", ("",))])
        operator = self.rng.choice(["In", "In", "NotIn", "Exists", "DoesNotExist"])
        if operator in ("In", "NotIn"):
            values = self.rng.sample(list(pool), self.rng.randint(1, len(pool)))
            return {"key": key, "operator": operator, "values": values}
        return {"key": key, "operator": operator}

    def selector(self) -> Obj | None:
        kind = self.rng.random()
        if kind < 0.05:
            return None
        if kind < 0.12:
            return {}
        selector: Obj = {}
        if kind < 0.8:
            selector["matchLabels"] = {"app": self.rng.choice(APPS)}
            if self.chance(0.2):
                selector["matchLabels"]["tier"] = self.rng.choice(TIERS)
        if kind >= 0.7:
            selector["matchExpressions"] = [self.expression() for _ in range(self.rng.randint(1, 2))]
        return selector

    def namespace_selector(self) -> Obj:
        return self.rng.choice(
            [
                {},
                {"matchLabels": {"team": "a"}},
                {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]},
                {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["a"]}]},
            ]
        )

    # -- what pods ask for -----------------------------------------------------------------------

    def constraint(self, *, hard: float) -> Obj:
        constraint: Obj = {
            "topologyKey": self.rng.choice(KEYS),
            "maxSkew": self.rng.choice([1, 1, 1, 2, 3]),
            "whenUnsatisfiable": "DoNotSchedule" if self.chance(hard) else "ScheduleAnyway",
        }
        selector = self.selector()
        if selector is not None:
            constraint["labelSelector"] = selector
        if constraint["whenUnsatisfiable"] == "DoNotSchedule" and self.chance(0.25):
            constraint["minDomains"] = self.rng.randint(1, 4)
        if self.chance(0.25):
            constraint["nodeAffinityPolicy"] = self.rng.choice(["Honor", "Ignore"])
        if self.chance(0.25):
            constraint["nodeTaintsPolicy"] = self.rng.choice(["Honor", "Ignore"])
        if self.chance(0.2) and selector is not None:
            keys = [key for key in ("rev", "tier") if key not in _keys_of(selector)]
            constraint["matchLabelKeys"] = keys[:1]
        return constraint

    def term(self) -> Obj:
        term: Obj = {"topologyKey": self.rng.choice(KEYS)}
        selector = self.selector()
        if selector is not None:
            term["labelSelector"] = selector
            named = _keys_of(selector)  # the API server refuses what is named twice
            if self.chance(0.1) and "rev" not in named:
                term["matchLabelKeys"] = ["rev"]
            elif self.chance(0.1) and "tier" not in named:
                term["mismatchLabelKeys"] = ["tier"]
        if self.chance(0.25):
            term["namespaces"] = self.rng.sample(NAMESPACES, self.rng.randint(0, 2))
        if self.chance(0.25):
            term["namespaceSelector"] = self.namespace_selector()
        return term

    def affinity(self, *, required: float, preferred: float) -> Obj:
        affinity: Obj = {}
        for kind in ("podAffinity", "podAntiAffinity"):
            terms: Obj = {}
            if self.chance(required):
                terms["requiredDuringSchedulingIgnoredDuringExecution"] = [
                    self.term() for _ in range(self.rng.choice([1, 1, 1, 2]))
                ]
            if self.chance(preferred):
                terms["preferredDuringSchedulingIgnoredDuringExecution"] = [
                    {"weight": self.rng.choice([1, 7, 50, 100]), "podAffinityTerm": self.term()}
                    for _ in range(self.rng.randint(1, 2))
                ]
            if terms:
                affinity[kind] = terms
        return affinity

    # -- objects ---------------------------------------------------------------------------------

    def node(self, name: str) -> Obj:
        labels = {}
        if self.chance(0.99 if self.calm else 0.93):
            labels[HOSTNAME] = name if self.chance(0.95) else "shared"
        if self.chance(0.99 if self.calm else 0.9):
            labels[ZONE] = self.rng.choice(["a", "a", "b", "b", "c", ""])
        if self.chance(0.9 if self.calm else 0.6):
            labels[RACK] = self.rng.choice(["1", "2"])
        if self.chance(0.3):
            labels["pool"] = self.rng.choice(["p", "q"])
        node: Obj = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "status": {
                "allocatable": {"cpu": self.rng.choice(["1", "2", "4"]), "memory": "8Gi", "pods": "110"}
            },
        }
        spec: Obj = {}
        if self.chance(0.05 if self.calm else 0.2):
            effect = self.rng.choice(["NoSchedule", "NoExecute", "PreferNoSchedule"])
            spec["taints"] = [{"key": "t", "value": "v", "effect": effect}]
        if self.chance(0.05):
            spec["unschedulable"] = True
        if spec:
            node["spec"] = spec
        return node

    def pod(self, name: str, *, heavy: float) -> Obj:
        cpu = self.rng.choice(["500m", "1", "2"]) if self.chance(heavy) else "100m"
        return {
            "metadata": {
                "name": name,
                "namespace": self.rng.choice(["default", "default", "default", "blue", "green"]),
                "labels": self.labels(),
            },
            "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]},
        }

    def own(self, pod: Obj) -> None:
        """Let the pod belong to a controller that may or may not exist."""
        kind, version = self.rng.choice(
            [
                ("ReplicaSet", "apps/v1"),
                ("StatefulSet", "apps/v1"),
                ("ReplicationController", "v1"),
                ("StatefulSet", "apps.kruise.io/v1beta1"),
            ]
        )
        name = self.rng.choice(["one", "two"])
        pod["metadata"]["ownerReferences"] = [
            {"apiVersion": version, "kind": kind, "name": name, "uid": name, "controller": True}
        ]

    def bound(self, index: int, nodes: list[str], *, priorities: bool) -> Obj:
        pod = self.pod(f"b{index}", heavy=0.4 if priorities else 0.2)
        pod |= {"apiVersion": "v1", "kind": "Pod"}
        pod["spec"]["nodeName"] = self.rng.choice(nodes)
        if priorities:
            pod["spec"]["priority"] = self.rng.choice([0, 5])
            # Victims of equal priority and start time come in no particular order.
            pod["status"] = {"startTime": f"2026-01-01T00:{index // 60:02d}:{index % 60:02d}Z"}
            if self.chance(0.3):
                pod["spec"]["terminationGracePeriodSeconds"] = 0
        if self.chance(0.35):
            pod["spec"]["affinity"] = self.affinity(required=0.3, preferred=0.3)
        if self.chance(0.12):
            pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
            pod["metadata"]["finalizers"] = ["example.com/wait"]
        return pod

    def pending(self, index: int, theme: str, nodes: list[str]) -> Obj:
        pod = self.pod(f"p{index}", heavy=0.5 if theme == "preemption" else 0.15)
        spec = pod["spec"]
        wants_spread = theme in ("spread", "mixed", "preemption") and self.chance(0.8)
        wants_affinity = theme in ("affinity", "mixed", "preemption") and self.chance(0.8)
        if wants_spread:
            spec["topologySpreadConstraints"] = self.distinct(
                [self.constraint(hard=0.6) for _ in range(self.rng.choice([1, 1, 2, 3]))]
            )
        if wants_affinity:
            spec["affinity"] = self.affinity(required=0.5, preferred=0.5)
        if (theme == "defaults" or self.chance(0.15)) and self.chance(0.7):
            self.own(pod)
        if self.chance(0.03 if self.calm else 0.2):
            spec["nodeSelector"] = {"pool": self.rng.choice(["p", "q"])}
        if self.chance(0.1):
            spec.setdefault("affinity", {})["nodeAffinity"] = {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["a", "b"]}]}
                    ]
                }
            }
        if self.chance(0.2):
            spec["tolerations"] = [{"key": "t", "operator": "Exists"}]
        if theme == "preemption":
            spec["priority"] = self.rng.choice([1, 10, 10])
            if self.chance(0.2):
                pod["status"] = {"nominatedNodeName": self.rng.choice(nodes)}
        elif self.chance(0.05):
            pod["status"] = {"nominatedNodeName": self.rng.choice(nodes)}
        return pod

    @staticmethod
    def distinct(constraints: list[Obj]) -> list[Obj]:
        """The API refuses two constraints of one key and one mode."""
        return list({(c["topologyKey"], c["whenUnsatisfiable"]): c for c in constraints}.values())

    def belongings(self) -> list[Obj]:
        """Services and controllers."""
        made: list[Obj] = []
        for index in range(self.rng.randint(0, 3)):
            spec: Obj = {}
            if self.chance(0.9):
                spec["selector"] = self.rng.choice(
                    [{"app": self.rng.choice(APPS)}, {"tier": self.rng.choice(TIERS)}, {}]
                )
            namespace = self.rng.choice(["default", "default", "blue"])
            made.append(
                {
                    "apiVersion": "v1",
                    "kind": "Service",
                    "metadata": {"name": f"s{index}", "namespace": namespace},
                    "spec": spec,
                }
            )
        for kind, version in (
            ("ReplicaSet", "apps/v1"),
            ("StatefulSet", "apps/v1"),
            ("ReplicationController", "v1"),
        ):
            if self.chance(0.6):
                labels = {"app": self.rng.choice(APPS)}
                selector: Obj = labels if version == "v1" else {"matchLabels": labels}
                if version != "v1" and self.chance(0.3):
                    selector = {"matchExpressions": [self.expression()]}
                made.append(
                    {
                        "apiVersion": version,
                        "kind": kind,
                        "metadata": {"name": self.rng.choice(["one", "two"]), "namespace": "default"},
                        "spec": {"selector": selector},
                    }
                )
        return made

    def namespaces(self) -> list[Obj]:
        made = []
        for name in NAMESPACES:
            if self.chance(0.7):
                labels = {"team": self.rng.choice(["a", "b"])} if self.chance(0.7) else {}
                made.append(
                    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
                )
        return made

    def config(self, theme: str) -> Obj | None:
        args = []
        if theme == "defaults" and self.chance(0.6):
            args.append(
                {
                    "name": "PodTopologySpread",
                    "args": {
                        "defaultingType": "List",
                        "defaultConstraints": [
                            {
                                "topologyKey": key,
                                "maxSkew": self.rng.randint(1, 3),
                                "whenUnsatisfiable": self.rng.choice(["DoNotSchedule", "ScheduleAnyway"]),
                            }
                            for key in self.rng.sample(KEYS, self.rng.randint(1, 2))
                        ],
                    },
                }
            )
        if self.chance(0.15):
            args.append(
                {
                    "name": "InterPodAffinity",
                    "args": {
                        "hardPodAffinityWeight": self.rng.choice([0, 1, 5, 100]),
                        "ignorePreferredTermsOfExistingPods": self.chance(0.5),
                    },
                }
            )
        return {"profiles": [{"pluginConfig": args}]} if args else None

    def case(self, number: int) -> Case:
        theme = self.rng.choice(THEMES)
        self.calm = theme == "preemption"
        names = [f"n{i}" for i in range(self.rng.randint(1, 7))]
        objects = [self.node(name) for name in names] + self.namespaces()
        crowd = self.rng.choice([0, 4, 8, 16])
        objects += [self.bound(i, names, priorities=theme == "preemption") for i in range(crowd)]
        if theme == "defaults" or self.chance(0.2):
            objects += self.belongings()
        if theme == "preemption" and self.chance(0.6):
            waiting = self.pending(90, theme, names) | {"apiVersion": "v1", "kind": "Pod"}
            waiting["status"] = {"nominatedNodeName": self.rng.choice(names)}
            objects.append(waiting)
        case: Case = {
            "id": f"{theme}-{number}",
            "objects": objects,
            "pods": [self.pending(i, theme, names) for i in range(self.rng.randint(1, 3))],
        }
        config = self.config(theme)
        if config is not None:
            case["config"] = config
        if theme == "preemption":
            case["preempt"] = self.rng.choice(["nominate", "evict"])
        return case


def _keys_of(selector: Obj) -> set[str]:
    named = {expression["key"] for expression in selector.get("matchExpressions", ())}
    return named | set(selector.get("matchLabels", ()))


def exercised(answer: Answer, counts: Counter[str]) -> None:
    """Count what the oracle's plugins did: rejected a node, told nodes apart, or let a pod preempt."""
    for result in answer.get("results", ()):
        for plugin in PLUGINS:
            owners = {rejection["plugin"] for rejection in result["filtered"].values()}
            if plugin in owners and result["feasible"]:
                counts[f"{plugin} rejects some nodes"] += 1
            if len({scores.get(plugin) for scores in result["scores"].values()}) > 1:
                counts[f"{plugin} tells nodes apart"] += 1
        if result["preemption"]:
            counts["preemption"] += 1


def main() -> int:
    """Run as many cases as asked for; write those that differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=2000, help="cases (default 2000)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--oracle", type=Path, help="the program (default: what `make oracle` has built)")
    parser.add_argument("--keep", type=Path, help="folder for the cases that differ")
    parser.add_argument("--show", type=int, default=10, help="differences to print (default 10)")
    arguments = parser.parse_args()
    maker = Maker(arguments.seed)
    converter = Converter()
    counts: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    begun = time.monotonic()
    with Oracle(arguments.oracle or find()) as oracle:
        for case, answer in ask_all(oracle, (maker.case(number) for number in range(arguments.n))):
            if answer.get("error"):
                counts["refused by the oracle"] += 1
            exercised(answer, counts)
            try:
                found = differences(case, answer, converter)
            except OracleUnsure:
                counts["oracle unsure"] += 1
                continue
            counts["cases"] += 1
            if found:
                counts["different"] += 1
                kinds.update({difference.kind for difference in found})
                if counts["different"] <= arguments.show:
                    print(case["id"], *map(str, found[:3]), sep="\n    ")
                if arguments.keep:
                    arguments.keep.mkdir(parents=True, exist_ok=True)
                    (arguments.keep / f"{case['id']}.json").write_text(json.dumps(case, indent=1))
    print(f"{time.monotonic() - begun:.0f} s")
    for name, number in (*sorted(counts.items()), *kinds.most_common()):
        print(f"{number:8}  {name}")
    return 1 if counts["different"] else 0


if __name__ == "__main__":
    sys.exit(main())
