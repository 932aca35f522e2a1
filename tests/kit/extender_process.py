"""``moorage extender`` as a process, and a kube-scheduler that is configured as it prints."""

from __future__ import annotations

import os
import ssl
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Self

from moorage.adapters.extender_server.scheduler_config import Wanted, configuration
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.etcd import free_port
from tests.controlplane.process import Process
from tests.controlplane.scheduler import KubeScheduler


class Extender:
    """One extender, started at once; a context manager.

    ``port`` lets one come back at the place of another; with ``ca`` it
    is spoken to over TLS.
    """

    def __init__(
        self,
        control_plane: ControlPlane,
        *args: str,
        port: int | None = None,
        kubeconfig: Path | None = None,
        ca: Path | None = None,
        wait: bool = True,
        **env: str,
    ) -> None:
        self.port = port or free_port()
        self._tls = None if ca is None else ssl.create_default_context(cafile=str(ca))
        self._base = f"{'http' if ca is None else 'https'}://127.0.0.1:{self.port}"
        self.url = f"{self._base}/scheduler"
        argv: list[str | Path] = [sys.executable, "-m", "moorage", "extender", *args]
        environ = {k: v for k, v in os.environ.items() if not k.startswith("MOORAGE_")}
        environ |= {
            "KUBECONFIG": str(kubeconfig or control_plane.kubeconfig),
            "MOORAGE_LISTEN": f"127.0.0.1:{self.port}",
            "MOORAGE_DRAIN": "0.2",
            **env,
        }
        log = control_plane.folder / f"extender-{self.port}-{time.monotonic_ns()}.log"
        self.process = Process(argv, log=log, env=environ, name="moorage extender")
        if wait:
            try:
                self.wait_ready()
            except BaseException:
                self.process.kill()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.stop(20)

    def wait_ready(self, timeout: float = 120) -> None:
        """Wait until it has synced."""
        deadline = time.monotonic() + timeout
        while self._get("/readyz") is None:
            ended = self.process.returncode
            assert ended is None, f"the extender ended with {ended}:\n{self.process.tail(40)}"
            assert time.monotonic() < deadline, f"the extender does not get ready:\n{self.process.tail(40)}"
            time.sleep(0.02)

    @property
    def log(self) -> str:
        """All it has logged."""
        return self.process.output()

    def metric(self, name: str, **labels: str) -> float:
        """The sum of a metric's samples that have these labels."""
        total = 0.0
        for line in (self._get("/metrics") or "").splitlines():
            sample, _, value = line.rpartition(" ")
            found, _, rest = sample.partition("{")
            given = rest.rstrip("}").split(",")
            if found == name and all(f'{key}="{wanted}"' in given for key, wanted in labels.items()):
                total += float(value)
        return total

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


def kube_scheduler(control_plane: ControlPlane, url: str, **wanted: Any) -> KubeScheduler:
    """A kube-scheduler by the configuration that ``--print-config`` prints, but for its lease."""
    config = configuration(Wanted(url, **wanted))
    return KubeScheduler(control_plane, {**config, "leaderElection": {"leaderElect": False}})
