"""A scrape of the running operator: the metrics that the documentation promises, with their types and labels."""

import re
import urllib.request
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.controlplane.client import Client
from tests.controlplane.controlplane import ControlPlane
from tests.kit.manifests import node, pod
from tests.kit.operator import Operator

pytestmark = pytest.mark.timeout(180)

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "observability.md"
ROW = re.compile(r"^\| `([a-z_]+)` \| (counter|gauge|histogram) \|([^|]*)\|", re.MULTILINE)
#: Families that client libraries add, and those that need something this cluster does not have.
OTHERS = re.compile(r"process_|.*_created$")


def promised() -> dict[str, tuple[str, set[str]]]:
    """Type and labels by name, as the tables say."""
    found = {}
    for name, kind, labels in ROW.findall(DOCUMENT.read_text()):
        assert name not in found, f"{name} is there twice"
        found[name] = kind, set(re.findall(r"`(\w+)`", labels))
    return found


def scraped(port: int) -> dict[str, tuple[str, set[str]]]:
    """Type and labels by name; labels only where there are samples."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as response:
        families = list(text_string_to_metric_families(response.read().decode()))
    found = {}
    for family in families:
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels = {label for sample in family.samples for label in sample.labels if label != "le"}
        found[name] = family.type, labels
    return found


def test_the_documentation_tells_of_every_metric_and_of_no_other(
    control_plane: ControlPlane, cluster: Client
) -> None:
    cluster.apply([node(f"n{i}", cpu="1") for i in range(3)])
    cluster.create(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "urgent"},
            "value": 9,
        }
    )
    with Operator(control_plane) as operator:
        cluster.apply([pod(f"p{i}", cpu="300m") for i in range(9)])
        cluster.wait_for(lambda: all(cluster.placements("default").values()), 60)
        cluster.create(pod("huge", cpu="64"))
        cluster.create(pod("urgent", cpu="900m", priorityClassName="urgent"))
        cluster.wait_for(lambda: cluster.node_of("urgent"), 60, "a pod that preempts others")
        cluster.wait_for(
            lambda: (
                operator.metric("scheduler_unschedulable_pods", plugin="NodeResourcesFit", profile="moorage")
                >= 1
            ),
            60,
        )
        found, expected = scraped(operator.port), promised()
        ours = {name for name in found if not OTHERS.match(name)}
        assert sorted(ours - set(expected)) == [], "not documented"
        assert sorted(set(expected) - ours) == [], "documented, and not there"
        for name in ours:
            kind, labels = found[name]
            assert kind == expected[name][0], name
            assert labels <= expected[name][1], name
        assert operator.metric("scheduler_preemption_attempts_total") >= 2
        assert operator.metric("scheduler_preemption_victims_count") == 1
        assert (
            operator.metric("scheduler_queue_incoming_pods_total", queue="active", event="UnscheduledPodAdd")
            == 11
        )
        assert operator.metric("scheduler_cache_size", type="nodes") == 3
        bind = {"extension_point": "Bind", "status": "Success", "profile": "moorage"}
        assert operator.metric("scheduler_framework_extension_point_duration_seconds_count", **bind) == 10
