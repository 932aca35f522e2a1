"""``moorage explain``: why a pod is where it is, or why it is nowhere, and what would help."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import click
import orjson

from moorage.cli.cluster import Cluster, Intake
from moorage.cli.live_cluster import BAD_INPUT, ClusterError, add_cluster, read_cluster
from moorage.cli.manifests import find, read
from moorage.cli.plugin_files import Refreshed, load_plugins
from moorage.configuration.read import ConfigError, read_config
from moorage.core.engine import EngineConfig
from moorage.core.inquiry.explanation import Explanation, explain_in
from moorage.core.inquiry.records import explanation_record
from moorage.core.model.node import Node
from moorage.core.model.pod import Pod
from moorage.core.profile import Additions, Profile, default_profile

FOUND = 0


def cluster_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say which cluster is meant, and which configuration schedules it."""
    for option in (
        click.option(
            "--node-ready-guard/--no-node-ready-guard",
            default=True,
            show_default=True,
            help="Count nodes that report not to be ready as tainted, as `moorage run` does.",
        ),
        click.option(
            "--plugin",
            "plugins",
            multiple=True,
            metavar="FILE.py",
            help="Plugins of your own that the scheduler runs with; repeatable.",
        ),
        click.option("--config", metavar="FILE", help="The scheduler's KubeSchedulerConfiguration (v1)."),
        click.option(
            "--context", metavar="NAME", help="Context of the kubeconfig; default: its current one."
        ),
        click.option(
            "--kubeconfig", metavar="FILE", help="Default: $KUBECONFIG, else the in-cluster account."
        ),
        click.option(
            "--cluster",
            "files",
            multiple=True,
            metavar="FILE",
            help="Manifests that stand for the cluster, instead of a running one; repeatable.",
        ),
    ):
        command = option(command)
    return command


@click.command("explain", short_help="Tell why a pod is where it is, or nowhere, and what would help.")
@click.argument("pod")
@click.option("-n", "--namespace", default="default", show_default=True, metavar="NAME")
@cluster_options
@click.option(
    "--search/--no-search", default=True, show_default=True, help="Look for what would get it placed."
)
@click.option(
    "--server",
    metavar="URL",
    help="Ask a scheduler that runs with --explain-listen, by the kubeconfig's token, instead of listing the cluster.",
)
@click.option(
    "--server-ca", metavar="FILE", help="Certificates that --server may be signed by; default: the system's."
)
@click.option(
    "-o", "--output", type=click.Choice(["table", "json", "html"]), default="table", show_default=True
)
def explain(
    pod: str,
    namespace: str,
    files: tuple[str, ...],
    kubeconfig: str | None,
    context: str | None,
    config: str | None,
    plugins: tuple[str, ...],
    node_ready_guard: bool,
    search: bool,
    server: str | None,
    server_ca: str | None,
    output: str,
) -> None:
    """Tell where POD could go and why not elsewhere, what it waits for, and what would get it placed.

    The cluster is listed once, and nothing is written to it. POD may be namespace/name. A pod that is bound is
    judged as if it were not. What would help has been tried: under that change, the scheduler places the pod, if no
    other pod takes the room first.

    Exit status 0: here it is; 2: the input is broken, or there is no such pod.

    \b
    Examples:
      moorage explain web-0 -n shop
      moorage explain shop/web-0 -o json | jq .wouldHelp
      moorage explain shop/web-0 -o html > why.html
      moorage explain shop/web-0 --server http://127.0.0.1:10270
    """
    if "/" in pod:
        namespace, _, pod = pod.partition("/")
    if server is not None:
        if files or config or plugins or output == "html":
            raise click.UsageError("--server goes with none of --cluster, --config, --plugin and -o html")
        _ask(server, server_ca, kubeconfig, context, (namespace, pod), search=search, output=output)
    now = time.time()
    additions = load_plugins(plugins)
    intake = Intake(unknown_is_wrong=False, additions=additions)
    take_in(intake, files, kubeconfig, context)
    cluster = read_cluster(intake, now, strict=bool(files))
    key = f"{namespace}/{pod}"
    wanted = next((p for p in (*cluster.waiting, *cluster.bound) if p.key == key), None)
    if wanted is None:
        fail(f"there is no pod {key}, or it has ended")
    scheduled_by = engine_config(config, [wanted], additions, node_ready_guard=node_ready_guard)
    engine = cluster.engine(scheduled_by, now)
    explanation = explain_in(engine, wanted, now, search=search)
    show(
        explanation, {node.name: node for node in engine.snapshot.nodes if node is not None}, cluster, output
    )
    sys.exit(FOUND)


def _ask(
    server: str,
    ca: str | None,
    kubeconfig: str | None,
    context: str | None,
    pod: tuple[str, str],
    *,
    search: bool,
    output: str,
) -> NoReturn:
    """Show what a running scheduler says, and end."""
    from moorage.cli.remote import RemoteError, ask  # few need a network

    try:
        record = ask(server, ca, kubeconfig, context, pod, search=search)
    except RemoteError as error:
        fail(str(error))
    _write(record, output)
    sys.exit(FOUND)


def take_in(intake: Intake, files: tuple[str, ...], kubeconfig: str | None, context: str | None) -> None:
    """Take in the objects of the files, or those of the running cluster if there are none."""
    if files:
        for path in find(files, intake.problems):
            for obj, source in read(path, intake.problems):
                intake.add(obj, source)
        return
    try:
        for line in add_cluster(intake, kubeconfig, context):
            click.echo(f"warning: {line}", err=True)
    except ClusterError as error:
        fail(str(error))


def fail(message: str) -> NoReturn:
    """End the command: the input is of no use."""
    click.echo(f"error: {message}", err=True)
    sys.exit(BAD_INPUT)


def engine_config(
    config: str | None, pods: Sequence[Pod], additions: Additions, *, node_ready_guard: bool
) -> EngineConfig:
    """What the pods are scheduled by: the configuration's profiles, for other names the default one."""
    Refreshed()(additions.plugins)
    profiles: dict[str, Profile] = {}
    if config is not None:
        try:
            with click.open_file(config, encoding="utf-8") as file:
                configuration = read_config(file.read(), additions)
        except OSError as error:
            fail(f"--config: {config}: {error.strerror}")
        except ConfigError as error:
            fail(f"--config: {config}: {error}")
        profiles |= configuration.profiles
        if configuration.extenders:
            click.echo("warning: --config: extenders are not asked; they may refuse more nodes", err=True)
    for pod in pods:
        name = pod.spec.scheduler_name
        if name not in profiles:
            if config is not None:
                click.echo(f"warning: --config: has no profile {name}; the default one is taken", err=True)
            profiles[name] = default_profile(name, additions=additions)
    if not profiles:
        default = default_profile(additions=additions)
        profiles[default.scheduler_name] = default
    return EngineConfig(profiles=profiles, node_ready_guard=node_ready_guard)


def show(explanation: Explanation, nodes: Mapping[str, Node], cluster: Cluster, output: str) -> None:
    """Write the explanation to standard output; ``nodes`` are the engine's."""
    record: Mapping[str, Any] = explanation_record(explanation, nodes)
    if output == "html":
        from moorage.cli.pages import explanation_page  # few want it

        click.echo(explanation_page(explanation, record, list(nodes.values()), cluster.bound))
    else:
        _write(record, output)


def _write(record: Mapping[str, Any], output: str) -> None:
    if output == "json":
        click.echo(orjson.dumps(record, option=orjson.OPT_INDENT_2).decode())
    else:
        from moorage.cli.explain_text import show_record

        show_record(record)
