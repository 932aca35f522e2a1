"""The scheduler as a process: ``moorage run``, or Kopf's own command with our handlers."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.etcd import free_port
from tests.controlplane.process import Process
from tests.kit.serving import Serving

_HURRIED = {"MOORAGE_LEASE_DURATION": "3", "MOORAGE_RENEW_DEADLINE": "2", "MOORAGE_RETRY_PERIOD": "0.3"}


class Operator(Serving):
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
        process = Process(argv, log=log, env=environ, name="moorage")
        super().__init__(process, f"http://127.0.0.1:{self.port}", patience=60)
        if wait:
            self.ready_or_killed()

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
