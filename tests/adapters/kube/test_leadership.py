"""Leadership on a fake API server: when deciding is allowed, and what a lost lease does."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from moorage.adapters.kube.errors import ServerError
from moorage.adapters.kube.leadership import Leadership, LeaseLost
from moorage.adapters.kube.lease import LeaseSettings
from tests.kit.fake_api import FakeApi

QUICK = LeaseSettings(lease_duration=1.0, renew_deadline=0.6, retry_period=0.05)
LEASES = "/apis/coordination.k8s.io/v1/leases"


class Rig:
    """A candidate; ``gate`` lets its refreshes end."""

    def __init__(self, api, lease=QUICK):
        self.refreshes = self.wakes = 0
        self.failures: list[Exception] = []
        self.lost: list[LeaseLost] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.leadership = Leadership(
            api.client(),
            lease,
            refresh=self.refresh,
            wake=self.wake,
            on_lost=self.lost.append,
            retry=0.01,
        )

    async def refresh(self):
        self.refreshes += 1
        await self.gate.wait()
        if self.failures:
            raise self.failures.pop()

    def wake(self):
        self.wakes += 1

    @asynccontextmanager
    async def running(self):
        task = asyncio.create_task(self.leadership.run())
        try:
            yield task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def until(self, condition):
        async with asyncio.timeout(5):
            while not condition():
                await asyncio.sleep(0.005)


def hold(api, holder):
    """Write the lease as its holder, or as one who has released it (an empty name)."""
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15 if holder else 1}
    api.put(LEASES, {"metadata": {"name": "moorage", "namespace": "kube-system"}, "spec": spec})


@pytest.fixture
async def api():
    async with FakeApi() as api:
        yield api


async def test_a_list_taken_under_the_lease_needs_no_second_look(api):
    rig = Rig(api)
    async with rig.running():
        await rig.leadership.before_first_list()
        assert rig.leadership.allowed
        await asyncio.sleep(0.05)
    assert rig.refreshes == 0


async def test_a_standby_looks_again_when_it_takes_over(api):
    hold(api, "another")
    rig = Rig(api)
    rig.gate.clear()
    async with rig.running():
        await rig.leadership.before_first_list()
        assert not rig.leadership.allowed
        hold(api, "")
        await rig.until(lambda: rig.refreshes == 1)
        assert rig.leadership.holds()
        assert not rig.leadership.allowed, "what the other one has bound is not known yet"
        rig.gate.set()
        await rig.until(lambda: rig.leadership.allowed)
        assert rig.wakes == 1


async def test_a_refresh_that_fails_is_tried_again(api):
    hold(api, "another")
    rig = Rig(api)
    rig.failures.append(ServerError(500))
    async with rig.running():
        await rig.leadership.before_first_list()
        hold(api, "")
        await rig.until(lambda: rig.leadership.allowed)
    assert rig.refreshes == 2


async def test_losing_the_lease_is_told_and_ends_the_permission(api):
    rig = Rig(api)
    async with rig.running():
        await rig.leadership.before_first_list()
        hold(api, "another")
        await rig.until(lambda: rig.lost)
        assert not rig.leadership.allowed
        assert not rig.leadership.holds()


async def test_stepping_down_is_no_loss(api):
    rig = Rig(api)
    async with rig.running():
        await rig.leadership.before_first_list()
        rig.leadership.step_down()
    assert rig.lost == []
    assert not api.get(LEASES, "moorage", "kube-system")["spec"]["holderIdentity"]


async def test_without_a_lease_it_is_always_allowed(api):
    rig = Rig(api, lease=None)
    async with rig.running():
        await rig.leadership.before_first_list()
        assert rig.leadership.allowed
    assert api.requests == []
