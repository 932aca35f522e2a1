"""Volumes on a real API server: written before the pod is bound. The test tends to the claims."""

from collections.abc import Iterator
from typing import Any

import pytest

from moorage.adapters.kube.permissions import PERMISSIONS, Scope
from tests.controlplane.client import Client
from tests.controlplane.controlplane import ControlPlane
from tests.kit.manifests import node, pod
from tests.kit.operator import Operator
from tests.kit.volume_controller import SELECTED_NODE, tend, volume

Obj = dict[str, Any]


@pytest.fixture
def operator(control_plane: ControlPlane, cluster: Client) -> Iterator[Operator]:
    """The operator with the rights it asks for and no others, on two nodes."""
    cluster.apply([node("n1"), node("n2")])
    cluster.apply([_class("local", "kubernetes.io/no-provisioner"), _class("made", "csi.test")])
    cluster_wide = [p.rule(p.verbs) for p in PERMISSIONS if p.scope is not Scope.LEASE_NAMESPACE]
    leases = [p.rule(p.verbs) for p in PERMISSIONS if p.scope is Scope.LEASE_NAMESPACE]
    user = control_plane.user("moorage", rules=cluster_wide, namespaced={"kube-system": leases})
    with Operator(control_plane, kubeconfig=user) as running:
        yield running


def _class(name: str, provisioner: str) -> Obj:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def _claim(name: str, storage_class: str) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": storage_class,
        },
    }


def _using(name: str, claim: str) -> Obj:
    return pod(name, volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": claim}}])


def _selected(cluster: Client, claim: str) -> str:
    found = cluster.get("PersistentVolumeClaim", claim, "default")
    return str((found["metadata"].get("annotations") or {}).get(SELECTED_NODE, ""))


def test_a_volume_there_is_is_given_to_the_claim_first(cluster: Client, operator: Operator) -> None:
    cluster.apply([volume("pv1", "local", "n2")])
    cluster.patch_status("PersistentVolume", "pv1", {"phase": "Available"})
    claim = cluster.create(_claim("c1", "local"))
    cluster.create(_using("user", "c1"))
    cluster.wait_for(lambda: "claimRef" in cluster.get("PersistentVolume", "pv1")["spec"], 10)
    written = cluster.get("PersistentVolume", "pv1")
    assert written["spec"]["claimRef"]["name"] == "c1"
    assert written["spec"]["claimRef"]["uid"] == claim["metadata"]["uid"]
    assert written["metadata"]["annotations"] == {"pv.kubernetes.io/bound-by-controller": "yes"}
    assert cluster.node_of("user") is None
    tend(cluster)
    cluster.wait_for(lambda: cluster.node_of("user") == "n2", 10)
    assert "ERROR" not in operator.log


def test_a_volume_is_made_for_the_node_that_is_named(cluster: Client, operator: Operator) -> None:
    cluster.create(_claim("c1", "made"))
    cluster.create(_using("user", "c1"))
    cluster.wait_for(lambda: _selected(cluster, "c1") != "", 10)
    selected = _selected(cluster, "c1")
    assert cluster.node_of("user") is None
    tend(cluster)
    cluster.wait_for(lambda: cluster.node_of("user") == selected, 10)
    assert "ERROR" not in operator.log


def test_a_node_the_provisioner_refuses_is_given_up(cluster: Client, operator: Operator) -> None:
    cluster.create(_claim("c1", "made"))
    cluster.create(_using("user", "c1"))
    cluster.wait_for(lambda: _selected(cluster, "c1") != "", 10)
    refused = _selected(cluster, "c1")
    cluster.patch("Node", refused, {"spec": {"unschedulable": True}})
    cluster.patch(
        "PersistentVolumeClaim", "c1", {"metadata": {"annotations": {SELECTED_NODE: None}}}, "default"
    )
    other = {"n1": "n2", "n2": "n1"}[refused]
    cluster.wait_for(lambda: _selected(cluster, "c1") == other, 20)
    texts = [event["message"] for event in cluster.events("user", reason="FailedScheduling")]
    reason = 'binding volumes: provisioning failed for PVC "c1"'
    assert f'running PreBind plugin "VolumeBinding": {reason}' in texts
    assert cluster.node_of("user") is None
