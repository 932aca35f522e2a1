"""`moorage crds`: what a cluster must know."""

import sys
from pathlib import Path

import yaml
from click.testing import CliRunner

from moorage.cli import main
from moorage.cli.crds import definitions

CRDS = Path(__file__).parents[2] / "crds"


def test_prints_all_of_them():
    result = CliRunner().invoke(main, ["crds"])
    assert result.exit_code == 0
    printed = list(yaml.safe_load_all(result.output))
    assert printed == [yaml.safe_load(path.read_text()) for path in sorted(CRDS.glob("*.yaml"))]
    assert [crd["spec"]["names"]["kind"] for crd in printed] == [
        "ClusterSchedulingPolicy",
        "SchedulingPolicy",
    ]


def test_takes_them_from_the_package_where_they_are_in_it(tmp_path, monkeypatch):
    (tmp_path / "crds").mkdir()
    (tmp_path / "crds" / "a.yaml").write_text("kind: A\n")
    (tmp_path / "crds" / "notes.txt").write_text("")
    monkeypatch.setattr(sys.modules["moorage.cli.crds"], "files", lambda _: tmp_path)
    assert [path.name for path in definitions()] == ["a.yaml"]
