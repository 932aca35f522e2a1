"""Moorage and kube-scheduler in turn, each alone on a cluster that was made the same way."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from tests.controlplane.client import Client
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.scheduler import KubeScheduler
from tests.kit.operator import Operator

T = TypeVar("T")
Obj = dict[str, Any]
#: Plays a scenario with the scheduler of that name, which runs already, and tells what came of it.
Scenario = Callable[[Client, str], T]

MOORAGE, KUBE_SCHEDULER = "moorage", "default-scheduler"
#: How long anything is waited for: the machine may be busy with other things.
PATIENCE = 60.0
_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def play(control_plane: ControlPlane, scenario: Scenario[T]) -> tuple[T, T]:
    """What comes of the scenario with Moorage, and with kube-scheduler; the control plane is emptied before each."""
    control_plane.reset()
    with Operator(control_plane):
        ours = scenario(control_plane.admin, MOORAGE)
    control_plane.reset()
    scheduler: AbstractContextManager[Any] = KubeScheduler(control_plane)
    with scheduler:
        theirs = scenario(control_plane.admin, KUBE_SCHEDULER)
    return ours, theirs


def wait_for(cluster: Client, predicate: Callable[[], T], what: str = "") -> T:
    """Wait for something true, patiently."""
    return cluster.wait_for(predicate, PATIENCE, what)


def condition(cluster: Client, scheduler: str, pod: str, kind: str = "PodScheduled") -> Obj | None:
    """A pod's condition without its times."""
    found = cluster.condition(pod, kind=kind)
    if found is None:
        return None
    times = ("lastTransitionTime", "lastProbeTime")
    return {key: plain(value, scheduler) for key, value in found.items() if key not in times}


def told(cluster: Client, scheduler: str, pod: str, *reasons: str) -> Obj:
    """Where a pod is, its condition, and the events for these reasons, once there are some."""
    found = {reason: _some_events(cluster, scheduler, pod, reason) for reason in reasons}
    return {"node": cluster.node_of(pod), "condition": condition(cluster, scheduler, pod), "events": found}


def _some_events(cluster: Client, scheduler: str, pod: str, reason: str) -> list[Obj]:
    return wait_for(
        cluster, lambda: events(cluster, scheduler, pod, reason), f"{scheduler} tells {reason} of {pod}"
    )


def events(cluster: Client, scheduler: str, pod: str, reason: str) -> list[Obj]:
    """The events about a pod for that reason, oldest first, without what tells one run from another.

    How often an event was repeated is left out, too; so are repetitions.
    """
    found: list[Obj] = cluster.list("Event", "default", api_version="events.k8s.io/v1")
    ours = [event for event in found if (event["regarding"]["name"], event["reason"]) == (pod, reason)]
    kept: list[Obj] = []
    for event in sorted(ours, key=lambda each: str(each["eventTime"])):
        event = plain(_essence(event), scheduler)
        if event not in kept:
            kept.append(event)
    return kept


def _essence(event: Mapping[str, Any]) -> Obj:
    left_out = ("metadata", "eventTime", "series", "reportingInstance", "deprecatedFirstTimestamp")
    essence = {key: value for key, value in event.items() if key not in left_out and value}
    # Which version of the pod the scheduler had seen is chance; Moorage does not say.
    essence["regarding"] = {k: v for k, v in event["regarding"].items() if k != "resourceVersion"}
    return essence


def plain(value: Any, scheduler: str) -> Any:
    """The same with every UID, and the scheduler's name, by a word that is the same in every run."""
    if isinstance(value, Mapping):
        return {key: plain(item, scheduler) for key, item in value.items()}
    if isinstance(value, str):
        return _UID.sub("UID", value).replace(scheduler, "SCHEDULER")
    if isinstance(value, Iterable):
        return [plain(item, scheduler) for item in value]
    return value
