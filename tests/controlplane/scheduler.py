"""The real kube-scheduler against a test control plane: what Moorage is compared with."""

from __future__ import annotations

import json
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from tests.controlplane.build import BuildError
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.etcd import free_port
from tests.controlplane.process import Process


class KubeScheduler:
    """One kube-scheduler, started at once, without leader election; a context manager.

    `config` is a KubeSchedulerConfiguration, of which the connection is filled in here, with the client's
    rate limits lifted so that they are not what is measured.
    """

    def __init__(
        self,
        control_plane: ControlPlane,
        config: dict[str, Any] | None = None,
        *,
        args: Sequence[str] = (),
        kubeconfig: Path | None = None,
    ) -> None:
        program = control_plane.assets / "kube-scheduler"
        if not program.is_file():
            raise BuildError(f"{control_plane.assets} has no kube-scheduler")
        self.port = free_port()
        self.kubeconfig = kubeconfig or control_plane.kubeconfig
        folder = control_plane.folder
        self.config = folder / f"kube-scheduler-{self.port}.json"
        connection = {"kubeconfig": str(self.kubeconfig), "qps": 10_000, "burst": 10_000}
        self.config.write_text(
            json.dumps(
                {
                    "apiVersion": "kubescheduler.config.k8s.io/v1",
                    "kind": "KubeSchedulerConfiguration",
                    "leaderElection": {"leaderElect": False},
                    **(config or {}),
                    "clientConnection": connection,
                }
            )
        )
        self._token = control_plane.token
        argv: list[str | Path] = [
            program,
            f"--config={self.config}",
            f"--authentication-kubeconfig={self.kubeconfig}",
            f"--authorization-kubeconfig={self.kubeconfig}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self.port}",
            f"--cert-dir={folder / f'kube-scheduler-{self.port}'}",
            *args,
        ]
        self.process = Process(argv, log=folder / f"kube-scheduler-{self.port}.log", name="kube-scheduler")
        try:
            self._wait_ready()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End it."""
        self.process.stop()

    def metrics(self) -> str:
        """Its metrics, in Prometheus's text format."""
        return self._get("/metrics")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _wait_ready(self, timeout: float = 30) -> None:
        deadline = time.monotonic() + timeout
        while True:
            try:
                self._get("/readyz")
            except OSError as error:
                if self.process.returncode is not None or time.monotonic() > deadline:
                    raise RuntimeError(
                        f"kube-scheduler does not start ({error}):\n{self.process.tail()}"
                    ) from None
                time.sleep(0.05)
            else:
                return

    def _get(self, path: str) -> str:
        tls = ssl.create_default_context()  # its certificate is one it has signed itself
        tls.check_hostname = False
        tls.verify_mode = ssl.CERT_NONE
        url = f"https://127.0.0.1:{self.port}{path}"
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {self._token}"})
        try:
            with urllib.request.urlopen(request, timeout=10, context=tls) as response:
                text: str = response.read().decode()
                return text
        except urllib.error.HTTPError as error:
            error.close()
            raise ConnectionError(f"{path}: {error.code}") from None
