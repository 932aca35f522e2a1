"""``moorage extender``: policies for a kube-scheduler that stays as it is, over the extender protocol."""

from __future__ import annotations

import asyncio
import os
import signal
import ssl
from collections.abc import Callable
from typing import Any, TypeVar

import click

from moorage.adapters.extender_server.scheduler_config import BadUrl, Wanted, Way, text
from moorage.adapters.extender_server.trial import Finding, Trial
from moorage.adapters.telemetry.logs import LogFormat, configure
from moorage.cli.plugin_files import load_plugins
from moorage.core.profile import Additions
from moorage.runtime.extender_settings import MOST_BODY, ExtenderSettings, parse_listen
from moorage.runtime.settings import PREFIX, SettingsError

FAILED = 1
#: As of ``--check``: something is wrong with the extender.
WRONG = 1
_NODES = 50  # that ``--check`` asks about

F = TypeVar("F", bound=Callable[..., Any])


class _Address(click.ParamType[Any]):
    name = "HOST:PORT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The address."""
        try:
            return parse_listen(value) if isinstance(value, str) else value
        except SettingsError as error:
            self.fail(str(error), param, ctx)


def _option(*names: str, text: str, **more: Any) -> Callable[[F], F]:
    """An option of the server, whose default comes from the environment, which the help names."""
    variable = PREFIX + names[0].split("/")[0].lstrip("-").replace("-", "_").upper()
    return click.option(*names, default=None, help=f"{text} [env: {variable}]", **more)


@click.command("extender", short_help="Apply policies for an unchanged kube-scheduler.")
@click.argument("files", nargs=-1, metavar="[FILE.py]...")
@_option(
    "--listen", type=_Address(), text="Where to serve, health and metrics too. Default: 127.0.0.1:10270."
)
@_option("--prefix", metavar="PATH", text="The path before the verbs. Default: /scheduler.")
@_option(
    "--full/--policies-only",
    text="Whether the default plugins judge nodes as well, and not the policies alone. Default: no.",
)
@_option(
    "--enable-bind/--no-enable-bind",
    text="Whether pods are bound on request. Needs --client-ca, or an address of this machine only. Default: no.",
)
@_option(
    "--scheduler-name",
    multiple=True,
    metavar="NAME",
    text="Whose pods to bind; repeatable. Default: default-scheduler. (Policies apply to all pods.)",
)
@_option(
    "--write-status/--no-write-status",
    text="Whether to write the policies' status, where no `moorage run` does. Default: no.",
)
@_option("--tls-cert", metavar="FILE", text="The server's certificate, PEM; read again when it changes.")
@_option("--tls-key", metavar="FILE", text="Its key.")
@_option(
    "--client-ca",
    metavar="FILE",
    text="Callers must show a certificate that one of these authorities signed.",
)
@_option("--kubeconfig", metavar="FILE", text="Default: $KUBECONFIG, else the in-cluster account.")
@_option("--context", metavar="NAME", text="Context of the kubeconfig; default: its current one.")
@_option(
    "--drain", type=float, metavar="SECONDS", text="How long to answer on when told to stop. Default: 3."
)
@_option(
    "--debug-listen",
    type=_Address(),
    text="Where /debug is served, on loopback only: dumps, a comparison, profiles. Default: off.",
)
@_option(
    "--max-body",
    type=click.IntRange(1, MOST_BODY),
    metavar="MIB",
    text="How large a request may be. Each MiB takes 5 ms or so, in which nothing else is answered. Default: 32.",
)
@click.option("--print-config", is_flag=True, help="Print the configuration for kube-scheduler, and end.")
@click.option("--check", is_flag=True, help="Call a running extender as kube-scheduler would, and end.")
@click.option(
    "--url", metavar="URL", help="With these two: where kube-scheduler finds the extender, prefix included."
)
@click.option(
    "--way",
    type=click.Choice([way.value for way in Way]),
    default=Way.PLAIN.value,
    show_default=True,
    help="With --print-config: how that kube-scheduler is deployed; helm: and the extender by the Helm chart.",
)
@click.option(
    "--weight",
    type=click.IntRange(1, 1000),
    default=5,
    show_default=True,
    help="With --print-config: how much its scores count.",
)
@click.option("--whole-nodes", is_flag=True, help="With --print-config: send whole nodes, not names.")
@click.option(
    "--ca",
    metavar="FILE",
    default="",
    help="With these two, over https: who has signed the extender's certificate.",
)
@click.option("--cert", metavar="FILE", default="", help="With these two: a client certificate.")
@click.option("--key", metavar="FILE", default="", help="With these two: its key.")
@click.option(
    "--timeout",
    type=click.FloatRange(0.1, 60),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="With these two: how long kube-scheduler waits.",
)
@click.option("-v", "--verbose", count=True, help="Log more; twice: what libraries say, too.")
@click.option(
    "--log-format",
    type=click.Choice([f.value for f in LogFormat]),
    default=LogFormat.TEXT.value,
    show_default=True,
)
def extender(
    files: tuple[str, ...],
    verbose: int,
    log_format: str,
    *,
    print_config: bool,
    check: bool,
    url: str | None,
    way: str,
    weight: int,
    whole_nodes: bool,
    ca: str,
    cert: str,
    key: str,
    timeout: float,
    **given: Any,
) -> None:
    """Serve the extender protocol, until stopped; FILE.py holds plugins of your own (docs/plugins.md).

    Exit status 0: stopped by a signal; 1: it could not start or has broken down; 2: bad options, or a plugin that
    cannot be used. With --check 0: all is well; 1: something is wrong.

    \b
    Examples:
      moorage extender --listen 127.0.0.1:10270
      moorage extender my_rules.py
      moorage extender --print-config --url http://127.0.0.1:10270/scheduler --way kubeadm
      moorage extender --check --url http://127.0.0.1:10270/scheduler
    """
    if print_config and check:
        raise click.UsageError("--print-config and --check do not go together")
    if (print_config or check) and not url:
        raise click.UsageError("--url: is missing")
    if url and not (print_config or check):
        raise click.UsageError("--url: is for --print-config and --check; --listen is where to serve")
    if files and (print_config or check):
        raise click.UsageError(f"{files[0]}: plugins are for the server, not for --print-config and --check")
    for file in files:
        if not file.endswith(".py"):
            raise click.UsageError(f"{file}: must be a Python file, its name ending in .py")
    try:
        settings = _settings(given)
        if print_config:
            bind = settings.enable_bind
            wanted = Wanted(
                str(url), Way(way), bind, whole_nodes, weight, timeout, ca, cert, key,
                settings.full, settings.write_status, settings.scheduler_name,
            )  # fmt: skip
            click.echo(text(wanted), nl=False)
            return
    except (SettingsError, BadUrl) as error:
        raise click.UsageError(str(error)) from error
    if check:
        raise SystemExit(_check(str(url), ca, cert, key, timeout, settings))
    configure(LogFormat(log_format), verbose)
    failure = _serve(settings, load_plugins(files))
    if failure is not None:
        click.secho(f"moorage extender: {str(failure) or repr(failure)}", fg="red", err=True)
        raise SystemExit(FAILED)


def _settings(given: dict[str, Any]) -> ExtenderSettings:
    given["scheduler_name"] = given["scheduler_name"] or None
    return ExtenderSettings.from_env(os.environ).changed(**given)


# -- the server ------------------------------------------------------------------------------------


def _serve(settings: ExtenderSettings, additions: Additions) -> BaseException | None:
    """Serve until a signal; what it failed of, if it did."""
    try:
        import uvloop
    except ImportError:
        factory = None
    else:
        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(_served(settings, additions))


async def _served(settings: ExtenderSettings, additions: Additions) -> BaseException | None:
    from moorage.assembly.plugins import announce
    from moorage.assembly.startup import StartupError, tune_collector
    from moorage.extender_app import ExtenderApp

    tune_collector()
    announce(additions)
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    try:
        app = await ExtenderApp.create(settings, additions=additions, on_failure=lambda _: stopped.set())
    except StartupError as error:
        return error
    try:
        await app.start()
        await stopped.wait()
    except StartupError as error:
        return error
    finally:
        await app.stop()
    return app.failure


# -- a trial ---------------------------------------------------------------------------------------


def _check(url: str, ca: str, cert: str, key: str, timeout: float, settings: ExtenderSettings) -> int:
    try:
        tls = ssl.create_default_context(cafile=ca or None) if url.startswith("https") else None
        if tls is not None and cert:
            tls.load_cert_chain(cert, key or None)
    except (OSError, ssl.SSLError) as error:
        raise click.UsageError(f"--ca, --cert, --key: cannot be used: {error}") from error
    findings = asyncio.run(_tried(Trial(url, tls=tls, timeout=timeout), settings))
    width = max(len(finding.subject) for finding in findings)
    for finding in findings:
        state = click.style(f"{'ok' if finding.ok else 'wrong':6}", fg="green" if finding.ok else "red")
        taken = "" if finding.milliseconds is None else f"{finding.milliseconds:.1f} ms"
        click.echo(f"{state} {finding.subject:{width}} {taken:>10}  {finding.text}")
    return 0 if all(finding.ok for finding in findings) else WRONG


async def _tried(trial: Trial, settings: ExtenderSettings) -> list[Finding]:
    return await trial.run(await _nodes(settings))


async def _nodes(settings: ExtenderSettings) -> list[dict[str, Any]]:
    """Some nodes of the cluster, none if it cannot be asked."""
    from moorage.adapters.kube.client import KubeClient
    from moorage.adapters.kube.errors import KubeError

    try:
        async with await KubeClient.connect(settings.kubeconfig, settings.context) as client:
            listed = await client.get("/api/v1/nodes", params={"limit": _NODES}, timeout=5.0)
    except KubeError as error:
        click.echo(f"The cluster cannot be asked for nodes, so one is made up: {error}", err=True)
        return []
    return list(listed.get("items") or ())
