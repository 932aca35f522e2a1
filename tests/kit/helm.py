"""Helm itself, on the chart of this repository."""

from __future__ import annotations

import copy
import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controlplane.build import ROOT, BuildError
from tests.controlplane.build_helm import find
from tests.kit.manifests import Obj

CHART = ROOT / "charts" / "moorage"
VALUES = ROOT / "tests" / "chart" / "values"


class HelmError(Exception):
    """Helm said no; the text is what it printed."""


class Helm:
    """Runs Helm with its files in a folder of its own, so that nothing of the user's is read or written."""

    def __init__(self, home: Path, *, kubeconfig: Path | None = None, chart: Path = CHART) -> None:
        try:
            self._program = find()
        except BuildError as error:
            pytest.skip(str(error))
        self.chart = chart
        self._made: dict[tuple[str, ...], list[Obj]] = {}
        self._environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "KUBECONFIG": str(kubeconfig or home / "no-cluster"),
        }

    def run(self, *arguments: str | Path) -> str:
        """What a command prints.  Raises HelmError."""
        command = [str(self._program), *map(str, arguments)]
        done = subprocess.run(command, env=self._environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise HelmError(done.stderr or done.stdout)
        return done.stdout

    def template(
        self, values: Path | Mapping[str, Any], *, name: str = "sea", namespace: str = "harbour"
    ) -> list[Obj]:
        """The objects that an installation with these values would make, for the caller to keep."""
        key = (name, namespace, *self.given(values))
        if key not in self._made:
            text = self.run("template", name, self.chart, "--namespace", namespace, *self.given(values))
            # The definitions of policies are long, and the parser in Python would take a second for them.
            self._made[key] = [document for document in yaml.load_all(text, yaml.CSafeLoader) if document]
        return copy.deepcopy(self._made[key])

    def given(self, values: Path | Mapping[str, Any]) -> list[str]:
        """The values as options."""
        if isinstance(values, Path):
            return ["--values", str(values)]
        return [
            part for path, value in values.items() for part in ("--set-json", f"{path}={json.dumps(value)}")
        ]


def only(objects: list[Obj], kind: str, name: str = "") -> Obj:
    """The one object of a kind (and with a name)."""
    found = [obj for obj in objects if obj["kind"] == kind and name in ("", obj["metadata"]["name"])]
    assert len(found) == 1, f"{kind} {name}: {[obj['metadata']['name'] for obj in found]}"
    return found[0]
