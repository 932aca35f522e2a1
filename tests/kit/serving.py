"""A process of Moorage's that answers by HTTP: whether it is ready, and its metrics."""

from __future__ import annotations

import ssl
import time
import urllib.error
import urllib.request
from typing import Self

from tests.controlplane.process import Process


class Serving:
    """A started process, and how it is asked; ``patience`` is how long it may take to stop."""

    def __init__(
        self, process: Process, base: str, *, tls: ssl.SSLContext | None = None, patience: float
    ) -> None:
        self.process = process
        self._base = base
        self._tls = tls
        self._patience = patience

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.stop(self._patience)

    def ready_or_killed(self) -> None:
        """Wait until it has synced; if it does not, it is not left running."""
        try:
            self.wait_ready()
        except BaseException:
            self.process.kill()
            raise

    def wait_ready(self, timeout: float = 120) -> None:
        """Wait until it has synced."""
        deadline = time.monotonic() + timeout
        while self._get("/readyz") is None:
            ended = self.process.returncode
            assert ended is None, f"{self.process.name} ended with {ended}:\n{self.process.tail(40)}"
            assert time.monotonic() < deadline, (
                f"{self.process.name} does not get ready:\n{self.process.tail(40)}"
            )
            time.sleep(0.02)

    @property
    def log(self) -> str:
        """All it has logged."""
        return self.process.output()

    def scrape(self) -> str:
        """All metrics, as Prometheus reads them; empty when nobody answers."""
        return self._get("/metrics") or ""

    def _get(self, path: str) -> str | None:
        try:
            with urllib.request.urlopen(f"{self._base}{path}", timeout=5, context=self._tls) as response:
                text: str = response.read().decode()
                return text
        except urllib.error.HTTPError as error:
            error.close()
            return None
        except OSError:
            return None
