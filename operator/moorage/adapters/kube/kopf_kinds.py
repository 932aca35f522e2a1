"""What Kopf is told of the policies' kinds while the API server does not serve them, or not to us.

Kopf looks once at the start which kinds there are.  It can watch CustomResourceDefinitions for more, but that
takes a right on all of them, misses a kind whose discovery lags behind its definition, and a watch of a kind
that goes away (404) ends the process.  So Kopf believes that policies are always served, and sees an empty list
of them, and then a watch that ends as one of a version too old does: it lists again, until there is an answer.
"""

from __future__ import annotations

from typing import Any

from yarl import URL

from moorage.adapters.kube.policy_kinds import GROUP, POLICY_KINDS, PREFIX, VERSION

#: How long Kopf rests before it looks again whether policies are served.
LOOK_AGAIN = 2.0

_GROUP_VERSION = f"{GROUP}/{VERSION}"
_COLLECTIONS = tuple(kind.path for kind in POLICY_KINDS)
_VERBS = ["get", "list", "patch", "watch"]


def is_discovery(url: URL, status: int) -> bool:
    """Whether the answer tells which kinds there are, and so is to tell of ours."""
    path = url.path
    return (path.endswith("/apis") and status == 200) or (path.endswith(PREFIX) and status in (200, 403, 404))


def is_refusal(url: URL, status: int) -> bool:
    """Whether the answer is that policies are not served, or not to us, or not yet."""
    return status in (403, 404, 429) and url.path.endswith(_COLLECTIONS)


def with_policies(url: URL, answer: Any) -> Any:
    """The discovery document at ``url`` with the policies' group, or their kinds, in it."""
    found = answer if isinstance(answer, dict) and answer.get("kind") != "Status" else {}
    if url.path.endswith("/apis"):
        groups = found.get("groups") or []
        if not any(group.get("name") == GROUP for group in groups):
            version = {"groupVersion": _GROUP_VERSION, "version": VERSION}
            groups = [*groups, {"name": GROUP, "versions": [version], "preferredVersion": version}]
        return {**found, "groups": [_with_version(group) for group in groups]}
    resources = found.get("resources") or []
    served = {resource.get("name") for resource in resources}
    return {
        **found,
        "groupVersion": _GROUP_VERSION,
        "resources": [*resources, *(entry for entry in _entries() if entry["name"] not in served)],
    }


def empty_list() -> dict[str, Any]:
    """No policies; a watch from this version on begins with all there are."""
    return {"kind": "List", "metadata": {"resourceVersion": "0"}, "items": []}


def _with_version(group: dict[str, Any]) -> dict[str, Any]:
    versions = group.get("versions") or []
    if group.get("name") != GROUP or any(each.get("version") == VERSION for each in versions):
        return group
    return {**group, "versions": [*versions, {"groupVersion": _GROUP_VERSION, "version": VERSION}]}


def _entries() -> list[dict[str, Any]]:
    return [
        {
            "name": kind.plural,
            "singularName": kind.kind.lower(),
            "kind": kind.kind,
            "namespaced": kind.namespaced,
            "verbs": _VERBS,
        }
        for kind in POLICY_KINDS
    ]
