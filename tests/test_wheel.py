"""The wheel: what is in it, and that it works where nothing of this repository is."""

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "operator" / "moorage"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (built,) = folder.iterdir()
    return built


@pytest.fixture(scope="module")
def fresh(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of a new environment with the wheel; the libraries are lent by the present one."""
    folder = tmp_path_factory.mktemp("fresh")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(folder / "bin" / "python"),
        "--disable-pip-version-check",
    ]
    install = ["install", "--quiet", "--no-deps", "--no-index", str(wheel)]
    subprocess.run([*pip, *install], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    # A plain path, whose own .pth files are not read: the editable installation of this repository stays unseen.
    (site / "lent.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    return folder / "bin"


def run(fresh: Path, *command: str) -> str:
    """What a command of the new environment prints, away from the repository."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "MOORAGE_"))}
    program = str(fresh / command[0])
    done = subprocess.run(
        [program, *command[1:]], cwd=fresh, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 3), done.stderr  # 3: simulate found a pod that fits nowhere
    return done.stdout


def test_it_holds_the_package_and_nothing_else(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    metadata = {name for name in names if ".dist-info/" in name}
    sources = {f"moorage/{path.relative_to(PACKAGE)}" for path in PACKAGE.rglob("*.py")}
    definitions = {f"moorage/crds/{path.name}" for path in (ROOT / "crds").glob("*.yaml")}
    assert names - metadata == sources | definitions | {"moorage/py.typed"}
    ends = {name.partition(".dist-info/")[2] for name in metadata}
    assert ends == {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE"}


def test_it_runs_on_any_platform(wheel: Path) -> None:
    assert wheel.name.endswith("-py3-none-any.whl")


@pytest.mark.slow
def test_the_command_works_without_the_repository(fresh: Path) -> None:
    where = run(fresh, "python", "-c", "import moorage; print(moorage.__file__)").strip()
    assert Path(where).is_relative_to(fresh.parent)
    assert run(fresh, "moorage", "--version").startswith("moorage, version ")
    assert "NODE" in run(fresh, "moorage", "simulate", str(ROOT / "examples" / "demo")).upper()
    assert "--scheduler-name" in run(fresh, "moorage", "run", "--help")


@pytest.mark.slow
def test_the_definitions_of_policies_can_be_printed(fresh: Path) -> None:
    expected = "---\n".join(path.read_text() for path in sorted((ROOT / "crds").glob("*.yaml")))
    assert run(fresh, "moorage", "crds") == expected
    assert expected
