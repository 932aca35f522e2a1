"""DeviceClasses on a real API server: who asks for devices by a resource's name is told so, and helped by a node."""

from typing import Any

import pytest

from moorage.adapters.kube.permissions import PERMISSIONS, Scope
from tests.controlplane.client import Client
from tests.controlplane.controlplane import ControlPlane
from tests.kit.both_schedulers import wait_for
from tests.kit.manifests import node, pod
from tests.kit.operator import Operator

Obj = dict[str, Any]
GPU, IMPLICIT = "example.com/gpu", "deviceclass.resource.kubernetes.io/fast"
pytestmark = pytest.mark.timeout(300)


def _class(**spec: str) -> Obj:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "fast"},
        "spec": spec,
    }


def _asking(name: str, resource: str) -> Obj:
    made = pod(name)
    resources = made["spec"]["containers"][0]["resources"]
    resources["requests"][resource] = "1"
    resources["limits"] = {resource: "1"}
    return made


def _told(cluster: Client, name: str, text: str) -> None:
    def said() -> bool:
        condition = cluster.condition(name)
        return condition is not None and text in condition["message"]

    wait_for(cluster, said, text)


def _by_devices(resource: str) -> str:
    return (
        f"1 node(s) could offer {resource} only as devices of DeviceClass fast, "
        "which this scheduler does not support yet"
    )


def test_devices_are_refused_until_a_node_advertises_the_resource(
    control_plane: ControlPlane, cluster: Client
) -> None:
    """With just the rights that are listed."""
    cluster.apply([node("n1")])
    cluster_wide = [p.rule(p.verbs) for p in PERMISSIONS if p.scope is not Scope.LEASE_NAMESPACE]
    leases = [p.rule(p.verbs) for p in PERMISSIONS if p.scope is Scope.LEASE_NAMESPACE]
    user = control_plane.user("moorage", rules=cluster_wide, namespaced={"kube-system": leases})
    with Operator(control_plane, kubeconfig=user) as operator:
        cluster.create(_asking("by-name", GPU))
        cluster.create(_asking("by-class", IMPLICIT))
        _told(cluster, "by-name", f"1 Insufficient {GPU}")
        _told(cluster, "by-class", f"1 Insufficient {IMPLICIT}")
        cluster.create(_class(extendedResourceName=GPU))
        _told(cluster, "by-name", _by_devices(GPU))
        _told(cluster, "by-class", _by_devices(IMPLICIT))
        cluster.patch_status("Node", "n1", {"allocatable": {GPU: "1"}, "capacity": {GPU: "1"}})
        wait_for(cluster, lambda: cluster.node_of("by-name") == "n1")
        cluster.delete("DeviceClass", "fast")
        _told(cluster, "by-class", f"1 Insufficient {IMPLICIT}")
        assert cluster.node_of("by-class") is None
        assert "ERROR" not in operator.log
        assert not _warnings(operator)


def test_an_api_server_without_device_classes_is_warned_about_once(control_plane: ControlPlane) -> None:
    with ControlPlane(assets=control_plane.assets, runtime_config=["resource.k8s.io/v1=false"]) as older:
        older.admin.apply([node("n1")])
        with Operator(older) as operator:
            older.admin.create(pod("ordinary"))
            older.admin.create(_asking("by-name", GPU))
            wait_for(older.admin, lambda: older.admin.node_of("ordinary") == "n1")
            _told(older.admin, "by-name", f"1 Insufficient {GPU}")
            (warning,) = _warnings(operator)
            assert "has no DeviceClasses (resource.k8s.io/v1)" in warning


def _warnings(operator: Operator) -> list[str]:
    """All but the one about policies, whose definitions are not there."""
    lines = [line for line in operator.log.splitlines() if "WARNING" in line]
    return [line for line in lines if "Policies are off" not in line]
