"""A running cluster, listed once and read like manifests.  Nothing is ever written to it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import click

from moorage.cli.cluster import Cluster, Intake, Source
from moorage.cli.render import progress

#: Items asked for at once; etcd does not like to be asked for all.
_PAGE: Final = 1000
BAD_INPUT: Final = 2


class ClusterError(Exception):
    """The cluster cannot be listed; the text says why."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A kind, where it is listed, and whether there is no answer without it."""

    kind: str
    api_version: str
    resource: str
    needed: bool = False

    @property
    def path(self) -> str:
        """Where all objects of the kind are listed."""
        return f"/{'api' if self.api_version == 'v1' else 'apis'}/{self.api_version}/{self.resource}"


LISTED: Final = (
    Listed("Node", "v1", "nodes", needed=True),
    Listed("Pod", "v1", "pods", needed=True),
    Listed("Namespace", "v1", "namespaces"),
    Listed("PriorityClass", "scheduling.k8s.io/v1", "priorityclasses"),
    Listed("PodDisruptionBudget", "policy/v1", "poddisruptionbudgets"),
    Listed("PersistentVolume", "v1", "persistentvolumes"),
    Listed("PersistentVolumeClaim", "v1", "persistentvolumeclaims"),
    Listed("StorageClass", "storage.k8s.io/v1", "storageclasses"),
    Listed("CSINode", "storage.k8s.io/v1", "csinodes"),
    Listed("CSIDriver", "storage.k8s.io/v1", "csidrivers"),
    Listed("CSIStorageCapacity", "storage.k8s.io/v1", "csistoragecapacities"),
    Listed("VolumeAttachment", "storage.k8s.io/v1", "volumeattachments"),
    Listed("DeviceClass", "resource.k8s.io/v1", "deviceclasses"),
    Listed("Service", "v1", "services"),
    Listed("ReplicationController", "v1", "replicationcontrollers"),
    Listed("ReplicaSet", "apps/v1", "replicasets"),
    Listed("StatefulSet", "apps/v1", "statefulsets"),
    Listed("NodeMetrics", "metrics.k8s.io/v1beta1", "nodes"),
    Listed("SchedulingPolicy", "moorage.dev/v1alpha1", "schedulingpolicies"),
    Listed("ClusterSchedulingPolicy", "moorage.dev/v1alpha1", "clusterschedulingpolicies"),
)


def add_cluster(intake: Intake, kubeconfig: str | None, context: str | None) -> list[str]:
    """Take in all objects of a cluster; returns what could not be listed.  Raises ``ClusterError``."""
    with progress("listing the cluster") as advance:
        objects, missing = asyncio.run(_list_all(kubeconfig, context, advance))
    for kind, obj in objects:
        metadata = obj.get("metadata") or {}
        name = "/".join(filter(None, (metadata.get("namespace"), metadata.get("name"))))
        intake.add(obj, Source(f"{kind} {name}"))
    return missing


def read_cluster(intake: Intake, now: float, *, strict: bool) -> Cluster:
    """Read what was taken in.

    What a cluster holds and we cannot read is left out with a warning; in files (``strict``) it ends the command.
    """
    with progress("reading objects") as advance:
        cluster = intake.cluster(now, advance)
    if intake.errors and strict:
        for problem in intake.errors:
            click.echo(f"error: {problem}", err=True)
        sys.exit(BAD_INPUT)
    for problem in intake.errors:
        click.echo(f"warning: left out: {problem}", err=True)
    return cluster


async def _list_all(
    kubeconfig: str | None, context: str | None, advance: Callable[[int, int], None]
) -> tuple[list[tuple[str, dict[str, Any]]], list[str]]:
    from moorage.adapters.kube.client import KubeClient  # only needed where there is a cluster
    from moorage.adapters.kube.errors import Forbidden, KubeError, NotFound

    found: list[tuple[str, dict[str, Any]]] = []
    missing: list[str] = []
    done = 0
    try:
        async with await KubeClient.connect(kubeconfig, context, user_agent="moorage-explain") as client:

            async def one(listed: Listed) -> Sequence[dict[str, Any]]:
                nonlocal done
                try:
                    items = await _pages(client, listed)
                except NotFound:  # a kind that this cluster does not serve
                    items = []
                except KubeError as error:
                    if listed.needed or not isinstance(error, Forbidden):
                        raise
                    missing.append(f"{listed.resource} cannot be listed, so they do not count: {error}")
                    items = []
                done += 1
                advance(done, len(LISTED))
                return items

            answers = await asyncio.gather(*(one(listed) for listed in LISTED))
    except KubeError as error:
        raise ClusterError(f"cannot use the cluster: {error}") from error
    for listed, items in zip(LISTED, answers, strict=True):
        found += [
            (listed.kind, {"apiVersion": listed.api_version, "kind": listed.kind, **item}) for item in items
        ]
    return found, missing


async def _pages(client: Any, listed: Listed) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    token = ""
    while True:
        params: dict[str, str | int | bool] = {"limit": _PAGE}
        if token:
            params["continue"] = token
        answer = await client.get(listed.path, params=params)
        items += answer.get("items") or ()
        token = (answer.get("metadata") or {}).get("continue") or ""
        if not token:
            return items
