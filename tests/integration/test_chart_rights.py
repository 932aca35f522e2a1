"""The operator with the chart's service account and no other right: it can do everything, and needs all it may do."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from moorage.adapters.kube.client import KubeClient
from moorage.adapters.kube.permissions import PERMISSIONS, check
from tests.controlplane.client import Client
from tests.controlplane.controlplane import ControlPlane
from tests.kit.chart_release import NAMESPACE, Release, Right, rights, token_for
from tests.kit.helm import VALUES
from tests.kit.manifests import node, pod
from tests.kit.operator import Operator
from tests.kit.volume_controller import tend, volume

Obj = dict[str, Any]

PODS = 1000
#: What is granted and not used here, with the reason why it is needed all the same.
UNUSED: dict[Right, str] = {
    ("", "persistentvolumes", "get"): "to look again after a conflict, which here nobody causes",
    ("", "persistentvolumeclaims", "get"): "likewise",
}


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Release]:
    home = tmp_path_factory.mktemp("helm")
    # Without WatchList the reflectors use all of their rights: they list before they watch.
    with ControlPlane(audit="Metadata", feature_gates={"WatchList": False}) as control_plane:
        yield Release(control_plane, home, VALUES / "default.yaml")


@pytest.fixture(scope="module")
def leader(release: Release) -> Iterator[Operator]:
    with release.operator(hurried=False) as operator:
        yield operator


@pytest.fixture
def cluster(release: Release) -> Client:
    return release.cluster


def _class(name: str, value: int) -> Obj:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }


def _on(name: str, **more: Any) -> dict[str, Any]:
    return {"nodeSelector": {"kubernetes.io/hostname": name}, **more}


@pytest.mark.timeout(240)
def test_pods_are_placed(cluster: Client, leader: Operator) -> None:
    cluster.apply([node(f"n{i}", cpu="4", pods="40") for i in range(50)])
    cluster.apply([pod(f"p{i}") for i in range(PODS)])

    def bound() -> bool:
        return sum(bool(n) for n in cluster.placements("default").values()) == PODS

    cluster.wait_for(bound, 90, "all are bound")
    cluster.wait_for(lambda: leader.metric("moorage_binds_total", outcome="bound") == PODS, 30)
    cluster.wait_for(lambda: len(cluster.list("Event")) >= PODS, 60, "and told of")


def test_preemption(cluster: Client, leader: Operator) -> None:
    cluster.apply([_class("low", 10), _class("high", 1000), node("contested", cpu="1")])
    cluster.apply([pod("victim", cpu="1", priorityClassName="low", nodeName="contested")])
    cluster.create(pod("urgent", cpu="1", priorityClassName="high", **_on("contested")))
    cluster.wait_for(lambda: cluster.node_of("urgent") == "contested", 60)
    assert cluster.find("Pod", "victim", "default") is None
    cluster.wait_for(lambda: _reasons(cluster) >= {"Preempted", "Scheduled"}, 30)


def test_a_pod_that_fits_nowhere_is_told_of_again(cluster: Client, leader: Operator) -> None:
    """It is tried again when a large node comes, and fails with the same words when another one does."""
    cluster.create(pod("big", cpu="640"))
    cluster.wait_for(lambda: cluster.condition("big"), 30)

    def events() -> list[Obj]:
        found = cluster.list("Event", api_version="events.k8s.io/v1")
        return [e for e in found if e["regarding"].get("name") == "big" and "untolerated taint" in e["note"]]

    def told() -> int:
        return sum((e.get("series") or {}).get("count", 1) for e in events())

    for times in (1, 2):
        huge = node("huge", cpu="1000")
        huge["spec"] = {"taints": [{"key": "example.com/held", "effect": "NoSchedule"}]}
        cluster.apply([huge])
        _reaches(cluster, told, times)
        cluster.delete("Node", "huge")


def test_volumes(cluster: Client, leader: Operator) -> None:
    for name, provisioner in (("local", "kubernetes.io/no-provisioner"), ("made", "csi.test")):
        storage_class = {
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
            "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer",
        }  # fmt: skip
        claim = {
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
                "storageClassName": name,
            },
        }  # fmt: skip
        cluster.apply([storage_class, claim])
    cluster.apply([volume("pv1", "local", "n1")])
    cluster.patch_status("PersistentVolume", "pv1", {"phase": "Available"})
    for name in ("local", "made"):
        cluster.create(pod(name, volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": name}}]))

    def placed() -> bool:
        tend(cluster)
        return bool(cluster.node_of("local") == "n1" and cluster.node_of("made"))

    cluster.wait_for(placed, 60)


def _node_metrics() -> Obj:
    """A definition in the place of a metrics server's API."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1beta1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": "NodeMetrics", "listKind": "NodeMetricsList", "plural": "nodes", "singular": "node"}
    spec = {"group": "metrics.k8s.io", "scope": "Cluster", "names": names, "versions": [version]}
    allowed = {"api-approved.kubernetes.io": "unapproved, testing"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "nodes.metrics.k8s.io", "annotations": allowed},
        "spec": spec,
    }


def _policy(kind: str, spec: Obj) -> Obj:
    meta = {"name": "checked"} | ({"namespace": "default"} if kind == "SchedulingPolicy" else {})
    return {
        "apiVersion": "moorage.dev/v1alpha1",
        "kind": kind,
        "metadata": meta,
        "spec": {"selector": {"podSelector": {"matchLabels": {"policed": "yes"}}}, **spec},
    }


def test_policies(release: Release, cluster: Client, leader: Operator) -> None:
    node_n7 = {"matchLabels": {"kubernetes.io/hostname": "n7"}}
    policies = [
        _policy("ClusterSchedulingPolicy", {"nodes": {"selector": node_n7}}),
        _policy("SchedulingPolicy", {"load": {"limit": {"cpu": 80}, "onStale": "Ignore"}}),
    ]
    cluster.apply([_node_metrics(), *policies])

    def accepted() -> bool:
        for policy in policies:
            meta = policy["metadata"]
            found = cluster.get(
                policy["kind"], meta["name"], meta.get("namespace"), api_version=policy["apiVersion"]
            )
            conditions = found.get("status", {}).get("conditions", [])
            if not any(c["type"] == "Accepted" and c["status"] == "True" for c in conditions):
                return False
        return True

    cluster.wait_for(accepted, 60, "the status of both is written")
    policed = pod("policed")
    policed["metadata"]["labels"] = {"policed": "yes"}
    cluster.create(policed)
    cluster.wait_for(lambda: cluster.node_of("policed") == "n7", 60)
    real_use = ("metrics.k8s.io", "nodes", "list")
    cluster.wait_for(
        lambda: real_use in {right for right, _ in release.requests()}, 60, "real use is asked for"
    )


def test_the_metrics_of_alerts_and_dashboard_exist(release: Release, leader: Operator) -> None:
    """In a scrape of the running operator, by the names of samples or, where none has been taken yet, of families."""
    values = {"prometheusRule.enabled": True, "dashboard.enabled": True}
    texts = [
        yaml.safe_dump(obj)
        for obj in release.helm.template(values)
        if obj["kind"] in ("PrometheusRule", "ConfigMap")
    ]
    assert len(texts) == 2
    asked = set(re.findall(r"\b(?:moorage|scheduler|process)_[a-z_]+\b(?=[{)\[]|$)", "\n".join(texts)))
    assert len(asked) > 20
    assert asked - names_in(leader.scrape()) == set()


def names_in(scrape: str) -> set[str]:
    found = {line.partition(" ")[0].partition("{")[0] for line in scrape.splitlines() if line[:1] != "#"}
    for line in scrape.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            found |= {f"{name}{end}" for end in {"histogram": ("_bucket", "_sum", "_count")}.get(kind, ("",))}
    return found


def test_a_second_replica_stands_by(release: Release, leader: Operator) -> None:
    with release.operator(hurried=False) as standby:
        assert standby.metric("moorage_leading") == 0
        assert leader.metric("moorage_leading") == 1


def test_nothing_was_denied_and_nothing_is_granted_in_vain(release: Release, leader: Operator) -> None:
    """Stands after the tests that have the operator do everything it does."""
    requests = list(release.requests())
    if len(requests) < PODS:
        pytest.skip("it judges what the other tests of this module have the operator do")
    denied = [
        (right, e["requestURI"])
        for right, e in requests
        if e.get("responseStatus", {}).get("code") in (401, 403)
    ]
    assert denied == []
    used = {right for right, _ in requests}
    reviews = ("authorization.k8s.io", "selfsubjectaccessreviews", "create")  # everybody may ask
    assert used - release.granted == {reviews}
    assert release.granted - used == set(UNUSED)
    assert "WARNING" not in leader.log
    assert "ERROR" not in leader.log


@pytest.mark.timeout(240)
async def test_taking_any_rule_out_is_noticed(release: Release) -> None:
    """For each rule of the chart's roles an account that lacks just this one: the check names what is missing."""
    cluster = release.cluster
    wide, near = (
        cluster.get("ClusterRole", f"{NAMESPACE}-sea-moorage")["rules"],
        cluster.get("Role", "sea-moorage", NAMESPACE)["rules"],
    )
    lacking: dict[str, set[Right]] = {}
    objects: list[Obj] = []
    for number, rule in enumerate([*wide, *near]):
        name = f"without-{number}"
        lacking[name] = set(rights(rule))
        objects += _account(name, [r for r in wide if r is not rule], [r for r in near if r is not rule])
    cluster.apply(objects)
    for name, expected in lacking.items():
        kubeconfig = token_for(release.control_plane, name)
        async with await KubeClient.connect(str(kubeconfig), None) as client:
            await _await_missing(cluster, client, expected)


async def _await_missing(cluster: Client, client: KubeClient, expected: set[Right]) -> None:
    """Until the check says that just these rights are missing; the authorizer reads roles from a cache."""
    # What only --explain-listen asks for is not granted unless the chart is told to (rbac.explain).
    granted = [permission for permission in PERMISSIONS if permission.feature != "explain endpoint"]

    async def as_expected():
        findings = await check(client, granted, lease_namespace=NAMESPACE, lease_name="sea-moorage")
        missing = {(f.permission.group, f.permission.resource, verb) for f in findings for verb in f.missing}
        return missing == expected

    await cluster.aio.wait_for(as_expected, 30, f"{expected} is missed")


def _account(name: str, wide: list[Obj], near: list[Obj]) -> list[Obj]:
    subject = {"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}
    made: list[Obj] = [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": NAMESPACE}}
    ]
    group = "rbac.authorization.k8s.io"
    for prefix, rules in (("Cluster", wide), ("", near)):
        meta = {"name": name} if prefix else {"name": name, "namespace": NAMESPACE}
        reference = {"apiGroup": group, "kind": f"{prefix}Role", "name": name}
        common = {"apiVersion": f"{group}/v1", "metadata": meta}
        made += [
            {**common, "kind": f"{prefix}Role", "rules": rules},
            {**common, "kind": f"{prefix}RoleBinding", "roleRef": reference, "subjects": [subject]},
        ]
    return made


def _reaches(cluster: Client, count: Callable[[], int], number: int) -> None:
    cluster.wait_for(lambda: count() >= number, 60, f"there are {number}")


def _reasons(cluster: Client) -> set[str]:
    return {event["reason"] for event in cluster.list("Event", api_version="events.k8s.io/v1")}
