"""The rules of tests/conftest.py catch what they are there to catch."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
CONFTEST = """
from tests.conftest import (
    _watched_loop, no_leaked_tasks, pytest_configure, pytest_make_collect_report, pytest_runtest_makereport,
)
"""
TESTS = """
import asyncio, pytest

async def test_leaks():
    test_leaks.task = asyncio.create_task(asyncio.sleep(60))

async def test_tidy():
    await asyncio.create_task(asyncio.sleep(0))

@pytest.mark.integration
def test_skipped():
    pytest.skip("no control plane")

def test_skipped_for_another_reason():
    pytest.skip("fine")
"""


@pytest.mark.parametrize("ci", ["true", ""])
def test_leaks_and_forbidden_skips_fail(tmp_path: Path, ci: str) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_x.py").write_text(TESTS)
    settings = ["--rootdir", str(tmp_path), "-c", str(ROOT / "pyproject.toml"), "-p", "no:cacheprovider"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "CI": ci, "MOORAGE_REQUIRE_CONTROLPLANE": ""}
    command = [sys.executable, "-m", "pytest", *settings, str(tmp_path)]
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    lines = run.stdout.splitlines()
    assert run.returncode == 1
    assert any(line.startswith("ERROR") and "test_leaks" in line for line in lines), run.stdout
    assert "asyncio tasks left behind" in run.stdout
    assert any(line.startswith("FAILED") and "test_skipped" in line for line in lines) == bool(ci), run.stdout
    assert f"{2 if not ci else 1} skipped" in lines[-1]
