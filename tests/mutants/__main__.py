"""Makes one mistake after the other in copies of the tree and has the tests look for it: `make mutants`.

The tests are run without a mistake first, since what fails anyway notices nothing.  Exit status 1 if a mistake goes
unnoticed, 2 if one cannot be made or the tests cannot be run.
"""

from __future__ import annotations

import argparse
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import cache_from_source
from pathlib import Path

from tests.mutants.mutation import ROOT, Inapplicable, Mutation, all_mutations

#: What the tests need of the repository.
_COPIED = ("operator", "tests", "docs", "examples", "pyproject.toml", "Makefile", "CONTRIBUTING.md")
#: Seconds for the tests of one mutation; a mistake that never ends is noticed, too.
_PATIENCE = 180.0
_PASSED, _FAILED = 0, 1  # pytest's exit statuses; any other one means that it could not do its work


class Broken(Exception):
    """The tests cannot be run, or fail without any mistake."""


def main() -> int:
    """The command."""
    arguments = _arguments()
    wanted = [m for m in all_mutations() if all(word in f"{m} {m.file}" for word in arguments.words)]
    if not wanted:
        print(f"error: there is no mutation with {' and '.join(arguments.words)}", file=sys.stderr)
        return 2
    if arguments.list:
        print(*wanted, sep="\n")
        return 0
    begun = time.monotonic()
    try:
        for mutation in wanted:
            mutation.apply(mutation.path().read_text())
        with _copies(arguments.jobs) as copies:
            survivors = _look(wanted, copies)
    except (Inapplicable, Broken) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"\n{_table(wanted, survivors)}\n")
    for mutation in survivors:
        print(f"SURVIVED: {mutation} ({mutation.file}); not noticed by {' '.join(mutation.tests)}")
    print(
        f"{len(wanted)} mutations, {len(wanted) - len(survivors)} noticed, {len(survivors)} survived; "
        f"{time.monotonic() - begun:.0f} s"
    )
    return 1 if survivors else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutants",
        description="Breaks the scheduler in many small ways, one at a time, and says which no test notices.",
    )
    parser.add_argument(
        "words", nargs="*", help="only mutations with all of these words in subject, name or file"
    )
    parser.add_argument("--list", action="store_true", help="only name them")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1, help="how many at once")
    return parser.parse_args()


@contextmanager
def _copies(number: int) -> Iterator[list[Path]]:
    """Copies of the tree that go away afterwards."""
    with tempfile.TemporaryDirectory(prefix="moorage-mutants-") as folder:
        copies = [Path(folder) / str(index) for index in range(number)]
        for copy in copies:
            for name in _COPIED:
                source = ROOT / name
                copy.mkdir(exist_ok=True)
                if source.is_dir():
                    shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
                elif source.exists():
                    shutil.copy(source, copy / name)
        yield copies


def _look(mutations: Sequence[Mutation], copies: Sequence[Path]) -> list[Mutation]:
    """The mutations that no test notices.  Raises Broken."""
    free: queue.SimpleQueue[Path] = queue.SimpleQueue()
    for copy in copies:
        free.put(copy)
    sound = list(dict.fromkeys(test for mutation in mutations for test in mutation.tests))
    try:
        status, output = _run_tests(copies[0], sound, patience=10 * _PATIENCE)
    except subprocess.TimeoutExpired:
        raise Broken("without any mutation the tests take too long") from None
    if status != _PASSED:
        raise Broken(f"the tests fail without any mutation:\n{output[-4000:]}")

    def noticed(mutation: Mutation) -> bool:
        copy = free.get()
        try:
            return _is_noticed(mutation, copy)
        finally:
            free.put(copy)

    survivors = []
    with ThreadPoolExecutor(len(copies)) as pool:
        for mutation, found in zip(mutations, pool.map(noticed, mutations), strict=True):
            print(f"{'noticed ' if found else 'SURVIVED'}  {mutation}", flush=True)
            if not found:
                survivors.append(mutation)
    return survivors


def _is_noticed(mutation: Mutation, copy: Path) -> bool:
    path = mutation.path(copy)
    text = path.read_text()
    _write(path, mutation.apply(text))
    try:
        status, output = _run_tests(copy, mutation.tests)
    except subprocess.TimeoutExpired:
        return True
    finally:
        _write(path, text)
    if status not in (_PASSED, _FAILED):
        raise Broken(f"{mutation}: pytest ended with status {status}:\n{output[-4000:]}")
    return status == _FAILED


def _write(path: Path, text: str) -> None:
    """Write source code; bytecode of the same second and size would be taken for its own."""
    path.write_text(text)
    Path(cache_from_source(str(path))).unlink(missing_ok=True)


def _run_tests(copy: Path, tests: Sequence[str], patience: float = _PATIENCE) -> tuple[int, str]:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "--no-header", "-p", "no:cacheprovider"]
    command += ["--timeout", "60", "-m", "not integration and not slow", *tests]
    # In CI generated examples are always the same: what is noticed once is noticed each time.
    environment = {**os.environ, "CI": "true", "PYTHONPATH": f"{copy / 'operator'}{os.pathsep}{copy}"}
    done = subprocess.run(  # the tree's own tests
        command, cwd=copy, env=environment, capture_output=True, text=True, timeout=patience, check=False
    )
    return done.returncode, done.stdout + done.stderr


def _table(mutations: Sequence[Mutation], survivors: Sequence[Mutation]) -> str:
    made = Counter(mutation.subject for mutation in mutations)
    left = Counter(mutation.subject for mutation in survivors)
    width = max(map(len, made), default=0)
    lines = [f"{'':{width}}  mutations  survived"]
    return "\n".join([*lines, *(f"{name:{width}}  {made[name]:9}  {left[name]:8}" for name in sorted(made))])


if __name__ == "__main__":
    sys.exit(main())
