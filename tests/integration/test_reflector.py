"""The reflector against a real API server: what a fake can only claim about watches is true there."""

import asyncio
import os
import time
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from moorage.adapters.kube.client import KubeClient
from moorage.adapters.kube.errors import KubeError
from moorage.adapters.kube.watch import Pace, Reflector, Target, Trouble
from tests.controlplane.controlplane import ControlPlane

NODES = "/api/v1/nodes"
HURRY = Pace(first_delay=0.02, longest_delay=0.2)


class Mirror:
    """A receiver that knows names, and remembers every call."""

    def __init__(self, client: KubeClient, target: Target, pace: Pace = HURRY) -> None:
        self.state: dict[str, str] = {}
        self.calls: list[str] = []
        self.troubles: list[Trouble] = []
        self.reflector = Reflector(
            client, target, apply=self.apply, delete=self.delete, on_trouble=self.on_trouble, pace=pace
        )

    def apply(self, obj: dict[str, Any]) -> str:
        name: str = obj["metadata"]["name"]
        self.state[name] = obj["metadata"]["uid"]
        self.calls.append(f"+{name}")
        return name

    def delete(self, name: str) -> None:
        del self.state[name]
        self.calls.append(f"-{name}")

    def on_trouble(self, trouble: Trouble, _error: KubeError | None) -> None:
        self.troubles.append(trouble)

    def take(self) -> list[str]:
        calls, self.calls = self.calls, []
        return calls

    @asynccontextmanager
    async def running(self):
        task = asyncio.create_task(self.reflector.run())
        try:
            yield
            assert not task.done(), task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def nodes(*names: str) -> list[dict[str, Any]]:
    return [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}} for name in names]


def pod(name: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "registry.test/pause:1"}
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [container], **spec}}


@pytest.fixture
async def client(control_plane):
    async with await KubeClient.connect(str(control_plane.kubeconfig)) as client:
        yield client


async def test_the_list_comes_as_a_watch_and_goes_on_as_one(acluster, client):
    await acluster.apply(nodes("a", "b"))
    mirror = Mirror(client, Target(NODES))
    async with mirror.running():
        await acluster.wait_for(lambda: mirror.reflector.synced)
        assert sorted(mirror.take()) == ["+a", "+b"]
        await acluster.apply(nodes("c"))
        await acluster.delete("Node", "a")
        await acluster.wait_for(lambda: len(mirror.calls) == 2)
        assert mirror.take() == ["+c", "-a"]
        assert (mirror.reflector.lists, mirror.reflector.streams) == (1, 1)
        assert mirror.reflector._watch_list


async def test_a_large_node_arrives_whole(acluster, client):
    labels = {f"example.com/{number:05}": "x" * 60 for number in range(3000)}  # far beyond 64 KiB
    annotations = {f"example.com/{number}": "y" * 6000 for number in range(40)}
    large = nodes("large")[0]
    large["metadata"] |= {"labels": labels, "annotations": annotations}
    mirror = Mirror(client, Target(NODES))
    async with mirror.running():
        await acluster.wait_for(lambda: mirror.reflector.synced)
        await acluster.apply([large])
        await acluster.wait_for(lambda: "large" in mirror.state)


async def test_a_bound_pod_enters_the_selector_and_a_deleted_one_leaves(acluster, client):
    await acluster.apply([*nodes("n"), pod("waiting"), pod("placed", nodeName="n")])
    mirror = Mirror(client, Target("/api/v1/pods", field_selector="spec.nodeName!="))
    async with mirror.running():
        await acluster.wait_for(lambda: mirror.reflector.synced)
        assert mirror.take() == ["+placed"]
        await acluster.bind("waiting", "n")
        await acluster.delete("Pod", "placed")
        await acluster.wait_for(lambda: mirror.state.keys() == {"waiting"})


@pytest.mark.slow
async def test_without_watch_list_pages_do_the_same():
    with ControlPlane(feature_gates={"WatchList": False}) as control_plane:
        acluster = control_plane.admin.aio
        await acluster.apply(nodes(*(f"n{number}" for number in range(25))))
        async with await KubeClient.connect(str(control_plane.kubeconfig)) as client:
            mirror = Mirror(client, Target(NODES), replace(HURRY, page=10))
            async with mirror.running():
                await acluster.wait_for(lambda: mirror.reflector.synced)
                assert not mirror.reflector._watch_list
                assert len(mirror.take()) == 25
                await acluster.delete("Node", "n7")
                await acluster.wait_for(lambda: mirror.calls == ["-n7"])


async def test_deletes_that_no_watch_can_tell_any_more_are_noticed(acluster, client, control_plane):
    """A restarted API server knows no history: it answers 410, and what vanished before shows in the list only."""
    await acluster.apply(nodes("a", "b", "c"))
    mirror = Mirror(client, Target(NODES))
    async with mirror.running():
        await acluster.wait_for(lambda: mirror.reflector.synced)
    mirror.take()
    old = (await acluster.get("Node", "c"))["metadata"]["uid"]
    await acluster.delete("Node", "b")
    await acluster.delete("Node", "c")
    await acluster.apply(nodes("c", "d"))
    await asyncio.to_thread(control_plane.restart_apiserver)
    async with mirror.running():
        await acluster.wait_for(lambda: mirror.reflector.lists == 2)
        assert sorted(mirror.calls) == ["+c", "+d", "-b", "-c"]
        assert mirror.calls.index("-c") < mirror.calls.index("+c")
        assert mirror.state["c"] != old


async def test_an_api_server_that_crashes_and_returns_causes_no_storm(acluster, client, control_plane):
    await acluster.apply(nodes("a", "b"))
    mirror = Mirror(client, Target(NODES))
    async with mirror.running():
        await acluster.wait_for(lambda: mirror.reflector.synced)
        mirror.take()
        await asyncio.to_thread(control_plane.stop_apiserver)
        await acluster.wait_for(lambda: mirror.troubles == [Trouble.UNREACHABLE])
        await asyncio.to_thread(control_plane.start_apiserver)
        await acluster.apply(nodes("c"))
        await acluster.wait_for(lambda: "c" in mirror.state)
        assert mirror.take() == ["+c"]
        await acluster.wait_for(lambda: mirror.troubles[-1] is Trouble.NONE)


async def test_a_frozen_api_server_is_given_up_and_found_again(acluster, client, control_plane):
    """The connection stays open and nothing comes, as when a network swallows packets."""
    await acluster.apply(nodes("a"))
    mirror = Mirror(client, Target(NODES), replace(HURRY, silence=0.3))
    async with mirror.running():
        await acluster.wait_for(lambda: mirror.reflector.synced)
        streams = mirror.reflector.streams
        await asyncio.to_thread(control_plane.pause_apiserver)
        await acluster.wait_for(lambda: mirror.troubles)
        await asyncio.to_thread(control_plane.resume_apiserver)
        await acluster.apply(nodes("b"))
        await acluster.wait_for(lambda: "b" in mirror.state)
        assert mirror.reflector.streams > streams
        assert mirror.take() == ["+a", "+b"]


async def test_refresh_is_as_new_as_the_call_within_two_seconds(acluster, client):
    await acluster.apply(nodes("a"))
    mirror = Mirror(client, Target(NODES))
    async with mirror.running():
        await acluster.wait_for(lambda: mirror.reflector.synced)
        await acluster.apply([pod("unrelated")])  # moves the version on, and no node's watch tells of it
        started = time.monotonic()
        await mirror.reflector.refresh()
        assert time.monotonic() - started < 2.5
        assert mirror.reflector.lists == 1  # a bookmark was enough
        assert mirror.take() == ["+a"]


async def test_a_forbidden_watch_starts_as_soon_as_it_is_allowed(acluster, control_plane):
    kubeconfig = await asyncio.to_thread(control_plane.user, "watcher", [])
    async with await KubeClient.connect(str(kubeconfig)) as client:
        mirror = Mirror(client, Target(NODES))
        async with mirror.running():
            await acluster.wait_for(lambda: mirror.troubles == [Trouble.FORBIDDEN])
            rule = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list", "watch"]}
            await asyncio.to_thread(control_plane.user, "watcher", [rule])
            await acluster.wait_for(lambda: mirror.reflector.synced)
            await acluster.wait_for(lambda: mirror.troubles[-1] is Trouble.NONE)
            assert mirror.troubles == [Trouble.FORBIDDEN, Trouble.NONE]


async def test_one_event_of_a_pod_costs_little(acluster, client):
    """B35: below 0.3 ms of CPU for one event of a pod, decoded."""
    await acluster.apply([*nodes("n"), *(pod(f"p{number}", nodeName="n") for number in range(500))])
    mirror = Mirror(client, Target("/api/v1/pods"))
    before = os.times()
    async with mirror.running():
        await acluster.wait_for(lambda: mirror.reflector.synced)
    after = os.times()
    assert len(mirror.state) == 500
    assert (after.user - before.user) / 500 < 0.0003
