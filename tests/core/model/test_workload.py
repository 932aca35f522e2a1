"""Workloads and namespaces are plain values."""

from moorage.core.model.workload import Namespace, Workload, WorkloadKind


def test_kinds_are_spelled_as_in_manifests():
    assert [str(kind) for kind in WorkloadKind] == [
        "Service",
        "ReplicationController",
        "ReplicaSet",
        "StatefulSet",
    ]


def test_equal_content_is_equal():
    service = Workload(WorkloadKind.SERVICE, "default", "web", {"app": "web"})
    assert service == Workload(WorkloadKind.SERVICE, "default", "web", {"app": "web"})
    assert service != Workload(WorkloadKind.SERVICE, "default", "web", {"app": "db"})
    assert Namespace("a") == Namespace("a", {})
