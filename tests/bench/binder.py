"""The client that only binds, a process of its own as a scheduler is: pods to nodes in turn, many at a time."""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.bench.api import Api
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.process import Process

#: As many as Moorage writes at the same time.
_AT_ONCE = 100


def start(plane: ControlPlane, pods: Sequence[tuple[str, str]], nodes: int) -> Process:
    """Have a process bind these pods (namespace, name) and then wait to be stopped."""
    task = plane.folder / "binder.json"
    task.touch(mode=0o600)
    task.write_text(json.dumps({"access": [plane.url, plane.token, plane.ca], "pods": pods, "nodes": nodes}))
    argv: list[str | Path] = [sys.executable, "-m", "tests.bench.binder", task]
    return Process(argv, log=plane.folder / "binder.log", name="bind-only")


async def _bind(access: Sequence[str], pods: Sequence[tuple[str, str]], nodes: int) -> None:
    node = itertools.cycle(range(nodes))

    async def write(pod: tuple[str, str]) -> None:
        namespace, name = pod
        target = {"apiVersion": "v1", "kind": "Node", "name": f"node-{next(node)}"}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
        await api.request("POST", f"/api/v1/namespaces/{namespace}/pods/{name}/binding", body)

    async with Api(*access, width=_AT_ONCE) as api:
        await api.each(pods, write)
        await asyncio.Event().wait()


if __name__ == "__main__":
    task = json.loads(Path(sys.argv[1]).read_text())
    try:
        import uvloop
    except ImportError:
        asyncio.run(_bind(**task))
    else:
        uvloop.run(_bind(**task))
