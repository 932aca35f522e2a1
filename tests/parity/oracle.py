"""The oracle as a process that is kept open: cases in, answers out, in the same order."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

Case = dict[str, Any]
Answer = dict[str, Any]

#: Seconds within which a case is answered on the slowest machine; a case takes some milliseconds.
PATIENCE = 60.0


class OracleFailed(Exception):
    """The process ended or fell silent."""


class Oracle:
    """One oracle process; not to be shared between threads.

    Answers are read by a thread of their own, so that neither side ever waits for the other's full pipe.
    """

    def __init__(self, program: Path, *, workers: int = 2, selfcheck: bool = True) -> None:
        command = [str(program), "-j", str(workers), f"-selfcheck={'true' if selfcheck else 'false'}"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._answers: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._ahead = 4 * workers
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def ask(self, case: Case) -> Answer:
        """The answer to one case."""
        self._send(case)
        return self._receive()

    def ask_all(self, cases: Iterable[Case]) -> Iterator[tuple[Case, Answer]]:
        """Each case with its answer; a few cases are sent ahead, so that the oracle works while others are made."""
        sent: deque[Case] = deque()
        for case in cases:
            self._send(case)
            sent.append(case)
            if len(sent) > self._ahead:
                yield sent.popleft(), self._receive()
        while sent:
            yield sent.popleft(), self._receive()

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.close()
        except OSError:
            pass  # it ended before
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def _send(self, case: Case) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(case) + "\n")
            self._process.stdin.flush()
        except OSError as error:
            raise OracleFailed(f"the oracle ended with status {self._process.poll()}") from error

    def _receive(self) -> Answer:
        try:
            line = self._answers.get(timeout=PATIENCE)
        except queue.Empty:
            raise OracleFailed(f"no answer within {PATIENCE:g} s") from None
        if not line:
            raise OracleFailed(f"the oracle ended with status {self._process.poll()}")
        answer: Answer = json.loads(line)
        return answer

    def _read(self) -> None:
        assert self._process.stdout is not None
        try:
            for line in self._process.stdout:
                self._answers.put(line)
        except ValueError:
            pass  # closed under our feet by close()
        self._answers.put("")
