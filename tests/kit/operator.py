"""The scheduler as a process: ``moorage run``, or Kopf's own command with our handlers."""

from __future__ import annotations

import os
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Self

from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.etcd import free_port
from tests.controlplane.process import Process

_HURRIED = {"MOORAGE_LEASE_DURATION": "3", "MOORAGE_RENEW_DEADLINE": "2", "MOORAGE_RETRY_PERIOD": "0.3"}


class Operator:
    """One replica, started at once; a context manager.  ``wait`` says whether to wait until it is ready."""

    def __init__(
        self,
        control_plane: ControlPlane,
        *args: str,
        kubeconfig: Path | None = None,
        by_kopf: bool = False,
        hurried: bool = True,
        wait: bool = True,
        **env: str,
    ) -> None:
        self.port = free_port()
        folder = Path(sys.executable).parent
        argv: list[str | Path] = [sys.executable, "-m", "moorage", "run", *args]
        if by_kopf:
            argv = [folder / "kopf", "run", "-A", "-m", "moorage.handlers", *args]
        environ = {k: v for k, v in os.environ.items() if not k.startswith(("MOORAGE_", "KOPF_"))}
        environ |= {
            "KUBECONFIG": str(kubeconfig or control_plane.kubeconfig),
            "MOORAGE_METRICS_LISTEN": f"127.0.0.1:{self.port}",
            **(_HURRIED if hurried else {}),
            **env,
        }
        log = control_plane.folder / f"moorage-{self.port}.log"
        self.process = Process(argv, log=log, env=environ, name="moorage")
        if wait:
            try:
                self.wait_ready()
            except BaseException:
                self.process.kill()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.stop(60)

    def wait_ready(self, timeout: float = 120) -> None:
        """Wait until it has synced."""
        deadline = time.monotonic() + timeout
        while self._get("/readyz") is None:
            ended = self.process.returncode
            assert ended is None, f"moorage ended with {ended}:\n{self.process.tail(40)}"
            assert time.monotonic() < deadline, f"moorage does not get ready:\n{self.process.tail(40)}"
            time.sleep(0.02)

    @property
    def log(self) -> str:
        """All it has logged."""
        return self.process.output()

    def scrape(self) -> str:
        """All metrics, as Prometheus reads them; empty when nobody answers."""
        return self._get("/metrics") or ""

    def metric(self, name: str, /, **labels: str) -> float:
        """A sample's value, 0 if there is none."""
        wanted = ",".join(f'{key}="{value}"' for key, value in sorted(labels.items()))
        for line in self.scrape().splitlines():
            sample, _, value = line.rpartition(" ")
            found, _, rest = sample.partition("{")
            given = ",".join(sorted(filter(None, rest.rstrip("}").split(","))))
            if found == name and given == wanted:
                return float(value)
        return 0.0

    def _get(self, path: str) -> str | None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as response:
                text: str = response.read().decode()
                return text
        except urllib.error.HTTPError as error:
            error.close()
            return None
        except OSError:
            return None
