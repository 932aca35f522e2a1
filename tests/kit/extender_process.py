"""``moorage extender`` as a process, and a kube-scheduler that is configured as it prints."""

from __future__ import annotations

import os
import ssl
import sys
import time
from pathlib import Path
from typing import Any

from moorage.adapters.extender_server.scheduler_config import Wanted, configuration
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.etcd import free_port
from tests.controlplane.process import Process
from tests.controlplane.scheduler import KubeScheduler
from tests.kit.serving import Serving


class Extender(Serving):
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
        tls = None if ca is None else ssl.create_default_context(cafile=str(ca))
        base = f"{'http' if ca is None else 'https'}://127.0.0.1:{self.port}"
        self.url = f"{base}/scheduler"
        argv: list[str | Path] = [sys.executable, "-m", "moorage", "extender", *args]
        environ = {k: v for k, v in os.environ.items() if not k.startswith("MOORAGE_")}
        environ |= {
            "KUBECONFIG": str(kubeconfig or control_plane.kubeconfig),
            "MOORAGE_LISTEN": f"127.0.0.1:{self.port}",
            "MOORAGE_DRAIN": "0.2",
            **env,
        }
        log = control_plane.folder / f"extender-{self.port}-{time.monotonic_ns()}.log"
        process = Process(argv, log=log, env=environ, name="moorage extender")
        super().__init__(process, base, tls=tls, patience=20)
        if wait:
            self.ready_or_killed()

    def metric(self, name: str, **labels: str) -> float:
        """The sum of a metric's samples that have these labels."""
        total = 0.0
        for line in self.scrape().splitlines():
            sample, _, value = line.rpartition(" ")
            found, _, rest = sample.partition("{")
            given = rest.rstrip("}").split(",")
            if found == name and all(f'{key}="{wanted}"' in given for key, wanted in labels.items()):
                total += float(value)
        return total


def kube_scheduler(control_plane: ControlPlane, url: str, **wanted: Any) -> KubeScheduler:
    """A kube-scheduler by the configuration that ``--print-config`` prints, but for its lease."""
    config = configuration(Wanted(url, **wanted))
    return KubeScheduler(control_plane, {**config, "leaderElection": {"leaderElect": False}})
