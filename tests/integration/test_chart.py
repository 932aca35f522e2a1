"""The chart's life on a real API server, by Helm itself: install, upgrade, uninstall, install again."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from moorage.adapters.kube.permissions import PERMISSIONS, Permission, Scope
from tests.controlplane.client import ApiError, Client
from tests.controlplane.controlplane import ControlPlane
from tests.kit.chart_release import NAME, NAMESPACE, monitoring_kinds
from tests.kit.helm import CHART, VALUES, Helm
from tests.kit.manifests import Obj

_DEFINITION = "CustomResourceDefinition"
_CLUSTER_WIDE = ("ClusterRole", "ClusterRoleBinding", _DEFINITION)


def difference(wanted: Any, found: Any, path: str = "") -> str:
    """Where something wanted is missing or is another; what the API server has added does not matter."""
    if isinstance(wanted, Mapping) and isinstance(found, Mapping):
        for key, value in wanted.items():
            if value in (None, {}, []) and key not in found:
                continue
            if key not in found:
                return f"{path}.{key} is missing"
            if text := difference(value, found[key], f"{path}.{key}"):
                return text
        return ""
    if isinstance(wanted, list) and isinstance(found, list):
        if len(wanted) != len(found):
            return f"{path} has {len(found)} items, not {len(wanted)}"
        pairs = enumerate(zip(wanted, found, strict=True))
        return next(filter(None, (difference(w, f, f"{path}[{i}]") for i, (w, f) in pairs)), "")
    return "" if wanted == found else f"{path}: {found!r}, not {wanted!r}"


def find(cluster: Client, obj: Obj) -> Obj | None:
    namespace = None if obj["kind"] in _CLUSTER_WIDE else NAMESPACE
    return cluster.find(obj["kind"], obj["metadata"]["name"], namespace, api_version=obj["apiVersion"])


def assert_installed(cluster: Client, objects: list[Obj]) -> None:
    for obj in objects:
        found = find(cluster, obj)
        assert found is not None, f"{obj['kind']} {obj['metadata']['name']} is missing"
        assert difference(obj, found) == "", f"{obj['kind']} {obj['metadata']['name']}"


def names(objects: list[Obj]) -> set[tuple[str, str]]:
    return {(obj["kind"], obj["metadata"]["name"]) for obj in objects}


@pytest.fixture
def newer(tmp_path: Path) -> Path:
    """The chart of a later version, in which a definition has changed."""
    chart = tmp_path / "moorage"
    shutil.copytree(CHART, chart)
    metadata = yaml.safe_load((chart / "Chart.yaml").read_text())
    (chart / "Chart.yaml").write_text(yaml.safe_dump({**metadata, "version": "99.0.0"}))
    path = chart / "files" / "crds" / "schedulingpolicies.yaml"
    definition = yaml.safe_load(path.read_text())
    column = {"name": "Later", "type": "string", "jsonPath": ".spec.mode"}
    definition["spec"]["versions"][0]["additionalPrinterColumns"].append(column)
    path.write_text(yaml.safe_dump(definition))
    return chart


@pytest.mark.timeout(240)
def test_install_upgrade_uninstall(
    control_plane: ControlPlane, cluster: Client, tmp_path: Path, newer: Path
) -> None:
    cluster.apply(monitoring_kinds())
    helm = Helm(tmp_path, kubeconfig=control_plane.kubeconfig)
    where = ["-n", NAMESPACE]
    everything, default = (helm.template(VALUES / f"{stem}.yaml") for stem in ("everything", "default"))

    # Everything; then without what can be left out, so under other names; then a newer chart.
    helm.run("install", NAME, CHART, *where, "--create-namespace", "--values", VALUES / "everything.yaml")
    assert_installed(cluster, everything)
    helm.run("upgrade", NAME, CHART, *where, "--values", VALUES / "default.yaml", "--reset-values")
    assert_installed(cluster, default)
    gone = [obj for obj in everything if (obj["kind"], obj["metadata"]["name"]) not in names(default)]
    assert {obj["kind"] for obj in gone} >= {"Deployment", "ServiceMonitor", "ConfigMap", "ClusterRole"}
    cluster.wait_for(lambda: not any(find(cluster, obj) for obj in gone), 30, "what is left out is removed")
    helm.run("upgrade", NAME, newer, *where, *helm.given({"scheduler.replicas": 5}))
    assert cluster.get("Deployment", "sea-moorage", NAMESPACE)["spec"]["replicas"] == 5
    changed = cluster.get(_DEFINITION, "schedulingpolicies.moorage.dev")["spec"]["versions"][0]
    assert changed["additionalPrinterColumns"][-1]["name"] == "Later", "Helm upgrades the definitions"
    history = json.loads(helm.run("history", NAME, *where, "-o", "json"))
    assert [entry["status"] for entry in history] == ["superseded", "superseded", "deployed"]

    # Policies, and what defines them, outlive the release; a new one takes them over.
    policy = {
        "apiVersion": "moorage.dev/v1alpha1",
        "kind": "ClusterSchedulingPolicy",
        "metadata": {"name": "mine"},
    }
    cluster.wait_for(
        lambda: created(cluster, {**policy, "spec": {"selector": {}}}), 30, "policies are served"
    )
    helm.run("uninstall", NAME, *where)
    left = [obj for obj in default if obj["kind"] != _DEFINITION]
    cluster.wait_for(lambda: not any(find(cluster, obj) for obj in left), 30, "the release is removed")
    assert cluster.get("ClusterSchedulingPolicy", "mine", api_version="moorage.dev/v1alpha1")
    helm.run("install", NAME, CHART, *where, "--values", VALUES / "default.yaml")
    assert_installed(cluster, default)

    # With crds.keep=false they go, and every policy with them.
    helm.run("upgrade", NAME, CHART, *where, *helm.given({"crds.keep": False}))
    helm.run("uninstall", NAME, *where)
    cluster.wait_for(lambda: not any(find(cluster, obj) for obj in default), 30, "everything is removed")


def created(cluster: Client, obj: Obj) -> bool:
    try:
        cluster.apply([obj])
    except LookupError:
        return False
    return True


@pytest.mark.parametrize("stem", ["default", "everything", "openshift", "extender"])
def test_the_pods_meet_the_restricted_pod_security_standard(
    cluster: Client, tmp_path: Path, stem: str
) -> None:
    restricted = {"pod-security.kubernetes.io/enforce": "restricted"}
    namespace = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": NAMESPACE, "labels": restricted},
    }
    cluster.apply([namespace])
    objects = Helm(tmp_path).template(VALUES / f"{stem}.yaml")
    templates = [obj["spec"]["template"] for obj in objects if obj["kind"] == "Deployment"]
    assert templates
    for template in templates:
        assert _admitted(cluster, template)
    del templates[0]["spec"]["containers"][0]["securityContext"]
    assert not _admitted(cluster, templates[0]), "else this test says nothing"


def _admitted(cluster: Client, template: Obj) -> bool:
    meta = {**template["metadata"], "generateName": "replica-"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": template["spec"]}
    try:
        cluster.request("POST", cluster.path("Pod", None, NAMESPACE), pod, params={"dryRun": "All"})
    except ApiError as error:
        if "PodSecurity" not in error.message:
            raise
        return False
    return True


def test_the_account_of_kube_scheduler_lacks_only_what_is_ours(cluster: Client) -> None:
    """As docs/install.md says of running in its place."""
    lacking = {p.group for p in PERMISSIONS for verb in p.verbs if not _may(cluster, p, verb)}
    assert lacking <= {"moorage.dev", "metrics.k8s.io"}


def _may(cluster: Client, permission: Permission, verb: str) -> bool:
    resource, _, subresource = permission.resource.partition("/")
    asked = {"group": permission.group, "resource": resource, "subresource": subresource, "verb": verb}
    if permission.scope is not Scope.CLUSTER:
        asked |= {"namespace": "kube-system"} | ({"name": "kube-scheduler"} if verb != "create" else {})
    spec = {"user": "system:kube-scheduler", "resourceAttributes": asked}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    path = cluster.path("SubjectAccessReview", api_version="authorization.k8s.io/v1")
    return bool(cluster.request("POST", path, review)["status"]["allowed"])
