"""What others do in the cluster while pods are scheduled: a rollout, and the volume controllers' part."""

from __future__ import annotations

import asyncio
import itertools

from tests.bench.api import MERGE, Api
from tests.bench.objects import Obj, owned_by, pod, service
from tests.kit.volume_controller import SELECTED_NODE, volume

_APPS = 100
_AT_ONCE = 50


async def churn(api: Api, scheduler: str) -> None:
    """A hundred times a second one of the old pods goes and a new one comes; ten times a second a Service changes."""
    pods = "/api/v1/namespaces/default/pods"
    services = "/api/v1/namespaces/default/services"
    old = [item["metadata"]["name"] for item in await api.items(pods, fieldSelector="spec.nodeName!=")]
    began = asyncio.get_running_loop().time()
    for index in itertools.count():
        app = f"app-{index % _APPS}"
        if index < len(old):
            await api.request("DELETE", f"{pods}/{old[index]}")
        await api.create(pod(f"rolled-{index}", app=app, owner=owned_by(app), schedulerName=scheduler))
        if index % 10 == 0:
            await api.request("DELETE", f"{services}/{app}")
            await api.create(service(app))
        await asyncio.sleep(max(0.0, began + index / 100 - asyncio.get_running_loop().time()))


async def provision(api: Api, scheduler: str) -> None:
    """Make a volume for each claim for which the scheduler has named a node, and bind the two."""
    claims = "/api/v1/persistentvolumeclaims"
    slots = asyncio.Semaphore(_AT_ONCE)
    begun: set[str] = set()
    async with asyncio.TaskGroup() as tasks:
        async for event in api.watch(claims, await api.version(claims), accept="application/json"):
            found = event["object"]
            node = (found["metadata"].get("annotations") or {}).get(SELECTED_NODE)
            uid = found["metadata"]["uid"]
            if event["type"] == "MODIFIED" and node and uid not in begun:
                begun.add(uid)
                await slots.acquire()
                tasks.create_task(_provide(api, found, node)).add_done_callback(lambda _: slots.release())


async def _provide(api: Api, claim: Obj, node: str) -> None:
    meta = claim["metadata"]
    name = f"pvc-{meta['uid']}"
    reference = {"kind": "PersistentVolumeClaim", "apiVersion": "v1"}
    reference |= {key: meta[key] for key in ("namespace", "name", "uid")}
    await api.create(volume(name, claim["spec"]["storageClassName"], node, reference))
    bound = {"status": {"phase": "Bound"}}
    await api.request("PATCH", f"/api/v1/persistentvolumes/{name}/status", bound, content_type=MERGE)
    path = f"/api/v1/namespaces/{meta['namespace']}/persistentvolumeclaims/{meta['name']}"
    done = {"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"}
    change = {"metadata": {"annotations": done}, "spec": {"volumeName": name}}
    await api.request("PATCH", path, change, content_type=MERGE)
    await api.request("PATCH", f"{path}/status", bound, content_type=MERGE)
