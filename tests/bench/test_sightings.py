"""The clock of the benchmarks sees what it is asked for, and leaves nothing behind."""

import asyncio
import gc

import pytest

from tests.bench.api import Api
from tests.bench.objects import node, pod
from tests.bench.sightings import BOUND, Sightings
from tests.controlplane.controlplane import ControlPlane

pytestmark = pytest.mark.integration


def test_a_pod_is_seen_once_it_is_bound():
    """Others' pods are not counted; a watch is given up at once, though the API server does not answer any more."""

    async def look(plane: ControlPlane) -> tuple[set[str], set[str]]:
        async with Api.of(plane) as api:
            await api.create(node(0))
            async with Sightings(api, 2) as created, Sightings(api, 1, BOUND) as bound:
                await api.create_all([pod("bench-1"), pod("bench-2"), pod("aside-1", nodeName="node-0")])
                await created.wait(30)
                assert not bound.times
                await asyncio.to_thread(plane.admin.bind, "bench-2", "node-0")
                await bound.wait(30)
                seen = set(created.times), set(bound.times)
                plane.pause_apiserver()
        return seen

    with ControlPlane() as plane:
        seen = asyncio.run(look(plane))
        gc.collect()  # warns of connections that are open still, which fails the test
        plane.resume_apiserver()
    assert seen == ({"bench-1", "bench-2"}, {"bench-2"})
