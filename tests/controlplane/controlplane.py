"""etcd and kube-apiserver on loopback, ready in seconds: the real thing, for tests that fakes cannot replace.

    with ControlPlane() as control_plane:
        control_plane.admin.apply(objects)
        run_something(control_plane.kubeconfig)

No controller manager runs: nodes keep the taints and conditions that a test gives them, namespaces and owners
are not cleaned up. Admission adds no service account and no not-ready taint, so that terse objects stay as
they are.
"""

from __future__ import annotations

import contextlib
import json
import re
import secrets
import shutil
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from tests.controlplane import access, build
from tests.controlplane.certs import Authority, new_key
from tests.controlplane.client import ApiError, Client, Obj, wait_for
from tests.controlplane.etcd import Etcd, free_port, split_key
from tests.controlplane.process import Process, guard_folder, unguard_folder

# Admission that expects controllers which do not run here.
WITHOUT_ADMISSION = ("ServiceAccount", "TaintNodesByCondition")
_MEMORY = Path("/dev/shm")
_MEMORY_NEEDED = 2 << 30
_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")


class ControlPlane:
    """One control plane; a context manager, or `start()` and `stop()`."""

    def __init__(
        self,
        *,
        feature_gates: Mapping[str, bool] | None = None,
        runtime_config: Sequence[str] = (),
        apiserver_args: Sequence[str] = (),
        disable_admission: Sequence[str] = WITHOUT_ADMISSION,
        audit: str | None = None,
        assets: Path | None = None,
    ) -> None:
        """`runtime_config` turns APIs on ("scheduling.k8s.io/v1beta1=true"); `audit` is a level, such as "Metadata"."""
        self.assets = assets or build.find()
        self.folder = Path(tempfile.mkdtemp(prefix="moorage-", dir=_memory())).resolve()
        guard_folder(self.folder)
        self.port = free_port()
        self.url = f"https://127.0.0.1:{self.port}"
        self.authority = Authority(self.folder)
        self.ca = self.authority.certificate.read_text()
        self.audit_log = self.folder / "audit.log"
        self.token = secrets.token_hex(16)
        self.kubeconfig = self.write_kubeconfig("admin", self.token)
        self.admin = Client(self.url, token=self.token, ca=self.ca)
        self._argv: list[str | Path] = [self.assets / "kube-apiserver"]
        self._argv += self._apiserver_argv(disable_admission)
        self._argv += [f"--runtime-config={entry}" for entry in runtime_config]
        if feature_gates:
            gates = ",".join(f"{name}={str(on).lower()}" for name, on in feature_gates.items())
            self._argv.append(f"--feature-gates={gates}")
        if audit:
            self._argv += self._audit_argv(audit)
        self._argv += apiserver_args
        self.etcd: Etcd | None = None
        self.apiserver: Process | None = None

    # --- Life -----------------------------------------------------------------------------------------------

    def start(self) -> Self:
        """Start both programs, and wait until the API server is ready and its own objects are there."""
        try:
            self.etcd = Etcd(self.assets / "etcd", self.folder)
            self.etcd.wait_ready()
            self._argv.append(f"--etcd-servers={self.etcd.url}")
            self.start_apiserver()
            self._wait_settled()
            self.etcd.remember()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End everything, and remove all files."""
        self.admin.close()
        if self.apiserver is not None:
            self.apiserver.kill()  # nothing to save
        if self.etcd is not None:
            self.etcd.process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
        unguard_folder(self.folder)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def reset(self) -> None:
        """Back to an empty cluster, whatever state a test has left it in; users made by `user` are gone, too."""
        assert self.etcd is not None
        if self.apiserver is None or self.apiserver.returncode is not None:
            self.start_apiserver()
        self.resume_apiserver()
        removed: dict[str, set[str]] = defaultdict(set)
        for key in self.etcd.reset():
            collection, name = split_key(key)
            removed[collection].add(name)
        for collection, names in removed.items():
            self._wait_gone(collection, names)

    # --- Outages --------------------------------------------------------------------------------------------

    def start_apiserver(self, timeout: float = 60) -> None:
        """Start the API server, on the same port and data as before, and wait until it is ready."""
        self.apiserver = Process(self._argv, log=self.folder / "kube-apiserver.log")
        deadline = time.monotonic() + timeout
        while True:
            try:
                self.admin.request("GET", "/readyz")
            except (OSError, ApiError) as error:
                ended = self.apiserver.returncode
                if ended is not None or time.monotonic() > deadline:
                    what = f"ended with {ended}" if ended is not None else f"is not ready: {error}"
                    raise RuntimeError(f"kube-apiserver {what}\n{self._explain()}") from None
                time.sleep(0.05)
            else:
                return

    def stop_apiserver(self) -> None:
        """Kill the API server as a crash would; connections to it are refused from now on. The data stay."""
        if self.apiserver is not None:
            self.apiserver.kill()
        self.admin.close()

    def restart_apiserver(self) -> None:
        """A crash and a new start."""
        self.stop_apiserver()
        self.start_apiserver()

    def pause_apiserver(self) -> None:
        """Freeze the API server: connections stay open, and nothing comes."""
        if self.apiserver is not None:
            self.apiserver.pause()

    def resume_apiserver(self) -> None:
        """Let it go on."""
        if self.apiserver is not None:
            self.apiserver.resume()

    # --- Access ---------------------------------------------------------------------------------------------

    def user(
        self, name: str, rules: Sequence[Obj] = (), *, namespaced: Mapping[str, Sequence[Obj]] | None = None
    ) -> Path:
        """Make a user that may do what `rules` say, and nothing else; gives a kubeconfig. See access.py."""
        token = access.make_user(self.admin, name, rules, namespaced or {})
        return self.write_kubeconfig(name, token)

    def client(self, name: str, rules: Sequence[Obj] = (), **options: Any) -> Client:
        """A client for such a user. Close it."""
        return Client.from_kubeconfig(self.user(name, rules, **options))

    def write_kubeconfig(self, name: str, token: str) -> Path:
        """Write a kubeconfig for a token; gives its path."""
        path = self.folder / f"{name}.kubeconfig"
        path.touch(mode=0o600)
        path.write_text(json.dumps(access.kubeconfig(self.url, self.ca, name, token), indent=1))
        return path

    def audit_events(self) -> list[Obj]:
        """What the API server has been asked for so far; needs `audit`."""
        with self.audit_log.open() as lines:
            return [json.loads(line) for line in lines]

    # --- Details --------------------------------------------------------------------------------------------

    def _apiserver_argv(self, disable_admission: Sequence[str]) -> list[str]:
        tokens = self.folder / "tokens.csv"
        tokens.touch(mode=0o600)
        tokens.write_text(f"{self.token},admin,admin,system:masters\n")
        server = self.authority.issue("apiserver", hosts=("127.0.0.1", "localhost", "kubernetes.default.svc"))
        signer = new_key(self.folder / "service-accounts.key")
        return [
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={self.port}",
            f"--tls-cert-file={server.certificate}",
            f"--tls-private-key-file={server.key}",
            f"--client-ca-file={self.authority.certificate}",
            f"--token-auth-file={tokens}",
            f"--service-account-key-file={signer}",
            f"--service-account-signing-key-file={signer}",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-cluster-ip-range=10.0.0.0/16",
            "--endpoint-reconciler-type=none",
            "--authorization-mode=RBAC",
            f"--disable-admission-plugins={','.join(disable_admission)}",
            "--allow-privileged=true",
            "--profiling=false",
        ]

    def _audit_argv(self, level: str) -> list[str]:
        policy = self.folder / "audit-policy.json"
        rule = {"level": level, "omitStages": ["RequestReceived"]}
        policy.write_text(json.dumps({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [rule]}))
        return [f"--audit-policy-file={policy}", f"--audit-log-path={self.audit_log}"]

    def _wait_settled(self) -> None:
        """Wait for what the API server makes after it is ready: it belongs to the empty cluster, too."""

        def settled() -> bool:
            with contextlib.suppress(ApiError):
                self.admin.get("Service", "kubernetes", "default")
                for name in _NAMESPACES:
                    self.admin.get("Namespace", name)
                self.admin.get("PriorityClass", "system-node-critical")
                return True
            return False

        self.admin.wait_for(settled, 30, "the API server's own objects exist")

    def _wait_gone(self, collection: str, names: set[str]) -> None:
        """Wait until the API server has taken the removal into its watch cache, out of which it serves and admits."""
        resource = self.admin.resource_of(collection)
        if resource is None:  # of a custom resource whose definition is gone, too
            return

        def gone() -> bool:
            try:
                left = self.admin.list(resource.kind, api_version=resource.api_version, resource_version="0")
            except ApiError as error:
                return error.status == 404
            full = ((item["metadata"].get("namespace"), item["metadata"]["name"]) for item in left)
            return not any(
                (f"{namespace}/{name}" if namespace else name) in names for namespace, name in full
            )

        wait_for(gone, 30, f"{collection} are gone from the API server's cache")

    def _explain(self) -> str:
        """The API server's log without the noise of its start: errors first, or else its end."""
        assert self.apiserver is not None
        lines = self.apiserver.output().splitlines()
        errors = [line for line in lines if re.match(r"(E\d{4} |F\d{4} |Error|panic)", line)]
        return "\n".join([*errors[-10:], "…", *lines[-10:]])


def _memory() -> Path | None:
    """Where files are in memory, if there is room for a large cluster: containers often have 64 MiB there."""
    if _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > _MEMORY_NEEDED:
        return _MEMORY
    return None
