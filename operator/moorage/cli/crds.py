"""``moorage crds``: the definitions of the policies' kinds, to be applied to a cluster."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import click


@click.command("crds", short_help="Print the CustomResourceDefinitions of policies.")
def crds() -> None:
    """Print the CustomResourceDefinitions of SchedulingPolicy and ClusterSchedulingPolicy.

    \b
    Example:
      moorage crds | kubectl apply -f -
    """
    texts = [path.read_text() for path in definitions()]
    click.echo("---\n".join(texts), nl=False)


def definitions() -> list[Traversable]:
    """The files, in the order of their names: in the package or, in a checkout, beside the source root."""
    folder = files("moorage") / "crds"
    if not folder.is_dir():
        folder = Path(__file__).resolve().parents[3] / "crds"
    return sorted(
        (path for path in folder.iterdir() if path.name.endswith(".yaml")), key=lambda path: path.name
    )
