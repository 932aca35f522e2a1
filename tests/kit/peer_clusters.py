"""Decision cases about peers: spread constraints, defaults for the pods of Services and workloads, pod affinity.

Pools are small, so that selectors match, domains collide and skews are at their limit often.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

T = TypeVar("T")
Obj = dict[str, Any]

HOSTNAME, ZONE, RACK = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "rack"
KEYS = (HOSTNAME, ZONE, RACK)
NAMESPACES = ("default", "blue", "green")
APPS, TIERS, REVISIONS = ("x", "y", "z"), ("f", "b"), ("1", "2")
#: What a case about peers can be about; "eviction" is spread and affinity in the way of pods of higher priority.
PEER_THEMES: Final = ("spread", "pod affinity", "defaults", "eviction")


@dataclass
class PeerCase:
    """Draws one case; ``choose`` gives a number below its argument, 0 being the simplest.

    Names that are given (``nodes``, ``pending``, ``bound``) are used in place of drawn ones.
    """

    choose: Callable[[int], int]
    themes: frozenset[str]
    nodes: list[str] = field(default_factory=list)
    pending_names: list[str] = field(default_factory=list)
    bound_names: list[str] | None = None

    # -- chance ----------------------------------------------------------------------------------

    def chance(self, of: float) -> bool:
        """True with that probability; shrinks to False."""
        return self.choose(100) >= 100 - round(100 * of)

    def pick(self, values: Sequence[T]) -> T:
        """One of the values; shrinks to the first."""
        return values[self.choose(len(values))]

    def between(self, least: int, most: int) -> int:
        """A number in that range, both ends included."""
        return least + self.choose(most - least + 1)

    def distinct(self, values: Sequence[T], number: int) -> list[T]:
        """That many of the values, each once, in any order."""
        left = list(values)
        return [left.pop(self.choose(len(left))) for _ in range(number)]

    def about(self, *themes: str) -> bool:
        """Whether the case is about one of these themes."""
        return not self.themes.isdisjoint(themes)

    @property
    def evicting(self) -> bool:
        """Whether pods compete by priority; then few nodes are closed for reasons that no eviction lifts."""
        return self.about("eviction")

    # -- selectors -------------------------------------------------------------------------------

    def labels(self) -> dict[str, str]:
        """Labels of a pod."""
        labels = {}
        if self.chance(0.9):
            labels["app"] = self.pick(APPS)
        if self.chance(0.5):
            labels["tier"] = self.pick(TIERS)
        if self.chance(0.3):
            labels["rev"] = self.pick(REVISIONS)
        if self.chance(0.1):
            labels["blank"] = ""
        return labels

    def expression(self) -> Obj:
        """One requirement on a label."""
        key, pool = self.pick([("app", APPS), ("tier", TIERS), ("rev", REVISIONS), ("blank", ("",))])
        operator = self.pick(["In", "In", "NotIn", "Exists", "DoesNotExist"])
        if operator in ("In", "NotIn"):
            values = self.distinct(list(pool), self.between(1, len(pool)))
            return {"key": key, "operator": operator, "values": values}
        return {"key": key, "operator": operator}

    def selector(self) -> Obj | None:
        """A label selector; None and the empty one are not the same."""
        kind = self.choose(100) / 100
        if kind < 0.05:
            return None
        if kind < 0.12:
            return {}
        selector: Obj = {}
        if kind < 0.8:
            selector["matchLabels"] = {"app": self.pick(APPS)}
            if self.chance(0.2):
                selector["matchLabels"]["tier"] = self.pick(TIERS)
        if kind >= 0.7:
            selector["matchExpressions"] = [self.expression() for _ in range(self.between(1, 2))]
        return selector

    def namespace_selector(self) -> Obj:
        """A selector of namespaces."""
        return self.pick(
            [
                {},
                {"matchLabels": {"team": "a"}},
                {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]},
                {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["a"]}]},
            ]
        )

    # -- what pods ask for -----------------------------------------------------------------------

    def constraint(self, *, hard: float) -> Obj:
        """A spread constraint; ``hard`` is how likely it is that it must hold."""
        constraint: Obj = {
            "topologyKey": self.pick(KEYS),
            "maxSkew": self.pick([1, 1, 1, 1, 2, 3]),
            "whenUnsatisfiable": "DoNotSchedule" if self.chance(hard) else "ScheduleAnyway",
        }
        selector = self.selector()
        if selector is not None:
            constraint["labelSelector"] = selector
        if constraint["whenUnsatisfiable"] == "DoNotSchedule" and self.chance(0.25):
            constraint["minDomains"] = self.between(1, 4)
        if self.chance(0.25):
            constraint["nodeAffinityPolicy"] = self.pick(["Honor", "Ignore"])
        if self.chance(0.25):
            constraint["nodeTaintsPolicy"] = self.pick(["Honor", "Ignore"])
        if self.chance(0.2) and selector is not None:
            keys = [key for key in ("rev", "tier") if key not in _keys_of(selector)]
            constraint["matchLabelKeys"] = keys[:1]
        return constraint

    def term(self) -> Obj:
        """A term of pod affinity."""
        term: Obj = {"topologyKey": self.pick(KEYS)}
        selector = self.selector()
        if selector is not None:
            term["labelSelector"] = selector
            named = _keys_of(selector)  # the API server refuses what is named twice
            if self.chance(0.1) and "rev" not in named:
                term["matchLabelKeys"] = ["rev"]
            elif self.chance(0.1) and "tier" not in named:
                term["mismatchLabelKeys"] = ["tier"]
        if self.chance(0.25):
            term["namespaces"] = self.distinct(NAMESPACES, self.between(0, 2))
        if self.chance(0.25):
            term["namespaceSelector"] = self.namespace_selector()
        return term

    def affinity(self, *, required: float, preferred: float) -> Obj:
        """Pod affinity and anti-affinity."""
        affinity: Obj = {}
        for kind in ("podAffinity", "podAntiAffinity"):
            terms: Obj = {}
            if self.chance(required):
                terms["requiredDuringSchedulingIgnoredDuringExecution"] = [
                    self.term() for _ in range(self.pick([1, 1, 1, 2]))
                ]
            if self.chance(preferred):
                terms["preferredDuringSchedulingIgnoredDuringExecution"] = [
                    {"weight": self.pick([1, 7, 50, 100]), "podAffinityTerm": self.term()}
                    for _ in range(self.between(1, 2))
                ]
            if terms:
                affinity[kind] = terms
        return affinity

    # -- objects ---------------------------------------------------------------------------------

    def node(self, name: str) -> Obj:
        """A node, mostly with the labels that domains are made of."""
        labels = {}
        if self.chance(0.99 if self.evicting else 0.93):
            labels[HOSTNAME] = name if self.chance(0.95) else "shared"
        if self.chance(0.99 if self.evicting else 0.9):
            labels[ZONE] = self.pick(["a", "a", "b", "b", "c", ""])
        if self.chance(0.9 if self.evicting else 0.8):
            labels[RACK] = self.pick(["1", "2"])
        if self.chance(0.3):
            labels["pool"] = self.pick(["p", "q"])
        node: Obj = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "status": {"allocatable": {"cpu": self.pick(["1", "2", "4"]), "memory": "8Gi", "pods": "110"}},
        }
        spec: Obj = {}
        if self.chance(0.05 if self.evicting else 0.2):
            effect = self.pick(["NoSchedule", "NoExecute", "PreferNoSchedule"])
            spec["taints"] = [{"key": "t", "value": "v", "effect": effect}]
        if self.chance(0.05):
            spec["unschedulable"] = True
        if spec:
            node["spec"] = spec
        return node

    def pod(self, name: str, *, heavy: float) -> Obj:
        """What pending and bound pods share; ``heavy`` is how likely it is that it asks for much."""
        cpu = self.pick(["500m", "1", "2"]) if self.chance(heavy) else "100m"
        return {
            "metadata": {
                "name": name,
                "namespace": self.pick(["default"] * 5 + ["blue", "green"]),
                "labels": self.labels(),
            },
            "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]},
        }

    def own(self, pod: Obj) -> None:
        """Let the pod belong to a controller that may or may not exist."""
        kind, version = self.pick(
            [
                ("ReplicaSet", "apps/v1"),
                ("StatefulSet", "apps/v1"),
                ("ReplicationController", "v1"),
                ("StatefulSet", "apps.kruise.io/v1beta1"),
            ]
        )
        name = self.pick(["one", "two"])
        pod["metadata"]["ownerReferences"] = [
            {"apiVersion": version, "kind": kind, "name": name, "uid": name, "controller": True}
        ]

    def bound(self, index: int, name: str) -> Obj:
        """A pod on a node."""
        pod = self.pod(name, heavy=0.4 if self.evicting else 0.2)
        pod |= {"apiVersion": "v1", "kind": "Pod"}
        pod["spec"]["nodeName"] = self.pick(self.nodes)
        if self.evicting:
            pod["spec"]["priority"] = self.pick([0, 5])
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

    def pending(self, name: str) -> Obj:
        """A pod that is to be scheduled."""
        pod = self.pod(name, heavy=0.5 if self.evicting else 0.15)
        spec = pod["spec"]
        wants_spread = self.about("spread", "eviction") and self.chance(0.8)
        wants_affinity = self.about("pod affinity", "eviction") and self.chance(0.8)
        if wants_spread:
            spec["topologySpreadConstraints"] = self.apart(
                [self.constraint(hard=0.6) for _ in range(self.pick([1, 1, 2, 3]))]
            )
        if wants_affinity:
            spec["affinity"] = self.affinity(required=0.5, preferred=0.5)
        if (self.about("defaults") or self.chance(0.15)) and self.chance(0.7):
            self.own(pod)
        if self.chance(0.03 if self.evicting else 0.2):
            spec["nodeSelector"] = {"pool": self.pick(["p", "q"])}
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
        if self.evicting:
            spec["priority"] = self.pick([1, 10, 10])
            if self.chance(0.2):
                pod["status"] = {"nominatedNodeName": self.pick(self.nodes)}
        elif self.chance(0.05):
            pod["status"] = {"nominatedNodeName": self.pick(self.nodes)}
        return pod

    @staticmethod
    def apart(constraints: list[Obj]) -> list[Obj]:
        """The API refuses two constraints of one key and one mode."""
        return list({(c["topologyKey"], c["whenUnsatisfiable"]): c for c in constraints}.values())

    def belongings(self) -> list[Obj]:
        """Services and controllers."""
        made: list[Obj] = []
        for index in range(self.between(0, 3)):
            spec: Obj = {}
            if self.chance(0.9):
                spec["selector"] = self.pick([{"app": self.pick(APPS)}, {"tier": self.pick(TIERS)}, {}])
            namespace = self.pick(["default", "default", "blue"])
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
                labels = {"app": self.pick(APPS)}
                selector: Obj = labels if version == "v1" else {"matchLabels": labels}
                if version != "v1" and self.chance(0.3):
                    selector = {"matchExpressions": [self.expression()]}
                made.append(
                    {
                        "apiVersion": version,
                        "kind": kind,
                        "metadata": {"name": self.pick(["one", "two"]), "namespace": "default"},
                        "spec": {"selector": selector},
                    }
                )
        return made

    def namespaces(self) -> list[Obj]:
        """Some of the namespaces, with labels or without."""
        made = []
        for name in NAMESPACES:
            if self.chance(0.7):
                labels = {"team": self.pick(["a", "b"])} if self.chance(0.7) else {}
                made.append(
                    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
                )
        return made

    def case(self) -> Obj:
        """The case, without a configuration."""
        self.nodes = self.nodes or [f"n{i}" for i in range(self.between(1, 7))]
        objects = [self.node(name) for name in self.nodes] + self.namespaces()
        crowd = self.bound_names
        if crowd is None:
            crowd = [f"b{i}" for i in range(self.pick([4, 8, 8, 16, 0]))]
        objects += [self.bound(index, name) for index, name in enumerate(crowd)]
        if self.about("defaults") or self.chance(0.2):
            objects += self.belongings()
        if self.evicting and self.chance(0.6):
            waiting = self.pending("w90") | {"apiVersion": "v1", "kind": "Pod"}
            waiting["status"] = {"nominatedNodeName": self.pick(self.nodes)}
            objects.append(waiting)
        names = self.pending_names or [f"p{i}" for i in range(self.between(1, 3))]
        case: Obj = {"objects": objects, "pods": [self.pending(name) for name in names]}
        if self.evicting:
            case["preempt"] = self.pick(["nominate", "evict"])
        return case


def _keys_of(selector: Obj) -> set[str]:
    named = {expression["key"] for expression in selector.get("matchExpressions", ())}
    return named | set(selector.get("matchLabels", ()))
