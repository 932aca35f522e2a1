"""``moorage check``: may and can Moorage run in this cluster?"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import click

from moorage.adapters.kube.client import KubeClient
from moorage.adapters.kube.credentials import own_namespace
from moorage.adapters.kube.errors import Forbidden, KubeError
from moorage.adapters.kube.permissions import Finding, needed
from moorage.adapters.kube.permissions import check as check_permissions

READY, MISSING, UNREACHABLE = 0, 1, 2

_COLOURS = {"ok": "green", "missing": "red", "optional": "yellow"}


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that was checked: ok, missing (and required), or optional (and missing)."""

    state: str
    subject: str
    remark: str
    advice: str = ""


@click.command("check", short_help="Check permissions and API versions of a cluster.")
@click.option("--kubeconfig", metavar="FILE", help="Default: $KUBECONFIG, else the in-cluster account.")
@click.option("--context", metavar="NAME", help="Context of the kubeconfig; default: its current one.")
@click.option("--leader-elect/--no-leader-elect", default=True, help="Whether `run` would use a lease.")
@click.option("--lease-namespace", metavar="NAME", help="Default: the pod's namespace, else kube-system.")
@click.option("--lease-name", metavar="NAME", default="moorage", show_default=True)
def check(
    kubeconfig: str | None,
    context: str | None,
    *,
    leader_elect: bool,
    lease_namespace: str | None,
    lease_name: str,
) -> None:
    """Check a cluster before Moorage runs in it: one line for each API and each permission.

    Exit status 0: ready (optional features may be off); 1: something required is missing; 2: the cluster
    cannot be reached.

    \b
    Example:
      moorage check --kubeconfig ~/.kube/config
    """
    namespace = lease_namespace or own_namespace() or "kube-system"
    status = asyncio.run(
        _run(kubeconfig, context, leader_elect=leader_elect, lease_namespace=namespace, lease_name=lease_name)
    )
    raise SystemExit(status)


async def _run(kubeconfig: str | None, context: str | None, **options: Any) -> int:
    try:
        async with await KubeClient.connect(kubeconfig, context, user_agent="moorage-check") as client:
            version = (await client.get("/version", timeout=10.0))["gitVersion"]
            click.echo(f"API server {client.server}, {version}, by {client.credentials.source}")
            lines = await examine(client, **options)
    except KubeError as error:
        click.secho(f"moorage check: cannot use the cluster: {error}", fg="red", err=True)
        return UNREACHABLE
    _print(lines)
    return MISSING if any(line.state == "missing" for line in lines) else READY


async def examine(
    client: KubeClient, *, leader_elect: bool, lease_namespace: str, lease_name: str
) -> list[Line]:
    """Everything that can be asked of the API server about itself and about us."""
    groups = (await client.get("/apis", timeout=10.0))["groups"]
    served = {version["groupVersion"] for group in groups for version in group["versions"]}
    lines = []
    if leader_elect:
        lines.append(_api("coordination.k8s.io/v1", served, "the lease", ""))
    lines.append(_api("events.k8s.io/v1", served, "events", "events"))
    try:
        findings = await check_permissions(
            client,
            needed(leader_elect=leader_elect),
            lease_namespace=lease_namespace,
            lease_name=lease_name,
        )
    except Forbidden as error:
        return [*lines, Line("missing", "authorization.k8s.io selfsubjectaccessreviews: create", str(error))]
    return [*lines, *(_permission(finding) for finding in findings)]


def _api(version: str, served: set[str], purpose: str, feature: str) -> Line:
    if version in served:
        return Line("ok", version, f"served, for {purpose}")
    if feature:
        return Line("optional", version, f"not served: {feature} are off")
    return Line("missing", version, f"not served, needed for {purpose}")


def _permission(finding: Finding) -> Line:
    permission = finding.permission
    place = f" in {finding.namespace}" if finding.namespace else ""
    resource = f"{permission.group} {permission.resource}".strip()
    if finding.ok:
        return Line("ok", f"{resource}: {', '.join(permission.verbs)}{place}", permission.why)
    state = "missing" if finding.blocking else "optional"
    remark = permission.why if finding.blocking else f"{permission.why}; off without it"
    advice = f"add to {finding.role}:\n{finding.rule_yaml().rstrip()}"
    return Line(state, f"{resource}: {', '.join(finding.missing)}{place}", remark, advice)


def _print(lines: Iterable[Line]) -> None:
    """Aligned lines; click drops the colours where there is no terminal."""
    listed = list(lines)
    width = max(len(line.subject) for line in listed)
    for line in listed:
        state = click.style(f"{line.state:9}", fg=_COLOURS[line.state])
        click.echo(f"{state} {line.subject:{width}}  {line.remark}")
        for row in line.advice.splitlines():
            click.echo(f"{'':9}   {row}")
