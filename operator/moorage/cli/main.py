"""``moorage``: the group of all commands.

Commands are imported when they are called, because what ``run`` needs takes longer to import than
``decide`` may take to start.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Final

import click

from moorage import __version__

#: Command -> what the list of commands says about it; command ``x-y`` is ``moorage.cli.x_y:x_y``.
_COMMANDS: Final = {
    "run": "Schedule the pods of a cluster.",
    "extender": "Apply policies for an unchanged kube-scheduler.",
    "check": "Check permissions and API versions of a cluster.",
    "simulate": "Place the pods of manifests, without a cluster, and show why.",
    "explain": "Tell why a pod is where it is, or nowhere.",
    "what-if": "Tell where pods would go in a cluster as it is.",
    "policy": "Check policies, and explain what they mean for a pod.",
    "crds": "Print the CustomResourceDefinitions of policies.",
    "decide": "Answer cases, one a line, with the full record of each decision.",
}


def _module(name: str) -> str:
    return f"moorage.cli.{name.replace('-', '_')}"


class _LazyGroup(click.Group):
    """Knows its commands by name and imports only the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name in _COMMANDS if find_spec(_module(name)) is not None]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        command = getattr(import_module(_module(cmd_name)), cmd_name.replace("-", "_"))
        assert isinstance(command, click.Command), f"{_module(cmd_name)} must define the command {cmd_name}"
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, _COMMANDS[name]) for name in self.list_commands(ctx)])


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "--version", prog_name="moorage")
def main() -> None:
    """Moorage, a Kubernetes scheduler: scores every node for every pod, and explains each decision.

    \b
    Examples:
      moorage simulate examples/demo
      kubectl get nodes,pods -A -o yaml | moorage simulate -
      moorage run --scheduler-name moorage
    """
