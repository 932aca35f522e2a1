"""Plays the steps of a moving case (steps.yaml) on a real cluster; see the case's notes.md for what is at stake."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection
from pathlib import Path
from typing import Any

from tests.controlplane.client import Client
from tests.scenarios.reading import Json, documents


class Player:
    """Plays one case.  Expectations about pods that are in ``without`` are passed over.

    ``rest``: how many seconds what goes on in the background, such as heartbeats, goes on after the last step.
    """

    def __init__(
        self, cluster: Client, folder: Path, *, without: Collection[str] = (), rest: float = 0
    ) -> None:
        self._cluster = cluster
        self._without = frozenset(without)
        (self._steps,) = documents(folder / "steps.yaml")
        self._background: list[threading.Thread] = []
        self._ended = threading.Event()
        self._rest = rest

    def play(self) -> None:
        """Play all steps; AssertionError at the first expectation that is not met."""
        try:
            for step in self._steps:
                self._play(step)
            time.sleep(self._rest)
        finally:
            self._ended.set()
            for thread in self._background:
                thread.join(10)

    def _play(self, step: Json) -> None:
        if "apply" in step:
            self._cluster.apply([ours(each) for each in step["apply"]])
        elif "patch" in step:
            self._patch(step["patch"])
        elif "delete" in step:
            self._cluster.delete(step["delete"]["kind"], step["delete"]["name"])
        elif "flood" in step:
            template, count = step["flood"]["pod"], step["flood"]["count"]
            self._cluster.apply([ours(named(template, number)) for number in range(count)])
        elif "churn" in step:
            thread = threading.Thread(target=self._churn, args=(step["churn"],), daemon=True)
            self._background.append(thread)
            thread.start()
        elif "expect" in step:
            self._expect(step["expect"], step.get("within"), step.get("hold", 0))
        elif "expect-metric" not in step:  # which the test that plays the case looks at
            raise ValueError(f"no such step: {', '.join(step)}")

    def _patch(self, patch: Json) -> None:
        name, body, how = (patch["name"], patch["merge"], "merge") if "merge" in patch else (
            patch["name"], patch["ops"], "json"
        )  # fmt: skip
        self._cluster.patch(patch["kind"], name, body, how=how)

    def _churn(self, churn: Json) -> None:
        """Heartbeats of a node: its Ready condition says again and again that nothing has changed."""
        pause = 1 / churn["per_second"]
        due = time.monotonic()
        for beat in range(churn["seconds"] * churn["per_second"]):
            moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(1767607200 + beat))
            condition = {"type": "Ready", "status": "True", "lastHeartbeatTime": moment}
            self._cluster.patch_status("Node", churn["node"], {"conditions": [condition]})
            due += pause
            if self._ended.wait(max(0.0, due - time.monotonic())):
                return

    def _expect(self, expected: Json, within: float | None, hold: float) -> None:
        wanted = {pod: node for pod, node in expected.items() if pod not in self._without}
        if within is not None:
            self._cluster.wait_for(lambda: self._found(wanted) == wanted, within, f"pods are on {wanted}")
        end = time.monotonic() + hold
        while hold and time.monotonic() < end:
            assert self._found(wanted) == wanted
            time.sleep(0.25)

    def _found(self, wanted: Json) -> Json:
        return {pod: self._cluster.node_of(pod) for pod in wanted}


def ours(obj: Json) -> Json:
    """The object; a pending pod that names no scheduler is given to Moorage."""
    if obj["kind"] != "Pod" or obj["spec"].get("nodeName"):
        return obj
    return {**obj, "spec": {"schedulerName": "moorage", **obj["spec"]}}


def named(template: Any, number: int) -> Json:
    """A pod of a flood."""
    name = template["metadata"]["name"].replace("%d", str(number))
    return {**template, "metadata": {**template["metadata"], "name": name}}
