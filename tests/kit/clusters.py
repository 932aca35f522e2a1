"""Decision cases: small clusters and pods, as the JSON that `moorage decide` and the oracle read.

Values come from small pools, so that selectors match, ports collide and nodes fill up all the time, and objects are
terse, so that defaulting matters.  A case is drawn for a *theme*, which says what its objects may be about; what
belongs to no theme of the case is left out, so that a failing case is short before it is shrunk.

Every choice is a number below some bound, 0 being the simplest.  `cases()` lets Hypothesis make the choices, which
shrinks what fails; `random_case()` takes them from a random generator, which is ten times as fast and spreads evenly.

Left out on purpose, because kube-scheduler itself does not decide it the same way twice: a pod under two budgets, two
possible victims on one node that equal each other in priority and start.  Left out, too, is where Moorage differs on
purpose (docs/decisions/): a preferred term that compares with what is no number, two bound pods that hold one host
port of a node.  Everything is valid for an API server.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from hypothesis import strategies as st

from tests.kit.configurations import SECOND, Configuration
from tests.kit.feature_clusters import feature_case
from tests.kit.mixing import mixed, own_claims, settle
from tests.kit.peer_clusters import PEER_THEMES, PeerCase
from tests.kit.volume_clusters import VolumeCase

T = TypeVar("T")
Json = dict[str, Any]
#: Gives a number below its argument.
Choose = Callable[[int], int]

#: What a case can be about.  "mixed" is several of the others at once.
THEMES: Final = (
    "resources",
    "requests",
    "taints",
    "affinity",
    "ports",
    "images",
    "strategies",
    "preemption",
    "nominated",
    "gates",
    "volumes",
    "features",
    *PEER_THEMES,
    "mixed",
)
#: How often a theme is drawn where several are, 1 where it is not named; rarer answers need more cases.
_WEIGHTS: Final = {
    "affinity": 5,
    "images": 2,
    "strategies": 4,
    "preemption": 6,
    "nominated": 3,
    "volumes": 12,
    "spread": 5,
    "pod affinity": 2,
    "eviction": 2,
    "features": 4,
    "mixed": 4,
}

HOSTNAME: Final = "kubernetes.io/hostname"
UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"

_LABELS: Final = {
    "zone": ("a", "b"),
    "disk": ("ssd", "hdd", ""),
    "gen": ("1", "2", "10", "007", "abc", "9223372036854775808"),
}
_NODE_CPU: Final = ("1", "2", "4", "1500m", 3, "0", "900m")
_NODE_MEMORY: Final = ("1Gi", "2Gi", "4Gi", "1500Mi", "2G", "1000000000", "0", "64Pi")
_CPU: Final = ("100m", "250m", "500m", "0.5", "1", 1, "1500m", "2", "3", "0", "1m", "0.0001", "1e-1", "4")
_MEMORY: Final = (
    "100Mi",
    "256Mi",
    "512Mi",
    "1Gi",
    "1G",
    "1.5Gi",
    "2Gi",
    "0",
    "1",
    "1e9",
    "500000k",
    1073741824,
    "1073741824000m",
    "0.5Ki",
    "32Pi",
)
#: What the containers of a pod with pod-level resources ask for: four of them together stay below the smallest
#: _WHOLE amount, and no _WHOLE amount exceeds a limit.
_PARTS: Final = {"cpu": ("100m", "250m", "0", "0.0001"), "memory": ("100Mi", "200M", "0", "1")}
_WHOLE: Final = {"cpu": ("1", "1500m", "2"), "memory": ("1Gi", "1G", "2Gi")}
_WHOLE_LIMITS: Final = {"cpu": ("2", "3", "4"), "memory": ("2Gi", "3G", "4Gi")}
_STORAGE: Final = ("1Gi", "2Gi", "10Gi", "500M", "0")
_DEVICES: Final = ("1", "2", 3, "0", "4")
_HUGE: Final = ("2Mi", "4Mi", "0", "1Gi")
_GPU: Final = "example.com/gpu"
_NIC: Final = "vendor.io/nic"
_HUGE_2M: Final = "hugepages-2Mi"
_BATCH: Final = "kubernetes.io/batch-cpu"

_TAINT_KEYS: Final = ("k1", "k2", UNSCHEDULABLE)
_EFFECTS: Final = ("PreferNoSchedule", "NoSchedule", "NoExecute")
_IMAGES: Final = (
    "app",
    "app:latest",
    "app:1",
    "reg.io:5000/app",
    "reg.io:5000/app:1",
    "reg.io/app@sha256:aa",
)
_MIB: Final = 1 << 20
_IMAGE_SIZES: Final = tuple(_MIB * n for n in (10, 23, 24, 100, 400, 700, 1000, 1100, 2500))
_PRIORITIES: Final = (0, 1, 5, 10, 100, -1, 2_000_000_000)
#: Amounts by which nodes fill up exactly, for cases in which some pod has to go.
_FULL_CPU: Final = ("1", "500m", "1500m", "2", "250m")
_FULL_MEMORY: Final = ("512Mi", "1Gi", "256Mi")
_START: Final = "2026-01-0{day}T00:{minute:02}:00Z"


@dataclass
class _Maker:
    """Draws the parts of one case."""

    choose: Choose
    themes: frozenset[str]
    node_names: list[str] = field(default_factory=list)
    classes: list[str] = field(default_factory=list)
    on_node: Counter[str] = field(default_factory=Counter)  # how many bound pods a node has so far
    in_parts: bool = False  # whether the pod at hand has pod-level resources
    on_host: bool = False  # whether the pod at hand is on the host's network
    twins: bool = (
        False  # whether nodes, and the pods on them, are so much alike that preemption finds no difference
    )
    even: bool = False  # whether bound pods are alike, so that preemption has several nodes to choose from
    just_started: set[str] = field(default_factory=set)  # nodes with a pod that does not say when it started
    taken: set[tuple[str, ...]] = field(
        default_factory=set
    )  # node, address, protocol and number of ports held

    # -- chance ----------------------------------------------------------------------------------

    def one_in(self, n: int) -> bool:
        """True once in n times; shrinks to False."""
        return self.choose(n) == n - 1

    def about(self, *themes: str) -> bool:
        """Whether the case is about one of these themes."""
        return not self.themes.isdisjoint(themes)

    def pick(self, values: Sequence[T]) -> T:
        """One of the values; shrinks to the first."""
        return values[self.choose(len(values))]

    def some(self, values: Sequence[T], most: int, least: int = 0) -> list[T]:
        """Some of the values, each once, in any order."""
        left = list(values)
        return [left.pop(self.choose(len(left))) for _ in self.times(most, least)]

    def times(self, most: int, least: int = 0) -> range:
        """That many times."""
        return range(least + self.choose(most - least + 1))

    # -- nodes -----------------------------------------------------------------------------------

    def node(self, name: str) -> Json:
        """A node; its room is given as capacity, as allocatable, or as both."""
        metadata: Json = {"name": name}
        labels = {key: self.pick(values) for key, values in _LABELS.items() if self.labelled()}
        if not self.one_in(4):
            labels[HOSTNAME] = name
        if labels:
            metadata["labels"] = labels
        node: Json = {"apiVersion": "v1", "kind": "Node", "metadata": metadata}
        spec: Json = {}
        if self.about("taints") and self.one_in(5):
            spec["unschedulable"] = True
        if self.about("taints") and (taints := self.taints()):
            spec["taints"] = taints
        if spec:
            node["spec"] = spec
        room = self.room()
        status: Json = {"capacity": room}
        if self.one_in(3):
            status = {"allocatable": room}
            if self.one_in(2):
                status["capacity"] = {**room, "cpu": "64"}
        if self.about("images") and self.one_in(2):
            status["images"] = [self.image_on_node() for _ in self.times(3, 1)]
        if self.about("taints") and self.one_in(4):
            status["conditions"] = [{"type": "Ready", "status": self.pick(("True", "False", "Unknown"))}]
        node["status"] = status
        return node

    def labelled(self) -> bool:
        """Whether a node gets one more label."""
        return self.about("affinity") and not self.one_in(3)

    @property
    def evicting(self) -> bool:
        """Whether pods of the case compete for room by priority."""
        return self.about("preemption", "nominated")

    @property
    def counting(self) -> bool:
        """Whether the case is about amounts."""
        return self.about("resources", "requests", "strategies")

    def room(self) -> Json:
        """What a node has, by resource."""
        if self.twins:
            return {"cpu": "2", "memory": "2Gi", "pods": "10"}
        if self.evicting and not self.one_in(4):
            room: Json = {"cpu": self.pick(("2", "1", "2500m")), "memory": self.pick(("1Gi", "2Gi"))}
        elif self.evicting or self.counting:
            room = {"cpu": self.pick(_NODE_CPU), "memory": self.pick(_NODE_MEMORY)}
        else:
            room = {"cpu": "4", "memory": "4Gi"}
        room["pods"] = "10"
        if (self.evicting or self.counting) and self.one_in(5):
            room["pods"] = self.pick(("2", 3, "1", "0"))
            if self.one_in(5):
                del room["pods"]
        if self.counting:
            for name, values in self.more_resources():
                room[name] = self.pick(values)
        return room

    def more_resources(self) -> list[tuple[str, Sequence[object]]]:
        """Resources other than cpu and memory, some of them."""
        known = (
            (_GPU, _DEVICES),
            ("ephemeral-storage", _STORAGE),
            (_HUGE_2M, _HUGE),
            (_NIC, _DEVICES),
            (_BATCH, _DEVICES),
        )
        return self.some(known, 2) if self.one_in(2) else []

    def taints(self) -> list[Json]:
        """Taints, each key and effect once."""
        taints: dict[tuple[str, str], Json] = {}
        for _ in self.times(3):
            key, effect = self.pick(_TAINT_KEYS), self.pick(_EFFECTS)
            taint = {"key": key, "effect": effect}
            if value := self.pick(("", "v1", "v2")):
                taint["value"] = value
            taints[key, effect] = taint
        return list(taints.values())

    def image_on_node(self) -> Json:
        """An image as a node reports it, under one name or two."""
        names = [self.pick(_IMAGES)]
        if self.one_in(3):
            names.append(self.pick(_IMAGES))
        return {"names": list(dict.fromkeys(names)), "sizeBytes": self.pick(_IMAGE_SIZES)}

    # -- pods ------------------------------------------------------------------------------------

    def pod(self, name: str) -> Json:
        """The part that pending and bound pods share."""
        metadata: Json = {"name": name}
        spec: Json = {}
        if self.about("requests") and self.one_in(3):
            spec["resources"] = self.pod_level()
        self.in_parts = "resources" in spec
        self.on_host = self.about("ports") and self.one_in(5)
        if self.on_host:
            spec["hostNetwork"] = True
        if self.evicting:
            if self.one_in(6):
                metadata["namespace"] = "other"
            if not self.one_in(3):
                metadata["labels"] = {"app": self.pick(("a", "a", "b", "c"))}
        spec["containers"] = [self.container(f"c{i}") for i in self.times(self.most_containers(), 1)]
        if self.about("requests", "ports", "images") and self.one_in(2):
            spec["initContainers"] = [self.init_container(f"i{i}") for i in self.times(2, 1)]
        if self.about("requests") and self.one_in(4):
            spec["overhead"] = self.amounts(least=1)
        if self.about("images") and self.one_in(6):
            spec["volumes"] = [{"name": "v", "image": {"reference": self.pick(_IMAGES)}}]
        self.add_priority(spec)
        return {"metadata": metadata, "spec": spec}

    def most_containers(self) -> int:
        """How many containers a pod of this case has at the most."""
        return 2 if self.about("requests", "images", "ports") else 1

    def container(self, name: str) -> Json:
        """A container with whatever the themes give it."""
        container: Json = {"name": name}
        if resources := self.resources():
            container["resources"] = resources
        if self.about("images"):
            container["image"] = self.pick(_IMAGES)
        if self.about("ports") and (ports := [self.port() for _ in self.times(2)]):
            container["ports"] = ports
        return container

    def init_container(self, name: str) -> Json:
        """A container that runs before the others, or beside them (a sidecar)."""
        container = self.container(name)
        if self.one_in(2):
            container["restartPolicy"] = "Always"
        return container

    def resources(self) -> Json:
        """Requests, limits, both or none of them; extended resources as a server would accept them."""
        if not (self.evicting or self.counting or self.one_in(4)):
            return {}
        requests = self.amounts()
        resources: Json = {"requests": requests} if requests else {}
        if self.counting:
            fixed = {name: self.pick(values) for name, values in self.more_resources()}
            if self.in_parts and _HUGE_2M in fixed:
                fixed[_HUGE_2M] = "2Mi"
            soft = fixed.pop("ephemeral-storage", None)
            if soft is not None:
                resources.setdefault("requests", {})["ephemeral-storage"] = soft
            if fixed:
                resources["limits"] = fixed  # the request follows from the limit
        if self.about("requests") and self.one_in(4):
            missing = {n: v for n, v in self.amounts().items() if n not in requests}
            resources["limits"] = {**resources.get("limits", {}), **missing}
        return {kind: amounts for kind, amounts in resources.items() if amounts}

    def amounts(self, least: int = 0) -> Json:
        """Cpu, memory, both or none."""
        if self.evicting and not self.in_parts and not self.one_in(6):
            amounts: Json = {"cpu": self.pick(_FULL_CPU)}
            return amounts | ({"memory": self.pick(_FULL_MEMORY)} if self.one_in(3) else {})
        which = self.pick((("cpu",), ("cpu", "memory"), ("memory",), ())[: 3 if least else 4])
        pools: Mapping[str, Sequence[object]] = {"cpu": _CPU, "memory": _MEMORY}
        if self.in_parts:
            pools = _PARTS
        return {name: self.pick(pools[name]) for name in which}

    def pod_level(self) -> Json:
        """Resources of the pod as a whole."""
        resources: Json = {}
        if requests := {name: self.pick(_WHOLE[name]) for name in self.some(("cpu", "memory"), 2)}:
            resources["requests"] = requests
        if limits := {name: self.pick(_WHOLE_LIMITS[name]) for name in self.some(("cpu", "memory"), 2)}:
            resources["limits"] = limits
        if self.one_in(4):
            resources["limits"] = {**limits, _HUGE_2M: "8Mi"}
        return resources

    def port(self) -> Json:
        """A container's port, on the host or not."""
        port: Json = {"containerPort": self.pick((80, 81))}
        if self.on_host:
            if self.one_in(2):
                port["hostPort"] = port["containerPort"]
        elif not self.one_in(4):
            port["hostPort"] = self.pick((80, 81))
        if self.one_in(3):
            port["hostIP"] = self.pick(("127.0.0.1", "10.0.0.1", "0.0.0.0"))  # noqa: S104
        if self.one_in(3):
            port["protocol"] = self.pick(("UDP", "SCTP", "TCP"))
        return port

    def add_priority(self, spec: Json) -> None:
        """A priority, by number or by class."""
        if not self.evicting:
            return
        if self.classes and self.one_in(4):
            spec["priorityClassName"] = self.pick([*self.classes, "system-node-critical"])
        elif not self.one_in(4):
            spec["priority"] = self.pick(_PRIORITIES)

    # -- pending pods ----------------------------------------------------------------------------

    def pending(self, name: str) -> Json:
        """A pod that is to be scheduled."""
        pod = self.pod(name)
        spec = pod["spec"]
        if self.about("taints") and (tolerations := [self.toleration() for _ in self.times(3)]):
            spec["tolerations"] = tolerations
        if self.about("affinity"):
            if self.one_in(4):
                spec["nodeSelector"] = {key: self.pick(_LABELS[key]) for key in self.some(list(_LABELS), 2)}
            if affinity := self.node_affinity():
                spec["affinity"] = {"nodeAffinity": affinity}
        if self.about("gates") and self.one_in(3):
            spec["schedulingGates"] = [{"name": f"example.com/{g}"} for g in self.some(("x", "a", "b"), 2)]
        if self.evicting and not self.one_in(3):
            spec.pop("priorityClassName", None)
            spec["priority"] = self.pick((10, 100, 1000, 5))
        if self.evicting and self.one_in(8):
            spec["preemptionPolicy"] = "Never"
            spec.pop("priorityClassName", None)  # which would have a say in it
        if self.twins and not self.one_in(4):
            spec["containers"] = [{"name": "c0", "resources": {"requests": {"cpu": "1"}}}]
        if self.about("nominated") and self.one_in(2):
            pod["status"] = {"nominatedNodeName": self.node_name()}
        return pod

    def node_name(self) -> str:
        """A node of the cluster, or one that is not there."""
        return self.pick(self.node_names) if self.node_names and not self.one_in(8) else "ghost"

    def toleration(self) -> Json:
        """A toleration that a server would accept."""
        toleration: Json = {}
        if key := self.pick((*_TAINT_KEYS, "")):
            toleration["key"] = key
        operator = self.pick(("Exists", "Equal", "")) if key else "Exists"
        if operator:
            toleration["operator"] = operator
        if operator != "Exists" and (value := self.pick(("v1", "v2", ""))):
            toleration["value"] = value
        if effect := self.pick(("", *_EFFECTS)):
            toleration["effect"] = effect
            if effect == "NoExecute" and self.one_in(3):
                toleration["tolerationSeconds"] = 30
        return toleration

    def node_affinity(self) -> Json:
        """Both halves of node affinity, or one, or none."""
        affinity: Json = {}
        if self.one_in(2):
            terms = [self.term() for _ in self.times(3, 1)]
            if self.one_in(2):  # terms that name nodes, and nothing else, narrow the search
                terms = [
                    {"matchFields": [self.named(("In",)) for _ in self.times(2, 1)]} for _ in self.times(2, 1)
                ]
            affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
        if self.one_in(2):
            affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [
                {"weight": self.pick((1, 2, 50, 100)), "preference": self.term(strict=True)}
                for _ in self.times(3, 1)
            ]
        return affinity

    def term(self, *, strict: bool = False) -> Json:
        """A node selector term, sometimes an empty one."""
        term: Json = {}
        kind = self.pick(("labels", "labels", "fields", "both", "none"))
        if kind in ("labels", "both"):
            term["matchExpressions"] = [self.requirement(strict=strict) for _ in self.times(2, 1)]
        if kind in ("fields", "both"):
            term["matchFields"] = [self.named(("In", "NotIn")) for _ in self.times(2, 1)]
        return term

    def named(self, operators: Sequence[str]) -> Json:
        """A requirement on the name of a node; the API takes one value."""
        return {"key": "metadata.name", "operator": self.pick(operators), "values": [self.node_name()]}

    def requirement(self, *, strict: bool) -> Json:
        """A requirement on a label.

        ``strict``: no comparison with what is no number; a server accepts it, and kube-scheduler then fails the
        whole attempt if it finds it in a preferred term.
        """
        operator = self.pick(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
        if operator in ("Gt", "Lt"):
            bounds = ("1", "2", "9", "007") if strict else ("1", "2", "9", "007", "abc", "1.5")
            return {"key": "gen", "operator": operator, "values": [self.pick(bounds)]}
        key = self.pick((*_LABELS, HOSTNAME))
        requirement: Json = {"key": key, "operator": operator}
        if operator in ("In", "NotIn"):
            values = _LABELS.get(key) or (*self.node_names, "ghost")
            requirement["values"] = [self.pick(values) for _ in self.times(2, 1)]
        return requirement

    # -- pods on nodes ---------------------------------------------------------------------------

    def bound(self, name: str) -> Json:
        """A pod on a node, in any phase of its life."""
        pod = self.pod(name)
        node_name = self.node_name()
        if self.twins:
            node_name = self.node_names[int(name[1:]) % len(self.node_names)]
            pod["spec"]["containers"] = [{"name": "c0", "resources": {"requests": {"cpu": "1"}}}]
        pod["spec"]["nodeName"] = node_name
        self.part_ports(pod["spec"], node_name)
        status: Json = {}
        if not self.twins and self.one_in(8):
            status["phase"] = self.pick(("Running", "Pending", "Succeeded", "Failed"))
        if self.evicting:
            if self.even:
                for key in ("priority", "priorityClassName", "overhead"):
                    pod["spec"].pop(key, None)
            if self.even or node_name in self.just_started or not self.one_in(8):
                # The minute differs on one node, while pods of two nodes may have started together.
                day = 1 if self.even else self.pick((1, 2, 3))
                status["startTime"] = _START.format(day=day, minute=self.on_node[node_name])
                self.on_node[node_name] += 1
            else:
                self.just_started.add(node_name)
            if self.one_in(24 if self.twins else 8):
                pod["metadata"]["deletionTimestamp"] = "2026-01-05T00:00:00Z"
                if self.one_in(2):
                    reason = self.pick(("PreemptionByScheduler", "EvictionByEvictionAPI"))
                    status["conditions"] = [{"type": "DisruptionTarget", "status": "True", "reason": reason}]
            if self.one_in(5):
                pod["spec"]["terminationGracePeriodSeconds"] = 0
            if self.one_in(8):
                pod["spec"]["schedulerName"] = "other"
        if self.about("requests") and self.one_in(2):
            self.add_resize(pod["spec"], status)
        if status:
            pod["status"] = status
        return {"apiVersion": "v1", "kind": "Pod", **pod}

    def part_ports(self, spec: Json, node_name: str) -> None:
        """Take ports away from a pod that another one on the node holds already."""
        held = set()
        for container in (*spec["containers"], *spec.get("initContainers", ())):
            for port in list(container.get("ports", ())):
                number = port.get("hostPort", port["containerPort"] if spec.get("hostNetwork") else 0)
                address = port.get("hostIP", "0.0.0.0")  # noqa: S104
                key = (node_name, address, port.get("protocol", "TCP"), str(number))
                if number and key in self.taken:
                    container["ports"].remove(port)
                elif number:
                    held.add(key)
        self.taken |= held

    def add_resize(self, spec: Json, status: Json) -> None:
        """What a node reports while the pod's resources are being changed."""
        for key, of in (("containerStatuses", "containers"), ("initContainerStatuses", "initContainers")):
            reports = [r for c in spec.get(of, ()) if (r := self.report(c["name"]))]
            if reports:
                status[key] = reports
        if self.one_in(3):
            reason = self.pick(("Infeasible", "Deferred"))
            pending = {"type": "PodResizePending", "status": "True", "reason": reason}
            status["conditions"] = [*status.get("conditions", ()), pending]
        if "resources" in spec and self.one_in(2):
            status["resources"] = {"requests": self.amounts()}
            if self.one_in(2):
                status["allocatedResources"] = self.amounts()

    def report(self, name: str) -> Json | None:
        """A container's status, if it has one."""
        report: Json = {"name": name, "image": "", "imageID": "", "ready": True, "restartCount": 0}
        if self.one_in(2):
            report["allocatedResources"] = self.amounts()
        if self.one_in(2):
            report["resources"] = {"requests": self.amounts()} if not self.one_in(5) else {}
        return report if len(report) > 5 or self.one_in(3) else None

    # -- other objects ---------------------------------------------------------------------------

    def priority_classes(self) -> list[Json]:
        """Classes that pods may name; one may hold for pods that name none."""
        classes = []
        for name in self.some(("low", "high", "mean"), 2) if self.one_in(2) else ():
            obj: Json = {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": name},
                "value": self.pick((1, 10, 1000, -5)),
            }
            if self.one_in(4):
                obj["globalDefault"] = True
            if self.one_in(4):
                obj["preemptionPolicy"] = self.pick(("Never", "PreemptLowerPriority"))
            classes.append(obj)
            self.classes.append(name)
        return classes

    def budgets(self, pods: Sequence[Json]) -> list[Json]:
        """Disruption budgets, of which no pod is under two."""
        budgets: list[Json] = []
        for index in self.times(3, 1):
            namespace = "other" if self.one_in(8) else "default"
            if self.one_in(6):
                selector: Json | None = None if self.one_in(2) else {}
            elif self.one_in(3):
                operator = self.pick(("In", "NotIn", "Exists"))
                requirement: Json = {"key": "app", "operator": operator}
                if operator != "Exists":
                    requirement["values"] = [self.pick(("a", "b", "c"))]
                selector = {"matchExpressions": [requirement]}
            else:
                selector = {"matchLabels": {"app": self.pick(("a", "a", "b", "c"))}}
            spec: Json = {"minAvailable": 1}
            if selector is not None:
                spec["selector"] = selector
            budget: Json = {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {"name": f"b{index}", "namespace": namespace},
                "spec": spec,
            }
            status: Json = {"disruptionsAllowed": self.pick((0, 0, 1, 2))}
            names = [p["metadata"]["name"] for p in pods]
            if names and self.one_in(4):
                status["disruptedPods"] = {self.pick(names): "2026-01-04T00:00:00Z"}
            if not self.one_in(4):
                budget["status"] = {
                    "currentHealthy": 3,
                    "desiredHealthy": 1,
                    "expectedPods": 3,
                    **status,
                }
            budgets.append(budget)
        return budgets

    def wait(self, pod: Json, bound: Sequence[Json]) -> None:
        """Have the pod wait for one that it has asked to go already, if there is one on a node."""
        placed = [other for other in bound if other["spec"]["nodeName"] != "ghost"]
        if not placed:
            return
        other = self.pick(placed)
        other["metadata"]["deletionTimestamp"] = "2026-01-05T00:00:00Z"
        why = "EvictionByEvictionAPI" if self.one_in(8) else "PreemptionByScheduler"
        condition = {"type": "DisruptionTarget", "status": "True", "reason": why}
        other["status"] = {**other.get("status", {}), "phase": "Running", "conditions": [condition]}
        for spec in (other["spec"], pod["spec"]):
            spec.pop("priorityClassName", None)
        other["spec"]["priority"] = self.pick((0, -1))
        pod["spec"]["priority"] = self.pick((100, 10, 0))
        pod["spec"]["containers"] = [
            {"name": "c0", "resources": {"requests": {"cpu": self.pick(("2", "1500m", "1"))}}}
        ]
        pod["status"] = {"nominatedNodeName": other["spec"]["nodeName"]}

    # -- the case --------------------------------------------------------------------------------

    def case(self) -> Json:
        """The case, without a configuration."""
        names = [f"n{i}" for i in self.times(4 if self.evicting else 6, 1)]
        if self.one_in(40):  # more than the snapshot's arrays hold at first
            names = [f"n{i}" for i in self.times(100, 60)]
        if self.one_in(3):
            names.reverse()  # the order in which nodes are listed is not that of their names
        self.node_names = names
        objects = [self.node(name) for name in names]
        if self.evicting:
            self.even = self.one_in(2)
            self.twins = self.even and 1 < len(names) < 10 and not self.one_in(4)
            objects += self.priority_classes()
        bound: list[Json] = []
        if self.evicting or self.counting or self.about("ports"):
            crowd = self.times(9, 3 if self.evicting else 0)
            bound = [self.bound(f"b{i}") for i in (range(2 * len(names)) if self.twins else crowd)]
        objects += bound
        if self.evicting:
            objects += self.budgets(bound)
        if self.about("nominated"):
            waiting = [self.pending(f"w{i}") for i in self.times(2)]
            objects += [{"apiVersion": "v1", "kind": "Pod", **pod} for pod in waiting]
        case: Json = {"objects": objects, "pods": [self.pending(f"p{i}") for i in self.times(3, 1)]}
        if self.evicting and not self.twins and self.one_in(4):
            self.wait(case["pods"][0], bound)
        if self.evicting and (mode := self.pick(("nominate", "evict", "none"))) != "nominate":
            case["preempt"] = mode
        return case


_UNMIXED: Final = tuple(theme for theme in THEMES if theme not in ("mixed", "features"))
_OF_MAKER: Final = tuple(theme for theme in _UNMIXED if theme not in (*PEER_THEMES, "volumes"))


def _case(choose: Choose, themes: Sequence[str]) -> Json:
    weighted = [theme for theme in themes for _ in range(_WEIGHTS.get(theme, 1))]
    theme = weighted[choose(len(weighted))]
    if theme == "features":
        return feature_case(choose)
    maker = _Maker(choose, frozenset((theme,)))
    if theme == "mixed":
        maker.themes = frozenset(maker.some(_UNMIXED, 4, 2))
    case: Json = {"objects": [], "pods": []}
    if maker.about(*_OF_MAKER):
        case = maker.case()
    if maker.about(*PEER_THEMES):
        case = mixed(case, PeerCase(choose, maker.themes, **_names(case)).case())
    if maker.about("volumes"):
        case = mixed(case, VolumeCase(choose, **_names(case)).case())
    if maker.about("strategies") or maker.one_in(2 if maker.about("volumes") else 5):
        case["config"] = Configuration(choose, maker.themes).config()
        if len(case["config"]["profiles"]) > 1:
            for pod in case["pods"]:
                if maker.one_in(2):
                    pod["spec"]["schedulerName"] = SECOND
        if maker.about("volumes"):
            own_claims(case)
    if maker.one_in(8):
        case["commit"] = False
    return settle(case)


def _names(case: Json) -> Json:
    """The names in a case that another one is to be laid over; of an empty case, none are given."""
    if not case["pods"]:
        return {}
    nodes = [obj["metadata"]["name"] for obj in case["objects"] if obj["kind"] == "Node"]
    pods = [obj["metadata"]["name"] for obj in case["objects"] if obj["kind"] == "Pod"]
    bound = [name for name in pods if name.startswith("b")]
    pending = [pod["metadata"]["name"] for pod in case["pods"]]
    return {"nodes": nodes, "pending_names": pending, "bound_names": bound or None}


_BELOW: Final = {n: st.integers(0, n - 1) for n in range(1, 128)}


@st.composite
def cases(draw: st.DrawFn, themes: Sequence[str] = THEMES) -> Json:
    """A decision case about one of the themes, chosen by Hypothesis."""
    return _case(lambda n: draw(_BELOW[n]), themes)


def random_case(rng: random.Random, themes: Sequence[str] = THEMES) -> Json:
    """A decision case about one of the themes, chosen at random."""
    return _case(lambda n: int(rng.random() * n), themes)
