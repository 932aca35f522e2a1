"""The lease on a real API server, held by tasks and by real processes that are stopped and killed."""

import asyncio
import json
import os
import signal
import sys
import time
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from moorage.adapters.kube.client import KubeClient
from moorage.adapters.kube.lease import LeaderElector, LeaseSettings

QUICK = LeaseSettings(lease_duration=2.0, renew_deadline=1.2, retry_period=0.2)
SETTINGS = "LeaseSettings(lease_duration=2.0, renew_deadline=1.2, retry_period=0.2)"

# A candidate as a process: says on each line whether it leads, every 5 ms and at every change.
CANDIDATE = f"""
import asyncio, json, sys, time
from moorage.adapters.kube.client import KubeClient
from moorage.adapters.kube.lease import LeaderElector, LeaseSettings

async def main(kubeconfig, name):
    async with await KubeClient.connect(kubeconfig) as client:
        elector = LeaderElector(client.separate(), {SETTINGS}, identity=name)
        task = asyncio.create_task(elector.run())
        while not task.done():
            print(json.dumps([time.monotonic(), elector.holds()]), flush=True)
            await asyncio.sleep(0.005)
        await task

asyncio.run(main(*sys.argv[1:]))
"""


@asynccontextmanager
async def candidate(client: KubeClient, name: str, settings: LeaseSettings = QUICK):
    own = client.separate()
    elector = LeaderElector(own, settings, identity=name)
    task = asyncio.create_task(elector.run())
    try:
        yield elector
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await own.close()


@pytest.fixture
async def client(control_plane):
    async with await KubeClient.connect(str(control_plane.kubeconfig)) as client:
        yield client


async def lease(acluster):
    return await acluster.get("Lease", "moorage", "kube-system")


async def test_it_is_taken_renewed_and_released_as_the_server_likes_it(acluster, client):
    async with candidate(client, "a") as a:
        await acluster.wait_for(lambda: a.is_leader)
        first = (await lease(acluster))["spec"]
        assert first["holderIdentity"] == "a"
        await asyncio.sleep(0.3)
        renewed = (await lease(acluster))["spec"]
        assert renewed["renewTime"] > first["renewTime"]
        assert renewed["acquireTime"] == first["acquireTime"]
    released = (await lease(acluster))["spec"]
    assert not released.get("holderIdentity")
    assert released["leaseDurationSeconds"] == 1

    started = time.monotonic()
    async with candidate(client, "b") as b:
        await acluster.wait_for(lambda: b.is_leader)
        assert time.monotonic() - started < 1.0
        assert (await lease(acluster))["spec"]["leaseTransitions"] == 1


async def test_of_many_one_leads(acluster, client):
    async with candidate(client, "a") as a, candidate(client, "b") as b, candidate(client, "c") as c:
        everyone = (a, b, c)
        await acluster.wait_for(lambda: any(elector.is_leader for elector in everyone))
        for _ in range(50):
            await asyncio.sleep(0.01)
            assert [elector.is_leader for elector in everyone].count(True) == 1
        await acluster.wait_for(lambda: len({elector.leader for elector in everyone}) == 1)


async def test_an_api_server_that_restarts_does_not_change_the_leader(acluster, client, control_plane):
    """Down for about two seconds: well within the times that everyone uses."""
    async with candidate(client, "a", LeaseSettings()) as a:
        await acluster.wait_for(lambda: a.is_leader)
        await asyncio.to_thread(control_plane.restart_apiserver)
        await asyncio.sleep(0.3)
        assert a.is_leader
        assert a.terms == 1


async def test_a_frozen_api_server_ends_the_lead_in_time(acluster, client, control_plane):
    async with candidate(client, "a") as a:
        await acluster.wait_for(lambda: a.is_leader)
        await asyncio.to_thread(control_plane.pause_apiserver)
        frozen = time.monotonic()
        try:
            await acluster.wait_for(lambda: not a.is_leader, 5)
            assert time.monotonic() - frozen <= QUICK.renew_deadline + 0.5
        finally:
            await asyncio.to_thread(control_plane.resume_apiserver)
        await acluster.wait_for(lambda: a.is_leader)


class Process:
    """A candidate process, and everything it has said."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self.process = process
        self.log = log

    def said(self) -> list[tuple[float, bool]]:
        return [tuple(json.loads(line)) for line in self.log.read_text().splitlines()]

    def leads(self) -> bool:
        said = self.said()
        return bool(said) and said[-1][1]

    def send(self, number: int) -> None:
        os.kill(self.process.pid, number)


@pytest.fixture
async def processes(control_plane, tmp_path):
    started: list[Process] = []

    async def start(name: str) -> Process:
        log = tmp_path / name
        path = os.pathsep.join(entry for entry in sys.path if entry)
        with log.open("w") as output:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", CANDIDATE, str(control_plane.kubeconfig), name,
                stdout=output, env={**os.environ, "PYTHONPATH": path},
            )  # fmt: skip
        started.append(Process(process, log))
        return started[-1]

    yield start
    for made in started:
        if made.process.returncode is None:
            made.process.kill()
        await made.process.wait()


async def test_a_leader_stopped_for_a_while_does_not_lead_for_an_instant_after_it(acluster, processes):
    """B34: SIGSTOP, another takes over, SIGCONT; the first thing it finds out is that it does not lead."""
    first = await processes("first")
    await acluster.wait_for(first.leads)
    second = await processes("second")
    await acluster.wait_for(second.said)
    first.send(signal.SIGSTOP)
    await asyncio.sleep(0.05)
    before = len(first.said())
    await acluster.wait_for(second.leads)
    first.send(signal.SIGCONT)
    await acluster.wait_for(lambda: len(first.said()) > before + 20)

    assert not any(leading for _, leading in first.said()[before:])
    last = max(when for when, leading in first.said() if leading)
    took_over = min(when for when, leading in second.said() if leading)
    assert took_over > last
    assert (await lease(acluster))["spec"]["holderIdentity"] == "second"


async def test_a_killed_leader_is_replaced_after_its_lease(acluster, processes):
    first = await processes("first")
    await acluster.wait_for(first.leads)
    second = await processes("second")
    await acluster.wait_for(second.said)
    first.send(signal.SIGKILL)
    killed = time.monotonic()
    await acluster.wait_for(second.leads)
    took_over = min(when for when, leading in second.said() if leading)
    assert 2.0 - 0.4 <= took_over - killed <= 2.0 + 1.0
