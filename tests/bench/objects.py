"""Kubernetes objects for the whole path, as the API server takes them: nodes, pods and what pods refer to."""

from __future__ import annotations

from typing import Any

Obj = dict[str, Any]
HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
#: A node's CPUs, and its memory in GiB.
NODE_CPUS, NODE_GIB = 32, 256
ZONES = 3


def node(index: int) -> Obj:
    """A node of 32 CPUs in one of three zones; kubelets create theirs with a status, too."""
    room = {"cpu": str(NODE_CPUS), "memory": f"{NODE_GIB}Gi", "ephemeral-storage": "500Gi", "pods": "110"}
    name = f"node-{index}"
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {HOSTNAME: name, ZONE: f"zone-{index % ZONES}"}},
        "status": {
            "capacity": room,
            "allocatable": room,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def pod(
    name: str,
    *,
    cpu: str = "100m",
    memory: str = "500Mi",
    app: str = "bench",
    namespace: str = "default",
    owner: Obj | None = None,
    **spec: Any,
) -> Obj:
    """A pod of one container; what else is given goes into its spec."""
    container = {
        "name": "main",
        "image": "registry.test/pause:1",
        "resources": {"requests": {"cpu": cpu, "memory": memory}},
    }
    metadata: Obj = {"name": name, "namespace": namespace, "labels": {"app": app}}
    if owner is not None:
        metadata["ownerReferences"] = [owner]
    # No kubelet runs that could end a pod gracefully: a deleted pod is gone at once.
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0, **spec},
    }


def labelled(app: str = "bench") -> Obj:
    """A label selector for the pods of an app."""
    return {"matchLabels": {"app": app}}


def spread(key: str, *, hard: bool, app: str = "bench") -> Obj:
    """The spec fields of a pod that spreads evenly over a topology key's values."""
    constraint = {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule" if hard else "ScheduleAnyway",
        "labelSelector": labelled(app),
    }
    return {"topologySpreadConstraints": [constraint]}


def affinity(kind: str, key: str, *, required: bool, **term: Any) -> Obj:
    """The spec fields of a pod with one term of ``podAffinity`` or ``podAntiAffinity`` for its own app."""
    full = {"labelSelector": labelled(), "topologyKey": key, **term}
    if required:
        return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [full]}}}
    weighted = {"weight": 1, "podAffinityTerm": full}
    return {"affinity": {kind: {"preferredDuringSchedulingIgnoredDuringExecution": [weighted]}}}


def node_affinity(key: str, *values: str) -> Obj:
    """The spec fields of a pod that only these values of a node label suit."""
    term = {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}
    required = {"nodeSelectorTerms": [term]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}


def service(app: str) -> Obj:
    """A Service in front of an app."""
    spec = {"selector": {"app": app}, "ports": [{"port": 80}], "clusterIP": "None"}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": app, "namespace": "default"},
        "spec": spec,
    }


def replica_set(app: str) -> Obj:
    """A Deployment's ReplicaSet; no controller runs that would make pods for it."""
    template = {
        "metadata": {"labels": {"app": app}},
        "spec": {"containers": [{"name": "main", "image": "registry.test/pause:1"}]},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": app, "namespace": "default"},
        "spec": {"replicas": 0, "selector": labelled(app), "template": template},
    }


def owned_by(app: str) -> Obj:
    """The reference of a pod to such a ReplicaSet."""
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": app,
        "uid": f"uid-of-{app}",
        "controller": True,
    }


def namespace(name: str, **labels: str) -> Obj:
    """A namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def priority_class(name: str, value: int) -> Obj:
    """A PriorityClass."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }


def storage_class(name: str) -> Obj:
    """A class whose volumes are made where the first pod is to run."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": "bench.moorage.dev/volumes",
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def claim(name: str, storage_class_name: str) -> Obj:
    """A claim for a volume of that class."""
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": storage_class_name,
    }
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


def with_claim(name: str) -> Obj:
    """The spec fields of a pod that uses a claim."""
    return {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]}
