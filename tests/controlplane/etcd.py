"""etcd for a throw-away API server, and the quick way back to an empty cluster.

Deleting thousands of pods through the API takes seconds and stops at finalizers. Here whatever was not there
at the start is removed from the store itself; the API server learns of it by its own watch and tells its
clients as usual.
"""

from __future__ import annotations

import base64
import contextlib
import json
import random
import socket
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from tests.controlplane.process import Process

ROOT = "/registry/"
# Kept by the API server itself, all the time: never ours to remove.
_OWN = (
    "/registry/apiregistration.k8s.io/",
    "/registry/configmaps/kube-system/extension-apiserver-authentication",
    "/registry/configmaps/kube-system/kube-apiserver-legacy-service-account-token-tracking",
    "/registry/endpointslices/default/kubernetes",
    "/registry/flowschemas/",
    "/registry/health",
    "/registry/leases/kube-system/apiserver-",
    "/registry/masterleases/",
    "/registry/peerserverleases/",
    "/registry/prioritylevelconfigurations/",
    "/registry/ranges/",
    "/registry/services/endpoints/default/kubernetes",
    "/registry/services/specs/default/kubernetes",
)
_OLD_NAMES = {"minions": "nodes"}
_TRANSACTION = 100  # etcd's limit is 128 operations


def free_port() -> int:
    """A port on loopback that nobody listens on.

    Below the range that the system takes ports for outgoing connections from: there, a client that keeps
    dialling a stopped server's port can get connected to itself, and then the server cannot have its port
    back.
    """
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


class Etcd:
    """One etcd on loopback, not syncing to disk: fast, and lost if the machine stops, which is what a test wants."""

    def __init__(self, program: Path, folder: Path) -> None:
        self.url = f"http://127.0.0.1:{free_port()}"
        peer = f"http://127.0.0.1:{free_port()}"
        self._baseline: frozenset[str] = frozenset()
        argv: list[str | Path] = [
            program,
            f"--data-dir={folder / 'etcd'}",
            f"--listen-client-urls={self.url}",
            f"--advertise-client-urls={self.url}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",
            "--quota-backend-bytes=4294967296",
            "--log-level=warn",
        ]
        self.process = Process(argv, log=folder / "etcd.log", name="etcd")

    def wait_ready(self, timeout: float = 20) -> None:
        """Wait until it answers."""
        deadline = time.monotonic() + timeout
        while True:
            try:
                self._call("range", key=_encode("x"))
            except OSError as error:
                if self.process.returncode is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"etcd does not start ({error}):\n{self.process.tail()}") from None
                time.sleep(0.02)
            else:
                return

    def remember(self) -> None:
        """Take what is stored now as the empty cluster that `reset` goes back to."""
        self._baseline = frozenset(self._keys())

    def reset(self) -> list[str]:
        """Remove what has been stored since `remember`; gives the keys removed."""
        extra = [key for key in self._keys() if key not in self._baseline and not key.startswith(_OWN)]
        used = {_collection(key) for key in self._baseline}
        whole = {
            folder for key in extra if (folder := _collection(key)) not in used and not _holds_own(folder)
        }
        operations = [{"request_delete_range": _prefix(folder)} for folder in sorted(whole)]
        operations += [
            {"request_delete_range": {"key": _encode(key)}} for key in extra if _collection(key) not in whole
        ]
        for start in range(0, len(operations), _TRANSACTION):
            self._call("txn", success=operations[start : start + _TRANSACTION])
        return extra

    def _keys(self) -> list[str]:
        answer = self._call("range", **_prefix(ROOT), keys_only=True)
        return [base64.b64decode(item["key"]).decode() for item in answer.get("kvs", ())]

    def _call(self, verb: str, **body: Any) -> Any:
        data = json.dumps(body).encode()
        request = urllib.request.Request(
            f"{self.url}/v3/kv/{verb}", data, {"Content-Type": "application/json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            with error:
                raise RuntimeError(f"etcd {verb}: {error.code} {error.read()[:500]!r}") from None


def split_key(key: str) -> tuple[str, str]:
    """A key as the plural of its kind and the rest: `("pods", "default/p")`, `("nodes", "n")`."""
    folder = _collection(key)
    plural = folder.rstrip("/").rsplit("/", 1)[-1]
    return _OLD_NAMES.get(plural, plural), key.removeprefix(folder)


def _collection(key: str) -> str:
    """The folder of a kind: `/registry/pods/`, and `/registry/moorage.dev/schedulingpolicies/` for a custom one."""
    parts = key.removeprefix(ROOT).split("/")
    depth = 2 if "." in parts[0] else 1
    return ROOT + "/".join(parts[:depth]) + "/"


def _holds_own(folder: str) -> bool:
    return any(own.startswith(folder) for own in _OWN)


def _encode(key: str) -> str:
    return base64.b64encode(key.encode()).decode()


def _prefix(prefix: str) -> dict[str, str]:
    """All keys that begin so: etcd takes a range, up to the prefix with its last byte raised by one."""
    return {"key": _encode(prefix), "range_end": _encode(prefix[:-1] + chr(ord(prefix[-1]) + 1))}
