"""Child programs that cannot outlive us.

Tests start servers and schedulers, and tests die in every way: an assertion, Ctrl-C, a time-out's SIGKILL. So
one small guardian process a test run holds the end of a pipe, and when the pipe closes it kills what is still
running and removes the temporary folders. (PR_SET_PDEATHSIG would do half of it, on Linux, and kills a child
as soon as the *thread* that started it ends.)
"""

from __future__ import annotations

import atexit
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

_GUARDIAN = """
import os, shutil, signal, sys
left = {"pid": set(), "dir": set()}
for line in sys.stdin:
    sign, kind, value = line.rstrip("\\n").split(" ", 2)
    (left[kind].add if sign == "+" else left[kind].discard)(value)
for pid in left["pid"]:
    try:
        os.kill(int(pid), signal.SIGKILL)
    except OSError:
        pass
for folder in left["dir"]:
    shutil.rmtree(folder, ignore_errors=True)
"""


class _Guardian:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None

    def tell(self, sign: str, kind: str, value: object) -> None:
        with self._lock:
            if self._process is None:
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-S", "-c", _GUARDIAN],
                    stdin=subprocess.PIPE,
                    text=True,
                    start_new_session=True,
                )
                atexit.register(self._close)
            assert self._process.stdin is not None
            self._process.stdin.write(f"{sign} {kind} {value}\n")
            self._process.stdin.flush()

    def _close(self) -> None:
        with self._lock:
            if self._process is not None:
                assert self._process.stdin is not None
                self._process.stdin.close()
                self._process.wait(10)
                self._process = None


_guardian = _Guardian()


def guard_folder(folder: Path) -> None:
    """Have the folder removed if this process dies."""
    _guardian.tell("+", "dir", folder)


def unguard_folder(folder: Path) -> None:
    """Take the promise back: the folder is gone, or is to stay."""
    _guardian.tell("-", "dir", folder)


class Process:
    """A running program with its output in a file. A context manager; by process id only, never by name."""

    def __init__(
        self,
        argv: Sequence[str | Path],
        *,
        log: Path,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        name: str = "",
    ) -> None:
        self.name = name or str(argv[0]).rsplit("/", 1)[-1]
        self.log = log
        with log.open("ab") as output:
            # A session of its own: Ctrl-C in a terminal reaches only us, who then stop things in order.
            self._child = subprocess.Popen(
                [str(part) for part in argv],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=dict(env) if env is not None else None,
                cwd=cwd,
                start_new_session=True,
            )
        _guardian.tell("+", "pid", self._child.pid)

    @property
    def pid(self) -> int:
        """The process id, also of a process that has ended."""
        return self._child.pid

    @property
    def returncode(self) -> int | None:
        """The exit status, None while it runs; negative: killed by that signal."""
        code = self._child.poll()
        if code is not None:
            _guardian.tell("-", "pid", self.pid)
        return code

    def wait(self, timeout: float = 30) -> int:
        """Wait until it has ended and give its exit status."""
        code = self._child.wait(timeout)
        _guardian.tell("-", "pid", self.pid)
        return code

    def send(self, number: signal.Signals) -> None:
        """Send a signal, unless the process has ended."""
        if self.returncode is None:
            self._child.send_signal(number)

    def pause(self) -> None:
        """Freeze it (SIGSTOP): its connections stay open and silent, which is worse than being dead."""
        self.send(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a frozen process go on."""
        self.send(signal.SIGCONT)

    def kill(self) -> None:
        """End it at once, as kill -9 or a crash would."""
        self.send(signal.SIGKILL)
        self.wait()

    def stop(self, timeout: float = 10) -> int:
        """End it politely (SIGTERM), and after `timeout` seconds not politely. Gives the exit status."""
        self.resume()
        self.send(signal.SIGTERM)
        try:
            return self.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            return self.wait()

    def output(self) -> str:
        """All it has printed so far."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def tail(self, lines: int = 20) -> str:
        """The last lines it has printed, for error messages."""
        return "\n".join(self.output().splitlines()[-lines:])

    def wait_for_output(self, text: str, timeout: float = 30) -> str:
        """Wait until it has printed `text`; gives all output. Fails at once if the process ends without it."""
        deadline = time.monotonic() + timeout
        while True:
            ended = self.returncode
            if text in (printed := self.output()):
                return printed
            if ended is not None:
                raise AssertionError(f"{self.name} ended with {ended}, without {text!r}:\n{self.tail()}")
            if time.monotonic() > deadline:
                raise AssertionError(f"{self.name} did not print {text!r} in {timeout} s:\n{self.tail()}")
            time.sleep(0.02)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
