"""Pods, their templates and their names."""

import gc
import weakref
from dataclasses import replace

import pytest

from moorage.core.model.pod import PodRef
from tests.kit.models import make_pod, make_spec


def test_a_pod_is_named_by_namespace_and_name_and_told_by_its_uid():
    pod = make_pod("web", namespace="shop", uid="1")
    assert (pod.key, pod.ref, pod.ref.key) == ("shop/web", PodRef("shop", "web", "1"), "shop/web")
    assert pod.ref != make_pod("web", namespace="shop", uid="2").ref


def test_the_priority_is_the_template_s():
    assert make_pod("web", priority=-5).priority == -5


def test_templates_are_compared_by_identity():
    """Alike means the same object, so that a look-up costs no comparison of every field."""
    spec = make_spec(cpu=1)
    assert spec != make_spec(cpu=1)
    assert {spec: "found"}[spec] == "found"
    assert make_pod("a", spec=spec).spec is make_pod("b", spec=spec).spec


def test_a_template_can_be_forgotten():
    """The converter interns templates weakly."""
    spec = make_spec()
    known = weakref.WeakValueDictionary({"key": spec})
    del spec
    gc.collect()
    assert "key" not in known


def test_pods_without_labels_share_one_mapping_that_nobody_can_write_to():
    pod = make_pod("web")
    assert pod.labels is make_pod("db").labels
    with pytest.raises(TypeError):
        pod.labels["x"] = "y"  # type: ignore[index]


def test_pods_cannot_be_changed_in_place():
    pod = make_pod("web")
    with pytest.raises(AttributeError):
        pod.node_name = "a"  # type: ignore[misc]
    assert (replace(pod, node_name="a").node_name, pod.node_name) == ("a", "")


def test_a_pods_time_counts_from_the_end_of_its_gates():
    assert make_pod("a", created=5.0).waiting_since == 5.0
    assert replace(make_pod("a", created=5.0), ungated=9.0).waiting_since == 9.0
