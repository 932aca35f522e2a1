"""Decision cases about volumes: claims of every kind, volumes, classes, drivers with limits, capacities, disks.

Pools are small, so that claims, volumes and limits meet.  What kube-scheduler leaves to chance is not drawn: two free
volumes of one class and size, several capacities of one class for one node, two drivers missing from one node, a claim
that a pod has twice.  Nor is what makes it fail an attempt with an error (docs/decisions/0012): a disk that has no CSI
name, a bound pod's ephemeral volume whose claim is another's; nor pods of two namespaces with claims of one name, which
it confuses when it counts users of a claim.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

T = TypeVar("T")
Json = dict[str, Any]

HOST: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"
REGION: Final = "topology.kubernetes.io/region"
BETA_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"
GKE_ZONE: Final = "topology.gke.io/zone"
A, B = "eu-west-a", "eu-west-b"
_GIB: Final = 1 << 30
_DYING: Final = {"deletionTimestamp": "2026-01-05T10:30:00Z", "finalizers": ["cases.test/hold"]}

_LATE: Final = {"volumeBindingMode": "WaitForFirstConsumer"}
_CLASSES: Final[dict[str, Json]] = {
    "now": {"provisioner": "disk.test", "volumeBindingMode": "Immediate"},
    "unsaid": {"provisioner": "disk.test"},
    "late": {"provisioner": "disk.test", **_LATE},
    "local": {"provisioner": "kubernetes.io/no-provisioner", **_LATE},
    "cap": {"provisioner": "cap.test", **_LATE},
    "need": {"provisioner": "need.test", **_LATE},
    "gce": {"provisioner": "kubernetes.io/gce-pd", **_LATE},
    "azfile": {"provisioner": "kubernetes.io/azure-file", **_LATE},
    "zonal": {"provisioner": "disk.test", **_LATE},
}
#: The more often a class is named, the more claims are of it.
_OF_CLAIMS: Final = (
    *("cap",) * 8, *("local",) * 6, "late", "late", *("need",) * 7, "zonal", "gce", "azfile", "", "now",
)  # fmt: skip


def storage(kind: str, name: str, **fields: Any) -> Json:
    """An object of the group of storage."""
    return {"apiVersion": "storage.k8s.io/v1", "kind": kind, "metadata": {"name": name}, **fields}


@dataclass
class VolumeCase:
    """Draws one case; ``choose`` gives a number below its argument, 0 being the simplest.

    Names that are given (``nodes``, ``pending_names``, ``bound_names``) are used in place of drawn ones.
    """

    choose: Callable[[int], int]
    focus: str = ""  # what there is more of
    nodes: list[str] = field(default_factory=list)
    pending_names: list[str] = field(default_factory=list)
    bound_names: list[str] | None = None
    volumes: list[str] = field(default_factory=list)
    claims: list[str] = field(default_factory=list)
    objects: list[Json] = field(default_factory=list)
    bound_to: dict[str, str] = field(default_factory=dict)  # claim by volume
    promised: set[str] = field(default_factory=set)  # claims that a volume names although they are not bound
    class_of: dict[str, str] = field(default_factory=dict)  # of claims

    # -- chance ----------------------------------------------------------------------------------

    def pick(self, *options: T) -> T:
        """One of the options; shrinks to the first."""
        return options[self.choose(len(options))]

    def often(self, twentieths: int) -> bool:
        """True that many times in twenty; shrinks to False."""
        return self.choose(20) >= 20 - twentieths

    def names(self, letter: str, least: int, most: int) -> list[str]:
        """Names with numbers."""
        return [f"{letter}{i}" for i in range(least + self.choose(most - least + 1))]

    def take(self, values: list[T]) -> T:
        """One of the values, which are fewer then."""
        return values.pop(self.choose(len(values)))

    # -- the case --------------------------------------------------------------------------------

    def case(self) -> Json:
        """The case."""
        self.focus = self.pick(
            "", "zones", "disks", "capacity", "zones", "capacity", "drivers", "capacity", "disks", "capacity"
        )
        self.nodes = self.nodes or self.names("n", 1, 7)
        self.volumes = self.names("v", 0, 9)
        self.claims = [*self.names("c", 1, 7), "o0"]
        self.objects += self.classes()
        self.objects += [self.node(name) for name in self.nodes]
        self.objects += self.csi_nodes()
        self.objects += [self.claim(name) for name in self.claims]
        self.objects += [self.volume(index, name) for index, name in enumerate(self.volumes)]
        self.objects += self.capacities()
        self.objects += self.attachments()
        pending = [self.pod(name) for name in self.pending_names or self.names("p", 1, 4)]
        crowd = self.bound_names
        if crowd is None:
            crowd = self.names("b", 0, 9 if self.focus == "disks" else 5)
        bound = [self.pod(name, self.pick(*self.nodes)) for name in crowd]
        case: Json = {"objects": [*self.objects, *bound], "pods": pending}
        if self.often(3):
            case["commit"] = False
        if (mode := self.pick("nominate", "evict", "none")) != "nominate":
            case["preempt"] = mode
        return case

    def classes(self) -> Iterator[Json]:
        """Classes of each kind, and the drivers behind them; some are missing."""
        for name, fields in _CLASSES.items():
            if self.choose(23) < 22:
                more = {"allowedTopologies": self.topologies()} if name == "zonal" else {}
                yield storage("StorageClass", name, **fields, **more)
        if not self.often(1):
            yield storage("CSIDriver", "cap.test", spec={"storageCapacity": not self.often(2)})
        if not self.often(4):
            yield storage("CSIDriver", "need.test", spec={"preventPodSchedulingIfMissing": not self.often(3)})
        if self.often(6):
            yield storage("CSIDriver", "disk.test", spec={"storageCapacity": False})

    def topologies(self) -> list[Json]:
        """Where volumes of a class may be made."""
        zone_a = [{"key": ZONE, "values": [A]}]
        first = [{"key": ZONE, "values": [A, B]}, {"key": HOST, "values": ["n0"]}]
        others = [{"key": HOST, "values": ["n1", "n2"]}]
        return self.pick(
            [{"matchLabelExpressions": zone_a}],
            [{"matchLabelExpressions": first}, {"matchLabelExpressions": others}],
            [{"matchLabelExpressions": []}],
            [],
        )

    def node(self, name: str) -> Json:
        """A node, mostly in a zone."""
        labels = {HOST: name}
        if self.focus == "zones" or not self.often(4):
            labels[ZONE] = self.pick(A, A, B)
        if self.often(4):
            labels[BETA_ZONE] = self.pick(A, B)
        if self.often(6):
            labels[REGION] = self.pick("r1", "r2")
        if self.often(6):
            labels[GKE_ZONE] = self.pick(A, B)
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "status": {"allocatable": {"cpu": self.pick("4", "1"), "memory": "8Gi", "pods": "20"}},
        }

    def csi_nodes(self) -> Iterator[Json]:
        """What is installed on the nodes, with limits that are soon reached."""
        for name in self.nodes:
            if self.often(4):
                continue
            drivers: list[Json] = []
            for driver in ("disk.test", "cap.test", "need.test", "pd.csi.storage.gke.io", "ebs.csi.aws.com"):
                if self.often(6 if driver == "need.test" else 12):
                    count = self.pick(None, 2, 1, 1, 2, 3, 0)
                    limit = {} if count is None else {"allocatable": {"count": count}}
                    drivers.append({"name": driver, "nodeID": name, **limit})
            made = storage("CSINode", name, spec={"drivers": drivers})
            if self.often(8):
                plugins = self.pick("kubernetes.io/gce-pd", "kubernetes.io/aws-ebs,kubernetes.io/gce-pd", "")
                made["metadata"]["annotations"] = {"storage.alpha.kubernetes.io/migrated-plugins": plugins}
            yield made

    # -- claims and volumes ----------------------------------------------------------------------

    def claim(self, name: str) -> Json:
        """A claim: bound, about to be, or in some trouble."""
        namespace = "other" if name.startswith("o") else "default"
        of_focus = {"capacity": ("cap", "cap", "local"), "drivers": ("need", "need", "cap")}
        storage_class = self.pick(*of_focus.get(self.focus, _OF_CLAIMS))
        self.class_of[name] = storage_class
        size = self.pick("1Gi", "2Gi", "3Gi", "5368709120500m")
        modes = ("ReadWriteOnce", "ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod")
        spec: Json = {
            "accessModes": [self.pick(*modes[3 if self.focus == "disks" and self.often(10) else 0 :])],
            "resources": {} if self.often(1) else {"requests": {"storage": size}},
        }
        if storage_class or self.often(10):
            spec["storageClassName"] = storage_class
        if self.often(2):
            spec["volumeMode"] = "Block"
        if self.often(2):
            spec["selector"] = {"matchLabels": {"tier": "fast"}}
        if self.often(1):
            spec["volumeAttributesClassName"] = "gold"
        metadata: Json = {"name": name, "namespace": namespace}
        phase = "Pending"
        free = [volume for volume in self.volumes if volume not in self.bound_to]
        if free and self.often({"zones": 15, "capacity": 2}.get(self.focus, 7)):
            spec["volumeName"] = self.pick(*free)
            self.bound_to[spec["volumeName"]] = f"{namespace}/{name}"
            phase = self.pick(*("Bound",) * 20, "Pending")
        elif self.often(2):
            spec["volumeName"] = "no-such"
            phase = self.pick("Bound", "Lost", "Pending")
        elif self.often(3):
            node = self.pick(*self.nodes, "n9")
            metadata["annotations"] = {"volume.kubernetes.io/selected-node": node}
        if self.often(1) and self.often(7):
            metadata |= _DYING
        return {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": metadata,
            "spec": spec,
            "status": {"phase": phase},
        }

    def volume(self, index: int, name: str) -> Json:
        """A volume; its size is its own, so that there is no tie."""
        labels: Json = {}
        if self.often(15 if self.focus == "zones" else 8):
            key = self.pick(ZONE, BETA_ZONE, REGION)
            several = (f"{A}__{B}", "r1") if key != REGION else ("r1", "r1__r2", "r1____r2")
            labels[key] = self.pick(A, B, *several)
        if self.often(10):
            labels["tier"] = self.pick("fast", "slow")
        spec: Json = {
            "capacity": {"storage": str(self.pick(1, 2, 3, 4, 6) * _GIB + index)},
            "accessModes": self.pick(
                ["ReadWriteOnce"], ["ReadWriteOnce", "ReadWriteMany"], ["ReadWriteOncePod"]
            ),
            "storageClassName": self.pick("local", "local", "local", "local", "late", "cap", "", "zonal"),
            **self.source(name),
        }
        if self.often(3 if self.focus == "zones" else 13):
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": self.affinity()}}
        if self.often(2):
            spec["volumeMode"] = "Block"
        if self.often(1):
            spec["volumeAttributesClassName"] = "gold"
        metadata: Json = {"name": name, "labels": labels}
        status: Json = {}
        if name in self.bound_to:
            namespace, _, claim = self.bound_to[name].partition("/")
            if self.often(10):
                spec["claimRef"] = {"namespace": namespace, "name": claim}
        elif self.often(3):
            self.promise(spec)
        elif self.often(2):
            status["phase"] = self.pick("Available", "Released", "Pending")
        if self.often(1):
            metadata |= _DYING
        return {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": metadata,
            "spec": spec,
            "status": status,
        }

    def promise(self, spec: Json) -> None:
        """The volume names a claim that is not bound, by name alone or with its UID."""
        claim = self.pick(*self.claims)
        if claim in self.promised:
            return
        self.promised.add(claim)
        spec["claimRef"] = {"namespace": "default", "name": claim}
        spec["storageClassName"] = self.class_of[claim]
        if self.often(6):
            spec["claimRef"]["uid"] = self.pick(f"persistentvolumeclaim:default/{claim}", "another")

    def source(self, name: str) -> Json:
        """Where the bytes are."""
        return self.pick(
            {"csi": {"driver": "disk.test", "volumeHandle": self.pick(name, name, "shared")}},
            {"csi": {"driver": "cap.test", "volumeHandle": self.pick(name, name, "shared")}},
            {"gcePersistentDisk": {"pdName": self.pick("d1", "d2")}},
            {"awsElasticBlockStore": {"volumeID": self.pick("vol-1", "aws://z/vol-1")}},
            {"azureDisk": {"diskName": "d", "diskURI": "uri"}},
            {"hostPath": {"path": "/mnt"}},
        )

    def affinity(self) -> list[Json]:
        """Terms about hosts and zones."""
        host = {"key": HOST, "operator": "In", "values": [self.pick(*self.nodes, "n9")]}
        zone = {"key": ZONE, "operator": "In", "values": [self.pick(A, B)]}
        beta = {"key": BETA_ZONE, "operator": "In", "values": [self.pick(A, B)]}
        elsewhere = {"key": HOST, "operator": "NotIn", "values": [self.pick(*self.nodes)]}
        somewhere = {"key": REGION, "operator": "Exists"}
        named = {"key": "metadata.name", "operator": "In", "values": ["n0"]}
        return self.pick(
            [{"matchExpressions": [host]}],
            [{"matchExpressions": [host]}],
            [{"matchExpressions": [zone]}],
            [{"matchExpressions": [zone]}],
            [{"matchExpressions": [beta]}],
            [{"matchExpressions": [zone, somewhere]}],
            [{"matchExpressions": [host]}, {"matchExpressions": [zone, elsewhere]}],
            [{"matchExpressions": [elsewhere]}],
            [{"matchFields": [named]}],
            [],
        )

    def capacities(self) -> Iterator[Json]:
        """What is left of storage: for each node, for each zone, or for all nodes."""
        by_host: list[Json | None] = [{"matchLabels": {HOST: name}} for name in self.nodes]
        by_zone: list[Json | None] = [
            {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]} for zone in (A, B)
        ]
        ways: Sequence[list[Json | None]] = (*[by_host] * 5, by_zone, by_zone, [{}], [None])
        for index, topology in enumerate(self.pick(*ways)):
            if self.often(1):
                continue
            made = storage("CSIStorageCapacity", f"cap-{index}", storageClassName="cap")
            made["metadata"]["namespace"] = "default"
            if topology is not None:
                made["nodeTopology"] = topology
            if not self.often(1):
                made["capacity"] = self.pick("4Gi", "6Gi", "20Gi", "100Gi", "2Gi")
                if self.often(5):
                    made["maximumVolumeSize"] = self.pick("1Gi", "3Gi")
            yield made

    def attachments(self) -> Iterator[Json]:
        """Volumes that are attached, whoever uses them."""
        for index in range(self.pick(0, 0, 1, 2)):
            source = {"persistentVolumeName": self.pick(*self.volumes, "no-such")}
            attacher, node = self.pick("disk.test", "cap.test"), self.pick(*self.nodes)
            spec = {"attacher": attacher, "nodeName": node, "source": source}
            yield storage("VolumeAttachment", f"a{index}", spec=spec)

    # -- pods ------------------------------------------------------------------------------------

    def pod(self, name: str, node: str = "") -> Json:
        """A pod with a few volumes."""
        namespace = "other" if self.often(1) else "default"
        left = [claim for claim in self.claims if claim.startswith("o" if namespace == "other" else "c")]
        if self.often(4):
            left.append("no-claim")
        volumes: list[Json] = []
        for index in range(self.pick(1, 1, 1, 1, 2, 2, 3, 0)):
            volume: Json = {"name": f"vol{index}"}
            if left and not self.often(14 if self.focus == "disks" else 5):
                volume["persistentVolumeClaim"] = {"claimName": self.take(left)}
            elif self.focus != "disks" and self.often(10):
                volume["ephemeral"] = {"volumeClaimTemplate": {"spec": {}}}
                self.ephemeral(namespace, name, volume["name"], on_node=bool(node))
            else:
                volume |= self.disk()
            volumes.append(volume)
        requests = {"cpu": self.pick("100m", "700m")}
        spec: Json = {
            "containers": [{"name": "main", "image": "a", "resources": {"requests": requests}}],
            "priority": self.pick(0, 0, 10, -10),
            "terminationGracePeriodSeconds": self.pick(0, 30),
            "volumes": volumes,
        }
        pod: Json = {"metadata": {"name": name, "namespace": namespace}, "spec": spec}
        if node:
            # Each started at a time of its own: kube-scheduler does not tell victims apart that equal each other.
            start = f"2026-01-05T10:{10 + int(name[1:])}:00Z"
            pod = {
                "apiVersion": "v1",
                "kind": "Pod",
                **pod,
                "status": {"phase": "Running", "startTime": start},
            }
            spec["nodeName"] = node
        return pod

    def disk(self) -> Json:
        """A disk named in the pod."""
        read_only = self.often(10)
        monitors = self.pick(["m1"], ["m2"], ["m1", "m2"])
        return self.pick(
            {"gcePersistentDisk": {"pdName": self.pick("d1", "d2"), "readOnly": read_only}},
            {"awsElasticBlockStore": {"volumeID": self.pick("vol-1", "vol-2"), "readOnly": read_only}},
            {
                "iscsi": {
                    "iqn": self.pick("iqn1", "iqn2"),
                    "lun": 0,
                    "targetPortal": "t",
                    "readOnly": read_only,
                }
            },
            {"rbd": {"monitors": monitors, "image": self.pick("i1", "i2"), "readOnly": read_only}},
            {
                "rbd": {
                    "monitors": monitors,
                    "image": "i1",
                    "pool": self.pick("rbd", "p"),
                    "readOnly": read_only,
                }
            },
            {"gcePersistentDisk": {"pdName": "d1", "readOnly": read_only}},
            {"cinder": {"volumeID": "x"}},
            {"emptyDir": {}},
        )

    def ephemeral(self, namespace: str, pod: str, volume: str, *, on_node: bool) -> None:
        """The claim of a generic ephemeral volume, if there is one by now."""
        if self.often(3):
            return
        uid = "pod:somebody" if not on_node and self.often(2) else f"pod:{namespace}/{pod}"
        owner = {"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": uid, "controller": True}
        spec = {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "cap"
            if self.focus == "capacity"
            else self.pick("late", "cap", "zonal", "local", "now"),
            "resources": {"requests": {"storage": "1Gi"}},
        }
        phase = "Pending"
        if self.often(8):
            spec["volumeName"], phase = "no-such", "Bound"
        metadata = {"name": f"{pod}-{volume}", "namespace": namespace, "ownerReferences": [owner]}
        self.objects.append(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": metadata,
                "spec": spec,
                "status": {"phase": phase},
            }
        )
