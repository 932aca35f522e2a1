"""What of the chart can be looked at without Helm: values, schema, README, and what is written from elsewhere."""

import importlib.util
import json
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from moorage.adapters.kube.permissions import PERMISSIONS
from tests.controlplane.build_version import known

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "charts" / "moorage"
VALUES = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA = json.loads((CHART / "values.schema.json").read_text())
METADATA = yaml.safe_load((CHART / "Chart.yaml").read_text())


def script() -> Any:
    """scripts/chart.py as a module."""
    spec = importlib.util.spec_from_file_location("chart_script", ROOT / "scripts" / "chart.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_is_written_from_elsewhere_is_up_to_date():
    assert [str(path) for path in script().stale()] == [], "run `make chart`"


def test_the_definitions_of_policies_are_the_same():
    here, there = (
        {p.name: p.read_text() for p in f.glob("*.yaml")} for f in (ROOT / "crds", CHART / "files/crds")
    )
    assert len(here) == 2
    assert here == there


def test_the_versions_are_those_of_the_package_and_of_what_it_is_tested_with():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert METADATA["appVersion"] == project["version"]
    assert METADATA["kubeVersion"] == f">={known()[0]}.0-0"


def values(tree: Mapping[str, Any], schema: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """The paths of the values, as deep as the schema goes."""
    for name, value in tree.items():
        below = schema["properties"].get(name, {})
        if "properties" in below:
            yield from values(value, below, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def test_each_value_is_in_the_schema_and_described_in_the_readme():
    rows = re.findall(
        r"^\| `([^`]+)` \| `(.*?)` \| (.+) \|$", (CHART / "README.md").read_text(), re.MULTILINE
    )
    described = {
        path: json.loads(default) for path, default, text in rows if text.endswith(".") or ":" in text
    }
    leaves = {path: default for path, default, _ in script().leaves(SCHEMA, VALUES)}
    assert set(leaves) == set(values(VALUES, SCHEMA))
    assert described == leaves


def closed(schema: Mapping[str, Any], path: str = "") -> Iterator[str]:
    for name, below in schema.get("properties", {}).items():
        if "properties" in below:
            if below.get("additionalProperties") is not False:
                yield f"{path}{name}"
            yield from closed(below, f"{path}{name}.")


def test_the_schema_lets_no_misspelt_value_through():
    assert SCHEMA["additionalProperties"] is False
    assert list(closed(SCHEMA)) == []


def test_every_template_uses_values_that_exist_and_every_value_is_used():
    """By the names alone: each last part of a path stands somewhere in the templates."""
    text = "\n".join(path.read_text() for path in (CHART / "templates").iterdir())
    unused = [
        path for path in values(VALUES, SCHEMA) if not re.search(rf"\.{path.rsplit('.', 1)[-1]}\b", text)
    ]
    assert unused == []


def test_the_permissions_are_those_that_are_checked_at_the_start():
    """Written by the same list, but read back here: nothing more and nothing less."""
    granted = yaml.safe_load((CHART / "files" / "permissions.yaml").read_text())
    listed = {(p.group, p.resource, verb, str(p.scope), p.feature) for p in PERMISSIONS for verb in p.verbs}
    assert {
        (e["group"], e["resource"], verb, e["scope"], e["feature"])
        for e in granted["scheduler"]
        for verb in e["verbs"]
    } == listed
    writes = {
        (e["resource"], verb, e["when"])
        for e in granted["extender"]
        for verb in e["verbs"]
        if verb not in ("get", "list", "watch")
    }
    assert writes == {
        ("pods/binding", "create", "bind"),
        ("schedulingpolicies/status", "patch", "status"),
        ("clusterschedulingpolicies/status", "patch", "status"),
    }
    assert all(e["scope"] == "cluster" for e in granted["extender"])


def test_the_script_says_what_is_out_of_date(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    module = script()
    path = CHART / "files" / "permissions.yaml"
    monkeypatch.setattr(module, "rendered", lambda: {path: "other"})
    monkeypatch.setattr(module, "CRDS", ROOT / "none")
    assert module.main(["--check"]) == 1
    assert "charts/moorage/files/permissions.yaml is out of date" in capsys.readouterr().err
    assert "chart_script" not in sys.modules
