"""The chart installed on a real API server, where no pods run: their processes are started by the tests instead."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.controlplane.client import Client, Obj, wait_for
from tests.controlplane.controlplane import ControlPlane
from tests.kit.helm import CHART, Helm
from tests.kit.operator import Operator

NAMESPACE = "harbour"
NAME = "sea"
Right = tuple[str, str, str]  # API group, resource (with its subresource), verb
_LEASES: Right = ("coordination.k8s.io", "leases", "create")


class Release:
    """A release of the chart in a namespace of its own, and the service account of its scheduler or its extender."""

    def __init__(
        self,
        control_plane: ControlPlane,
        home: Path,
        values: Path | dict[str, Any],
        *,
        component: str = "scheduler",
    ) -> None:
        self.control_plane = control_plane
        self.cluster: Client = control_plane.admin
        self.helm = Helm(home, kubeconfig=control_plane.kubeconfig)
        self.component = component
        self.name = "sea-moorage" if component == "scheduler" else f"sea-moorage-{component}"
        self.apply(values)
        self.account = self.deployment["spec"]["template"]["spec"]["serviceAccountName"]
        self.user = f"system:serviceaccount:{NAMESPACE}:{self.account}"
        self.kubeconfig = token_for(control_plane, self.account)
        self.await_rights()

    def apply(self, values: Path | dict[str, Any]) -> None:
        """Install it, or have it be by these values and no others."""
        self.values = values
        options = ("-n", NAMESPACE, "--create-namespace", "--reset-values", *self.helm.given(values))
        self.helm.run("upgrade", "--install", NAME, CHART, *options)
        self.deployment = self.cluster.get("Deployment", self.name, NAMESPACE)

    @property
    def arguments(self) -> list[str]:
        """How the container starts Moorage, but for the port, which the test chooses."""
        (container,) = self.deployment["spec"]["template"]["spec"]["containers"]
        command, *options = container["args"]
        assert command == {"scheduler": "run"}.get(self.component, self.component)
        return [option for option in options if not option.startswith(("--metrics-listen=", "--listen="))]

    def operator(self, **options: Any) -> Operator:
        """A replica with the chart's arguments and the account's rights, and no others."""
        return Operator(self.control_plane, *self.arguments, kubeconfig=self.kubeconfig, **options)

    @property
    def granted(self) -> set[Right]:
        """What the roles in the cluster allow."""
        roles = [self.cluster.get("ClusterRole", f"{NAMESPACE}-{self.name}")]
        if self.component == "scheduler":
            roles.append(self.cluster.get("Role", self.name, NAMESPACE))
        return {right for role in roles for rule in role["rules"] for right in rights(rule)}

    def requests(self) -> Iterator[tuple[Right, Obj]]:
        """What the account has asked the API server for so far: the right that was needed, and the audit's event."""
        for event in self.control_plane.audit_events():
            if event["user"]["username"] == self.user and "objectRef" in event:
                of = event["objectRef"]
                resource = "/".join(filter(None, (of["resource"], of.get("subresource"))))
                yield (of.get("apiGroup", ""), resource, event["verb"]), event

    def await_rights(self) -> None:
        """The API server's authorizer reads roles from a cache."""
        last = max(self.granted) if self.component != "scheduler" else _LEASES
        wait_for(lambda: self.may(last), 30, "the roles are in force")

    def may(self, right: Right) -> bool:
        """What the API server's authorizer says."""
        group, resource, verb = right
        resource, _, subresource = resource.partition("/")
        asked = {"group": group, "resource": resource, "subresource": subresource, "verb": verb}
        if right == _LEASES:
            asked["namespace"] = NAMESPACE
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": self.user, "resourceAttributes": asked},
        }
        path = self.cluster.path("SubjectAccessReview", api_version="authorization.k8s.io/v1")
        return bool(self.cluster.request("POST", path, review)["status"]["allowed"])


def rights(rule: Obj) -> Iterator[Right]:
    """What a rule of a role allows."""
    for group in rule["apiGroups"]:
        for resource in rule["resources"]:
            for verb in rule["verbs"]:
                yield group, resource, verb


def token_for(control_plane: ControlPlane, account: str) -> Path:
    """A kubeconfig with a token for a service account of the namespace, as the kubelet gets one for a pod."""
    admin = control_plane.admin
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": 3600},
    }
    path = f"{admin.path('ServiceAccount', account, NAMESPACE)}/token"
    token: str = admin.request("POST", path, request)["status"]["token"]
    return control_plane.write_kubeconfig(f"{account}-{time.monotonic_ns()}", token)


def monitoring_kinds() -> list[Obj]:
    """Definitions of the Prometheus operator's kinds that take everything, in the place of its own."""
    made = []
    for kind in ("ServiceMonitor", "PrometheusRule"):
        plural = f"{kind.lower()}s"
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
        names = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()}
        spec = {
            "group": "monitoring.coreos.com",
            "scope": "Namespaced",
            "names": names,
            "versions": [version],
        }
        made.append(
            {
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": {"name": f"{plural}.monitoring.coreos.com"},
                "spec": spec,
            }
        )
    return made
