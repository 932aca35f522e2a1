"""Two decision cases laid over each other: nodes and pods of one name become one that has the traits of both.

What the generators avoid because kube-scheduler does not decide it the same way twice can come about again when cases
are mixed: pods of one node that started together, a pod under two budgets.  `settle` mends that.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Final

Json = dict[str, Any]

#: Lists of which both halves count; of any other list the later one does.
_JOINED: Final = frozenset({"taints", "tolerations", "volumes"})
#: What the case that was there first keeps, because other parts of it rest on it.
_KEPT: Final = frozenset(
    {"containers", "nodeName", "priority", "allocatable", "capacity", "phase", "startTime"}
)


def mixed(first: Json, second: Json) -> Json:
    """Both cases as one; of single values the second's, but the first's amounts and priorities."""
    objects: dict[tuple[str, str, str], Json] = {}
    for obj in (*first["objects"], *second["objects"]):
        key = _key(obj)
        if key in objects and obj["kind"] == "Node":
            obj = {**obj, "status": {}}  # with the room that it has in the first case, pods fit or do not fit
        objects[key] = _merged(objects[key], obj) if key in objects else obj
    pods = {pod["metadata"]["name"]: pod for pod in first["pods"]}
    for pod in second["pods"]:
        name = pod["metadata"]["name"]
        pods[name] = _merged(pods[name], pod) if name in pods else pod
    rest = {**second, **first}
    return {**rest, "objects": list(objects.values()), "pods": list(pods.values())}


def settle(case: Json) -> Json:
    """The case without what kube-scheduler leaves to chance; changed in place."""
    bound = [obj for obj in case["objects"] if obj["kind"] == "Pod" and obj["spec"].get("nodeName")]
    _start_apart(bound)
    _guard_once(case["objects"], bound)
    return case


def own_claims(case: Json) -> Json:
    """The claims of ephemeral volumes are their pods' own if VolumeBinding is off, whose business they are.

    Changed in place.  Where it is off, kube-scheduler fails the attempt with an error; we reject the pod.
    """
    off = [
        item["name"]
        for profile in case["config"]["profiles"]
        for item in profile.get("plugins", {}).get("multiPoint", {}).get("disabled", ())
    ]
    for obj in case["objects"]:
        if "VolumeBinding" in off and (owners := obj["metadata"].get("ownerReferences")):
            owners[0]["uid"] = f"pod:{obj['metadata']['namespace']}/{owners[0]['name']}"
    return case


def guards(budget: Json, pod: Json) -> bool:
    """Whether the disruption budget selects the pod."""
    metadata = pod["metadata"]
    selector = budget["spec"].get("selector")
    labels = metadata.get("labels")
    if budget["metadata"]["namespace"] != metadata.get("namespace", "default") or not selector or not labels:
        return False
    wanted = selector.get("matchLabels", {})
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    for requirement in selector.get("matchExpressions", ()):
        inside = labels.get(requirement["key"]) in requirement.get("values", ())
        present = requirement["key"] in labels
        if not {"In": inside, "NotIn": not inside, "Exists": present}[requirement["operator"]]:
            return False
    return True


def _start_apart(pods: Sequence[Json]) -> None:
    """No two pods of a node started together; one of them may not say when."""
    seen: set[tuple[str, str]] = set()
    minutes = itertools.count()
    for pod in pods:
        status = pod.get("status", {})
        place = pod["spec"]["nodeName"], status.get("startTime", "")
        if place in seen:
            minute = next(minutes)
            start = f"2026-01-04T{minute // 60:02}:{minute % 60:02}:00Z"
            pod["status"] = {**status, "startTime": start}
        else:
            seen.add(place)


def _guard_once(objects: list[Json], pods: Sequence[Json]) -> None:
    """No pod is under two budgets: the later ones go."""
    kept: list[Json] = []
    for budget in [obj for obj in objects if obj["kind"] == "PodDisruptionBudget"]:
        if any(guards(budget, pod) and any(guards(other, pod) for other in kept) for pod in pods):
            objects.remove(budget)
        else:
            kept.append(budget)


def _key(obj: Json) -> tuple[str, str, str]:
    # The namespace of a pod may be that of the other half.
    namespace = "" if obj["kind"] == "Pod" else obj["metadata"].get("namespace", "")
    return obj["kind"], namespace, obj["metadata"]["name"]


def _merged(first: Mapping[str, Any], second: Mapping[str, Any]) -> Json:
    result = dict(first)
    for name, value in second.items():
        old = result.get(name)
        if name == "priority" and "priorityClassName" in result:
            continue  # the class says it
        if old is None:
            result[name] = value
        elif name in _KEPT:
            continue
        elif isinstance(old, dict) and isinstance(value, dict):
            result[name] = _merged(old, value)
        elif name in _JOINED:
            result[name] = [*old, *(item for item in value if item not in old)]
        else:
            result[name] = value
    return result
