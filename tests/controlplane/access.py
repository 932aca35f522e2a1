"""Users of a test cluster: service accounts with exactly the permissions a test names, as a deployment has them."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

from tests.controlplane.client import ApiError, Client, Obj, wait_for

_NAMESPACE = "kube-system"
_RBAC = "rbac.authorization.k8s.io"


def make_user(admin: Client, name: str, rules: Sequence[Obj], namespaced: Mapping[str, Sequence[Obj]]) -> str:
    """Make (or change) a service account with cluster-wide and namespaced RBAC rules; gives a token for it.

    A rule is one of a ClusterRole: `{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list",
    "watch"]}`. Returns once the API server's authorizer, which reads roles from a cache, is of the same
    opinion.
    """
    with contextlib.suppress(ApiError):  # there already: the token will be a new one
        admin.create(_object("v1", "ServiceAccount", name, _NAMESPACE))
    _grant(admin, name, None, rules)
    for namespace, own in namespaced.items():
        _grant(admin, name, namespace, own)
    path = f"{admin.path('ServiceAccount', name, _NAMESPACE)}/token"
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": 86400},
    }
    token: str = admin.request("POST", path, request)["status"]["token"]
    _await_rules(admin, name, None, rules)
    for namespace, own in namespaced.items():
        _await_rules(admin, name, namespace, own)
    return token


def kubeconfig(url: str, ca: str, name: str, token: str) -> Obj:
    """A kubeconfig with one cluster and one user, all data inside."""
    cluster = {"server": url, "certificate-authority-data": base64.b64encode(ca.encode()).decode()}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": cluster}],
        "users": [{"name": name, "user": {"token": token}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": name}}],
        "current-context": "test",
    }


def _grant(admin: Client, name: str, namespace: str | None, rules: Sequence[Obj]) -> None:
    prefix = "" if namespace else "Cluster"
    role = _object(f"{_RBAC}/v1", f"{prefix}Role", name, namespace) | {"rules": list(rules)}
    binding = _object(f"{_RBAC}/v1", f"{prefix}RoleBinding", name, namespace) | {
        "roleRef": {"apiGroup": _RBAC, "kind": f"{prefix}Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": _NAMESPACE}],
    }
    admin.apply([role, binding])


def _await_rules(admin: Client, name: str, namespace: str | None, rules: Sequence[Obj]) -> None:
    for rule in rules:
        for attributes in _attributes(rule, namespace):
            review = _object("authorization.k8s.io/v1", "SubjectAccessReview", None, None) | {
                "spec": {"user": f"system:serviceaccount:{_NAMESPACE}:{name}", **attributes}
            }

            def allowed(review: Obj = review) -> bool:
                path = admin.path("SubjectAccessReview", api_version="authorization.k8s.io/v1")
                return bool(admin.request("POST", path, review)["status"]["allowed"])

            wait_for(allowed, 5, f"RBAC allows {attributes}")


def _attributes(rule: Obj, namespace: str | None) -> list[dict[str, Any]]:
    """One question for each rule is enough: the cache takes a role in as a whole."""
    verb = rule["verbs"][0]
    if "nonResourceURLs" in rule:
        return [{"nonResourceAttributes": {"path": rule["nonResourceURLs"][0], "verb": verb}}]
    resource, _, subresource = rule["resources"][0].partition("/")
    attributes = {
        "group": rule["apiGroups"][0],
        "resource": resource,
        "subresource": subresource,
        "verb": verb,
    }
    if namespace:
        attributes["namespace"] = namespace
    if names := rule.get("resourceNames"):
        attributes["name"] = names[0]
    return [{"resourceAttributes": attributes}]


def _object(api_version: str, kind: str, name: str | None, namespace: str | None) -> Obj:
    meta = {key: value for key, value in (("name", name), ("namespace", namespace)) if value}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta}
