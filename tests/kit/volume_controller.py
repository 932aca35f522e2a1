"""What Kubernetes' volume controller and a provisioner do with the claims of a cluster in which neither runs."""

from __future__ import annotations

from typing import Any

from tests.controlplane.client import Client

Obj = dict[str, Any]
SELECTED_NODE = "volume.kubernetes.io/selected-node"
_HOST = "kubernetes.io/hostname"


def tend(cluster: Client) -> None:
    """Make volumes for nodes that are named, where their class allows, and bind claims to volumes that name them."""
    claims = {claim["metadata"]["uid"]: claim for claim in cluster.list("PersistentVolumeClaim")}
    for claim in claims.values():
        node = (claim["metadata"].get("annotations") or {}).get(SELECTED_NODE)
        if node and not claim["spec"].get("volumeName") and _allowed(cluster, claim, node):
            name = f"pvc-{claim['metadata']['uid']}"
            if cluster.find("PersistentVolume", name) is None:
                cluster.create(volume(name, claim["spec"]["storageClassName"], node, _reference(claim)))
    for found in cluster.list("PersistentVolume"):
        claim = claims.get((found["spec"].get("claimRef") or {}).get("uid", ""), {})
        if claim and not claim["spec"].get("volumeName"):
            bind(cluster, claim, found)


def volume(name: str, storage_class: str, node: str, claim: Obj | None = None) -> Obj:
    """A volume that only this node reaches, made for this claim."""
    term = {"matchExpressions": [{"key": _HOST, "operator": "In", "values": [node]}]}
    spec: Obj = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
        "local": {"path": f"/mnt/{name}"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        "storageClassName": storage_class,
    }
    if claim is not None:
        spec["claimRef"] = claim
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}


def bind(cluster: Client, claim: Obj, volume: Obj) -> None:
    """Complete what the volume's claim reference began."""
    name, space = claim["metadata"]["name"], claim["metadata"]["namespace"]
    done = {"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"}
    change = {"metadata": {"annotations": done}, "spec": {"volumeName": volume["metadata"]["name"]}}
    cluster.patch_status("PersistentVolume", volume["metadata"]["name"], {"phase": "Bound"})
    cluster.patch("PersistentVolumeClaim", name, change, space)
    cluster.patch_status("PersistentVolumeClaim", name, {"phase": "Bound"}, space)


def _allowed(cluster: Client, claim: Obj, node: str) -> bool:
    storage_class = cluster.get("StorageClass", claim["spec"]["storageClassName"])
    labels = cluster.get("Node", node)["metadata"]["labels"]
    terms = storage_class.get("allowedTopologies") or [{"matchLabelExpressions": []}]
    return any(
        all(labels.get(each["key"]) in each["values"] for each in term["matchLabelExpressions"])
        for term in terms
    )


def _reference(claim: Obj) -> Obj:
    meta = claim["metadata"]
    reference = {"kind": "PersistentVolumeClaim", "apiVersion": "v1"}
    return reference | {key: meta[key] for key in ("namespace", "name", "uid")}
