"""What we start does not outlive us, however we die."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.controlplane.process import Process

ROOT = Path(__file__).resolve().parent.parent.parent
_DYING = """
import os, signal, sys
from pathlib import Path
from tests.controlplane.process import Process, guard_folder
folder = Path(sys.argv[1])
guard_folder(folder)
print(Process(["sleep", "60"], log=folder / "log").pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")  # who adopts orphans may let them lie as zombies for a while
    return not (stat.exists() and stat.read_text().rsplit(")", 1)[1].split()[0] == "Z")


def test_children_and_folders_go_when_we_are_killed(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    command = [sys.executable, "-c", _DYING, str(folder)]
    dying = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert dying.returncode == -signal.SIGKILL, dying.stderr
    pid = int(dying.stdout)
    deadline = time.monotonic() + 5
    while alive(pid) or folder.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_stop_is_polite_and_then_is_not(tmp_path: Path) -> None:
    deaf = "trap '' TERM; echo ready; while :; do sleep 0.05; done"
    process = Process(["sh", "-c", deaf], log=tmp_path / "log")
    process.wait_for_output("ready")
    assert process.stop(timeout=0.2) == -signal.SIGKILL


def test_a_frozen_process_can_be_stopped(tmp_path: Path) -> None:
    process = Process(["sleep", "60"], log=tmp_path / "log")
    process.pause()
    assert process.stop() == -signal.SIGTERM


def test_waiting_for_output_fails_at_once_when_the_process_has_ended(tmp_path: Path) -> None:
    process = Process(["sh", "-c", "echo oh dear; exit 3"], log=tmp_path / "log")
    with pytest.raises(AssertionError, match=r"ended with 3.*\noh dear"):
        process.wait_for_output("ready")
