"""``moorage run``: the scheduler, as ``kopf run -A -m moorage.handlers`` runs it, with a command line of its own."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

from moorage.adapters.telemetry.logs import LogFormat, configure
from moorage.cli.plugin_files import load_plugins
from moorage.core.profile import Additions
from moorage.runtime.settings import PREFIX, Listen, Settings, SettingsError

FAILED = 1

F = TypeVar("F", bound=Callable[..., Any])


class _Address(click.ParamType[str]):
    name = "HOST:PORT|off"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Check it here, but hand on the text: "off" and "not given" must stay apart."""
        try:
            Listen.parse(value)
        except SettingsError as error:
            self.fail(str(error), param, ctx)
        return value


def _option(*names: str, text: str, **more: Any) -> Callable[[F], F]:
    """An option whose default comes from the environment, which the help names."""
    variable = PREFIX + max(names[0].split("/"), key=len).lstrip("-").replace("-", "_").upper()
    variable = variable.replace(PREFIX + "NO_", PREFIX)
    return click.option(*names, default=None, help=f"{text} [env: {variable}]", **more)


@click.command("run", short_help="Schedule the pods of a cluster.")
@click.argument("files", nargs=-1, metavar="[FILE.py]...")
@_option(
    "--scheduler-name",
    multiple=True,
    metavar="NAME",
    text="Whose pods to schedule; repeatable. Default: those of the profiles of --config, else moorage.",
)
@_option(
    "--config",
    metavar="FILE",
    text="A KubeSchedulerConfiguration (v1); read again when it changes. Default: the default profile.",
)
@_option("--kubeconfig", metavar="FILE", text="Default: $KUBECONFIG, else the in-cluster account.")
@_option("--context", metavar="NAME", text="Context of the kubeconfig; default: its current one.")
@_option(
    "--leader-elect/--no-leader-elect", text="Whether replicas agree by a lease who schedules. Default: yes."
)
@_option("--lease-name", metavar="NAME", text="Default: moorage.")
@_option("--lease-namespace", metavar="NAME", text="Default: the pod's namespace, else kube-system.")
@_option(
    "--lease-duration",
    type=float,
    metavar="SECONDS",
    text="After so long without word a leader is replaced. Default: 15.",
)
@_option(
    "--renew-deadline",
    type=float,
    metavar="SECONDS",
    text="After so long without renewal a leader gives up. Default: 10.",
)
@_option("--retry-period", type=float, metavar="SECONDS", text="Between renewals. Default: 2.")
@_option(
    "--node-ready-guard/--no-node-ready-guard",
    text="Whether a node that reports not to be ready counts as tainted. Default: yes.",
)
@_option(
    "--metrics-listen",
    type=_Address(),
    text="Where /metrics, /healthz and /readyz are served. Default: 127.0.0.1:10269.",
)
@_option("--liveness", type=_Address(), text="Where Kopf's own probe is served, at /healthz. Default: off.")
@_option(
    "--explain-listen",
    type=_Address(),
    text="Where /explain/NAMESPACE/POD is served to callers who may get the pod. Default: off.",
)
@_option("--explain-tls-cert", metavar="FILE", text="Its certificate; needed if not on loopback.")
@_option("--explain-tls-key", metavar="FILE", text="Its private key.")
@_option(
    "--debug-listen",
    type=_Address(),
    text="Where /debug is served, on loopback only: dumps, a comparison, profiles. Default: off.",
)
@_option(
    "--slow-decision",
    type=float,
    metavar="SECONDS",
    text="A decision that takes as long is logged with the time of its parts. Default: 0.1.",
)
@_option("--max-binds", type=int, metavar="N", text="Bindings written at the same time. Default: 100.")
@click.option("-v", "--verbose", count=True, help="Log more; twice: what libraries say, too.")
@click.option(
    "--log-format",
    type=click.Choice([f.value for f in LogFormat]),
    default=LogFormat.TEXT.value,
    show_default=True,
)
def run(files: tuple[str, ...], verbose: int, log_format: str, **given: Any) -> None:
    """Schedule pods until stopped; FILE.py holds plugins of your own (docs/plugins.md).

    Exit status 0: stopped by a signal, with all binds ended and the lease released; 1: it could not start or
    has broken down (also: it lost the lease, and should be started again as a standby); 2: bad options, or a
    plugin that cannot be used.

    \b
    Examples:
      moorage run --kubeconfig ~/.kube/config --scheduler-name moorage
      moorage run my_rules.py
    """
    configure(LogFormat(log_format), verbose)
    try:
        settings = _settings(given)
    except SettingsError as error:
        raise click.UsageError(str(error)) from error
    for file in files:
        if not file.endswith(".py"):
            raise click.UsageError(f"{file}: must be a Python file, its name ending in .py")
    failure = _operate(settings, load_plugins(files))
    if failure is not None:
        click.secho(f"moorage run: {str(failure) or repr(failure)}", fg="red", err=True)
        raise SystemExit(FAILED)


def _settings(given: dict[str, Any]) -> Settings:
    """The environment's settings, and on top what the command line gives."""
    base = Settings.from_env(os.environ)
    given["scheduler_name"] = given["scheduler_name"] or None
    addresses = {
        name: Listen.parse(given.pop(name)) if given[name] is not None else getattr(base, name)
        for name in ("metrics_listen", "liveness", "explain_listen", "debug_listen")
    }
    return base.changed(**given).with_addresses(**addresses)


def _operate(settings: Settings, additions: Additions) -> BaseException | None:
    """Run Kopf until it stops; what it failed of, if it did."""
    try:
        import uvloop
    except ImportError:
        factory = None
    else:
        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(_kopf(settings, additions))


async def _kopf(settings: Settings, additions: Additions) -> BaseException | None:
    import kopf

    from moorage import handlers  # noqa: F401 - registers them

    memo = kopf.Memo(settings=settings, additions=additions)
    liveness = f"http://{settings.liveness}/healthz" if settings.liveness else None
    try:
        await kopf.operator(clusterwide=True, standalone=True, memo=memo, liveness_endpoint=liveness)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what the process ends with
        failure: BaseException = memo.get("failure") or error
        return failure
    return None
