"""A kubelet for nodes that do not exist: bound pods are reported Running, deleted ones are let go."""

from __future__ import annotations

import contextlib
import datetime
import threading
from typing import Self

from tests.controlplane.client import ApiError, Client, Obj


class FakeKubelet:
    """Acts for all nodes at once, in a thread of its own; a context manager. `count` tells how many pods it started."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="fake-kubelet", daemon=True)
        self.count = 0
        self._thread.start()

    def stop(self) -> None:
        """Stop acting; returns within a second or so."""
        self._stopping.set()
        self._thread.join(5)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run(self) -> None:
        while not self._stopping.is_set():
            # The server may be away for a while, and a watch of one second lets `stop` be heard.
            with contextlib.suppress(OSError, ApiError):
                watch = self._client.watch(
                    "Pod", initial_events=True, timeout=1, fieldSelector="spec.nodeName!="
                )
                with contextlib.closing(watch):
                    for event in watch:
                        if self._stopping.is_set():
                            return
                        if event["type"] in ("ADDED", "MODIFIED"):
                            self._see(event["object"])
            self._stopping.wait(0.1)

    def _see(self, pod: Obj) -> None:
        meta, status = pod["metadata"], pod.get("status", {})
        try:
            if meta.get("deletionTimestamp"):
                self._client.delete("Pod", meta["name"], meta["namespace"], uid=meta["uid"])
            elif status.get("phase") == "Pending":
                self._client.patch_status(
                    "Pod", meta["name"], self._running(pod), meta["namespace"], how="strategic"
                )
                self.count += 1
        except ApiError as error:
            if error.status not in (404, 409):  # gone meanwhile
                raise

    @staticmethod
    def _running(pod: Obj) -> Obj:
        now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        names = [container["name"] for container in pod["spec"]["containers"]]
        return {
            "phase": "Running",
            "startTime": now,
            "conditions": [
                {"type": kind, "status": "True", "lastTransitionTime": now}
                for kind in ("Initialized", "ContainersReady", "Ready")
            ],
            "containerStatuses": [
                {
                    "name": name,
                    "ready": True,
                    "started": True,
                    "restartCount": 0,
                    "image": "",
                    "imageID": "",
                    "state": {"running": {"startedAt": now}},
                }
                for name in names
            ],
        }
