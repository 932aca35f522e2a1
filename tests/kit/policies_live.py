"""Policies on a real API server, and a scheduler that follows them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.controlplane.client import Client
from tests.controlplane.controlplane import ControlPlane
from tests.kit.manifests import Obj
from tests.kit.operator import Operator

API_VERSION = "moorage.dev/v1alpha1"
METRICS = "metrics.k8s.io/v1beta1"

_CRDS = Path(__file__).parents[2] / "crds"
_WAIT = 30.0
#: What the tests of policies leave behind, in the order in which it goes.
_KINDS = (
    ("SchedulingPolicy", API_VERSION),
    ("ClusterSchedulingPolicy", API_VERSION),
    ("Pod", "v1"),
    ("Node", "v1"),
)


def install_crds(cluster: Client) -> None:
    """Bring the definitions of policies, and wait until they are served."""
    cluster.apply([yaml.safe_load(path.read_text()) for path in sorted(_CRDS.glob("*.yaml"))])


def remove_node_metrics(cluster: Client) -> None:
    """Let nodes.metrics.k8s.io be served no more."""
    kind, name = "CustomResourceDefinition", "nodes.metrics.k8s.io"
    if cluster.find(kind, name) is not None:
        cluster.delete(kind, name)
        cluster.wait_for(lambda: cluster.find(kind, name) is None, _WAIT, "its definition is gone")


def install_node_metrics(cluster: Client) -> None:
    """Serve nodes.metrics.k8s.io from what a test writes there, in the place of a metrics server."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1beta1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": "NodeMetrics", "listKind": "NodeMetricsList", "plural": "nodes", "singular": "node"}
    annotations = {"api-approved.kubernetes.io": "unapproved, testing"}
    cluster.apply(
        [
            {
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": {"name": "nodes.metrics.k8s.io", "annotations": annotations},
                "spec": {
                    "group": "metrics.k8s.io",
                    "scope": "Cluster",
                    "names": names,
                    "versions": [version],
                },
            }
        ]
    )


class PolicyCluster:
    """A cluster with the definitions of policies and a scheduler, for many tests; ``clean`` it before each."""

    def __init__(self, control_plane: ControlPlane, operator: Operator) -> None:
        self.control_plane = control_plane
        self.cluster = control_plane.admin
        self.operator = operator

    def clean(self) -> None:
        """No policies, pods or nodes, and the scheduler knows it."""
        for kind, version in _KINDS:
            for obj in self.cluster.list(kind, api_version=version):
                meta = obj["metadata"]
                self.cluster.delete(kind, meta["name"], meta.get("namespace"), api_version=version)

        def forgotten() -> bool:
            sizes = [self.operator.metric("scheduler_cache_size", type=kind) for kind in ("nodes", "pods")]
            queues = ("active", "backoff", "unschedulable", "gated")
            waiting = [self.operator.metric("scheduler_pending_pods", queue=queue) for queue in queues]
            return not any((*sizes, *waiting, self.operator.metric("moorage_policies", state="in_force")))

        self.cluster.wait_for(forgotten, _WAIT, "the scheduler has forgotten all")

    # -- policies --------------------------------------------------------------------------------

    def apply(self, policy: Obj) -> Obj:
        """Create or change a policy, and wait until the scheduler has said what it thinks of it."""
        (written,) = self.cluster.apply([policy])
        generation = written["metadata"]["generation"]

        def told() -> bool:
            status = self.read(policy).get("status", {})
            accepted = self.condition(policy, "Accepted")
            return bool(accepted) and status.get("observedGeneration") == generation

        self.cluster.wait_for(told, _WAIT, "the status tells of the generation")
        return written

    def read(self, policy: Obj) -> Obj:
        """The policy as it is in the cluster."""
        meta = policy["metadata"]
        return self.cluster.get(policy["kind"], meta["name"], meta.get("namespace"), api_version=API_VERSION)

    def delete(self, policy: Obj) -> None:
        """Delete the policy."""
        meta = policy["metadata"]
        self.cluster.delete(policy["kind"], meta["name"], meta.get("namespace"), api_version=API_VERSION)

    def condition(self, policy: Obj, kind: str) -> Obj:
        """A condition of a policy, empty if there is none."""
        conditions = self.read(policy).get("status", {}).get("conditions", ())
        return next((found for found in conditions if found["type"] == kind), {})

    def await_status(self, policy: Obj, path: str, value: Any) -> None:
        """Wait until the status has this value there: ``pods.bound``."""

        def reached() -> bool:
            found: Any = self.read(policy).get("status", {})
            for part in path.split("."):
                found = found.get(part) if isinstance(found, dict) else None
            return bool(found == value)

        self.cluster.wait_for(reached, _WAIT, f"{path} is {value}")

    # -- pods ------------------------------------------------------------------------------------

    def placed(self, name: str, namespace: str = "default") -> str:
        """The node a pod gets."""
        return str(
            self.cluster.wait_for(lambda: self.cluster.node_of(name, namespace), _WAIT, f"{name} is bound")
        )

    def placements(self, names: Sequence[str], namespace: str = "default") -> list[str]:
        """The nodes that pods get."""
        return [self.placed(name, namespace) for name in names]

    def refusal(self, name: str, namespace: str = "default", reason: str = "Unschedulable") -> str:
        """Why a pod is not placed; waits until the condition has this reason."""

        def told() -> str | None:
            found = self.cluster.condition(name, namespace)
            return found["message"] if found and found.get("reason") == reason else None

        return str(self.cluster.wait_for(told, _WAIT, f"{name} is {reason}"))
