"""numpy's linear algebra starts no threads, however Moorage is started."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

_COUNT = """
import importlib, os, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
import numpy
square = numpy.ones((600, 600))
square @ square
print(len(os.listdir("/proc/self/task")))
"""

pytestmark = [
    pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted in /proc"),
    pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="with one CPU there is one thread anyway"),
]


def threads(*modules: str, **env: str) -> int:
    """How many threads a process has that imports these and then multiplies matrices."""
    clean = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    command = [sys.executable, "-c", _COUNT, *modules]
    done = subprocess.run(command, env={**clean, **env}, capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.parametrize(
    "modules", [["moorage.handlers"], ["moorage.core.engine"], ["kopf", "moorage.handlers"]]
)
def test_there_is_one(modules: list[str]) -> None:
    """`kopf run -m moorage.handlers` comes without our command line, so a library of ours is all that is imported."""
    assert threads(*modules) == 1


def test_a_number_that_is_set_holds() -> None:
    assert threads("moorage.handlers", OPENBLAS_NUM_THREADS="2") == threads("numpy", OPENBLAS_NUM_THREADS="2")


def test_numpy_alone_would_start_more() -> None:
    """Else the other tests say nothing."""
    assert threads("numpy") > 1
