"""What Moorage may have to do in a cluster, and whether it is allowed to.

``PERMISSIONS`` is the one list: the start-up check, ``moorage check`` and the tests' users come from it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import yaml

from moorage.adapters.kube.client import KubeClient
from moorage.adapters.kube.device_classes import DEVICE_CLASSES

#: The feature that needs to know who asks; only for those who turn it on.
EXPLAIN_ENDPOINT = "explain endpoint"

_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


class Scope(StrEnum):
    """Where a permission is needed, which decides between ClusterRole and Role."""

    CLUSTER = "cluster"
    LEASE_NAMESPACE = "lease namespace"


@dataclass(frozen=True, slots=True)
class Permission:
    """Verbs on one resource.  With a ``feature`` it is optional: without it, just that feature is off."""

    group: str
    resource: str  # with its subresource: pods/binding
    verbs: tuple[str, ...]
    why: str
    scope: Scope = Scope.CLUSTER
    feature: str = ""

    @property
    def required(self) -> bool:
        """Whether Moorage does not run without it."""
        return not self.feature

    def rule(self, verbs: Sequence[str] = ()) -> dict[str, list[str]]:
        """The RBAC rule that grants it (or only ``verbs`` of it)."""
        return {"apiGroups": [self.group], "resources": [self.resource], "verbs": list(verbs or self.verbs)}


PERMISSIONS: tuple[Permission, ...] = (
    Permission("", "pods", ("list", "watch", "get"), "to see pods waiting and pods placed"),
    Permission("", "nodes", ("list", "watch"), "to know what there is to place them on"),
    Permission("", "pods/binding", ("create",), "to bind a pod to its node"),
    Permission("", "pods/status", ("patch",), "to say why a pod is not scheduled"),
    Permission(
        "coordination.k8s.io", "leases", ("get", "create", "update"), "to agree which replica leads",
        Scope.LEASE_NAMESPACE,
    ),
    Permission("", "pods", ("delete",), "to evict pods of lower priority", feature="preemption"),
    Permission(
        "policy", "poddisruptionbudgets", ("list", "watch"), "to spare pods that a budget guards",
        feature="preemption",
    ),
    Permission("", "namespaces", ("list", "watch"), "to know which namespaces an affinity selects"),
    *(
        Permission(
            group, resource, ("list", "watch"), "to spread the pods of a set that ask for nothing themselves",
            feature="default spreading",
        )
        for group, resource in (
            ("", "services"), ("", "replicationcontrollers"), ("apps", "replicasets"), ("apps", "statefulsets")
        )
    ),
    Permission(
        "", "persistentvolumes", ("list", "watch", "get", "patch"), "to see volumes, and to give them to claims",
    ),
    Permission(
        "", "persistentvolumeclaims", ("list", "watch", "get", "patch"),
        "to see which volumes pods use, and to choose nodes for new ones",
    ),
    *(
        Permission("storage.k8s.io", resource, ("list", "watch"), "to know where a pod's volumes can be")
        for resource in ("storageclasses", "csinodes", "csidrivers", "csistoragecapacities", "volumeattachments")
    ),
    *(
        Permission("moorage.dev", plural, ("list", "watch"), "to follow policies", feature="policies")
        for plural in ("schedulingpolicies", "clusterschedulingpolicies")
    ),
    *(
        Permission(
            "moorage.dev", f"{plural}/status", ("patch",), "to say how policies fare", feature="status of policies",
        )
        for plural in ("schedulingpolicies", "clusterschedulingpolicies")
    ),
    Permission(
        "metrics.k8s.io", "nodes", ("list",), "to know what nodes really use, for policies that ask",
        feature="real use of nodes",
    ),
    Permission(
        "resource.k8s.io", "deviceclasses", ("list", "watch"),
        "to tell devices, which are not allocated yet, from other resources", feature=DEVICE_CLASSES,
    ),
    Permission(
        "events.k8s.io", "events", ("create", "patch"), "to record Scheduled and FailedScheduling",
        feature="events",
    ),
    *(
        Permission(group, resource, ("create",), why, feature=EXPLAIN_ENDPOINT)
        for group, resource, why in (
            ("authentication.k8s.io", "tokenreviews", "to know who asks for an explanation (--explain-listen)"),
            ("authorization.k8s.io", "subjectaccessreviews", "to know whether they may (--explain-listen)"),
        )
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Finding:
    """The answer for one permission; ``missing`` are the verbs that are not allowed."""

    permission: Permission
    namespace: str  # "" for all
    missing: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether all of it is allowed."""
        return not self.missing

    @property
    def blocking(self) -> bool:
        """Whether Moorage cannot run like this."""
        return bool(self.missing) and self.permission.required

    @property
    def role(self) -> str:
        """Where the rule goes: "a ClusterRole", or "a Role in namespace NAME"."""
        return f"a Role in namespace {self.namespace}" if self.namespace else "a ClusterRole"

    def rule_yaml(self) -> str:
        """The RBAC rule to add, as an item of ``rules``."""
        rule = self.permission.rule(self.missing)
        return yaml.safe_dump([rule], default_flow_style=None, sort_keys=False)

    def text(self) -> str:
        """What is missing and what to do, for a log or a terminal."""
        group = f'API group "{self.permission.group}"' + ("" if self.permission.group else " (core)")
        verbs = ", ".join(self.missing)
        effect = (
            f' (optional: "{self.permission.feature}" is off without it)' if self.permission.feature else ""
        )
        return (
            f"missing permission: {verbs} {self.permission.resource} in {group}, "
            f"needed {self.permission.why}{effect}. Add to {self.role}:\n{self.rule_yaml()}"
        )


def needed(*, leader_elect: bool = True, explain: bool = True) -> list[Permission]:
    """The permissions that these options need."""
    return [
        p
        for p in PERMISSIONS
        if (leader_elect or p.scope is not Scope.LEASE_NAMESPACE)
        and (explain or p.feature != EXPLAIN_ENDPOINT)
    ]


def needed_by_extender(*, full: bool, bind: bool, status: bool = False) -> list[Permission]:
    """What an extender may have to do: see nodes, pods and policies, with ``full`` all that plugins look at; bind;
    write policies' status.
    """
    seen = {"nodes", "pods", "namespaces", "schedulingpolicies", "clusterschedulingpolicies"}
    found: list[Permission] = []
    for permission in PERMISSIONS:
        resource, verbs = permission.resource, set(permission.verbs)
        if resource == "pods/binding":
            if bind:
                found.append(permission)
        elif resource.endswith("policies/status"):
            if status:
                found.append(permission)
        elif verbs & {"list", "watch"} and permission.feature != "preemption":
            # A pod that is to be bound is read once more; all else comes by streams.
            reads = {"list", "watch", "get"} if bind and resource == "pods" else {"list", "watch"}
            only = tuple(verb for verb in permission.verbs if verb in reads)
            if full or resource in seen:
                found.append(replace(permission, verbs=only))
    return found


async def check(
    client: KubeClient,
    permissions: Iterable[Permission],
    *,
    lease_namespace: str = "kube-system",
    lease_name: str = "moorage",
) -> list[Finding]:
    """Ask the API server about each verb, all at once.

    Every authenticated user may ask (``system:basic-user``), unless a cluster took that away: then this
    raises ``Forbidden``.  Other ``KubeError`` when it cannot be asked.
    """
    listed = list(permissions)
    answers = await asyncio.gather(
        *(
            _allowed(client, permission, verb, lease_namespace, lease_name)
            for permission in listed
            for verb in permission.verbs
        )
    )
    verdict = iter(answers)
    findings = []
    for permission in listed:
        missing = tuple(verb for verb in permission.verbs if not next(verdict))
        namespace = lease_namespace if permission.scope is Scope.LEASE_NAMESPACE else ""
        findings.append(Finding(permission, namespace, missing))
    return findings


async def _allowed(
    client: KubeClient, permission: Permission, verb: str, lease_namespace: str, lease_name: str
) -> bool:
    resource, _, subresource = permission.resource.partition("/")
    asked: dict[str, Any] = {"group": permission.group, "resource": resource, "verb": verb}
    if subresource:
        asked["subresource"] = subresource
    if permission.scope is Scope.LEASE_NAMESPACE:
        asked["namespace"] = lease_namespace
        if verb != "create":  # the role may be limited to our lease by its name; create never can be
            asked["name"] = lease_name
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": asked},
    }
    answer = await client.post(_REVIEWS, review)
    return bool(((answer or {}).get("status") or {}).get("allowed"))
