"""Namespaces, Services and controllers as JSON."""

import pytest
from hypothesis import given

from moorage.adapters.kube.workloads import WORKLOAD_KINDS, read_namespace, read_workload
from moorage.core.model.selector import LabelSelector
from moorage.core.model.workload import Namespace, Workload, WorkloadKind
from tests.adapters.kube.test_fields import anything
from tests.kit.models import label_in


def obj(spec=None, **metadata):
    return {"metadata": {"name": "it", **metadata}, "spec": spec}


def test_a_namespace_has_labels():
    assert read_namespace(obj(labels={"team": "a"})) == Namespace("it", {"team": "a"})
    assert read_namespace(obj()) == Namespace("it")


@pytest.mark.parametrize("kind", [WorkloadKind.SERVICE, WorkloadKind.REPLICATION_CONTROLLER])
def test_selectors_that_are_labels(kind):
    found = read_workload(obj({"selector": {"app": "web"}}, namespace="blue"), kind)
    assert found == Workload(kind, "blue", "it", {"app": "web"})
    assert read_workload(obj({}), kind) == read_workload(obj(), kind) == Workload(kind, "default", "it")


@pytest.mark.parametrize("kind", [WorkloadKind.REPLICA_SET, WorkloadKind.STATEFUL_SET])
def test_selectors_that_are_selectors(kind):
    selector = LabelSelector((label_in("app", "web"),))
    found = read_workload(obj({"selector": {"matchLabels": {"app": "web"}}}), kind)
    assert found == Workload(kind, "default", "it", selector=selector)
    assert read_workload(obj({"selector": {}}), kind).selector == LabelSelector()
    assert read_workload(obj({}), kind).selector is None


def test_what_cannot_be_read_selects_nothing():
    assert read_workload(obj({"selector": {"app": 1}}), WorkloadKind.SERVICE).labels == {}
    broken = {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "a", "operator": "Near"}]}
    assert read_workload(obj({"selector": broken}), WorkloadKind.REPLICA_SET).selector is None


def test_kinds_by_name():
    assert set(WORKLOAD_KINDS) == {"Service", "ReplicationController", "ReplicaSet", "StatefulSet"}


@pytest.mark.parametrize("kind", WorkloadKind)
@given(value=anything)
def test_whatever_comes_it_does_not_raise(kind, value):
    read_workload(obj(value), kind)
    read_workload(obj({"selector": value}), kind)
    read_namespace(obj(labels=value))
