"""The reflectors' objects as the engine's events."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from moorage.adapters.kube.cluster_state import ClusterState
from moorage.adapters.kube.convert import Converter
from moorage.adapters.kube.errors import KubeError
from moorage.adapters.kube.watch import Pace, Reflector
from moorage.core.model.device_class import DeviceClass
from moorage.core.model.events import (
    DeviceClassApplied,
    DeviceClassGone,
    Event,
    NamespaceApplied,
    NamespaceGone,
    NodeApplied,
    NodeGone,
    PodBound,
    PodGone,
    StorageApplied,
    StorageGone,
    WorkloadApplied,
    WorkloadGone,
)
from moorage.core.model.pod import PodRef
from moorage.core.model.selector import LabelSelector
from moorage.core.model.storage import PersistentVolumeClaim, StorageClass, StorageKind
from moorage.core.model.workload import Namespace, Workload, WorkloadKind
from tests.kit.fake_api import Answer, FakeApi
from tests.kit.models import label_in

CLAIMS, CLASSES = "/api/v1/persistentvolumeclaims", "/apis/storage.k8s.io/v1/storageclasses"
DEVICES = "/apis/resource.k8s.io/v1/deviceclasses"
NODES, PODS = "/api/v1/nodes", "/api/v1/pods"


class Rig:
    def __init__(self, api, **features):
        self.events: list[Event] = []
        self.malformed: list[str] = []
        self.synced = asyncio.Event()
        self.state = ClusterState(
            api.client(),
            Converter(),
            self.events.append,
            on_synced=self.synced.set,
            meter=self,
            **features,
            pace=Pace(first_delay=0.01, longest_delay=0.05),
        )

    def object_malformed(self, resource):
        self.malformed.append(resource)

    @asynccontextmanager
    async def running(self):
        tasks = [asyncio.create_task(r.run()) for r in self.state.reflectors.values()]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def until(self, condition):
        async with asyncio.timeout(5):
            while not condition():
                await asyncio.sleep(0.005)


def pod(name, node="n", phase="Pending"):
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    spec = {"nodeName": node, "schedulerName": "other", "containers": [{"name": "c"}]}
    return {"metadata": meta, "spec": spec, "status": {"phase": phase}}


@pytest.fixture
async def api():
    async with FakeApi() as api:
        yield api


async def test_nodes_and_bound_pods_come_and_go(api):
    api.put(NODES, {"metadata": {"name": "n"}})
    api.put(PODS, pod("bound"))
    api.put(PODS, pod("pending", node=""))
    rig = Rig(api)
    async with rig.running():
        await rig.synced.wait()
        assert rig.state.synced
        assert [type(e) for e in sorted(rig.events, key=str)] == [NodeApplied, PodBound]
        rig.events.clear()
        api.put(PODS, pod("bound", phase="Succeeded"))
        await rig.until(lambda: rig.events)
        assert rig.events == [PodGone(PodRef("default", "bound", "uid-bound"))]
        api.remove(NODES, "n")
        await rig.until(lambda: len(rig.events) == 2)
        assert rig.events[1] == NodeGone("n")
    assert rig.malformed == []


async def test_namespaces_services_and_controllers_come_and_go(api):
    namespaces, services, sets = "/api/v1/namespaces", "/api/v1/services", "/apis/apps/v1/replicasets"
    meta = {"name": "web", "namespace": "blue", "uid": "1"}
    api.put(namespaces, {"metadata": {"name": "blue", "uid": "2", "labels": {"team": "a"}}})
    api.put(services, {"metadata": meta, "spec": {"selector": {"app": "web"}}})
    api.put(sets, {"metadata": meta, "spec": {"selector": {"matchLabels": {"app": "web"}}}})
    rig = Rig(api)
    async with rig.running():
        await rig.synced.wait()
        assert sorted(map(str, rig.events)) == sorted(
            map(
                str,
                (
                    NamespaceApplied(Namespace("blue", {"team": "a"})),
                    WorkloadApplied(Workload(WorkloadKind.SERVICE, "blue", "web", {"app": "web"})),
                    WorkloadApplied(
                        Workload(
                            WorkloadKind.REPLICA_SET,
                            "blue",
                            "web",
                            selector=LabelSelector((label_in("app", "web"),)),
                        )
                    ),
                ),
            )
        )
        rig.events.clear()
        api.remove(sets, "web", "blue")
        await rig.until(lambda: rig.events)
        api.remove(namespaces, "blue")
        await rig.until(lambda: len(rig.events) == 2)
    assert rig.events == [WorkloadGone(WorkloadKind.REPLICA_SET, "blue", "web"), NamespaceGone("blue")]


async def test_device_classes_come_and_go(api):
    gpu = {"metadata": {"name": "gpu", "uid": "1"}, "spec": {"extendedResourceName": "example.com/gpu"}}
    api.put(DEVICES, gpu)
    rig = Rig(api)
    async with rig.running():
        await rig.synced.wait()
        assert rig.events == [DeviceClassApplied(DeviceClass("gpu", "example.com/gpu"))]
        rig.events.clear()
        api.remove(DEVICES, "gpu")
        await rig.until(lambda: rig.events)
        assert rig.events == [DeviceClassGone("gpu")]
        api.put(DEVICES, gpu | {"spec": {"extendedResourceName": 7}})
        await rig.until(lambda: rig.malformed)
        assert rig.malformed == ["deviceclasses"]


async def test_without_the_right_device_classes_are_not_asked_about(api):
    rig = Rig(api, device_classes=False)
    async with rig.running():
        await rig.synced.wait()
    assert api.seen("GET", DEVICES) == []


async def test_an_object_that_makes_no_sense_is_counted_and_left_out(api):
    api.put(PODS, pod("bad") | {"metadata": {"name": "bad", "namespace": "default", "uid": 7}})
    api.put(PODS, pod("good"))
    rig = Rig(api)
    async with rig.running():
        await rig.synced.wait()
        await rig.until(lambda: rig.events)
    assert [e.pod.name for e in rig.events if isinstance(e, PodBound)] == ["good"]
    assert rig.malformed == ["pods"]


async def test_a_refresh_returns_when_all_is_submitted(api):
    rig = Rig(api)
    async with rig.running():
        await rig.synced.wait()
        api.put(NODES, {"metadata": {"name": "late"}})
        refresh = asyncio.create_task(rig.state.refresh())
        while not refresh.done():
            await asyncio.sleep(0.01)
            api.bookmark()
        await refresh
        assert any(isinstance(e, NodeApplied) and e.node.name == "late" for e in rig.events)


async def test_all_streams_are_refreshed_at_once(api, monkeypatch):
    rig = Rig(api)
    begun = []

    async def refresh(reflector):
        begun.append(reflector)
        await rig.until(lambda: len(begun) == len(rig.state.reflectors))

    monkeypatch.setattr(Reflector, "refresh", refresh)
    await rig.state.refresh()


async def test_a_refresh_that_fails_says_why(api):
    rig = Rig(api)
    async with rig.running():
        await rig.synced.wait()
        api.on("GET", NODES, Answer(403, message="no such right"), times=None)
        with pytest.raises(KubeError, match="no such right"):
            await rig.state.refresh()


async def test_storage_comes_and_goes(api):
    api.put(CLASSES, {"metadata": {"name": "fast"}, "provisioner": "disk.test"})
    api.put(CLAIMS, {"metadata": {"name": "c", "namespace": "space", "uid": "u"}, "spec": {}})
    rig = Rig(api)
    async with rig.running():
        await rig.synced.wait()
        shown = {e.obj.key: type(e.obj) for e in rig.events if isinstance(e, StorageApplied)}
        assert shown == {"fast": StorageClass, "space/c": PersistentVolumeClaim}
        rig.events.clear()
        api.remove(CLAIMS, "c", "space")
        await rig.until(lambda: rig.events)
        assert rig.events == [StorageGone(StorageKind.CLAIM, "space/c")]
        api.put(CLASSES, {"metadata": {"name": "bad"}, "provisioner": 7})
        await rig.until(lambda: rig.malformed)
        assert rig.malformed == ["storageclasses"]


async def test_who_needs_no_storage_does_not_ask_for_it(api):
    rig = Rig(api, storage=False)
    async with rig.running():
        await rig.synced.wait()
    assert api.seen("GET", CLASSES) == api.seen("GET", CLAIMS) == []


async def test_a_reflector_that_has_stopped_without_knowing_is_noticed(api, monkeypatch):
    rig = Rig(api)
    async with rig.running():
        await rig.synced.wait()
        assert rig.state.stuck() is None
        rig.state.reflectors["nodes"].last_activity -= 1000
        trouble = rig.state.stuck()
        assert trouble is not None
        assert "nothing heard of nodes for 1000 s" in trouble
