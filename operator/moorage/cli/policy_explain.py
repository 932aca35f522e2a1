"""``moorage policy explain``: which policies shape a pod, and which field comes from where."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
import orjson

from moorage.cli.cluster import Cluster, Intake, Source
from moorage.cli.manifests import find, read
from moorage.cli.plugin_files import load_plugins, split
from moorage.cli.policy_fields import fields_of
from moorage.core.engine import Engine, EngineConfig
from moorage.core.model.pod import Pod
from moorage.core.model.policy import Policy
from moorage.core.profile import default_profile

if TYPE_CHECKING:
    from moorage.adapters.kube.client import KubeClient

FOUND, BAD_INPUT = 0, 2

_GROUP = "/apis/moorage.dev/v1alpha1"


@dataclass(frozen=True, slots=True)
class Line:
    """One field of one policy: ``in_force``, or why not."""

    field: str
    value: str
    policy: str
    in_force: bool
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class Explanation:
    """What policies mean for a pod; ``held`` says why it may not be placed now, "" if it may."""

    pod: str
    selected_by: tuple[str, ...]
    lines: tuple[Line, ...]
    held: str = ""


@click.command("explain", short_help="Tell which policies shape a pod, and how.")
@click.argument("pod")
@click.option("-n", "--namespace", default="default", show_default=True, metavar="NAME")
@click.option(
    "--file",
    "files",
    multiple=True,
    metavar="FILE",
    help="Manifests with the pod and the policies, instead of a cluster; may be given several times.",
)
@click.option("--kubeconfig", metavar="FILE", help="Default: $KUBECONFIG, else the in-cluster account.")
@click.option("--context", metavar="NAME", help="Context of the kubeconfig; default: its current one.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def explain(
    pod: str,
    namespace: str,
    files: tuple[str, ...],
    kubeconfig: str | None,
    context: str | None,
    output: str,
) -> None:
    """Tell which policies shape POD, which field comes from which policy, and which fields lost to another's.

    The policies come from the cluster or, with --file, from manifests. POD may be namespace/name. A --file that ends
    in .py holds plugins of your own (docs/plugins.md), whose weights the policies may set.

    Exit status 0: here it is; 2: the input is broken, or there is no such pod.

    \b
    Examples:
      moorage policy explain web-0 -n shop
      moorage policy explain shop/web-0 --file cluster.yaml --file policies/
    """
    if "/" in pod:
        namespace, _, pod = pod.partition("/")
    plugin_files, manifests = split(files)
    intake = Intake(unknown_is_wrong=False, additions=load_plugins(plugin_files))
    if manifests:
        for path in find(manifests, intake.problems):
            for obj, source in read(path, intake.problems):
                intake.add(obj, source)
    else:
        for obj, source in asyncio.run(_from_cluster(kubeconfig, context, namespace, pod)):
            intake.add(obj, source)
    now = time.time()
    cluster = intake.cluster(now)
    for problem in intake.errors:
        click.echo(f"error: {problem}", err=True)
    if intake.errors and manifests:
        sys.exit(BAD_INPUT)
    wanted = next((p for p in (*cluster.waiting, *cluster.bound) if p.key == f"{namespace}/{pod}"), None)
    if wanted is None:
        click.echo(f"error: there is no pod {namespace}/{pod}", err=True)
        sys.exit(BAD_INPUT)
    explanation = explain_pod(cluster, wanted, now)
    if output == "json":
        click.echo(orjson.dumps(explanation, option=orjson.OPT_INDENT_2).decode())
    else:
        for line in _text(explanation):
            click.echo(line)
    sys.exit(FOUND)


def explain_pod(cluster: Cluster, pod: Pod, now: float) -> Explanation:
    """What the policies of the cluster mean for one of its pods."""
    name = pod.spec.scheduler_name
    engine: Engine = cluster.engine(EngineConfig(profiles={name: default_profile(name)}), now)
    shaping = engine.policies.shaping(pod)
    lost = {(ref, item.field): item.winner.key for ref, item in shaping.merged.lost}
    lines = [
        *(line for policy in shaping.merged.policies for line in _lines(policy, lost)),
        *(
            Line(field, value, policy.ref.key, in_force=False, why_not="audited only")
            for policy in shaping.audited
            for field, value in fields_of(policy)
        ),
    ]
    held = None if pod.node_name else engine.evaluate(pod, now).preenqueue
    return Explanation(
        pod.key,
        tuple(policy.ref.key for policy in (*shaping.merged.policies, *shaping.audited)),
        tuple(lines),
        ", ".join(held.reasons) if held is not None else "",
    )


def _lines(policy: Policy, lost: dict[Any, str]) -> Iterator[Line]:
    for field, value in fields_of(policy):
        winner = lost.get((policy.ref, field))
        why_not = "" if winner is None else f"{winner} sets it"
        yield Line(field, value, policy.ref.key, in_force=winner is None, why_not=why_not)


def _text(explanation: Explanation) -> Iterator[str]:
    if not explanation.selected_by:
        yield f"No policy is about pod {explanation.pod}."
        return
    yield f"Pod {explanation.pod} is selected by {', '.join(explanation.selected_by)}."
    if explanation.held:
        yield f"It waits: {explanation.held}."
    rows = [("FIELD", "POLICY", "IN FORCE", "VALUE")] + [
        (line.field, line.policy, "yes" if line.in_force else f"no, {line.why_not}", line.value)
        for line in explanation.lines
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    yield ""
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=False))
        yield "  ".join((*cells, row[3])).rstrip()


async def _from_cluster(
    kubeconfig: str | None, context: str | None, namespace: str, pod: str
) -> Iterable[tuple[object, Source]]:
    from moorage.adapters.kube.client import KubeClient  # only needed where there is a cluster
    from moorage.adapters.kube.errors import KubeError, NotFound

    try:
        async with await KubeClient.connect(kubeconfig, context, user_agent="moorage-policy") as client:
            found = [
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    **await client.get(f"/api/v1/namespaces/{namespace}/pods/{pod}"),
                },
                {
                    "apiVersion": "v1",
                    "kind": "Namespace",
                    **await client.get(f"/api/v1/namespaces/{namespace}"),
                },
            ]
            for path, kind in (
                (f"{_GROUP}/clusterschedulingpolicies", "ClusterSchedulingPolicy"),
                (f"{_GROUP}/namespaces/{namespace}/schedulingpolicies", "SchedulingPolicy"),
            ):
                found += await _listed(client, path, kind)
    except NotFound:
        click.echo(f"error: there is no pod {namespace}/{pod}", err=True)
        sys.exit(BAD_INPUT)
    except KubeError as error:
        click.echo(f"error: cannot use the cluster: {error}", err=True)
        sys.exit(BAD_INPUT)
    return [(obj, Source(f"{obj['kind']} {obj['metadata']['name']}")) for obj in found]


async def _listed(client: KubeClient, path: str, kind: str) -> list[dict[str, Any]]:
    from moorage.adapters.kube.errors import NotFound

    try:
        items = (await client.get(path))["items"]
    except NotFound:  # the CRDs are not there
        return []
    return [{"apiVersion": "moorage.dev/v1alpha1", "kind": kind, **item} for item in items]
