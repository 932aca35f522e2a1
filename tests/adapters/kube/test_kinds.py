"""Which kinds mean something."""

import pytest

from moorage.adapters.kube.kinds import Kind, Role, list_of, look_up


@pytest.mark.parametrize(
    ("api_version", "kind", "namespaced"),
    [
        ("v1", "Pod", True),
        ("v1", "Node", False),
        ("v1", "Namespace", False),
        ("scheduling.k8s.io/v1", "PriorityClass", False),
        ("scheduling.k8s.io/v1beta1", "PriorityClass", False),  # an older version is read like the newest
        ("policy/v1beta1", "PodDisruptionBudget", True),
        ("v1", "PersistentVolume", False),
        ("v1", "PersistentVolumeClaim", True),
        ("storage.k8s.io/v1", "StorageClass", False),
        ("storage.k8s.io/v1beta1", "CSIStorageCapacity", True),
        ("storage.k8s.io/v1", "VolumeAttachment", False),
        ("resource.k8s.io/v1", "DeviceClass", False),
        ("resource.k8s.io/v1beta1", "DeviceClass", False),
    ],
)
def test_kinds_that_are_used(api_version, kind, namespaced):
    assert look_up(api_version, kind) == Kind(kind, namespaced, Role.USED)


@pytest.mark.parametrize(
    ("api_version", "kind", "namespaced"),
    [
        ("v1", "ConfigMap", True),
        ("v1", "ServiceAccount", True),
        ("apps/v1", "Deployment", True),
        ("storage.k8s.io/v1", "VolumeAttributesClass", False),
        ("resource.k8s.io/v1", "ResourceClaim", True),
    ],
)
def test_kinds_of_kubernetes_without_influence(api_version, kind, namespaced):
    assert look_up(api_version, kind) == Kind(kind, namespaced, Role.IDLE)


def test_custom_resources_are_unknown():
    found = look_up("example.com/v1", "Widget")
    assert (found.role, found.remark) == (Role.UNKNOWN, "kind Widget of example.com/v1 is not known here")


@pytest.mark.parametrize(
    ("api_version", "kind", "remark"),
    [
        ("apps/v1", "Pod", "Pod is a kind of v1, not of apps/v1"),
        ("v2", "Node", "Node is a kind of v1, not of v2"),
        ("v1", "PriorityClass", "PriorityClass is a kind of scheduling.k8s.io/v1, not of v1"),
        ("v1", "pods", "v1 has no kind 'pods'; is Pod meant?"),
        ("v1", "Widget", "v1 has no kind 'Widget'"),
    ],
)
def test_mistakes(api_version, kind, remark):
    found = look_up(api_version, kind)
    assert (found.role, found.remark) == (Role.MISTAKEN, remark)


@pytest.mark.parametrize(
    ("kind", "namespaced"), [("SchedulingPolicy", True), ("ClusterSchedulingPolicy", False)]
)
def test_policies(kind, namespaced):
    assert look_up("moorage.dev/v1alpha1", kind) == Kind(kind, namespaced, Role.USED)
    found = look_up("moorage.dev/v1", kind)
    assert found.role is Role.MISTAKEN
    assert found.remark == f"{kind} is a kind of moorage.dev/v1alpha1, not of moorage.dev/v1"


@pytest.mark.parametrize(("kind", "items"), [("List", ""), ("PodList", "Pod"), ("Pod", None)])
def test_lists(kind, items):
    assert list_of(kind) == items
