"""Policies by watches of our own: as a Kopf handler would be told of them."""

import asyncio
import contextlib
from typing import Any

import pytest

from moorage.adapters.kube.policy_kinds import CLUSTER_SCHEDULING_POLICY, SCHEDULING_POLICY
from moorage.adapters.telemetry.metrics import Metrics
from moorage.assembly.policy_streams import PolicyStreams
from tests.kit.fake_api import FakeApi
from tests.kit.fakes import FakeClock


@pytest.fixture
async def api():
    async with FakeApi() as api:
        yield api


async def test_policies_come_and_go(api):
    told: asyncio.Queue[Any] = asyncio.Queue()
    client = api.client()
    streams = PolicyStreams(client, lambda kind, obj: told.put_nowait((kind, obj)), Metrics(FakeClock()))
    path = SCHEDULING_POLICY.path
    made = api.put(path, {"metadata": {"namespace": "team", "name": "p"}, "spec": {"selector": {}}})
    uid = made["metadata"]["uid"]
    with contextlib.suppress(asyncio.CancelledError):
        async with asyncio.TaskGroup() as tasks:
            streams.start(tasks)
            kind, shown = await asyncio.wait_for(told.get(), 30)
            assert (kind, shown["metadata"]["uid"], shown["spec"]) == (None, uid, {"selector": {}})
            api.remove(path, "p", "team")
            kind, shown = await asyncio.wait_for(told.get(), 30)
            assert kind == "DELETED"
            assert shown == {"metadata": {"namespace": "team", "name": "p", "uid": uid}}
            api.put(CLUSTER_SCHEDULING_POLICY.path, {"metadata": {"name": "q"}})
            kind, shown = await asyncio.wait_for(told.get(), 30)
            assert (kind, shown["metadata"]["name"]) == (None, "q")
            raise asyncio.CancelledError
    await client.close()
